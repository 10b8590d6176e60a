// Writes an archive (deploy/runtime/bundle/archive.h) in pieces: no member need be in memory as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/support/file.h"
#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/hash.h"

namespace hone {

// The file appears with Commit, whole, or not at all (AtomicFile).
class ArchiveWriter {
 public:
  // `members`: how many there will be, neither more nor fewer.
  static absl::StatusOr<ArchiveWriter> Create(const std::string& path, size_t members);

  absl::Status Begin(std::string name);  // a member, behind the one before
  absl::Status Append(std::string_view bytes);
  absl::Status Add(std::string name, std::string_view bytes);  // a whole member
  // Of the member begun last.
  uint64_t member_bytes() const { return places_.back().bytes; }
  absl::Status ReadBack(uint64_t offset, std::span<char> to) const;

  // The head, after the last member; afterwards the file at temporary_path() is what Commit gives its name.
  absl::Status Finish();
  const std::string& temporary_path() const { return file_.temporary_path(); }
  absl::Status Commit() { return file_.Commit(); }

 private:
  ArchiveWriter(AtomicFile file, size_t members) : file_(std::move(file)), members_(members) {}
  absl::Status FillTo(uint64_t offset);  // with zeros
  void EndMember();

  AtomicFile file_;
  size_t members_;
  std::vector<ArchivePlace> places_;
  Hash64Stream checksum_;  // of the member begun last
};

}  // namespace hone
