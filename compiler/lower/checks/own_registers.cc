#include "compiler/lower/checks/own_registers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

// Of an element's index: how the place of its thread along an axis follows from it, as (index - base) / stride modulo
// the axis' extent.
struct Place {
  Expr base;
  int64_t stride = 0;
};

class Accesses {
 public:
  explicit Accesses(const Buffer& buffer) : buffer_(buffer) {}

  void Visit(const Stmt& stmt) {
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) return OnBlock(*realize);
    if (const For* loop = stmt.As<For>()) return OnLoop(*loop);
    if (const Let* let = stmt.As<Let>()) values_[let->var] = Outer(let->value);
    const IfThen* branch = stmt.As<IfThen>();
    if (branch != nullptr) branches_.push_back(Outer(branch->condition));
    known_ = known_ && stmt.As<While>() == nullptr;
    if (const Store* store = stmt.As<Store>(); store != nullptr && store->buffer.SameAs(buffer_)) OnWrite(*store);
    if (const TileOp* op = stmt.As<TileOp>()) {
      known_ = known_ && std::ranges::none_of(op->operands,
                                              [&](const BufferRegion& part) { return part.buffer.SameAs(buffer_); });
    }
    if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      const std::optional<Store> effect = EffectStore(*evaluate);
      known_ = known_ && !(effect.has_value() && effect->buffer.SameAs(buffer_));
    }
    ForEachChild(
        stmt, [&](const Stmt& s) { Visit(s); }, [&](const Expr& e) { OnReads(e); });
    if (branch != nullptr) branches_.pop_back();
  }

  bool AreOwn() {
    if (!known_) return false;
    Analyzer ranges(ranges_);
    for (std::vector<Expr>& indices : indices_) {
      for (Expr& index : indices) index = ranges.Simplify(index);
    }
    return std::ranges::all_of(axes_, [&](const auto& named) {
      const auto& [name, axis] = named;
      return extents_[axis] == 1 || !varies_along_.contains(axis) || TellsThePlace(axis);
    });
  }

 private:
  Expr Outer(const Expr& e) const {
    return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
      const auto found = values_.find(var);
      return found == values_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  void OnLoop(const For& loop) {
    const std::optional<int64_t> extent = ConstantValue(loop.extent);
    if (loop.thread.starts_with("threadIdx")) {
      const auto [axis, is_new] = axes_.emplace(loop.thread, loop.var);
      if (!is_new) values_[loop.var] = MakeCast(loop.var.type(), axis->second);
    }
    if (!loop.thread.starts_with("blockIdx")) extents_[loop.var] = IsConst(loop.min, 0) ? extent.value_or(0) : 0;
    ranges_[loop.var] = {loop.min, loop.extent};
    OnReads(loop.min);
    OnReads(loop.extent);
    branches_.push_back(Outer(loop.extent));
    Visit(loop.body);
    branches_.pop_back();
  }

  void OnBlock(const BlockRealize& realize) {
    known_ = known_ && std::ranges::none_of(realize.block.matches, [&](const MatchBuffer& match) {
               return match.source.buffer.SameAs(buffer_);
             });
    for (size_t i = 0; i < realize.values.size(); ++i) {
      OnReads(realize.values[i]);
      values_[realize.block.iters[i].var] = Outer(realize.values[i]);
    }
    OnReads(realize.predicate);
    const Block* const around = std::exchange(block_, &realize.block);
    predicates_.push_back(Outer(realize.predicate));
    if (realize.block.init) Visit(realize.block.init);
    Visit(realize.block.body);
    predicates_.pop_back();
    block_ = around;
  }

  void OnReads(const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (const Load* load = e.As<Load>(); load != nullptr && load->buffer.SameAs(buffer_)) Note(load->indices);
      return true;
    });
  }

  // A block that reduces along an axis leaves the sum with all threads of it, whatever the parts depend on.
  void OnWrite(const Store& store) {
    Note(store.indices);
    std::set<Var> reduced, used;
    for (const IterVar& iter : block_ == nullptr ? std::vector<IterVar>() : block_->iters) {
      const std::set<Var> vars = FreeVars(Outer(iter.var));
      (iter.kind == IterKind::kReduce ? reduced : used).insert(vars.begin(), vars.end());
    }
    std::vector<Expr> parts = predicates_;
    parts.push_back(Outer(store.value));
    for (const Expr& e : parts) {
      for (const Var& var : FreeVars(e)) {
        if (!reduced.contains(var)) used.insert(var);
      }
    }
    for (const std::vector<Expr>* exprs : {&indices_.back(), &branches_}) {
      for (const Expr& e : *exprs) used.merge(FreeVars(e));
    }
    varies_along_.merge(used);
  }

  void Note(const std::vector<Expr>& indices) {
    std::vector<Expr>& noted = indices_.emplace_back();
    for (const Expr& index : indices) noted.push_back(Outer(index));
  }

  bool TellsThePlace(const Var& axis) const {
    for (size_t d = 0; d < buffer_.shape().size(); ++d) {
      std::optional<Place> common;
      const bool same = std::ranges::all_of(indices_, [&](const std::vector<Expr>& indices) {
        const std::optional<Place> place = PlaceAlong(axis, indices[d]);
        if (!place.has_value()) return false;
        if (!common.has_value()) common = place;
        return place->stride == common->stride && StructuralEqual(place->base, common->base);
      });
      if (same) return true;
    }
    return false;
  }

  // What is left of the index without the axis is less than the stride, or a multiple of what the whole axis covers.
  std::optional<Place> PlaceAlong(const Var& axis, const Expr& index) const {
    std::vector<Var> vars;
    for (const auto& [var, extent] : extents_) vars.push_back(var);
    const std::optional<LinearForm> form = DetectLinear(index, vars);
    if (!form.has_value()) return std::nullopt;
    const auto at = static_cast<size_t>(std::ranges::find(vars, axis) - vars.begin());
    const int64_t stride = form->coefficients[at];
    if (stride < 1) return std::nullopt;
    int64_t below = 0;
    for (size_t i = 0; i < vars.size(); ++i) {
      const int64_t coefficient = form->coefficients[i], extent = extents_.at(vars[i]);
      if (i == at || coefficient == 0) continue;
      if (coefficient < 0 || extent < 1) return std::nullopt;
      if (coefficient < stride) {
        below += coefficient * (extent - 1);
      } else if (coefficient % (stride * extents_.at(axis)) != 0) {
        return std::nullopt;
      }
    }
    return below < stride ? std::optional(Place{form->base, stride}) : std::nullopt;
  }

  Buffer buffer_;
  bool known_ = true;                // all accesses are loads and stores
  const Block* block_ = nullptr;     // around what is visited
  std::vector<Expr> predicates_;     // of the blocks around it
  std::vector<Expr> branches_;       // other expressions that decide whether it runs
  std::map<std::string, Var> axes_;  // of threads; one variable for all loops over one
  std::map<Var, Expr> values_;       // of variables of blocks and lets, and of other loops over an axis
  std::map<Var, int64_t> extents_;   // of loops but those over blocks; 0: from elsewhere than 0, or not constant
  VarRanges ranges_;
  std::vector<std::vector<Expr>> indices_;  // of each access
  std::set<Var> varies_along_;              // what writes depend on
};

}  // namespace

bool IsOwnOfEachThread(const Stmt& nest, const Buffer& buffer) {
  Accesses accesses(buffer);
  accesses.Visit(nest);
  return accesses.AreOwn();
}

}  // namespace hone
