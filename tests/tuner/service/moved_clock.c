/* Loaded before libc into a daemon under test: its clock on the wall is off by the seconds, an int64_t, that stand in
   the file named by HONE_TEST_MOVED_CLOCK, from the moment they are written there. The monotonic clock is left alone,
   and a wait for a time of the moved clock ends when that clock has come there, as the kernel has it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t unmoved;
static const int64_t* moved_by = &unmoved;

__attribute__((constructor)) static void find_file(void) {
  const char* path = getenv("HONE_TEST_MOVED_CLOCK");
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return; /* a search in its sandbox sees no files */
  void* file = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (file != MAP_FAILED) moved_by = file;
  close(fd);
}

static int64_t moved_seconds(void) { return __atomic_load_n(moved_by, __ATOMIC_RELAXED); }

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += moved_seconds();
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec precise;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != NULL) *to = now.tv_sec;
  return now.tv_sec;
}

static int is_before(const struct timespec* a, const struct timespec* b) {
  return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Abseil waits until a time of the clock on the wall. In short parts, so that a clock that is moved meanwhile counts.
 */
static long wait_on_futex(long (*real)(long, ...), long* futex, long operation, long value,
                          const struct timespec* until, long mask) {
  for (;;) {
    struct timespec now, end;
    clock_gettime(CLOCK_REALTIME, &now);
    if (!is_before(&now, until)) {
      errno = ETIMEDOUT;
      return -1;
    }
    end = now;
    end.tv_nsec += 20 * 1000 * 1000;
    if (end.tv_nsec >= 1000 * 1000 * 1000) {
      end.tv_nsec -= 1000 * 1000 * 1000;
      ++end.tv_sec;
    }
    if (is_before(until, &end)) end = *until;
    end.tv_sec -= moved_seconds(); /* the kernel's clock is where it was */
    const long result = real(SYS_futex, futex, operation, value, &end, NULL, mask);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
}

long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  const int waits_until = number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
                          (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0;
  if (!waits_until) return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return wait_on_futex(real, (long*)a[0], a[1], a[2], (const struct timespec*)a[3], a[5]);
}
