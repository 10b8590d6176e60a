#include "compiler/schedule/analysis/nest.h"

#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/analysis/message.h"

namespace hone {

VarRanges RangesAround(const ProgramIndex& index, int node) {
  VarRanges ranges;
  for (int n = index.parent(node); n >= 0; n = index.parent(n)) {
    if (!index.IsLoop(n)) continue;
    const For& loop = index.loop(n);
    ranges[loop.var] = Range{loop.min, loop.extent};
  }
  return ranges;
}

std::optional<ThreadExtents> ThreadsAround(const ProgramIndex& index, int node) {
  ThreadExtents threads = {1, 1, 1};
  for (int n = node; n >= 0; n = index.parent(n)) {
    const size_t axis = index.IsLoop(n) ? ThreadAxisNumber(index.loop(n).thread) : threads.size();
    if (axis == threads.size()) continue;
    const std::optional<int64_t> extent = ConstantValue(index.loop(n).extent);
    if (!extent.has_value()) return std::nullopt;
    threads[axis] = *extent;
  }
  return threads;
}

VarRanges RangesAroundAndBelow(const ProgramIndex& index, int node) {
  VarRanges ranges = RangesAround(index, node);
  for (int n = node; n < index.node(node).end; ++n) {
    if (!index.IsLoop(n)) continue;
    const For& loop = index.loop(n);
    ranges[loop.var] = Range{loop.min, loop.extent};
  }
  return ranges;
}

Stmt RewriteBindings(const Stmt& root, const VarMap& map, const Expr& guard, Analyzer& known) {
  if (const For* loop = root.As<For>()) {
    For copy = *loop;
    copy.min = known.Simplify(Substitute(loop->min, map));
    copy.extent = known.Simplify(Substitute(loop->extent, map));
    known.Bind(copy.var, Range{copy.min, copy.extent});
    copy.body = RewriteBindings(loop->body, map, guard, known);
    return Stmt::Make(std::move(copy));
  }
  if (root.As<BlockRealize>() != nullptr) {
    BlockRealize copy = *Substitute(root, map).As<BlockRealize>();
    for (Expr& value : copy.values) value = known.Simplify(value);
    copy.predicate = known.Simplify(guard ? Conjoin(copy.predicate, guard) : copy.predicate);
    return Stmt::Make(std::move(copy));
  }
  const auto expr = [&](const Expr& e) { return Substitute(e, map); };
  return MapChildren(
      root, [&](const Stmt& child) { return RewriteBindings(child, map, guard, known); }, expr);
}

Expr Conjoin(const Expr& a, const Expr& b) {
  std::vector<Expr> parts = Conjuncts(a);
  for (const Expr& part : Conjuncts(b)) {
    bool there = false;
    for (const Expr& other : parts) there |= StructuralEqual(part, other);
    if (!there) parts.push_back(part);
  }
  return Conjunction(parts);
}

std::vector<Expr> PartsBeyondDomain(const BlockRealize& realize, const VarRanges& loops) {
  std::vector<Expr> parts = Conjuncts(realize.predicate);
  if (parts.empty()) return parts;
  Analyzer known(loops);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const Range& domain = realize.block.iters[i].domain;
    known.Assume(realize.values[i] < domain.min + domain.extent);
    known.Assume(realize.values[i] >= domain.min);
  }
  std::erase_if(parts, [&](const Expr& part) { return known.CanProve(part); });
  return parts;
}

bool PredicateFollowsFromDomain(const BlockRealize& realize, const VarRanges& loops) {
  if (PartsBeyondDomain(realize, loops).empty()) return true;
  Analyzer known(loops);
  return CheckBindings(realize, loops, known).ok();
}

VarMap RenameTo(const LoopCopies& copies) {
  return [copies](const Var& var) -> std::optional<Expr> {
    for (const auto& [loop, copy] : copies) {
      if (loop->var.SameAs(var)) return Expr(copy);
    }
    return std::nullopt;
  };
}

Stmt WrapInCopies(const LoopCopies& copies, Stmt body) {
  const VarMap rename = RenameTo(copies);
  for (const auto& [loop, var] : copies) {
    For copy = *loop;
    copy.var = var;
    copy.min = Substitute(loop->min, rename);
    copy.extent = Substitute(loop->extent, rename);
    copy.body = std::move(body);
    body = Stmt::Make(std::move(copy));
  }
  return body;
}

Stmt MakeLoop(const Var& var, const Expr& extent, Stmt body, ForKind kind) {
  return Stmt::Make(For{var, IntConst(0, var.type()), extent, kind, "", {}, std::move(body)});
}

Stmt WithBody(const For& loop, Stmt body) {
  For copy = loop;
  copy.body = std::move(body);
  return Stmt::Make(std::move(copy));
}

std::string Describe(ForKind kind) {
  switch (kind) {
    case ForKind::kSerial: return "serial";
    case ForKind::kParallel: return "parallel";
    case ForKind::kVectorized: return "vectorized";
    case ForKind::kUnrolled: return "unrolled";
    case ForKind::kThreadBinding: return "bound to threads";
  }
  return "unknown";
}

std::string FreshBlockName(const ProgramIndex& index, const std::string& name) {
  if (index.FindBlock(name) < 0) return name;
  for (int k = 1;; ++k) {
    std::string candidate = Message(name, "_", k);
    if (index.FindBlock(candidate) < 0) return candidate;
  }
}

}  // namespace hone
