// A file system for SQLite that fails on command and knows what a machine that loses power could leave: a shim over the
// usual one (https://www.sqlite.org/vfs.html). Its model of a disk is that of https://www.sqlite.org/atomiccommit.html,
// section 2: what was written is there after the sync that follows; without one it may be there, be missing, or be
// there in part, by sectors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hone {

enum class Fault {
  kNoSpace,     // ENOSPC: nothing is written
  kNoIndex,     // ENOSPC where the log's index would grow, and nowhere else
  kIoError,     // EIO: nothing is written or synced
  kShortWrite,  // EIO after half of the bytes
};

// One at a time in a process.
class FaultVfs {
 public:
  FaultVfs();  // becomes the file system of every connection that is opened from now on, until it goes
  ~FaultVfs();

  // From now on the n-th write, sync, truncation or growth of the log's index (1: the next) fails, and all after it
  // until Heal. What is no write is told SQLite as an error of input or output, with errno, as the usual one does.
  void FailFrom(int64_t n, Fault fault);
  void Heal();
  bool failed() const;  // since FailFrom

  int64_t reads() const;  // since it was made

  // Called before every such operation; may call LosePower. nullptr: nothing is called.
  void BeforeEach(std::function<void()> look);

  // Writes into the folder `to` the files as a machine that lost power now could have them: all that was synced, and of
  // each write since then, by `seed`, all, nothing or some of its sectors. Files keep their names.
  void LosePower(const std::string& to, uint64_t seed);
};

}  // namespace hone
