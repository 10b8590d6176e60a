#include "compiler/verify/outside_domain.h"

#include <algorithm>
#include <map>
#include <set>
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

std::string TextOf(const Place& place) {
  return absl::StrJoin(
      place, ", ", [](std::string* text, const auto& at) { absl::StrAppend(text, at.first.name(), " = ", at.second); });
}

// The first and the last iterations of the loops over these variables that a predicate leaves; none where they are not
// known.
std::vector<Place> Ends(const std::set<Var>& vars, const Expr& predicate, std::span<const For* const> loops) {
  Analyzer known;
  for (const Var& var : vars) {
    const auto loop = std::ranges::find(loops, var, &For::var);
    if (loop == loops.end() || !ConstantValue((*loop)->min) || ConstantValue((*loop)->extent).value_or(0) <= 0)
      return {};
    known.Bind(var, Range{(*loop)->min, (*loop)->extent});
  }
  known.Assume(predicate);
  Place first, last;
  for (const Var& var : vars) {
    const Bounds bounds = known.ConstBounds(var);
    if (!bounds.bounded() || bounds.empty()) return {};
    first[var] = bounds.min;
    last[var] = bounds.max;
  }
  return {first, last};
}

}  // namespace

std::optional<std::string> ValueOutsideDomain(const BlockRealize& realize, std::span<const For* const> loops) {
  const std::set<Var> of_predicate = FreeVars(realize.predicate);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    const std::optional<int64_t> min = ConstantValue(iter.domain.min), extent = ConstantValue(iter.domain.extent);
    if (!min.has_value() || !extent.has_value()) continue;
    std::set<Var> vars = FreeVars(realize.values[i]);
    vars.insert(of_predicate.begin(), of_predicate.end());
    for (const Place& place : Ends(vars, realize.predicate, loops)) {
      const std::optional<int64_t> value = ConstantValue(At(realize.values[i], place));
      if (!value.has_value() || (*value >= *min && *value < *min + *extent)) continue;
      if (!IsConst(At(realize.predicate, place), 1)) continue;
      return absl::StrCat(iter.var.name(), " is ", *value, place.empty() ? "" : " at ", TextOf(place),
                          ", its domain is from ", *min, " to ", *min + *extent - 1);
    }
  }
  return std::nullopt;
}

}  // namespace hone
