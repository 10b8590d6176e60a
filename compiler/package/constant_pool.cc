#include "compiler/package/constant_pool.h"

#include "deploy/runtime/aligned_buffer.h"
#include "deploy/runtime/hash.h"

namespace hone {

int64_t ConstantPool::Add(std::string_view constant) {
  const uint64_t hash = Hash64(constant);
  const auto [begin, end] = places_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const auto [offset, size] = at->second;
    if (std::string_view(bytes_).substr(offset, size) == constant) return offset;
  }
  bytes_.resize(AlignUp(bytes_.size()));
  const int64_t offset = static_cast<int64_t>(bytes_.size());
  bytes_ += constant;
  places_.emplace(hash, std::pair(offset, static_cast<int64_t>(constant.size())));
  return offset;
}

}  // namespace hone
