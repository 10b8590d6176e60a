#include <algorithm>
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
#include "compiler/lower/tile_condition.h"
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
  bool neighbours = false;  // along it threads of a warp are neighbours: threadIdx.x
};

// So many parts become one in every round, and after the last one.
constexpr int64_t kPartsOfRound = 8;

// A place among threads in row-major order of axes.
struct Place {
  Expr index = IntConst(0);
  int64_t count = 1;
  bool neighbours = false;  // some of them
  void Add(const Threads& axis) {
    neighbours |= axis.neighbours && axis.extent > 1;
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
    if (axis) axes_.push_back({loop->var, ConstantValue(loop->extent).value_or(0), loop->thread == "threadIdx.x"});
    const bool launch = loop != nullptr && loop->kind == ForKind::kThreadBinding && !outside_launch_;
    if (launch) outside_launch_ = loops_.size();
    if (loop != nullptr && loop->kind != ForKind::kThreadBinding) loops_.push_back(loop);
    const Alloc* alloc = stmt.As<Alloc>();
    if (alloc != nullptr && !axes_.empty() && !IsSharedByThreads(alloc->buffer.scope())) own_.insert(alloc->buffer);
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
      split.all.emplace_back(buffer.name() + "_all", type, InMemory(row, IntConst(row.count), IntConst(among.count)),
                             Scope::kShared);
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

  // Neighbours of other elements are neighbours in memory, in banks of their own.
  static std::vector<Expr> InMemory(const Place& row, Expr of_row, Expr of_among) {
    if (row.neighbours) return {std::move(of_among), std::move(of_row)};
    return {std::move(of_row), std::move(of_among)};
  }

  // all[row, i] = part; in every round a few threads add up what the others hold, and pass that on in a buffer of its
  // own, which nobody still reads; the element gets the sum of the last parts.
  Stmt Combine(const BlockRealize& realize, const BlockReduction& reduction, const Split& split, const Place& row,
               const Place& among) {
    const std::vector<std::vector<Expr>> own(split.part.size(), {IntConst(0)});
    struct Round {
      std::vector<Buffer> to;
      Stmt stmt;
    };
    std::vector<Round> rounds;
    std::vector<Buffer> from = split.all;
    int64_t parts = among.count;
    while (parts > kPartsOfRound) {
      const int64_t left = (parts + kPartsOfRound - 1) / kPartsOfRound;
      std::vector<Stmt> stmts;
      for (int64_t p = left; p < parts; p += left) {
        const Expr other = among.index + IntConst(p);
        const Stmt update = reduction.Update(split.part, own, PartsAt(from, row, other));
        stmts.push_back(p + left <= parts ? update : Stmt::Make(IfThen{other < IntConst(parts), update, Stmt()}));
      }
      Round round{Parts(split, row, left), Stmt()};
      stmts.push_back(Pass(split, round.to, row, among));
      round.stmt = Stmt::Make(IfThen{among.index < IntConst(left), MakeSeq(std::move(stmts)), Stmt()});
      from = round.to;
      rounds.push_back(std::move(round));
      parts = left;
    }
    const std::vector<Expr> first = PartsAt(from, row, IntConst(0));
    std::vector<Stmt> last;
    std::vector<Expr> totals;
    for (size_t i = 0; i < from.size(); ++i) {
      last.push_back(Stmt::Make(Store{split.part[i], own[i], first[i], Expr()}));
      totals.push_back(MakeLoad(split.part[i], own[i]));
    }
    for (int64_t p = 1; p < parts; ++p)
      last.push_back(reduction.Update(split.part, own, PartsAt(from, row, IntConst(p))));
    last.push_back(StoreTotals(realize, reduction, split, totals, among));
    Stmt rest = MakeSeq(std::move(last));
    for (size_t r = rounds.size(); r-- > 0;) {
      rest = MakeSeq({rounds[r].stmt, rest});
      for (size_t i = rounds[r].to.size(); i-- > 0;) rest = Stmt::Make(Alloc{rounds[r].to[i], rest});
    }
    return MakeSeq({Pass(split, split.all, row, among), rest});
  }

  // Of each element of the tuple so many parts in shared memory.
  static std::vector<Buffer> Parts(const Split& split, const Place& row, int64_t count) {
    std::vector<Buffer> parts;
    for (const Buffer& part : split.part) {
      parts.emplace_back(part.name() + "s", part.type(), InMemory(row, IntConst(row.count), IntConst(count)),
                         Scope::kShared);
    }
    return parts;
  }
  // What they are, the thread's row's number `i`.
  static std::vector<Expr> PartsAt(const std::vector<Buffer>& parts, const Place& row, const Expr& i) {
    std::vector<Expr> loads;
    for (const Buffer& part : parts) loads.push_back(MakeLoad(part, InMemory(row, row.index, i)));
    return loads;
  }
  // The thread's own becomes the one of its number.
  static Stmt Pass(const Split& split, const std::vector<Buffer>& to, const Place& row, const Place& among) {
    std::vector<Stmt> stores;
    for (size_t i = 0; i < to.size(); ++i) {
      stores.push_back(Stmt::Make(
          Store{to[i], InMemory(row, row.index, among.index), MakeLoad(split.part[i], {IntConst(0)}), Expr()}));
    }
    return MakeSeq(std::move(stores));
  }

  // The elements get the totals where an instance has run: those outside their domain do not, nor those of which the
  // condition lets no term through.
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
    for (const Expr& part : OfSomeTerm(realize)) {
      const bool ends = AboutReduction(realize, part) ||
                        std::ranges::any_of(ended, [&](const For* loop) { return UsesVar(part, loop->var); });
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
    Stmt look = Around(ended, Stmt::Make(IfThen{of_ended, set(1), Stmt()}));
    for (const Threads& axis : axes_) {
      if (!Uses(realize, axis.var, true) || !UsesVar(look, axis.var)) continue;
      const Var term(axis.var.name(), axis.var.type());
      look = Stmt::Make(For{.var = term,
                            .min = IntConst(0, term.type()),
                            .extent = IntConst(axis.extent, term.type()),
                            .kind = ForKind::kSerial,
                            .body = Substitute(look, axis.var, Expr(term))});
    }
    return Stmt::Make(Alloc{ran, MakeSeq({set(0), look, store_if(And(condition, has_run))})});
  }

  // The parts of the block's condition that decide whether an element has any term. One part alone may weigh terms
  // against elements: x + k < n holds for some k where it does for the least.
  std::vector<Expr> OfSomeTerm(const BlockRealize& realize) const {
    std::vector<Expr> parts;
    std::vector<Expr> mixed;
    for (const Expr& part : Conjuncts(realize.predicate)) {
      const std::set<Var> vars = FreeVars(part);
      const auto of_terms = [&](const Var& var) { return Uses(realize, var, true); };
      if (!vars.empty() && std::ranges::all_of(vars, of_terms)) continue;
      (std::ranges::any_of(vars, of_terms) ? mixed : parts).push_back(part);
    }
    if (mixed.size() == 1) {
      TileLoops terms;
      for (const For* loop : loops_) {
        const std::optional<int64_t> min = ConstantValue(loop->min), extent = ConstantValue(loop->extent);
        if (!Uses(realize, loop->var, true)) continue;
        if (min.has_value() && extent.has_value()) {
          terms.ranges[loop->var] = {*min, *extent};
        } else {
          terms.hidden.insert(loop->var);
        }
      }
      for (const Threads& axis : axes_)
        if (Uses(realize, axis.var, true)) terms.ranges[axis.var] = {0, axis.extent};
      Analyzer known;
      if (const std::optional<TileCondition> read = ReadTileCondition(mixed[0], terms, known))
        mixed[0] = read->outer + Expr(read->least) <= 0;
    }
    parts.insert(parts.end(), mixed.begin(), mixed.end());
    return parts;
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
