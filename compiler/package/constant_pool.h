// The constants of a bundle: each stored once, aligned, however many steps read it.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "compiler/package/archive_writer.h"

namespace hone {

// Writes them into the member that `archive` has begun last. None is kept in memory.
class ConstantPool {
 public:
  explicit ConstantPool(ArchiveWriter& archive, int64_t alignment = 64)
      : archive_(archive), alignment_(static_cast<size_t>(alignment)) {}
  // Where the bytes lie in the member: equal ones, of whatever origin, share a place.
  absl::StatusOr<int64_t> Add(std::string_view constant);

 private:
  absl::StatusOr<bool> Holds(uint64_t offset, std::string_view constant) const;

  ArchiveWriter& archive_;
  const size_t alignment_;
  std::multimap<std::pair<uint64_t, size_t>, int64_t> places_;  // (hash, bytes) to offset
};

}  // namespace hone
