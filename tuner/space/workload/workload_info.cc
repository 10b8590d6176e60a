#include "tuner/space/workload/workload_info.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Weights in units of one multiply or add; transcendental functions cost about a polynomial of their degree.
double OperationsOf(const Expr& root) {
  double total = 0;
  ForEachExpr(root, [&](const Expr& e) {
    if (e.As<Load>() != nullptr) return false;  // index arithmetic is not counted
    if (const Binary* binary = e.As<Binary>()) total += e.type().is_float() && binary->op == BinaryOp::kDiv ? 4 : 1;
    if (e.As<Select>() != nullptr || e.As<IfThenElseExpr>() != nullptr) total += 1;
    if (const Call* call = e.As<Call>()) total += call->name == "sqrt" ? 4 : call->name == "abs" ? 1 : 16;
    return true;
  });
  return total;
}

int IterOf(const Expr& index, const std::vector<IterVar>& iters) {
  const VarRef* ref = index.As<VarRef>();
  for (size_t i = 0; ref != nullptr && i < iters.size(); ++i) {
    if (iters[i].var == ref->var) return static_cast<int>(i);
  }
  return -1;
}

// An element of a buffer, as it is or in another type.
bool IsElement(const Expr& e) {
  const Cast* cast = e.As<Cast>();
  return (cast == nullptr ? e : cast->a).As<Load>() != nullptr;
}

// Whether an element changes its type on the way; its indices do not count.
bool Converts(const Expr& value) {
  bool found = false;
  ForEachExpr(value, [&](const Expr& e) {
    found = found || e.As<Cast>() != nullptr;
    return !found && e.As<Load>() == nullptr;
  });
  return found;
}

bool SamePlace(const Load& a, const Load& b) {
  if (!(a.buffer == b.buffer)) return false;
  for (size_t d = 0; d < a.indices.size(); ++d) {
    if (!StructuralEqual(a.indices[d], b.indices[d])) return false;
  }
  return true;
}

// Conditions  i == constant  and  i % m == constant.
void AddForms(const Block& block, BlockInfo* info) {
  info->forms.assign(info->iters.size(), 0);
  ForEachExpr(block.body, [&](const Expr& e) {
    const IfThenElseExpr* choice = e.As<IfThenElseExpr>();
    const Binary* equal = choice == nullptr ? nullptr : choice->condition.As<Binary>();
    if (equal == nullptr || equal->op != BinaryOp::kEq || !ConstantValue(equal->b).has_value()) return true;
    if (const int iter = IterOf(equal->a, info->iters); iter >= 0) {
      info->forms[static_cast<size_t>(iter)] = info->extents[static_cast<size_t>(iter)];
    } else if (const Binary* mod = equal->a.As<Binary>(); mod != nullptr && mod->op == BinaryOp::kFloorMod) {
      const int moded = IterOf(mod->a, info->iters);
      if (moded >= 0) info->forms[static_cast<size_t>(moded)] = ConstantValue(mod->b).value_or(0);
    }
    return true;
  });
}

// The period of the quotients of a variable in an expression; 0: there are none, or different ones.
int64_t PeriodOf(const Expr& e, const Var& var) {
  int64_t period = 0;
  bool same = true;
  ForEachExpr(e, [&](const Expr& part) {
    const Binary* quotient = part.As<Binary>();
    if (quotient == nullptr || quotient->op != BinaryOp::kFloorDiv) return true;
    const VarRef* ref = quotient->a.As<VarRef>();
    if (ref == nullptr || !(ref->var == var)) return true;
    const int64_t by = ConstantValue(quotient->b).value_or(0);
    same = same && by > 0 && (period == 0 || period == by);
    period = by;
    return true;
  });
  return same ? period : 0;
}

BlockInfo::Access::Steps StepsOf(const BlockInfo::Access& access, const std::vector<IterVar>& iters) {
  const Expr place = FlatIndex(access.buffer, access.indices);
  BlockInfo::Access::Steps steps;
  for (size_t i = 0; i < iters.size(); ++i) {
    const Var& var = iters[i].var;
    if (StrideOf(place, var).has_value()) continue;
    const int64_t period = PeriodOf(place, var);
    const Var quotient(var.name() + "_quotient", var.type());
    const Expr stepped = period > 0 ? WithQuotient(place, var, period, quotient) : place;
    const std::optional<int64_t> stride = StrideOf(stepped, quotient);
    if (steps.iter >= 0 || period == 0 || UsesVar(stepped, var) || !stride.has_value()) return {};
    steps = {static_cast<int>(i), period, *stride};
  }
  return steps;
}

void AddReads(const PrimFunc& func, const Block& block, BlockInfo* info) {
  std::vector<const Load*> loads;
  ForEachExpr(block.body, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    if (load == nullptr || load->buffer == info->output) return true;
    bool same_place = false;
    for (const Load* other : loads) same_place = same_place || SamePlace(*other, *load);
    if (!same_place) loads.push_back(load);
    for (BlockInfo::Access& known : info->reads) {
      if (!(known.buffer == load->buffer)) continue;
      if (!same_place) ++known.places;
      return true;
    }
    BlockInfo::Access access;
    access.buffer = load->buffer;
    access.indices = load->indices;
    access.elements = load->buffer.NumElements().value_or(0);
    for (const IterVar& iter : info->iters) {
      const std::optional<int64_t> stride = ElementStride(load->buffer, load->indices, iter.var);
      access.affine = access.affine && stride.has_value();
      access.strides.push_back(stride.value_or(0));
    }
    if (!access.affine) access.steps = StepsOf(access, info->iters);
    for (size_t param = 0; param < func.params.size(); ++param) {
      if (func.params[param] != load->buffer) continue;
      access.constant = func.IsConstant(static_cast<int>(param));
      access.cold = IsColdConstant(func, static_cast<int>(param));
    }
    info->reads.push_back(std::move(access));
    return true;
  });
}

