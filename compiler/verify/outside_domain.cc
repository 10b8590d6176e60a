#include "compiler/verify/outside_domain.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

using Place = std::map<Var, int64_t>;

Expr At(const Expr& e, const Place& place) {
  return Simplify(Substitute(e, [&](const Var& var) -> std::optional<Expr> {
    const auto found = place.find(var);
    return found == place.end() ? std::nullopt : std::optional(IntConst(found->second, var.type()));
  }));
}

// The iterations of those loops that the value or the predicate mentions.
std::string TextOf(const Place& place, const Expr& value, const Expr& predicate) {
  std::vector<std::string> parts;
  for (const auto& [var, iteration] : place) {
    if (UsesVar(value, var) || UsesVar(predicate, var)) parts.push_back(absl::StrCat(var.name(), " = ", iteration));
  }
  return parts.empty() ? "" : absl::StrCat(" at ", absl::StrJoin(parts, ", "));
}

// The first and the last iterations that a predicate leaves of the loops whose ranges are constants; of the two places
// those where it is known to hold.
std::vector<Place> Ends(const Expr& predicate, std::span<const For* const> loops) {
  Analyzer known;
  std::vector<Var> vars;
  for (const For* loop : loops) {
    if (!ConstantValue(loop->min).has_value() || ConstantValue(loop->extent).value_or(0) <= 0) continue;
    known.Bind(loop->var, Range{loop->min, loop->extent});
    vars.push_back(loop->var);
  }
  known.Assume(predicate);
  Place first, last;
  for (const Var& var : vars) {
    const Bounds bounds = known.ConstBounds(var);
    if (!bounds.bounded() || bounds.empty()) return {};
    first[var] = bounds.min;
    last[var] = bounds.max;
  }
  std::vector<Place> ends{std::move(first), std::move(last)};
  std::erase_if(ends, [&](const Place& place) { return !IsConst(At(predicate, place), 1); });
  return ends;
}

}  // namespace

std::optional<std::string> ValueOutsideDomain(const BlockRealize& realize, std::span<const For* const> loops) {
  const std::vector<Place> ends = Ends(realize.predicate, loops);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    const std::optional<int64_t> min = ConstantValue(iter.domain.min), extent = ConstantValue(iter.domain.extent);
    if (!min.has_value() || !extent.has_value()) continue;
    for (const Place& place : ends) {
      const std::optional<int64_t> value = ConstantValue(At(realize.values[i], place));
      if (!value.has_value() || (*value >= *min && *value < *min + *extent)) continue;
      return absl::StrCat(iter.var.name(), " is ", *value, TextOf(place, realize.values[i], realize.predicate),
                          ", its domain is from ", *min, " to ", *min + *extent - 1);
    }
  }
  return std::nullopt;
}

}  // namespace hone
