/* Loaded before libc into a daemon under test: while the file named by HONE_TEST_FULL_DISK is there, nothing more can
   be written to a file whose name holds ".db", as on a full disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int disk_is_full_for(int fd) {
  const char* flag = getenv("HONE_TEST_FULL_DISK");
  char link[64], path[4096];
  if (flag == NULL || access(flag, F_OK) != 0) return 0;
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  if (size <= 0) return 0;
  path[size] = 0;
  return strstr(path, ".db") != NULL && strstr(path, ".db.lo") == NULL; /* neither .db.lock nor .db.log */
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  static ssize_t (*real)(int, const void*, size_t, off64_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "pwrite64");
  if (disk_is_full_for(fd)) {
    errno = ENOSPC;
    return -1;
  }
  return real(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) { return pwrite64(fd, bytes, size, offset); }

ssize_t write(int fd, const void* bytes, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "write");
  if (disk_is_full_for(fd)) {
    errno = ENOSPC;
    return -1;
  }
  return real(fd, bytes, size);
}