absl::StatusOr<BlockInfo> Describe(const PrimFunc& func, const Block& block) {
  BlockInfo info;
  info.name = block.name;
  info.iters = block.iters;
  for (const IterVar& iter : block.iters) {
    const std::optional<int64_t> extent = ConstantValue(iter.domain.extent);
    if (!extent.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("block ", block.name, ": the extent of ", iter.var.name(), " is not a constant"));
    }
    info.extents.push_back(*extent);
    info.reduces = info.reduces || iter.kind == IterKind::kReduce;
  }
  if (block.writes.empty()) return absl::FailedPreconditionError(absl::StrCat("block ", block.name, " writes nothing"));
  info.output = block.writes.front().buffer;
  for (size_t param = 0; param < func.params.size(); ++param) {
    if (func.params[param] != info.output) continue;
    info.writes_param = true;
    info.output_cold = IsColdOutput(func, static_cast<int>(param));
  }
  const Store* store = block.body.As<Store>();
  info.single_store = store != nullptr && block.writes.size() == 1;
  if (store != nullptr) {
    for (const Expr& index : store->indices) info.output_iters.push_back(IterOf(index, info.iters));
    info.operations = OperationsOf(store->value);
    info.converts = Converts(store->value);
    const IfThenElseExpr* guard = store->value.As<IfThenElseExpr>();
    info.pads = guard != nullptr && guard->yes.As<Load>() != nullptr &&
                (guard->no.As<FloatImm>() != nullptr || guard->no.As<IntImm>() != nullptr);
    const std::optional<ReductionUpdate> update = MatchUpdate(*store);
    info.splits = info.reduces && block.init && update.has_value();
    const Binary* product = info.splits && update->op == BinaryOp::kAdd ? update->value.As<Binary>() : nullptr;
    info.is_product =
        product != nullptr && product->op == BinaryOp::kMul && IsElement(product->a) && IsElement(product->b);
  } else {
    ForEachStmt(block.body, [&](const Stmt& stmt) {
      if (const Store* part = stmt.As<Store>()) info.operations += OperationsOf(part->value);
      return true;
    });
  }
  AddReads(func, block, &info);
  AddForms(block, &info);
  return info;
}

}  // namespace

Expr WithQuotient(const Expr& e, const Var& var, int64_t period, const Var& quotient) {
  return RewriteBottomUp(e, [&](const Expr& part) -> std::optional<Expr> {
    const Binary* division = part.As<Binary>();
    if (division == nullptr || division->op != BinaryOp::kFloorDiv || !IsConst(division->b, period))
      return std::nullopt;
    const VarRef* ref = division->a.As<VarRef>();
    return ref != nullptr && ref->var == var ? std::optional<Expr>(quotient) : std::nullopt;
  });
}

int64_t BlockInfo::instances() const {
  int64_t n = 1;
  for (const int64_t extent : extents) n *= extent;
  return n;
}

int BlockInfo::last_reduce_iter() const {
  int last = static_cast<int>(iters.size()) - 1;
  while (last >= 0 && spatial(last)) --last;
  return last;
}

int BlockInfo::longest_reduce_iter() const {
  int longest = -1;
  for (size_t i = 0; i < iters.size(); ++i) {
    if (spatial(static_cast<int>(i))) continue;
    if (longest < 0 || extents[i] >= extents[static_cast<size_t>(longest)]) longest = static_cast<int>(i);
  }
  return longest;
}

int WorkloadInfo::Find(const std::string& name) const {
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int WorkloadInfo::Producer(const Buffer& buffer) const {
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].output == buffer) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> WorkloadInfo::Consumers(int i) const {
  std::vector<int> found;
  for (size_t j = 0; j < blocks.size(); ++j) {
    const auto reads_it = [&](const BlockInfo::Access& access) {
      return access.buffer == blocks[static_cast<size_t>(i)].output;
    };
    if (std::any_of(blocks[j].reads.begin(), blocks[j].reads.end(), reads_it)) found.push_back(static_cast<int>(j));
  }
  return found;
}

absl::StatusOr<WorkloadInfo> AnalyzeWorkload(const PrimFunc& func) {
  const BlockRealize* root = func.body.As<BlockRealize>();
  if (root == nullptr) return absl::FailedPreconditionError(absl::StrCat(func.name, " has no root block"));
  WorkloadInfo info;
  absl::Status status;
  ForEachStmt(root->block.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || !status.ok()) return status.ok();
    absl::StatusOr<BlockInfo> block = Describe(func, realize->block);
    if (block.ok()) {
      info.blocks.push_back(*std::move(block));
    } else {
      status = block.status();
    }
    return false;
  });
  HONE_RETURN_IF_ERROR(status);
  if (info.blocks.empty()) return absl::FailedPreconditionError(absl::StrCat(func.name, " has no block"));
  for (size_t i = 1; i < info.blocks.size(); ++i) {
    if (info.blocks[i].flop() > info.blocks[static_cast<size_t>(info.heaviest)].flop())
      info.heaviest = static_cast<int>(i);
  }
  return info;
}

}  // namespace hone
