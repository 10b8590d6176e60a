#include "tests/database/fault_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "compiler/support/check.h"
#include "compiler/support/random.h"

namespace hone {
namespace {

constexpr size_t kSector = 512;

struct Change {  // since the last sync
  int64_t offset = 0;
  std::string bytes;
  bool truncate = false;  // to `offset`
};
struct FileState {
  std::string synced;
  std::vector<Change> since;
};

// SQLite calls plain functions: what they share.
struct State {
  std::recursive_mutex mutex;  // a look from inside an operation may ask for an image
  sqlite3_vfs* real = nullptr;
  std::map<std::string, FileState> files;
  std::optional<int64_t> left;  // operations until the first that fails
  Fault fault = Fault::kNoSpace;
  bool failed = false;
  std::atomic<int64_t> reads{0};
  std::function<void()> before_each;
};
State state;

struct ShimFile {
  sqlite3_file base;
  const char* path;  // SQLite's, alive as long as the file is open; nullptr for a temporary one
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};
ShimFile* Shim(sqlite3_file* file) { return reinterpret_cast<ShimFile*>(file); }

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Apply(const Change& change, const std::string& bytes, size_t at, std::string* content) {
  if (change.truncate) {
    content->resize(static_cast<size_t>(change.offset));
    return;
  }
  const size_t begin = static_cast<size_t>(change.offset) + at;
  if (content->size() < begin + bytes.size()) content->resize(begin + bytes.size());
  content->replace(begin, bytes.size(), bytes);
}

// What the operation under way returns instead of being done; SQLITE_OK: it is done.
int FaultNow(int io_error) {
  if (state.before_each) state.before_each();
  if (!state.left.has_value()) return SQLITE_OK;
  if (state.fault == Fault::kNoIndex && io_error != SQLITE_IOERR_SHMSIZE) return SQLITE_OK;
  if (--*state.left > 0) return SQLITE_OK;
  state.failed = true;
  errno = state.fault == Fault::kNoSpace || state.fault == Fault::kNoIndex ? ENOSPC : EIO;
  return state.fault == Fault::kNoSpace && io_error == SQLITE_IOERR_WRITE ? SQLITE_FULL : io_error;
}

int Close(sqlite3_file* file) { return Shim(file)->real()->pMethods->xClose(Shim(file)->real()); }
int Read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  ++state.reads;
  return Shim(file)->real()->pMethods->xRead(Shim(file)->real(), to, size, offset);
}
int DoWrite(ShimFile* file, const void* from, int size, sqlite3_int64 offset) {
  const int result = file->real()->pMethods->xWrite(file->real(), from, size, offset);
  if (result == SQLITE_OK && file->path != nullptr) {
    state.files[file->path].since.push_back({offset, std::string(static_cast<const char*>(from), size)});
  }
  return result;
}
int Write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  const int fault = FaultNow(SQLITE_IOERR_WRITE);
  if (fault == SQLITE_OK) return DoWrite(Shim(file), from, size, offset);
  if (state.fault == Fault::kShortWrite) DoWrite(Shim(file), from, size / 2, offset);
  return fault;
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  if (const int fault = FaultNow(SQLITE_IOERR_TRUNCATE); fault != SQLITE_OK) return fault;
  const int result = Shim(file)->real()->pMethods->xTruncate(Shim(file)->real(), size);
  if (result == SQLITE_OK && Shim(file)->path != nullptr)
    state.files[Shim(file)->path].since.push_back({size, "", true});
  return result;
}
int Sync(sqlite3_file* file, int flags) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  if (const int fault = FaultNow(SQLITE_IOERR_FSYNC); fault != SQLITE_OK) return fault;
  // Not handed on: the machine under the test keeps its power.
  if (Shim(file)->path == nullptr) return SQLITE_OK;
  FileState& known = state.files[Shim(file)->path];
  for (const Change& change : known.since) Apply(change, change.bytes, 0, &known.synced);
  known.since.clear();
  return SQLITE_OK;
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Shim(file)->real()->pMethods->xFileSize(Shim(file)->real(), size);
}
int Lock(sqlite3_file* file, int level) { return Shim(file)->real()->pMethods->xLock(Shim(file)->real(), level); }
int Unlock(sqlite3_file* file, int level) { return Shim(file)->real()->pMethods->xUnlock(Shim(file)->real(), level); }
int CheckLock(sqlite3_file* file, int* held) {
  return Shim(file)->real()->pMethods->xCheckReservedLock(Shim(file)->real(), held);
}
int Control(sqlite3_file* file, int what, void* argument) {
  if (what == SQLITE_FCNTL_SIZE_HINT) return SQLITE_OK;  // all growth is by writes
  return Shim(file)->real()->pMethods->xFileControl(Shim(file)->real(), what, argument);
}
int SectorSize(sqlite3_file*) { return kSector; }
int Characteristics(sqlite3_file*) { return 0; }  // nothing is promised: no atomic writes, no order
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** at) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  if (extend != 0) {  // the index of the log grows
    if (const int fault = FaultNow(SQLITE_IOERR_SHMSIZE); fault != SQLITE_OK) return fault;
  }
  return Shim(file)->real()->pMethods->xShmMap(Shim(file)->real(), page, size, extend, at);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Shim(file)->real()->pMethods->xShmLock(Shim(file)->real(), offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) { Shim(file)->real()->pMethods->xShmBarrier(Shim(file)->real()); }
