// Results on disk until the daemon has them. A worker that is killed while the daemon is away tells them when it is
// started again on the same folder; the daemon counts each once, by its lease's token.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/fleet.pb.h"

namespace hone {

class Spool {
 public:
  // Makes the folder where there is none. FailedPrecondition when another worker has it; otherwise as the file system
  // says. Files that are damaged are removed, and said in the log.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& folder, int64_t most_bytes);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // What an earlier worker left, in no order.
  std::vector<v1::TrialResult> TakeFound() { return std::move(found_); }
  // A secret of this folder, by which the daemon knows the worker again: 16 bytes.
  const std::string& identity() const { return identity_; }

  // On disk when this returns OK. Where it would not fit, it is kept without its object.
  absl::Status Add(const v1::TrialResult& result);
  void Remove(const v1::LeaseId& id);
  // So full that no more work should be taken: what remains is for the leases in hand.
  bool full() const { return bytes_ > most_bytes_ / 4 * 3; }
  size_t size() const { return sizes_.size(); }

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint64_t>;
  Spool(std::string folder, int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  absl::Status ReadIdentity();
  absl::Status ReadFound();
  std::string PathOf(const Key& key) const;

  const std::string folder_;
  const int64_t most_bytes_;
  int fd_ = -1;  // of the folder, locked
  std::string identity_;
  std::vector<v1::TrialResult> found_;
  std::map<Key, int64_t> sizes_;
  int64_t bytes_ = 0;
};

}  // namespace hone
