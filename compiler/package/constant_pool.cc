#include "compiler/package/constant_pool.h"

#include <algorithm>
#include <string>

#include "compiler/support/status_macros.h"
#include "deploy/runtime/bundle/aligned_buffer.h"
#include "deploy/runtime/hash.h"

namespace hone {

absl::StatusOr<bool> ConstantPool::Holds(uint64_t offset, std::string_view constant) const {
  constexpr size_t kPiece = 1 << 20;
  std::string piece(std::min(kPiece, constant.size()), '\0');
  for (size_t done = 0; done < constant.size(); done += piece.size()) {
    const std::string_view expected = constant.substr(done, piece.size());
    piece.resize(expected.size());
    HONE_RETURN_IF_ERROR(archive_.ReadBack(offset + done, piece));
    if (piece != expected) return false;
  }
  return true;
}

absl::StatusOr<int64_t> ConstantPool::Add(std::string_view constant) {
  const std::pair key(Hash64(constant), constant.size());
  const auto [begin, end] = places_.equal_range(key);
  for (auto at = begin; at != end; ++at) {
    HONE_ASSIGN_OR_RETURN(const bool equal, Holds(static_cast<uint64_t>(at->second), constant));
    if (equal) return at->second;
  }
  const uint64_t offset = AlignUp(archive_.member_bytes(), alignment_);
  HONE_RETURN_IF_ERROR(archive_.Append(std::string(offset - archive_.member_bytes(), '\0')));
  HONE_RETURN_IF_ERROR(archive_.Append(constant));
  places_.emplace(key, static_cast<int64_t>(offset));
  return static_cast<int64_t>(offset);
}

}  // namespace hone
