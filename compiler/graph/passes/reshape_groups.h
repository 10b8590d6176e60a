// Which dimensions of a reshape belong together.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/passes/rewrite.h"

namespace hone {

// Dimensions [from_begin, from_end) of the one shape hold the same elements as [to_begin, to_end) of the other.
struct ReshapeGroup {
  int64_t from_begin, from_end, to_begin, to_end;
};

// The smallest such groups, in order; a dimension of size 1 joins the group in front of it or stands alone where both
// have it. nullopt when a shape has a dimension of size 0.
std::optional<std::vector<ReshapeGroup>> ReshapeGroups(const std::vector<int64_t>& from,
                                                       const std::vector<int64_t>& to);

// The operand of an elementwise node whose result gets the shape `inner` in place of `outer`; `groups` are those from
// `inner` to `outer`. nullopt when its broadcasting does not survive that.
absl::StatusOr<std::optional<int>> Unreshaped(Rewriting& r, const Node& node, int input,
                                              const std::vector<int64_t>& inner, const std::vector<int64_t>& outer,
                                              const std::vector<ReshapeGroup>& groups);

}  // namespace hone
