#include "compiler/schedule/analysis/data_parallel.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval_set.h"
#include "compiler/arith/iter_map.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/reduction.h"

namespace hone {
namespace {

// The size m * c of an index that ends in x % m * c; otherwise that of the domain.
Expr SizeOf(const Expr& value, const Expr& domain) {
  Expr size = domain;
  ForEachExpr(value, [&](const Expr& e) {
    const Binary* scaled = e.As<Binary>();
    const bool times = scaled != nullptr && scaled->op == BinaryOp::kMul && ConstantValue(scaled->b).has_value();
    const Binary* remainder = (times ? scaled->a : e).As<Binary>();
    const bool found =
        remainder != nullptr && remainder->op == BinaryOp::kFloorMod && ConstantValue(remainder->b).has_value();
    if (found) size = times ? remainder->b * scaled->b : remainder->b;
    return !found;
  });
  return size;
}

// One number made of the values that depend on the loop, so that where it differs they differ: those of fused loops,
// f // 8 and f % 8, give f.
Expr Joined(const BlockRealize& realize, const Var& loop) {
  Expr joined = IntConst(0);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind != IterKind::kSpatial || !UsesVar(realize.values[i], loop)) continue;
    joined = joined * SizeOf(realize.values[i], realize.block.iters[i].domain.extent) + realize.values[i];
  }
  return joined;
}

// Returns whether distinct iterations of the loop, all else equal, give distinct instances of the block (the bindings
// are injective in its variable).
bool IsInjective(const ProgramIndex& index, int block, const For& loop) {
  const BlockRealize& realize = index.realize(block);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind != IterKind::kSpatial) continue;
    const std::optional<int64_t> stride = StrideOf(realize.values[i], loop.var);
    if (stride.has_value() && *stride != 0) return true;
  }
  const VarRanges loops = RangesAround(index, block);
  Analyzer known(loops);
  if (const std::optional<int64_t> stride = StrideOf(known.Simplify(Joined(realize, loop.var)), loop.var);
      stride.value_or(0) != 0)
    return true;
  return CheckBindings(realize, loops, known).ok();
}

// Loops whose iterations run at once, and those that run inside them in any order to one another.
struct AtOnce {
  std::vector<Var> apart, within;
};

// A loop's variable as the number that its digits make, where the places use these: of f // 8 and f % 8 the digits are
// f % 8 and f // 8, and f is their sum with 8 times the second. One digit, the variable itself, where they use no
// other.
struct Digits {
  std::vector<Var> vars;
  Expr value;
  VarRanges ranges;
};
Digits DigitsOf(const Var& var, const Range& range, const std::vector<Expr>& places) {
  const Digits whole{.vars = {var}, .value = var, .ranges = {{var, range}}};
  std::set<int64_t> divisors = {1};
  for (const Expr& place : places) {
    ForEachExpr(place, [&](const Expr& e) {
      const Binary* op = e.As<Binary>();
      const bool cuts = op != nullptr && (op->op == BinaryOp::kFloorDiv || op->op == BinaryOp::kFloorMod);
      const VarRef* cut = cuts ? op->a.As<VarRef>() : nullptr;
      if (cut != nullptr && cut->var == var) divisors.insert(ConstantValue(op->b).value_or(0));
      return true;
    });
  }
  const std::optional<int64_t> extent = ConstantValue(range.extent);
  if (divisors.size() == 1 || !extent.has_value() || !IsConst(range.min, 0) || *divisors.begin() < 1) return whole;
  Digits digits{.vars = {}, .value = IntConst(0, var.type()), .ranges = {}};
  for (auto lower = divisors.begin(); lower != divisors.end(); ++lower) {
    const auto next = std::next(lower);
    if (next != divisors.end() && *next % *lower != 0) return whole;
    const int64_t values = next != divisors.end() ? *next / *lower : (*extent + *lower - 1) / *lower;
    const Var digit(Message(var, "_", *lower), var.type());
    digits.vars.push_back(digit);
    digits.value = digits.value + Expr(digit) * IntConst(*lower, var.type());
    digits.ranges[digit] = Range{IntConst(0, var.type()), IntConst(values, var.type())};
  }
  return digits;
}

// Returns whether the place tells the variable's value while those of `others` are unknown: they move it by less than
// one step of the variable does.
bool Tells(const Expr& place, const Var& var, const VarRanges& others, Analyzer& known) {
  const std::optional<int64_t> stride = StrideOf(place, var);
  if (stride.value_or(0) == 0) return false;
  const std::optional<int64_t> values = MaxExtent(EvalSet(place, ToSets(others), known), known);
  return values.has_value() && *values <= std::abs(*stride);
}

