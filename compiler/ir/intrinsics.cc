#include "compiler/ir/intrinsics.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "compiler/ir/math_functions.h"

namespace hone {
namespace {

// What has integers too, what says something of a number, and what has an effect.
constexpr IntrinsicInfo kOthers[] = {
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

std::span<const IntrinsicInfo> Intrinsics() {
  static const auto* table = [] {
    auto* rows = new std::vector<IntrinsicInfo>;
    for (const MathFunction& f : MathFunctions()) {
      const int arity = f.of_two == nullptr ? 1 : 2;
      rows->push_back({.name = f.name, .arity = arity, .of_one = f.of_one, .of_two = f.of_two});
    }
    rows->insert(rows->end(), std::begin(kOthers), std::end(kOthers));
    return rows;
  }();
  return *table;
}

const IntrinsicInfo* FindIntrinsic(std::string_view name) {
  const std::span<const IntrinsicInfo> table = Intrinsics();
  const auto found = std::ranges::find(table, name, &IntrinsicInfo::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace hone
