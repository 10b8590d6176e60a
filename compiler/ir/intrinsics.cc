#include "compiler/ir/intrinsics.h"

#include <algorithm>

namespace hone {
namespace {

constexpr IntrinsicInfo kIntrinsics[] = {
    {"exp", 1},
    {"exp2", 1},
    {"log", 1},
    {"log2", 1},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"tanh", 1},
    {"erf", 1},
    {"sigmoid", 1},
    {"sin", 1},
    {"cos", 1},
    {"tan", 1},
    {"pow", 2},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"trunc", 1},
    {"abs", 1},
    {"fma", 3},
    {"isnan", 1, true},
    {"isinf", 1, true},
    {"popcount", 1},
    {.name = "prefetch", .arity = 1, .stands_alone = true},
    {.name = "tvm_storage_sync", .arity = 1, .stands_alone = true},  // effects.h
    {.name = "atomic_add", .arity = 2, .stands_alone = true},
    {.name = "atomic_min", .arity = 2, .stands_alone = true},
    {.name = "atomic_max", .arity = 2, .stands_alone = true},
    {.name = "async_copy", .arity = 2, .stands_alone = true},
    {.name = "ptx_commit_group", .arity = 1, .stands_alone = true},
    {.name = "ptx_wait_group", .arity = 1, .stands_alone = true},
};

}  // namespace

std::span<const IntrinsicInfo> Intrinsics() { return kIntrinsics; }

const IntrinsicInfo* FindIntrinsic(std::string_view name) {
  const auto* found = std::ranges::find(kIntrinsics, name, &IntrinsicInfo::name);
  return found == std::end(kIntrinsics) ? nullptr : found;
}

}  // namespace hone