// Returns whether iterations that differ in a loop of `apart` give distinct instances of the block whatever those of
// `within` do, all other loops equal. The spatial variables tell the loops' one after the other: of 8*x + 2*y + z, with
// y below 4 and z below 2, x is known first, then y; of 2*x + z with z below 3 neither is.
bool AreDistinct(const ProgramIndex& index, int block, const AtOnce& loops) {
  const BlockRealize& realize = index.realize(block);
  const VarRanges ranges = RangesAround(index, block);
  Analyzer of_loops(ranges), known(ranges);
  std::vector<Expr> places;
  for (size_t i = 0; i < realize.values.size(); ++i)
    if (realize.block.iters[i].kind == IterKind::kSpatial) places.push_back(realize.values[i]);
  for (const std::vector<Var>* vars : {&loops.apart, &loops.within}) {
    for (const Var& var : *vars) places.push_back(known.Simplify(Joined(realize, var)));
  }
  VarRanges unknown;
  std::vector<Var> apart;
  for (const std::vector<Var>* vars : {&loops.apart, &loops.within}) {
    for (const Var& var : *vars) {
      const Digits digits = DigitsOf(var, ranges.at(var), places);
      for (const auto& [digit, range] : digits.ranges) {
        known.Bind(digit, range);
        if (!IsConst(range.extent, 1)) unknown[digit] = range;
      }
      for (Expr& place : places) place = known.Simplify(Substitute(place, var, digits.value));
      if (vars == &loops.apart) apart.insert(apart.end(), digits.vars.begin(), digits.vars.end());
    }
  }
  const auto is_told = [&](const Var& var) {
    VarRanges others = unknown;
    others.erase(var);
    return std::ranges::any_of(places, [&](const Expr& place) { return Tells(place, var, others, known); });
  };
  while (std::erase_if(unknown, [&](const auto& loop) { return is_told(loop.first); }) != 0) {}
  return std::ranges::none_of(apart, [&](const Var& var) { return unknown.contains(var); }) ||
         CheckBindings(realize, ranges, of_loops).ok();
}

// Returns whether threads that differ along the axis may write one element of the buffer.
bool IsSharedAlong(const ProgramIndex& index, int loop, std::string_view axis, const Buffer& buffer) {
  const bool of_blocks = axis.starts_with("blockIdx");
  switch (buffer.scope()) {
    case Scope::kGlobal: return !IsPrivateTo(index, loop, buffer);
    case Scope::kShared: return !of_blocks && !IsPrivateTo(index, loop, buffer);
    case Scope::kWarp: {
      if (of_blocks || IsPrivateTo(index, loop, buffer)) return false;
      const std::optional<ThreadExtents> threads = ThreadsAround(index, loop);
      return !threads.has_value() || ThreadAxisNumber(axis) >= threads->size() ||
             WarpAxisOf(*threads, ThreadAxisNumber(axis)) != WarpAxis::kWarps;
    }
    case Scope::kThread:
    case Scope::kRegister: return false;
  }
  return true;
}

// Returns whether the variable moves one of the block's spatial variables, or one of the others.
bool Moves(const BlockRealize& realize, const Var& var, bool spatial) {
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if ((realize.block.iters[i].kind == IterKind::kSpatial) == spatial && UsesVar(realize.values[i], var)) return true;
  }
  return false;
}

// Of the launch in which the loop `bound` is about to be bound to the axis: the threads that may meet in an element
// that the block writes. Iterations of other loops inside are ordered by barriers where threads share memory, and by
// nothing where all blocks do.
AtOnce ThreadsOf(const ProgramIndex& index, int bound, std::string_view axis, int block) {
  AtOnce loops;
  std::vector<std::string_view> seen;
  const std::vector<int> around = index.LoopsAbove(block);
  const std::vector<BufferRegion>& writes = index.block(block).writes;
  const bool unordered =
      std::ranges::any_of(writes, [](const BufferRegion& write) { return write.buffer.scope() == Scope::kGlobal; });
  size_t launch = around.size();  // where it begins
  for (size_t i = around.size(); i-- > 0;) {
    const For& loop = index.loop(around[i]);
    const std::string_view own = around[i] == bound ? axis : loop.thread;
    if (own.empty()) continue;
    launch = i;
    if (!Moves(index.realize(block), loop.var, true)) continue;  // threads that reduce together
    if (std::ranges::find(seen, own) != seen.end()) continue;    // bound again inside: a thread has one place
    seen.push_back(own);
    if (std::ranges::any_of(
            writes, [&](const BufferRegion& write) { return IsSharedAlong(index, around[i], own, write.buffer); }))
      loops.apart.push_back(loop.var);
  }
  for (size_t i = launch; unordered && i < around.size(); ++i) {
    const For& loop = index.loop(around[i]);
    if (around[i] != bound && loop.thread.empty()) loops.within.push_back(loop.var);
  }
  return loops;
}

bool UsesAny(const Expr& e, const std::vector<Var>& vars) {
  return std::ranges::any_of(vars, [&](const Var& var) { return UsesVar(e, var); });
}

