#include "compiler/schedule/primitives/split.h"

#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The factors as numbers, and their product.
struct Factors {
  std::vector<int64_t> numbers;
  int absent = -1;  // which of them is to be found
  int64_t product = 1;
};

absl::StatusOr<Factors> ReadFactors(const Schedule& schedule, const For& loop, const std::vector<Value>& factors) {
  if (factors.empty())
    return Invalid("split(", loop.var, "): no factors; give the extents of the new loops, such as [None, 16]");
  Factors read;
  for (size_t i = 0; i < factors.size(); ++i) {
    int64_t factor = -1;
    if (!factors[i].absent()) {
      const absl::StatusOr<int64_t> value = schedule.Evaluate(factors[i]);
      if (!value.ok()) return Annotate(value.status(), Message("split(", loop.var, ")"));
      factor = *value;
    }
    if (factor == -1) {
      if (read.absent >= 0)
        return Invalid("split(", loop.var, "): factors ", read.absent, " and ", i,
                       " are both absent; at most one may be");
      read.absent = static_cast<int>(i);
    } else if (factor < 1) {
      return Invalid("split(", loop.var, "): factor ", i, " is ", factor, ", below 1");
    } else if (factor > INT32_MAX / read.product) {
      return Invalid("split(", loop.var, "): the factors multiply to more than 2**31; the loop's extent is ",
                     loop.extent);
    } else {
      read.product *= factor;
    }
    read.numbers.push_back(factor);
  }
  return read;
}

// The extents of the new loops; the absent one found.
absl::StatusOr<std::vector<Expr>> Extents(const For& loop, const Factors& factors, Analyzer& known) {
  const int64_t product = factors.product;
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  std::vector<Expr> extents;
  for (const int64_t number : factors.numbers) extents.push_back(IntConst(number, loop.var.type()));
  if (factors.absent < 0) {
    if (extent.value_or(known.ConstBounds(loop.extent).max) > product) {
      return Invalid("split(", loop.var, "): the factors multiply to ", product, ", which does not cover the extent ",
                     loop.extent, "; leave one of them absent (None)");
    }
  } else if (extent.has_value()) {
    const int64_t count = std::max<int64_t>(1, (*extent + product - 1) / product);
    if (count > INT32_MAX / product)
      return Invalid("split(", loop.var, "): the new extents multiply to more than 2**31");
    extents[factors.absent] = IntConst(count, loop.var.type());
  } else if (factors.absent != 0) {
    return Refused("split(", loop.var, "): extent ", loop.extent,
                   " is symbolic, so the outermost of the new loops must be the one that depends on it; leave factor 0 "
                   "absent (None)");
  } else {
    extents[0] = known.Simplify(FloorDiv(loop.extent + (product - 1), IntConst(product, loop.var.type())));
  }
  return extents;
}

}  // namespace

absl::StatusOr<std::vector<LoopRef>> Split(Schedule& schedule, LoopRef ref, std::vector<Value> factors) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "split"));
  const ProgramIndex& index = schedule.index();
  const For& loop = index.loop(node);
  if (loop.kind != ForKind::kSerial) {
    return Refused("split(", loop.var, "): the loop is ", Describe(loop.kind), "; split it before it is made so");
  }
  if (!IsConst(loop.min, 0)) return Refused("split(", loop.var, "): the loop starts at ", loop.min, ", not at 0");
  HONE_ASSIGN_OR_RETURN(const Factors read, ReadFactors(schedule, loop, factors));
  Analyzer known(RangesAround(index, node));
  HONE_ASSIGN_OR_RETURN(const std::vector<Expr> extents, Extents(loop, read, known));

  // ---- nothing below fails ----
  const DType type = loop.var.type();
  std::vector<Var> vars;
  Expr value = IntConst(0, type), product = IntConst(1, type);
  for (size_t i = 0; i < extents.size(); ++i) {
    vars.emplace_back(Message(loop.var, "_", i), type);
    known.Bind(vars[i], Range{IntConst(0, type), extents[i]});
    value = value * extents[i] + Expr(vars[i]);
    product = product * extents[i];
  }
  value = known.Simplify(value);
  const Expr guard = known.CanProveEqual(product, loop.extent) ? Expr() : value < loop.extent;
  const VarMap map = [&](const Var& var) -> std::optional<Expr> {
    return var.SameAs(loop.var) ? std::optional<Expr>(value) : std::nullopt;
  };
  Stmt nest = RewriteBindings(loop.body, map, guard, known);
  if (guard && index.BlocksBelow(node).empty()) nest = Stmt::Make(IfThen{guard, std::move(nest), Stmt()});
  for (size_t i = extents.size(); i-- > 0;) {
    nest = Stmt::Make(For{vars[i], IntConst(0, type), extents[i], ForKind::kSerial, "",
                          i == 0 ? loop.annotations : Attrs(), std::move(nest)});
  }
  schedule.SetBody(index.Replace(node, std::move(nest)));
  Schedule::Outputs outputs;
  for (const Var& var : vars) outputs.push_back(Schedule::Output::Loop(var));
  const int number = schedule.Record(SplitStep{.loop = ref, .factors = std::move(factors)}, std::move(outputs));
  std::vector<LoopRef> refs;
  for (size_t i = 0; i < vars.size(); ++i) refs.push_back({number, static_cast<int>(i)});
  return refs;
}

absl::Status Apply(Schedule& schedule, const SplitStep& step) {
  return Split(schedule, step.loop, step.factors).status();
}

HONE_PRIMITIVES(split, SplitStep)

}  // namespace hone
