#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The parts of `S[at] = S[at] op term`.
struct Accumulation {
  const Store* store;
  BinaryOp op;
  Expr old, term;
};

std::optional<Accumulation> Read(const For& loop) {
  const Store* store = loop.body.As<Store>();
  const Binary* binary = store == nullptr ? nullptr : store->value.As<Binary>();
  if (binary == nullptr || store->mask || UsesVar(store->indices[0], loop.var)) return std::nullopt;
  if (binary->op != BinaryOp::kAdd && binary->op != BinaryOp::kMul && binary->op != BinaryOp::kMin &&
      binary->op != BinaryOp::kMax) {
    return std::nullopt;
  }
  const auto is_old = [&](const Expr& e) {
    const Load* load = e.As<Load>();
    return load != nullptr && load->buffer == store->buffer && StructuralEqual(load->indices[0], store->indices[0]);
  };
  Accumulation a{store, binary->op, binary->a, binary->b};
  if (!is_old(a.old)) std::swap(a.old, a.term);
  if (!is_old(a.old)) return std::nullopt;
  bool reads_sum = false;
  ForEachExpr(a.term, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) reads_sum |= load->buffer == store->buffer;
    return true;
  });
  if (reads_sum || !UsesVar(a.term, loop.var)) return std::nullopt;
  return a;
}

Stmt ForLanes(const Var& var, int64_t lanes, Stmt body) {
  return Stmt::Make(
      For{.var = var, .min = 0, .extent = Expr(lanes), .kind = ForKind::kVectorized, .body = std::move(body)});
}

// Vectors of the terms are combined in pairs, lane by lane, then halves of the vector that is left, down to one.
Stmt InTree(const For& loop, const Accumulation& a, int64_t extent, int64_t most_lanes) {
  const int64_t lanes = std::min(extent, most_lanes);
  const auto part = [&](int64_t n) {
    return Buffer(a.store->buffer.name() + "_part" + std::to_string(n), a.term.type(), {Expr(n)}, Scope::kRegister);
  };
  const Var lane("l");
  const std::function<Expr(int64_t, int64_t)> of_terms = [&](int64_t first, int64_t count) {
    if (count == lanes) return Substitute(a.term, loop.var, loop.min + Expr(first) + lane);
    return MakeBinary(a.op, of_terms(first, count / 2), of_terms(first + count / 2, count / 2));
  };

  std::vector<Buffer> parts = {part(lanes)};
  std::vector<Stmt> stmts = {ForLanes(lane, lanes, Stmt::Make(Store{parts[0], {lane}, of_terms(0, extent), Expr()}))};
  for (int64_t half = lanes / 2; half >= 1; half /= 2) {
    const Buffer upper = parts.back(), lower = part(half);
    parts.push_back(lower);
    const Var l("l");
    const Expr value = MakeBinary(a.op, MakeLoad(upper, {l}), MakeLoad(upper, {l + Expr(half)}));
    stmts.push_back(ForLanes(l, half, Stmt::Make(Store{lower, {l}, value, Expr()})));
  }
  const Expr sum = MakeBinary(a.op, a.old, MakeLoad(parts.back(), {IntConst(0)}));
  stmts.push_back(Stmt::Make(Store{a.store->buffer, a.store->indices, sum, Expr()}));
  Stmt out = MakeSeq(std::move(stmts));
  for (const Buffer& buffer : parts) out = Stmt::Make(Alloc{buffer, out});
  return out;
}

}  // namespace

Stmt ReduceInTree(const Stmt& body, const LowerOptions& options) {
  return RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    if (loop == nullptr || (loop->kind != ForKind::kUnrolled && loop->kind != ForKind::kVectorized))
      return std::nullopt;
    const std::optional<int64_t> extent = ConstantValue(loop->extent);
    if (!extent.has_value() || *extent < 4 || *extent > 256 || !IsPowerOfTwo(*extent)) return std::nullopt;
    const std::optional<Accumulation> accumulation = Read(*loop);
    if (!accumulation.has_value()) return std::nullopt;
    return InTree(*loop, *accumulation, *extent, options.lanes(accumulation->term.type().bits));
  });
}

}  // namespace hone
