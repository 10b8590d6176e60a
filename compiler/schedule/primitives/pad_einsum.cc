#include "compiler/schedule/primitives/pad_einsum.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/plain_nest.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// A buffer of the block, and which iteration variable is each of its indices.
struct Operand {
  Buffer buffer;
  std::vector<size_t> iters;
  Buffer padded;  // absent: nothing of it is padded
};

// The loads of a product; false when it is not one of plain loads and casts of them.
bool Factors(const Expr& e, std::vector<const Load*>& loads) {
  if (const Cast* cast = e.As<Cast>()) return Factors(cast->a, loads);
  if (const Load* load = e.As<Load>()) {
    loads.push_back(load);
    return !load->mask;
  }
  const Binary* binary = e.As<Binary>();
  return binary != nullptr && binary->op == BinaryOp::kMul && Factors(binary->a, loads) && Factors(binary->b, loads);
}

std::optional<std::vector<size_t>> PlainIndices(const std::vector<Expr>& indices, const std::vector<IterVar>& iters) {
  std::vector<size_t> found;
  for (const Expr& index : indices) {
    const VarRef* use = index.As<VarRef>();
    size_t i = 0;
    while (use != nullptr && i < iters.size() && !iters[i].var.SameAs(use->var)) ++i;
    if (use == nullptr || i == iters.size()) return std::nullopt;
    found.push_back(i);
  }
  return found;
}

// for v..: to[v..] = from[v..], over the given extents; where `limits` are smaller, zero beyond them.
Stmt PadNest(const std::string& name, const Buffer& from, const Buffer& to, const std::vector<int64_t>& extents,
             const std::vector<int64_t>& limits) {
  Block copy;
  copy.name = name;
  std::vector<Expr> indices;
  Expr inside = True();
  for (size_t d = 0; d < extents.size(); ++d) {
    copy.iters.push_back(SpatialIter(Message("v", d), IntConst(extents[d])));
    indices.push_back(copy.iters.back().var);
    if (limits[d] < extents[d]) inside = And(inside, indices[d] < IntConst(limits[d]));
  }
  Expr value = MakeLoad(from, indices);
  if (!IsConst(inside, 1)) value = IfThenElse(inside, value, Const(0, from.type()));
  copy.body = Stmt::Make(Store{to, indices, value, Expr()});
  return NestAround(std::move(copy));
}

absl::Status CheckPadding(const Block& block, const std::vector<int64_t>& padding, const std::string& where) {
  if (padding.size() != block.iters.size()) {
    return Invalid(where, ": the block has ", block.iters.size(), " iteration variables, padding ", padding.size(),
                   " numbers");
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < 1 || padding[i] > INT32_MAX)
      return Invalid(where, ": padding ", i, " is ", padding[i], "; it must be 1 (leave as it is) or more");
  }
  return absl::OkStatus();
}

// Of a sum of products, the result first.
absl::StatusOr<std::vector<Operand>> FindOperands(const Block& block, const std::string& where) {
  const Store *store = block.body.As<Store>(), *init = block.init.As<Store>();
  const std::optional<ReductionUpdate> update = store == nullptr ? std::nullopt : MatchUpdate(*store);
  std::vector<const Load*> loads;
  if (init == nullptr || !IsNumber(init->value, 0) || !update.has_value() || update->op != BinaryOp::kAdd ||
      !Factors(update->value, loads)) {
    return Refused(where, ": the block is not a sum of products, x = x + a * b .. from 0");
  }
  std::vector<Operand> operands;
  loads.insert(loads.begin(), nullptr);  // the result
  for (const Load* load : loads) {
    const Buffer& buffer = load == nullptr ? store->buffer : load->buffer;
    const std::vector<Expr>& indices = load == nullptr ? store->indices : load->indices;
    const std::optional<std::vector<size_t>> iters = PlainIndices(indices, block.iters);
    if (!iters.has_value()) {
      return Refused(where, ": ", buffer, " is not indexed by iteration variables alone; reindex it first");
    }
    const auto same =
        std::find_if(operands.begin(), operands.end(), [&](const Operand& o) { return o.buffer.SameAs(buffer); });
    if (same == operands.end()) {
      operands.push_back({buffer, *iters, Buffer()});
    } else if (same->iters != *iters) {
      return Refused(where, ": ", buffer, " is read at two places; reindex it first");
    }
  }
  return operands;
}

