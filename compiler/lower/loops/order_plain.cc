#include <algorithm>
#include <set>

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

// The loop variable that a block's iteration variable is bound to, when it is just that.
const Var* BoundTo(const Expr& value) {
  const VarRef* ref = value.As<VarRef>();
  return ref == nullptr ? nullptr : &ref->var;
}

// Every instance of the block works on elements of its own: what it writes it reads at the same place alone.
bool InstancesAreIndependent(const Block& block, const Var& iter) {
  std::vector<const Store*> stores;
  bool independent = true;
  const auto visit = [&](const Stmt& root) {
    ForEachStmt(root, [&](const Stmt& s) {
      if (s.As<BlockRealize>() != nullptr || s.As<For>() != nullptr || s.As<TileOp>() != nullptr) independent = false;
      if (const Store* store = s.As<Store>()) stores.push_back(store);
      return independent;
    });
  };
  visit(block.body);
  if (block.init) visit(block.init);
  for (const Store* store : stores) {
    // The last index is the variable itself: neighbouring instances write neighbouring elements.
    const VarRef* last = store->indices.empty() ? nullptr : store->indices.back().As<VarRef>();
    if (last == nullptr || last->var != iter) return false;
    for (const Store* other : stores) {
      if (other->buffer != store->buffer) continue;
      for (size_t d = 0; d < store->indices.size(); ++d)
        independent &= StructuralEqual(store->indices[d], other->indices[d]);
    }
  }
  const auto check_loads = [&](const Stmt& root) {
    ForEachExpr(root, [&](const Expr& e) {
      const Load* load = e.As<Load>();
      if (load == nullptr) return true;
      for (const Store* store : stores) {
        if (store->buffer != load->buffer) continue;
        for (size_t d = 0; d < load->indices.size(); ++d)
          independent &= StructuralEqual(load->indices[d], store->indices[d]);
      }
      return true;
    });
  };
  check_loads(block.body);
  if (block.init) check_loads(block.init);
  return independent && !stores.empty();
}

bool IsBoundTo(const Expr& value, const Var& var) {
  const Var* bound = BoundTo(value);
  return bound != nullptr && *bound == var;
}

// Every iteration of the loop has elements of its own: its variable is an index of all that the block writes.
bool RunsOverElements(const BlockRealize& realize, const Var& loop) {
  const auto at = std::ranges::find_if(realize.values, [&](const Expr& value) { return IsBoundTo(value, loop); });
  if (at == realize.values.end()) return false;
  const Var& iter = realize.block.iters[static_cast<size_t>(at - realize.values.begin())].var;
  bool all = true;
  ForEachStmt(realize.block.body, [&](const Stmt& s) {
    const Store* store = s.As<Store>();
    all &= store == nullptr ||
           std::ranges::any_of(store->indices, [&](const Expr& index) { return IsBoundTo(index, iter); });
    return true;
  });
  return all;
}

// A nest of loops around one block, with the loop of the block's last spatial variable put innermost and vectorised;
// the outermost one is parallel where it runs over elements.
std::optional<Stmt> Reorder(const Stmt& nest) {
  std::vector<const For*> loops;
  const Stmt* at = &nest;
  for (const For* loop = at->As<For>(); loop != nullptr; loop = at->As<For>()) {
    if (!ConstantValue(loop->extent).has_value()) return std::nullopt;
    loops.push_back(loop);
    at = &loop->body;
  }
  const BlockRealize* realize = at->As<BlockRealize>();
  if (realize == nullptr || !IsConst(realize->predicate, 1)) return std::nullopt;
  const Block& block = realize->block;
  int last_spatial = -1;
  std::set<Var> bound;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (ConstantValue(realize->values[i]).has_value()) continue;
    const Var* var = BoundTo(realize->values[i]);
    if (var == nullptr || !bound.insert(*var).second || block.iters[i].kind == IterKind::kOpaque) return std::nullopt;
    if (block.iters[i].kind == IterKind::kSpatial) last_spatial = static_cast<int>(i);
  }
  if (last_spatial < 0 || !InstancesAreIndependent(block, block.iters[last_spatial].var)) return std::nullopt;
  const Var inner = *BoundTo(realize->values[last_spatial]);
  const auto found = std::ranges::find(loops, inner, &For::var);
  if (found == loops.end()) return std::nullopt;
  For vectorized = **found;
  loops.erase(found);
  vectorized.kind = ForKind::kVectorized;
  vectorized.body = *at;
  Stmt out = Stmt::Make(std::move(vectorized));
  for (size_t i = loops.size(); i-- > 0;) {
    For loop = *loops[i];
    if (i == 0 && RunsOverElements(*realize, loop.var)) loop.kind = ForKind::kParallel;
    loop.body = out;
    out = Stmt::Make(std::move(loop));
  }
  return out;
}

Stmt Visit(const Stmt& stmt) {
  if (stmt.As<For>() != nullptr) {
    if (std::optional<Stmt> reordered = Reorder(stmt)) return *reordered;
  }
  return MapChildren(stmt, Visit, [](const Expr& e) { return e; });
}

}  // namespace

Stmt OrderPlain(const Stmt& body) {
  const Stmt serial = RewriteBottomUp(body, [](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    if (loop == nullptr || loop->kind == ForKind::kSerial || loop->kind == ForKind::kThreadBinding) return std::nullopt;
    For changed = *loop;
    changed.kind = ForKind::kSerial;
    return Stmt::Make(std::move(changed));
  });
  return Visit(serial);
}

}  // namespace hone
