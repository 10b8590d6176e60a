#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// x for which x OP v is v.
Expr NeutralElement(BinaryOp op, DType type) {
  if (op == BinaryOp::kAdd) return Const(0, type);
  if (op == BinaryOp::kMul) return Const(1, type);
  const bool least = op == BinaryOp::kMax;
  if (type.is_float()) {
    const double infinity = std::numeric_limits<double>::infinity();
    return FloatConst(least ? -infinity : infinity, type);
  }
  if (type.code == TypeCode::kUInt) return IntConst(least ? 0 : -1, type);  // all bits set: the greatest
  const int64_t low = static_cast<int64_t>(~uint64_t{0} << (type.bits - 1));
  return IntConst(least ? low : -(low + 1), type);
}

struct Threads {  // an axis of the launch
  Var var;
  int64_t extent = 1;
};

// A place among threads in row-major order of axes.
struct Place {
  Expr index = IntConst(0);
  int64_t count = 1;
  void Add(const Threads& axis) {
    index = index * IntConst(axis.extent) + MakeCast(kInt32, axis.var);
    count *= axis.extent;
  }
};

// A reduction on its way: what goes around the outermost loop that it runs over.
struct Split {
  Var outermost;                  // absent: around the block itself
  std::vector<Buffer> part, all;  // of each element of the tuple
  Stmt before, after;
};

class Rewriter {
 public:
  absl::StatusOr<Stmt> Run(const Stmt& body) {
    Stmt rewritten = Visit(body);
    HONE_RETURN_IF_ERROR(status_);
    return rewritten;
  }

 private:
  Stmt Visit(const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    const bool axis = loop != nullptr && loop->thread.starts_with("threadIdx");
    if (axis) axes_.push_back({loop->var, ConstantValue(loop->extent).value_or(0)});
    const bool launch = loop != nullptr && loop->kind == ForKind::kThreadBinding && !outside_launch_;
    if (launch) outside_launch_ = loops_.size();
    if (loop != nullptr && loop->kind != ForKind::kThreadBinding) loops_.push_back(loop);
    const Alloc* alloc = stmt.As<Alloc>();
    if (alloc != nullptr && !axes_.empty() && alloc->buffer.scope() != Scope::kShared) own_.insert(alloc->buffer);
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize != nullptr && ReducesAcross(*realize)) return Close(Reduce(*realize), Var());
    const Stmt mapped = MapChildren(
        stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
    if (axis) axes_.pop_back();
    if (launch) outside_launch_.reset();
    if (loop == nullptr || loop->kind == ForKind::kThreadBinding) return mapped;
    loops_.pop_back();
    return Close(mapped, loop->var);
  }

  // The statement with the parts of reductions whose outermost loop it is around it.
  Stmt Close(Stmt stmt, const Var& loop) {
    for (size_t i = open_.size(); i-- > 0;) {
      const Split split = open_[i];
      if (loop ? !(split.outermost && split.outermost == loop) : static_cast<bool>(split.outermost)) continue;
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
      stmt = MakeSeq({split.before, stmt, split.after});
      for (size_t e = split.part.size(); e-- > 0;)
        stmt = Stmt::Make(Alloc{split.part[e], Stmt::Make(Alloc{split.all[e], stmt})});
    }
    return stmt;
  }