// The extents with their padding.
absl::StatusOr<std::vector<int64_t>> GrownExtents(const Block& block, const PlainNest& nest,
                                                  const std::vector<Operand>& operands,
                                                  const std::vector<int64_t>& padding, const std::string& where) {
  std::vector<int64_t> extents;
  for (size_t i = 0; i < padding.size(); ++i) {
    extents.push_back((nest.extents[i] + padding[i] - 1) / padding[i] * padding[i]);
    if (extents[i] == nest.extents[i]) continue;
    if (nest.loops[i] < 0) return Refused(where, ": ", block.iters[i].var, " has no loop of its own to grow");
    if (extents[i] > INT32_MAX) return Invalid(where, ": padding ", i, " makes the extent ", extents[i]);
    const bool spatial = block.iters[i].kind == IterKind::kSpatial;
    if (spatial && std::ranges::find(operands[0].iters, i) == operands[0].iters.end()) {
      return Refused(where, ": ", operands[0].buffer, " is not indexed by ", block.iters[i].var,
                     ", so its sums would begin anew with each value that is added; transform_layout after this");
    }
    for (size_t o = 1; o < operands.size() && !spatial; ++o) {
      const std::vector<size_t>& used = operands[o].iters;
      if (std::ranges::find(used, i) != used.end()) continue;
      return Refused(where, ": ", operands[o].buffer, " does not run over ", block.iters[i].var,
                     ", so zeros of the others would be multiplied by its values, which may be infinite");
    }
  }
  return extents;
}

// A larger buffer for every operand that grows.
void MakePadded(std::vector<Operand>& operands, const std::vector<int64_t>& before,
                const std::vector<int64_t>& extents) {
  for (Operand& operand : operands) {
    std::vector<Expr> shape;
    bool grows = false;
    for (const size_t i : operand.iters) {
      shape.push_back(IntConst(extents[i]));
      grows |= extents[i] != before[i];
    }
    if (grows) operand.padded = Buffer(Message(operand.buffer.name(), "_pad"), operand.buffer.type(), shape);
  }
}

// The nest over the larger extents and buffers.
Stmt GrownNest(const ProgramIndex& index, int outermost, const PlainNest& nest, const std::vector<int64_t>& extents,
               const std::vector<Operand>& operands) {
  const Stmt grown = RewriteBottomUp(index.stmt(outermost), [&](const Stmt& stmt) -> std::optional<Stmt> {
    if (const For* loop = stmt.As<For>()) {
      for (size_t i = 0; i < extents.size(); ++i) {
        if (nest.loops[i] < 0 || !index.loop(nest.loops[i]).var.SameAs(loop->var)) continue;
        For copy = *loop;
        copy.extent = IntConst(extents[i], loop->var.type());
        return Stmt::Make(std::move(copy));
      }
      return std::nullopt;
    }
    const BlockRealize* found = stmt.As<BlockRealize>();
    if (found == nullptr) return std::nullopt;
    BlockRealize copy = *found;
    for (size_t i = 0; i < extents.size(); ++i) {
      copy.block.iters[i].domain.extent = IntConst(extents[i], copy.block.iters[i].var.type());
    }
    return Stmt::Make(std::move(copy));
  });
  return ReplaceBuffers(grown, [&](const Buffer& buffer) -> std::optional<Buffer> {
    for (const Operand& operand : operands) {
      if (operand.padded && operand.buffer.SameAs(buffer)) return operand.padded;
    }
    return std::nullopt;
  });
}

// Of the operand's dimensions.
std::vector<int64_t> DimensionsOf(const Operand& operand, const std::vector<int64_t>& extents) {
  std::vector<int64_t> selected;
  for (const size_t i : operand.iters) selected.push_back(extents[i]);
  return selected;
}

}  // namespace

absl::Status PadEinsum(Schedule& schedule, BlockRef ref, std::vector<int64_t> padding) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "pad_einsum"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const std::string where = Message("pad_einsum(", block.name, ")");
  if (node == 0) return Refused(where, ": the root block has no iteration variables");
  HONE_RETURN_IF_ERROR(CheckPadding(block, padding, where));
  HONE_ASSIGN_OR_RETURN(std::vector<Operand> operands, FindOperands(block, where));
  HONE_ASSIGN_OR_RETURN(const PlainNest nest, FindPlainNest(index, node, where));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> extents, GrownExtents(block, nest, operands, padding, where));

  // ---- nothing below fails ----
  const int outermost = Outermost(index, node);
  const std::string scope = index.block(index.EnclosingBlock(node)).name;
  MakePadded(operands, nest.extents, extents);
  std::vector<Stmt> stmts;
  for (size_t o = 1; o < operands.size(); ++o) {
    const Operand& operand = operands[o];
    if (!operand.padded) continue;
    stmts.push_back(PadNest(FreshBlockName(index, operand.padded.name()), operand.buffer, operand.padded,
                            DimensionsOf(operand, extents), DimensionsOf(operand, nest.extents)));
  }
  stmts.push_back(GrownNest(index, outermost, nest, extents, operands));
  if (const Operand& result = operands[0]; result.padded) {
    const std::vector<int64_t> inside = DimensionsOf(result, nest.extents);
    stmts.push_back(PadNest(FreshBlockName(index, result.padded.name()), result.padded, result.buffer, inside, inside));
  }
  Stmt body = index.Replace(outermost, MakeSeq(std::move(stmts)));
  for (const Operand& operand : operands) {
    if (operand.padded) body = WithAlloc(body, scope, operand.padded);
  }
  schedule.SetBody(std::move(body));
  schedule.Record(PadEinsumStep{.block = ref, .padding = std::move(padding)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const PadEinsumStep& step) {
  return PadEinsum(schedule, step.block, step.padding);
}

HONE_PRIMITIVES(pad_einsum, PadEinsumStep)

}  // namespace hone
