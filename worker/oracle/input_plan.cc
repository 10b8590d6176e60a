#include "worker/oracle/input_plan.h"

#include <algorithm>

#include "compiler/ir/visit.h"

namespace hone {
namespace {

constexpr int64_t kSmallBytes = 64 << 10;  // of all tensors

// What a program does that uniform values do not show whole.
struct Traits {
  bool curved = false;   // a function or a quotient of floats
  bool selects = false;  // a reduction that keeps one of its elements
};

Traits TraitsOf(const PrimFunc& workload) {
  Traits traits;
  ForEachStmt(workload.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr) return true;
    const auto& iters = realize->block.iters;
    if (std::ranges::none_of(iters, [](const IterVar& iter) { return iter.kind == IterKind::kReduce; })) return true;
    ForEachExpr(realize->block.body, [&](const Expr& e) {
      const Binary* op = e.As<Binary>();
      traits.selects |= op != nullptr && (op->op == BinaryOp::kMin || op->op == BinaryOp::kMax ||
                                          op->op == BinaryOp::kAnd || op->op == BinaryOp::kOr);
      traits.selects |= e.As<Select>() != nullptr;
      return true;
    });
    return true;
  });
  ForEachExpr(workload.body, [&](const Expr& e) {
    const Binary* op = e.As<Binary>();
    const Call* call = e.As<Call>();
    traits.curved |= call != nullptr && e.type().is_float() && call->name != "abs" && call->name != "fma";
    traits.curved |=
        op != nullptr && op->op == BinaryOp::kDiv && e.type().is_float() && op->b.As<FloatImm>() == nullptr;
    return true;
  });
  return traits;
}

}  // namespace

InputPlan PlanInputs(const PrimFunc& workload) {
  int64_t bytes = 0;
  for (const Buffer& param : workload.params) bytes += param.NumElements().value_or(0) * param.type().bytes();
  const Traits traits = TraitsOf(workload);
  const bool adverse = traits.curved || traits.selects;
  InputPlan plan;
  const auto add = [&](std::initializer_list<InputKind> kinds) { plan.kinds.insert(plan.kinds.end(), kinds); };
  add({InputKind::kUniform, InputKind::kInteger, InputKind::kLarge, InputKind::kPeaks});
  if (adverse) plan.least = static_cast<int>(plan.kinds.size());
  add({InputKind::kTroughs, InputKind::kPatterned, InputKind::kRising, InputKind::kFalling});
  if (bytes > kSmallBytes) return plan;
  add({InputKind::kUniform, InputKind::kInteger, InputKind::kUniform, InputKind::kInteger});
  if (traits.selects) {
    for (int i = 0; i < kPeakSpacing; ++i) add({InputKind::kPeaks, InputKind::kTroughs});
  }
  HONE_CHECK(plan.kinds.size() <= kMostInputSets);
  plan.least = static_cast<int>(plan.kinds.size());
  return plan;
}

}  // namespace hone