// Returns whether all that is added up in one element is added in one iteration of the loop, which moves spatial
// variables of the block alone. It is where the loops inside move either spatial variables or others: an iteration that
// writes the element has all of its sum then. A loop inside that moves both, such as one made of fused loops of either
// kind, may carry the element over to the next iteration, unless it moves it by less than this loop does.
bool KeepsSumsTogether(const ProgramIndex& index, int node, int block) {
  const BlockRealize& realize = index.realize(block);
  const Var& var = index.loop(node).var;
  std::vector<Var> spatial = {var}, others;
  VarRanges inside;
  bool mixed = false;
  for (const int n : index.LoopsBetween(node, block)) {
    const For& loop = index.loop(n);
    if (IsConst(loop.extent, 1)) continue;
    inside[loop.var] = Range{loop.min, loop.extent};
    const bool is_spatial = Moves(realize, loop.var, true), is_other = Moves(realize, loop.var, false);
    mixed |= is_spatial && is_other;
    if (is_spatial) spatial.push_back(loop.var);
    if (is_other) others.push_back(loop.var);
  }
  for (const Expr& part : Conjuncts(realize.predicate)) mixed |= UsesAny(part, spatial) && UsesAny(part, others);
  if (!mixed) return true;
  Analyzer known(RangesAround(index, block));
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block.iters[i].kind == IterKind::kSpatial && Tells(realize.values[i], var, inside, known)) return true;
  }
  return false;
}

// Returns whether threads can reduce together: x = x OP v, in any order.
bool ReducesInAnyOrder(const Block& block) {
  const Store* store = block.body.As<Store>();
  return store != nullptr && MatchUpdate(*store).has_value();
}

bool HasWhile(const Block& block) {
  bool found = false;
  ForEachStmt(block.body, [&](const Stmt& stmt) {
    found |= stmt.As<While>() != nullptr;
    return !found;
  });
  return found;
}

// Returns whether no two iterations of the loop, which is to be run at once in the way of the primitive, write one
// element of the block. Lanes of a vector run in order where they do.
bool RunsInAnyOrder(const ProgramIndex& index, int node, int block, std::string_view primitive, std::string_view axis) {
  const For& loop = index.loop(node);
  if (primitive == "vectorize") return IsInjective(index, block, loop);
  if (!axis.empty()) return AreDistinct(index, block, ThreadsOf(index, node, axis, block));
  AtOnce loops{.apart = {loop.var}, .within = {}};
  for (const int inner : index.LoopsBetween(node, block)) loops.within.push_back(index.loop(inner).var);
  return AreDistinct(index, block, loops);
}

}  // namespace

absl::Status CheckDataParallel(const ProgramIndex& index, int node, std::string_view primitive, std::string_view axis) {
  const For& loop = index.loop(node);
  if (IsConst(loop.extent, 1)) return absl::OkStatus();
  for (const int b : index.BlocksBelow(node)) {
    const BlockRealize& realize = index.realize(b);
    const Block& block = realize.block;
    if (block.writes.empty() && primitive == "vectorize") {
      return Refused(
          primitive, "(", loop.var, "): block ", block.name,
          " below writes nothing, so it is there for its effect, once an iteration; vectorize a loop inside");
    }
    if (primitive == "vectorize" && HasWhile(block)) {
      return Refused(primitive, "(", loop.var, "): block ", block.name,
                     " below has a while loop, which may end at another time in each lane; unroll the loop, or make it "
                     "parallel");
    }
    bool used = false, must_be_injective = true;  // in the loop's variable, but for a reduction by threads
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (!UsesVar(realize.values[i], loop.var)) continue;
      const bool together =
          block.iters[i].kind == IterKind::kReduce && axis.starts_with("threadIdx") && ReducesInAnyOrder(block);
      if (together) must_be_injective = false;
      if (block.iters[i].kind != IterKind::kSpatial && !together) {
        return Refused(primitive, "(", loop.var, "): the loop runs over ", block.iters[i].var, " of block ", block.name,
                       ", a ", block.iters[i].kind == IterKind::kReduce ? "reduction" : "variable whose order counts",
                       "; choose a loop of spatial variables, or rfactor the reduction first");
      }
      used = true;
    }
    bool shared = false;  // somebody outside the loop sees what the block writes
    for (const BufferRegion& write : block.writes) shared |= !IsPrivateTo(index, node, write.buffer);
    if (!shared && primitive != "vectorize") continue;
    if (!used) {
      return Refused(primitive, "(", loop.var, "): block ", block.name,
                     " below does not depend on the loop, so every iteration writes the "
                     "same elements; move the block out of the loop");
    }
    if (must_be_injective && !KeepsSumsTogether(index, node, b)) {
      return Refused(primitive, "(", loop.var, "): a loop inside moves both what block ", block.name,
                     " writes and what it adds up, so the sum of one element may be spread over iterations; split the "
                     "spatial and the reduce loops before they are fused");
    }
    if (must_be_injective && !RunsInAnyOrder(index, node, b, primitive, axis)) {
      return Refused(primitive, "(", loop.var, "): the bindings of block ", block.name,
                     " do not tell the iterations apart, so two of them "
                     "may write one element");
    }
  }
  return absl::OkStatus();
}

}  // namespace hone
