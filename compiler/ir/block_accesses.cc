#include "compiler/ir/block_accesses.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/shared_results.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

Range WholeDimension(const Expr& extent) { return {IntConst(0, extent.type()), extent}; }

// The range of one index, which may be a vector.
Range RangeOf(const Expr& index, const Expr& extent) {
  if (index.type().is_scalar()) return {index, IntConst(1, index.type())};
  if (const Broadcast* splat = index.As<Broadcast>()) return {splat->value, IntConst(1, splat->value.type())};
  if (const Ramp* ramp = index.As<Ramp>()) {
    const std::optional<int64_t> stride = ConstantValue(ramp->stride);
    if (stride.has_value() && *stride > 0)
      return {ramp->base, IntConst(*stride * (index.type().lanes - 1) + 1, ramp->base.type())};
  }
  return WholeDimension(extent);
}

class AccessWalk {
 public:
  AccessWalk(const Block& block, const std::function<void(const BlockAccess&)>& visit) : visit_(visit) {
    local_.insert(block.allocs.begin(), block.allocs.end());
    for (const MatchBuffer& match : block.matches) matches_.emplace(match.buffer, match.source);
    Walk(block.body);
    Walk(block.init);
  }

 private:
  void Walk(const Stmt& stmt) {
    if (stmt) std::visit([this](const auto& node) { Do(node); }, stmt.node().kind);
  }
  void Do(const For& loop) {
    Loads(loop.min);
    Loads(loop.extent);
    loops_.emplace_back(loop.var, Range{Resolved(loop.min), Resolved(loop.extent)});
    Walk(loop.body);
    loops_.pop_back();
  }
  void Do(const BlockRealize& realize) {
    for (const Expr& value : realize.values) Loads(value);
    Loads(realize.predicate);
    local_.insert(realize.block.allocs.begin(), realize.block.allocs.end());
    const Under runs(*this, RunsWhere(realize));
    nested_ = &realize;
    for (const BufferRegion& read : realize.block.reads) Add(read, false);
    for (const BufferRegion& write : realize.block.writes) Add(write, true);
    nested_ = nullptr;
  }
  // The predicate, and that the block's variables lie in their domains, but for those of which the loops say it.
  Expr RunsWhere(const BlockRealize& realize) const {
    std::vector<Expr> parts = Conjuncts(realize.predicate);
    for (size_t i = 0; i < realize.block.iters.size() && i < realize.values.size(); ++i) {
      const Range& domain = realize.block.iters[i].domain;
      const Expr& value = realize.values[i];
      const bool same_type = value.type() == domain.min.type() && value.type() == domain.extent.type();
      if (!same_type || !value.type().is_int() || RunsWhole(value, domain)) continue;
      parts.push_back(domain.min <= value);
      parts.push_back(value < domain.min + domain.extent);
    }
    return Conjunction(parts);
  }
  bool RunsWhole(const Expr& value, const Range& domain) const {
    if (StructuralEqual(value, domain.min)) return true;
    const VarRef* ref = value.As<VarRef>();
    return ref != nullptr && std::ranges::any_of(loops_, [&](const auto& loop) {
             return loop.first == ref->var && StructuralEqual(loop.second.min, domain.min) &&
                    StructuralEqual(loop.second.extent, domain.extent);
           });
  }
  void Do(const Store& store) {
    for (const Expr& index : store.indices) Loads(index);
    Loads(store.value);
    Loads(store.mask);
    Add(Points(store.buffer, store.indices), true);
  }
  void Do(const Seq& seq) {
    for (const Stmt& s : seq.stmts) Walk(s);
  }
  void Do(const IfThen& branch) {
    Loads(branch.condition);
    {
      const Under holds(*this, LastingPart(branch.condition));
      Walk(branch.yes);
    }
    const Under fails(*this, LastingPart(MakeNot(branch.condition)));
    Walk(branch.no);
  }
  void Do(const While& loop) {  // its condition may change in the body, so nothing holds there for long
    Loads(loop.condition);
    Walk(loop.body);
  }
  void Do(const Let& let) {
    Loads(let.value);
    lets_.insert_or_assign(let.var, Resolved(let.value));
    Walk(let.body);
  }
  void Do(const Alloc& alloc) {
    local_.insert(alloc.buffer);
    Walk(alloc.body);
  }
  void Do(const TileOp& op) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      for (const Range& range : op.operands[i].region) {
        Loads(range.min);
        Loads(range.extent);
      }
      if (i > 0 || op.accumulates) Add(op.operands[i], false);
      if (i == 0) Add(op.operands[i], true);
    }
  }
  void Do(const Evaluate& evaluate) {
    if (const std::optional<Store> copy = AsyncCopy(evaluate)) return Do(*copy);
    Loads(evaluate.value);
    if (const std::optional<Store> update = AtomicUpdate(evaluate)) Add(Points(update->buffer, update->indices), true);
  }

  void Loads(const Expr& root) {
    if (!root) return;
    seen_.clear();
    Visit(root);
  }
  void Visit(const Expr& e) {
    if (SharedResults::Applies(e) && SeenHere(e)) return;
    if (const LetExpr* let = e.As<LetExpr>()) lets_.insert_or_assign(let->var, Resolved(let->value));
    if (const Load* load = e.As<Load>()) Add(Points(load->buffer, load->indices), false);
    const IfThenElseExpr* choice = e.As<IfThenElseExpr>();
    if (choice == nullptr || !choice->condition.type().is_scalar()) {
      ForEachChild(e, [this](const Expr& child) { Visit(child); });
      return;
    }
    Visit(choice->condition);
    {
      const Under holds(*this, choice->condition);
      Visit(choice->yes);
    }
    const Under fails(*this, MakeNot(choice->condition));
    Visit(choice->no);
  }
  // Whether the node was visited before under some of the present conditions: it touches nothing new, and what stands
  // in several places may do so a great many times.
  bool SeenHere(const Expr& e) {
    const auto [first, is_new] = seen_.try_emplace(&e.node(), condition_ids_);
    if (is_new) return false;
    const std::vector<int>& then = first->second;
    if (then.size() <= condition_ids_.size() && std::equal(then.begin(), then.end(), condition_ids_.begin()))
      return true;
    first->second = condition_ids_;
    return false;
  }

  static BufferRegion Points(const Buffer& buffer, const std::vector<Expr>& indices) {
    BufferRegion region{buffer, {}};
    for (size_t d = 0; d < indices.size() && d < buffer.shape().size(); ++d)
      region.region.push_back(RangeOf(indices[d], buffer.shape()[d]));
    return region;
  }

  void Add(BufferRegion region, bool write) {
    for (auto match = matches_.find(region.buffer); match != matches_.end(); match = matches_.find(region.buffer))
      region = InSource(region, match->second);
    if (local_.contains(region.buffer)) return;
    for (Range& range : region.region) range = {Resolved(range.min), Resolved(range.extent)};
    BlockAccess access{std::move(region), write, loops_, conditions_, nested_};
    if (nested_ != nullptr) {
      access.in_nested = access.region.region;
      const VarMap fixed = [this](const Var& var) { return FixedBinding(var); };
      for (Range& range : access.in_nested) range = {Substitute(range.min, fixed), Substitute(range.extent, fixed)};
      const VarMap bind = [this](const Var& var) { return Binding(var); };
      for (Range& range : access.region.region) range = {Substitute(range.min, bind), Substitute(range.extent, bind)};
      for (const auto& [var, domain, kind] : nested_->block.iters)
        access.domains.emplace_back(var, Range{Resolved(domain.min), Resolved(domain.extent)});
    }
    visit_(access);
  }
  // The same where it stays as it is while the loops of the body run.
  std::optional<Expr> FixedBinding(const Var& var) const {
    const std::optional<Expr> value = Binding(var);
    const bool moves =
        value.has_value() && std::ranges::any_of(loops_, [&](const auto& loop) { return UsesVar(*value, loop.first); });
    return moves ? std::nullopt : value;
  }
  // What the nested block whose regions are being added binds its variable to.
  std::optional<Expr> Binding(const Var& var) const {
    for (size_t i = 0; i < nested_->block.iters.size() && i < nested_->values.size(); ++i) {
      if (nested_->block.iters[i].var == var) return Resolved(nested_->values[i]);
    }
    return std::nullopt;
  }
  // A part of a matched buffer as a part of its source, which may have more dimensions in front, each of one element.
  static BufferRegion InSource(const BufferRegion& part, const BufferRegion& source) {
    BufferRegion region = source;
    const size_t extra = source.region.size() - std::min(source.region.size(), part.region.size());
    for (size_t d = extra; d < region.region.size(); ++d) {
      const Range& r = part.region[d - extra];
      region.region[d] = {source.region[d].min + r.min, r.extent};
    }
    return region;
  }

  // With the values of lets in place of their variables.
  Expr Resolved(const Expr& e) const {
    if (lets_.empty()) return e;
    return Substitute(e, [this](const Var& var) -> std::optional<Expr> {
      const auto let = lets_.find(var);
      return let == lets_.end() ? std::nullopt : std::optional(let->second);
    });
  }

  // A condition that holds for as long as it lives.
  class Under {
   public:
    Under(AccessWalk& walk, const Expr& condition) : walk_(walk) {
      walk_.conditions_.push_back(walk_.Resolved(condition));
      walk_.condition_ids_.push_back(walk_.next_condition_++);
    }
    ~Under() {
      walk_.conditions_.pop_back();
      walk_.condition_ids_.pop_back();
    }
    Under(const Under&) = delete;
    Under& operator=(const Under&) = delete;

   private:
    AccessWalk& walk_;
  };

  const std::function<void(const BlockAccess&)>& visit_;
  std::set<Buffer> local_;
  std::map<Buffer, BufferRegion> matches_;
  std::map<Var, Expr> lets_;
  std::vector<std::pair<Var, Range>> loops_;
  std::vector<Expr> conditions_;
  std::vector<int> condition_ids_;  // one for each of conditions_, no two the same
  int next_condition_ = 0;
  const BlockRealize* nested_ = nullptr;  // whose regions are being added
  absl::flat_hash_map<const ExprNode*, std::vector<int>>
      seen_;  // of one expression: the conditions it was visited under
};

}  // namespace

void ForEachAccess(const Block& block, const std::function<void(const BlockAccess&)>& visit) {
  AccessWalk(block, visit);
}

}  // namespace hone