  bool Uses(const BlockRealize& realize, const Var& var, bool reduce) const {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      const bool reduces = realize.block.iters[i].kind != IterKind::kSpatial;
      if (reduces == reduce && UsesVar(realize.values[i], var)) return true;
    }
    return false;
  }
  bool ReducesAcross(const BlockRealize& realize) const {
    for (const Threads& axis : axes_) {
      if (Uses(realize, axis.var, true)) return true;
    }
    return false;
  }

  Stmt Fail(const Block& block, const std::string& why) {
    status_ = absl::FailedPreconditionError(
        absl::StrCat("threads cannot run this program: block ", block.name, " reduces over an axis of threads, ", why));
    return Stmt::Make(Seq{});
  }

  // The block in the place of which each thread reduces its own share; what goes around it is left in open_.
  Stmt Reduce(const BlockRealize& realize) {
    const Block& block = realize.block;
    const std::optional<BlockReduction> reduction = ReductionOf(block);
    if (!reduction.has_value())
      return Fail(block, "and is not of the form x = x OP v (+, *, min, max); rfactor the reduction");
    Split split;
    for (size_t i = 0; i < *outside_launch_; ++i) {
      if (!Uses(realize, loops_[i]->var, true)) continue;
      return Fail(block, absl::StrCat("and loop ", loops_[i]->var.name(),
                                      ", which reduces too, lies outside of the launch; reorder the two"));
    }
    for (const For* loop : loops_) {
      const bool reduces = Uses(realize, loop->var, true), spatial = Uses(realize, loop->var, false);
      if (reduces && !split.outermost) split.outermost = loop->var;
      if (spatial && split.outermost) {
        return Fail(block,
                    absl::StrCat("and loop ", loop->var.name(), ", which does not reduce, lies inside one that does, ",
                                 split.outermost.name(), "; reorder the two"));
      }
    }
    Place among, row;  // among the threads that reduce together; the threads that reduce other elements
    for (const Threads& axis : axes_) {
      if (Uses(realize, axis.var, true) && Uses(realize, axis.var, false)) {
        return Fail(block,
                    absl::StrCat("and ", axis.var.name(), " chooses the element too; split the loop before bind"));
      }
      (Uses(realize, axis.var, true) ? among : row).Add(axis);
    }
    std::vector<Stmt> before;
    for (size_t i = 0; i < reduction->elements.size(); ++i) {
      const Buffer& buffer = reduction->elements[i].buffer;
      const DType type = buffer.type();
      split.part.emplace_back(buffer.name() + "_part", type, std::vector<Expr>{Expr(1)}, Scope::kRegister);
      split.all.emplace_back(buffer.name() + "_all", type,
                             std::vector<Expr>{IntConst(row.count), IntConst(among.count)}, Scope::kShared);
      const Expr first =
          reduction->ranking.has_value() ? reduction->starts[i] : NeutralElement(reduction->ops[i], type);
      before.push_back(Stmt::Make(Store{split.part[i], {IntConst(0)}, first, Expr()}));
    }
    split.before = MakeSeq(std::move(before));
    split.after = Combine(realize, *reduction, split, row, among);
    BlockRealize share = realize;
    share.block.init = Stmt();
    share.block.body = reduction->Update(split.part, std::vector<std::vector<Expr>>(split.part.size(), {IntConst(0)}),
                                         reduction->terms);
    share.block.reads.clear();
    share.block.writes.clear();
    DeclareRegions(share.block);
    open_.push_back(std::move(split));
    return Stmt::Make(std::move(share));
  }

  // What a block does; nullopt when threads cannot share it. Without an init it goes on from what is there.
  static std::optional<BlockReduction> ReductionOf(const Block& block) {
    if (block.init) {
      absl::StatusOr<BlockReduction> found = MatchReduction(block);
      if (!found.ok()) return std::nullopt;
      for (size_t i = 0; i < found->elements.size(); ++i) {
        if (found->ranking.has_value() && !found->StartCountsOnce(i)) return std::nullopt;
      }
      return *std::move(found);
    }
    const Store* store = block.body.As<Store>();
    const std::optional<ReductionUpdate> update = store == nullptr ? std::nullopt : MatchUpdate(*store);
    if (!update.has_value()) return std::nullopt;
    return BlockReduction{.elements = {*store},
                          .starts = {MakeLoad(store->buffer, store->indices)},
                          .terms = {update->value},
                          .ops = {update->op}};
  }

  // all[row, i] = part; half as many threads every round add what the others hold; the element gets the sum.
  Stmt Combine(const BlockRealize& realize, const BlockReduction& reduction, const Split& split, const Place& row,
               const Place& among) {
    const size_t count = split.all.size();
    const std::vector<std::vector<Expr>> mine(count, {row.index, among.index});
    std::vector<Stmt> stmts;
    for (size_t i = 0; i < count; ++i)
      stmts.push_back(Stmt::Make(Store{split.all[i], mine[i], MakeLoad(split.part[i], {IntConst(0)}), Expr()}));
    for (int64_t half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(among.count)) / 2); half > 0;
         half /= 2) {
      const Expr other = among.index + IntConst(half);
      const Expr active = And(among.index < IntConst(half), other < IntConst(std::min(among.count, 2 * half)));
      std::vector<Expr> others;
      for (const Buffer& all : split.all) others.push_back(MakeLoad(all, {row.index, other}));
      stmts.push_back(Stmt::Make(IfThen{active, reduction.Update(split.all, mine, others), Stmt()}));
    }
    std::vector<Expr> totals;
    for (const Buffer& all : split.all) totals.push_back(MakeLoad(all, {row.index, IntConst(0)}));
    stmts.push_back(StoreTotals(realize, reduction, split, totals, among));
    return MakeSeq(std::move(stmts));
  }

  // The elements get the totals where an instance has run: those outside their domain do not, whatever part of the
  // condition was about the reduction.
  Stmt StoreTotals(const BlockRealize& realize, const BlockReduction& reduction, const Split& split,
                   const std::vector<Expr>& totals, const Place& among) {
    Expr condition = True();
    for (size_t i = 0; i < realize.values.size(); ++i) {
      const IterVar& iter = realize.block.iters[i];
      if (iter.kind != IterKind::kSpatial) continue;
      condition = And(condition, And(realize.values[i] >= iter.domain.min,
                                     realize.values[i] < iter.domain.min + iter.domain.extent));
    }
    const std::vector<const For*> ended = EndedLoops(split);
    Expr of_ended = True();
    for (const Expr& part : Conjuncts(realize.predicate)) {
      if (AboutReduction(realize, part)) continue;
      const bool ends = std::ranges::any_of(ended, [&](const For* loop) { return UsesVar(part, loop->var); });
      (ends ? of_ended : condition) = And(ends ? of_ended : condition, part);
    }
    const auto store_if = [&](const Expr& holds) {
      std::vector<Stmt> stores;
      for (size_t i = 0; i < totals.size(); ++i)
        stores.push_back(StoreTotal(realize, reduction, i, totals[i], among, holds));
      return MakeSeq(std::move(stores));
    };
    if (ConstantValue(of_ended) == 1) return store_if(condition);
    const Buffer ran(reduction.elements[0].buffer.name() + "_ran", kInt32, {Expr(1)}, Scope::kRegister);
    const auto set = [&](int64_t value) { return Stmt::Make(Store{ran, {IntConst(0)}, IntConst(value), Expr()}); };
    const Expr has_run = Eq(MakeLoad(ran, {IntConst(0)}), IntConst(1));
    const Stmt look = Around(ended, Stmt::Make(IfThen{of_ended, set(1), Stmt()}));
    return Stmt::Make(Alloc{ran, MakeSeq({set(0), look, store_if(And(condition, has_run))})});
  }

  // Of part `i` of the tuple: every thread stores what is its own, the first what others see.
  Stmt StoreTotal(const BlockRealize& realize, const BlockReduction& reduction, size_t i, const Expr& total,
                  const Place& among, const Expr& condition) const {
    const auto bind = [&](const Var& var) -> std::optional<Expr> {
      for (size_t v = 0; v < realize.values.size(); ++v) {
        if (realize.block.iters[v].var == var) return MakeCast(var.type(), realize.values[v]);
      }
      return std::nullopt;
    };
    const Store& element = reduction.elements[i];
    std::vector<Expr> indices;
    for (const Expr& index : element.indices) indices.push_back(Substitute(index, bind));
    const Expr start = Substitute(reduction.starts[i], bind);
    const bool starts_counted = reduction.ranking.has_value() ||
                                StructuralEqual(start, NeutralElement(reduction.ops[i], element.buffer.type()));
    const Expr value = starts_counted ? total : MakeBinary(reduction.ops[i], start, total);
    const bool own = element.buffer.scope() == Scope::kRegister || own_.contains(element.buffer);
    const Expr holds = own ? condition : And(Eq(among.index, IntConst(0)), condition);
    return Stmt::Make(IfThen{holds, Stmt::Make(Store{element.buffer, indices, value, Expr()}), Stmt()});
  }

  // The loops around the block that are over where the total is stored.
  std::vector<const For*> EndedLoops(const Split& split) const {
    const auto outermost =
        std::ranges::find_if(loops_, [&](const For* loop) { return split.outermost && split.outermost == loop->var; });
    return {outermost, loops_.end()};
  }

  // A statement in serial loops of its own: those of `loops` that it depends on.
  static Stmt Around(const std::vector<const For*>& loops, Stmt stmt) {
    for (size_t i = loops.size(); i-- > 0;) {
      if (!UsesVar(stmt, loops[i]->var)) continue;
      const Var own(loops[i]->var.name(), loops[i]->var.type());
      stmt = Stmt::Make(For{.var = own,
                            .min = loops[i]->min,
                            .extent = loops[i]->extent,
                            .kind = ForKind::kSerial,
                            .body = Substitute(stmt, loops[i]->var, Expr(own))});
    }
    return stmt;
  }

  bool AboutReduction(const BlockRealize& realize, const Expr& part) const {
    for (const Var& var : FreeVars(part)) {
      if (Uses(realize, var, true)) return true;
    }
    return false;
  }

  std::vector<Threads> axes_;
  std::vector<const For*> loops_;         // those of a thread, around what is visited
  std::optional<size_t> outside_launch_;  // in a launch: how many of those are around all of it
  std::vector<Split> open_;
  std::set<Buffer> own_;  // allocated inside the launch, and not for all threads of a block
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Stmt> ReduceAcrossThreads(const Stmt& body) { return Rewriter().Run(body); }

}  // namespace hone
