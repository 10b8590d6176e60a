#include "worker/agent/session/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr char kSuffix[] = ".result";

// A file is the digest of the message, then the message.
std::string FileOf(const v1::TrialResult& result) {
  const std::string message = result.SerializeAsString();
  return Sha256(message) + message;
}

std::tuple<uint64_t, uint32_t, uint64_t> KeyOf(const v1::LeaseId& id) { return {id.trial(), id.attempt(), id.epoch()}; }

}  // namespace

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const std::string& folder, int64_t most_bytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::unique_ptr<Spool> spool(new Spool(folder, most_bytes));
  spool->fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (spool->fd_ < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": ", std::strerror(errno), "; name a folder that this user may write in"));
  }
  if (::flock(spool->fd_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": another worker keeps its results there; give each worker a folder of its own"));
  }
  ::fchmod(spool->fd_, 0700);  // leases' secrets are in it
  CrashPoint("spool.locked");
  HONE_RETURN_IF_ERROR(spool->ReadIdentity());
  HONE_RETURN_IF_ERROR(spool->ReadFound());
  CrashPoint("spool.read");
  return spool;
}

Spool::~Spool() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status Spool::ReadIdentity() {
  const std::string path = folder_ + "/identity";
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (bytes.ok() && bytes->size() == 16) {
    identity_ = *std::move(bytes);
    return absl::OkStatus();
  }
  if (!bytes.ok() && !absl::IsNotFound(bytes.status())) return bytes.status();
  std::random_device device;
  for (int i = 0; i < 16; ++i) identity_.push_back(static_cast<char>(device()));
  return WriteFileAtomically(path, identity_);
}

absl::Status Spool::ReadFound() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StrContains(name, ".tmp.")) ::unlink(entry.path().c_str());  // of a worker that was killed in the middle
    if (!absl::EndsWith(name, kSuffix)) continue;
    HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(entry.path().string()));
    v1::TrialResult result;
    const bool whole = bytes.size() >= kSha256Bytes &&
                       Sha256(bytes.substr(kSha256Bytes)) == bytes.substr(0, kSha256Bytes) &&
                       result.ParseFromString(bytes.substr(kSha256Bytes));
    if (!whole) {
      spdlog::error("{} is damaged and removed: the trial is made again", entry.path().string());
      ::unlink(entry.path().c_str());
      continue;
    }
    sizes_[KeyOf(result.id())] = static_cast<int64_t>(bytes.size());
    bytes_ += static_cast<int64_t>(bytes.size());
    found_.push_back(std::move(result));
  }
  if (error) return absl::InternalError(absl::StrCat("cannot read ", folder_, ": ", error.message()));
  if (!found_.empty()) spdlog::info("{} results of an earlier worker are in {}: told again", found_.size(), folder_);
  return absl::OkStatus();
}

std::string Spool::PathOf(const Key& key) const {
  return absl::StrCat(folder_, "/", std::get<0>(key), "-", std::get<1>(key), "-", std::get<2>(key), kSuffix);
}

absl::Status Spool::Add(const v1::TrialResult& result) {
  std::string bytes = FileOf(result);
  if (bytes_ + static_cast<int64_t>(bytes.size()) > most_bytes_) {
    v1::TrialResult small = result;
    small.mutable_outcome()->clear_object();
    small.mutable_outcome()->clear_kernel_set();
    bytes = FileOf(small);
  }
  const Key key = KeyOf(result.id());
  HONE_RETURN_IF_ERROR(WriteFileAtomically(PathOf(key), bytes));
  CrashPoint("spool.named");
  ::fsync(fd_);  // the name too
  CrashPoint("spool.durable");
  const int64_t size = static_cast<int64_t>(bytes.size());
  bytes_ += size - sizes_[key];
  sizes_[key] = size;
  return absl::OkStatus();
}

void Spool::Remove(const v1::LeaseId& id) {
  const auto found = sizes_.find(KeyOf(id));
  if (found == sizes_.end()) return;
  CrashPoint("spool.trimming");
  ::unlink(PathOf(found->first).c_str());
  CrashPoint("spool.trimmed");
  bytes_ -= found->second;
  sizes_.erase(found);
}

}  // namespace hone