int ShmUnmap(sqlite3_file* file, int remove) {
  return Shim(file)->real()->pMethods->xShmUnmap(Shim(file)->real(), remove);
}

const sqlite3_io_methods kMethods = {
    2,          Close,           Read,   Write,   Truncate,   Sync,     FileSize, Lock,   Unlock, CheckLock, Control,
    SectorSize, Characteristics, ShmMap, ShmLock, ShmBarrier, ShmUnmap, nullptr,  nullptr};

int Open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  ShimFile* shim = new (file) ShimFile{};
  const int result = state.real->xOpen(state.real, path, shim->real(), flags, out_flags);
  if (result != SQLITE_OK) return result;
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  shim->base.pMethods = &kMethods;
  shim->path = path;
  if (path != nullptr && state.files.count(path) == 0) state.files[path].synced = Content(path);
  return result;
}
int Delete(sqlite3_vfs*, const char* path, int sync) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  state.files.erase(path);
  return state.real->xDelete(state.real, path, sync);
}

}  // namespace

FaultVfs::FaultVfs() {
  static sqlite3_vfs shim;
  state.real = sqlite3_vfs_find("unix");
  state.reads = 0;
  shim = *state.real;
  shim.zName = "hone-fault";
  shim.szOsFile = static_cast<int>(sizeof(ShimFile)) + state.real->szOsFile;
  shim.xOpen = Open;
  shim.xDelete = Delete;
  HONE_CHECK(sqlite3_vfs_register(&shim, /*makeDflt=*/1) == SQLITE_OK);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(sqlite3_vfs_find("hone-fault"));
  sqlite3_vfs_register(state.real, 1);
  state.files.clear();
  state.before_each = nullptr;
  Heal();
}

void FaultVfs::FailFrom(int64_t n, Fault fault) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  state.left = n;
  state.fault = fault;
  state.failed = false;
}
void FaultVfs::Heal() {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  state.left.reset();
}
bool FaultVfs::failed() const { return state.failed; }
int64_t FaultVfs::reads() const { return state.reads; }

void FaultVfs::BeforeEach(std::function<void()> look) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  state.before_each = std::move(look);
}

void FaultVfs::LosePower(const std::string& to, uint64_t seed) {
  const std::lock_guard<std::recursive_mutex> guard(state.mutex);
  std::filesystem::create_directories(to);
  Random random(seed);
  for (const auto& [path, file] : state.files) {
    std::string content = file.synced;
    for (const Change& change : file.since) {
      const uint64_t choice = random.Below(3);
      if (choice == 0) continue;
      if (choice == 1 || change.truncate) {
        Apply(change, change.bytes, 0, &content);
        continue;
      }
      for (size_t at = 0; at < change.bytes.size(); at += kSector) {
        if (random.Below(2) == 0) Apply(change, change.bytes.substr(at, kSector), at, &content);
      }
    }
    std::ofstream(std::filesystem::path(to) / std::filesystem::path(path).filename(), std::ios::binary) << content;
  }
}

}  // namespace hone
