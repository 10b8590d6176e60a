#include "compiler/arith/exact_values.h"

#include <algorithm>
#include <bit>

#include "compiler/ir/condition.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/sum.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

using Interval = std::pair<int64_t, int64_t>;

// Ends of sets and their sums stay far from the ends of int64: what lies beyond is no index.
constexpr int64_t kFar = int64_t{1} << 40;
bool IsFar(int64_t value) { return value < -kFar || value > kFar; }

// The loops of an expression, as bits.
using LoopMask = uint64_t;
constexpr size_t kMaxLoops = 64;
size_t LowestOf(LoopMask mask) { return static_cast<size_t>(std::countr_zero(mask)); }

LoopMask LoopsOf(const Expr& e, std::span<const ConstantLoop> loops) {
  LoopMask mask = 0;
  ForEachExpr(e, [&](const Expr& part) {
    if (const VarRef* ref = part.As<VarRef>()) {
      for (size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].var == ref->var) mask |= LoopMask{1} << i;
      }
    }
    return true;
  });
  return mask;
}

// Evaluates expressions as nested loops run. Every operation belongs to the innermost loop that it depends on, and is
// done once an iteration of that.
class NestedEvaluation {
 public:
  // `order`: the loops, outermost first.
  NestedEvaluation(std::span<const ConstantLoop> loops, const std::vector<size_t>& order) : levels_(order.size() + 1) {
    for (size_t level = 0; level < order.size(); ++level) {
      vars_.push_back(loops[order[level]]);
      registers_.push_back({.level = static_cast<int>(level) + 1});
    }
  }

  // The register that will hold the value.
  int Add(const Expr& e) {
    if (const std::optional<int64_t> value = ConstantValue(e)) return AddRegister({.value = *value});
    if (const VarRef* ref = e.As<VarRef>()) {
      const auto found = std::ranges::find_if(vars_, [&](const ConstantLoop& loop) { return loop.var == ref->var; });
      return static_cast<int>(found - vars_.begin());
    }
    if (const Binary* op = e.As<Binary>()) return AddOperation(Kind::kBinary, op->op, op->a.type(), op->a, op->b);
    if (const Not* op = e.As<Not>()) return AddOperation(Kind::kNot, {}, e.type(), op->a);
    if (const Cast* op = e.As<Cast>()) return AddOperation(Kind::kCast, {}, e.type(), op->a);
    if (const Select* op = e.As<Select>()) return AddChoice(*op);
    return AddChoice(*e.As<IfThenElseExpr>());
  }
  // Iterations in which the value in the register is 0 are left out.
  void Require(int of) { levels_[static_cast<size_t>(LevelOf(of))].required.push_back(of); }

  // Calls `visit` with the value of each of these registers' weighted sum (register, weight), once for each iteration
  // of the first `outer` loops under which some iteration of the others is not left out. False when the budget is used
  // up or an operation is undefined.
  template <class Visit>
  bool Run(std::span<const std::pair<int, int64_t>> sum, size_t outer, int64_t& budget, const Visit& visit) {
    found_ = false;
    return RunLevel(0, outer, budget, [&] {
      uint64_t total = 0;
      for (const auto& [at, weight] : sum) total += static_cast<uint64_t>(weight) * static_cast<uint64_t>(At(at));
      visit(static_cast<int64_t>(total));
    });
  }

 private:
  enum class Kind : uint8_t { kBinary, kNot, kCast, kChoice };
  struct Operation {
    Kind kind;
    BinaryOp op;
    DType type;
    int to = 0, a = 0, b = 0, c = 0;
  };
  struct Register {
    int64_t value = 0;
    int level = 0;  // how many of the loops it depends on, counted to the innermost
  };
  struct Level {
    std::vector<Operation> operations;
    std::vector<int> required;
  };

  int AddRegister(Register made) {
    registers_.push_back(made);
    return static_cast<int>(registers_.size()) - 1;
  }
  int LevelOf(int of) const { return registers_[static_cast<size_t>(of)].level; }
  int AddOperation(Kind kind, BinaryOp op, DType type, const Expr& a, const Expr& b = Expr(), const Expr& c = Expr()) {
    Operation made{.kind = kind, .op = op, .type = type};
    made.a = Add(a);
    made.b = b ? Add(b) : made.a;
    made.c = c ? Add(c) : made.a;
    const int level = std::max({LevelOf(made.a), LevelOf(made.b), LevelOf(made.c)});
    made.to = AddRegister({.level = level});
    levels_[static_cast<size_t>(level)].operations.push_back(made);
    return made.to;
  }
  template <class Choice>
  int AddChoice(const Choice& choice) {
    return AddOperation(Kind::kChoice, {}, choice.yes.type(), choice.condition, choice.yes, choice.no);
  }

  int64_t& At(int of) { return registers_[static_cast<size_t>(of)].value; }
  bool Do(const Operation& operation) {
    switch (operation.kind) {
      case Kind::kBinary: {
        const std::optional<int64_t> value = EvalInt(operation.op, At(operation.a), At(operation.b), operation.type);
        if (!value.has_value()) return false;
        At(operation.to) = *value;
        return true;
      }
      case Kind::kNot: At(operation.to) = At(operation.a) == 0; return true;
      case Kind::kCast: At(operation.to) = WrapToType(At(operation.a), operation.type); return true;
      case Kind::kChoice: At(operation.to) = At(operation.a) != 0 ? At(operation.b) : At(operation.c); return true;
    }
    return false;
  }

  template <class Visit>
  bool RunLevel(size_t level, size_t outer, int64_t& budget, const Visit& visit) {
    const Level& here = levels_[level];
    if ((budget -= 1 + static_cast<int64_t>(here.operations.size())) < 0) return false;
    for (const Operation& operation : here.operations) {
      if (!Do(operation)) return false;
    }
    for (const int required : here.required) {
      if (At(required) == 0) return true;
    }
    if (level == vars_.size()) {
      found_ = true;
      visit();
      return true;
    }
    const ConstantLoop& loop = vars_[level];
    for (int64_t i = 0; i < loop.extent; ++i) {
      At(static_cast<int>(level)) = loop.min + i;
      if (level < outer) found_ = false;
      if (!RunLevel(level + 1, outer, budget, visit)) return false;
      if (level >= outer && found_) break;
    }
    return true;
  }

  std::vector<ConstantLoop> vars_;  // in registers 0, 1, ..
  std::vector<Register> registers_;
  std::vector<Level> levels_;  // of what depends on no loop, on the first, on the first two, ..
  bool found_ = false;         // whether an iteration was visited under the present one of the first `outer` loops
};

// a + b for all values of both.
std::optional<ValueSet> Added(const ValueSet& a, const ValueSet& b, int64_t& budget) {
  const auto pairs = static_cast<int64_t>(a.intervals().size() * b.intervals().size());
  if ((budget -= pairs) < 0) return std::nullopt;
  std::vector<Interval> sums;
  for (const auto& [a_low, a_high] : a.intervals()) {
    for (const auto& [b_low, b_high] : b.intervals()) sums.emplace_back(a_low + b_low, a_high + b_high);
  }
  return ValueSet(std::move(sums));
}

// a + {0, step, .., (count - 1) * step}. Intervals no shorter than the step grow together.
std::optional<ValueSet> AddedMultiples(const ValueSet& a, int64_t step, int64_t count, int64_t& budget) {
  std::vector<Interval> sums;
  for (const auto& [low, high] : a.intervals()) {
    const int64_t reach = step * (count - 1);
    if (high - low + 1 >= std::abs(step)) {
      sums.emplace_back(low + std::min<int64_t>(reach, 0), high + std::max<int64_t>(reach, 0));
      continue;
    }
    if ((budget -= count) < 0) return std::nullopt;
    for (int64_t i = 0; i < count; ++i) sums.emplace_back(low + i * step, high + i * step);
  }
  return ValueSet(std::move(sums));
}

// A part of a sum, over loops that nothing ties to those of other parts.
struct Part {
  LoopMask loops = 0;
  std::vector<const Term*> terms;
  std::vector<const Expr*> conditions;
};

class Enumeration {
 public:
  Enumeration(std::span<const ConstantLoop> loops, int64_t& budget) : loops_(loops), budget_(budget) {}

  std::optional<ValueSet> Values(const Sum& sum, std::span<const Expr> conditions) {
    for (const ConstantLoop& loop : loops_) {
      if (loop.extent <= 0) return ValueSet();
      if (IsFar(loop.min) || IsFar(loop.extent)) return std::nullopt;
    }
    if (IsFar(sum.constant)) return std::nullopt;
    std::vector<Part> parts;
    for (const Term& term : sum.terms) Join(parts, {LoopsOf(term.atom, loops_), {&term}, {}});
    for (const Expr& condition : conditions) Join(parts, {LoopsOf(condition, loops_), {}, {&condition}});

    // Parts of a small span first: digits before what they count, so that few intervals come of it.
    std::vector<std::pair<int64_t, ValueSet>> sets;
    std::vector<std::pair<int64_t, const Part*>> multiples;
    for (const Part& part : parts) {
      if (part.conditions.empty() && IsMultiple(part)) {
        const std::optional<int64_t> span = SpanOfMultiples(*part.terms[0]);
        if (!span.has_value()) return std::nullopt;
        multiples.emplace_back(*span, &part);
        continue;
      }
      std::optional<ValueSet> values = OfPart(part);
      if (!values.has_value() || values->empty()) return values;
      const int64_t low = values->intervals().front().first, high = values->intervals().back().second;
      if (IsFar(low) || IsFar(high)) return std::nullopt;
      if (!part.terms.empty()) sets.emplace_back(high - low, *std::move(values));
    }
    const auto by_span = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::ranges::stable_sort(sets, by_span);
    std::ranges::stable_sort(multiples, by_span);
    std::optional<ValueSet> total = ValueSet({{sum.constant, sum.constant}});
    auto set = sets.begin();
    auto multiple = multiples.begin();
    while (total.has_value() && (set != sets.end() || multiple != multiples.end())) {
      if (multiple == multiples.end() || (set != sets.end() && set->first < multiple->first)) {
        total = Added(*total, (set++)->second, budget_);
      } else {
        total = WithMultiples(*total, *(multiple++)->second->terms[0]);
      }
    }
    return total;
  }

 private:
  static void Join(std::vector<Part>& parts, Part part) {
    std::erase_if(parts, [&](Part& other) {
      if ((other.loops & part.loops) == 0) return false;
      part.loops |= other.loops;
      part.terms.insert(part.terms.end(), other.terms.begin(), other.terms.end());
      part.conditions.insert(part.conditions.end(), other.conditions.begin(), other.conditions.end());
      return true;
    });
    parts.push_back(std::move(part));
  }

  const ConstantLoop* LoopOf(const Term& term) const {
    const VarRef* ref = term.atom.As<VarRef>();
    if (ref == nullptr) return nullptr;
    const auto found = std::ranges::find_if(loops_, [&](const ConstantLoop& loop) { return loop.var == ref->var; });
    return found == loops_.end() ? nullptr : &*found;
  }
  bool IsMultiple(const Part& part) const { return part.terms.size() == 1 && LoopOf(*part.terms[0]) != nullptr; }
  // nullopt when some of them are far.
  std::optional<int64_t> SpanOfMultiples(const Term& term) const {
    const ConstantLoop& loop = *LoopOf(term);
    if (IsFar(term.coefficient)) return std::nullopt;
    const int64_t size = std::abs(term.coefficient);
    if (size > kFar / (std::abs(loop.min) + loop.extent)) return std::nullopt;
    return size * (loop.extent - 1);
  }
  std::optional<ValueSet> WithMultiples(const ValueSet& set, const Term& term) {
    const ConstantLoop& loop = *LoopOf(term);
    std::optional<ValueSet> sums = AddedMultiples(set, term.coefficient, loop.extent, budget_);
    if (!sums.has_value() || loop.min == 0) return sums;
    const int64_t start = term.coefficient * loop.min;
    return Added(*sums, ValueSet({{start, start}}), budget_);
  }

  std::optional<ValueSet> OfPart(const Part& part) {
    if (const std::optional<Interval> bounds = BoundsOfTerms(part)) {
      Sum sum;
      for (const Term* term : part.terms) AddTerm(sum, *term);
      std::optional<ValueSet> values = Values(sum, {});
      return values.has_value() ? values->Within(bounds->first, bounds->second) : values;
    }
    // The loops that the terms depend on outside: of the others one iteration will do.
    LoopMask outer = 0;
    for (const Term* term : part.terms) outer |= LoopsOf(term->atom, loops_);
    std::vector<size_t> order;
    for (LoopMask rest = outer; rest != 0; rest &= rest - 1) order.push_back(LowestOf(rest));
    for (LoopMask rest = part.loops & ~outer; rest != 0; rest &= rest - 1) order.push_back(LowestOf(rest));
    NestedEvaluation evaluation(loops_, order);
    for (const Expr* condition : part.conditions) evaluation.Require(evaluation.Add(*condition));
    std::vector<std::pair<int, int64_t>> sum;
    for (const Term* term : part.terms) sum.emplace_back(evaluation.Add(term->atom), term->coefficient);
    std::vector<Interval> found;
    const bool done = evaluation.Run(sum, static_cast<size_t>(std::popcount(outer)), budget_, [&](int64_t value) {
      if (found.empty() || found.back().first != value) found.emplace_back(value, value);
    });
    if (!done) return std::nullopt;
    return ValueSet(std::move(found));
  }

  // When every condition of the part says no more than that the sum of its terms lies in an interval: the interval.
  // A tail, io * 16 + ii < 1000, is such a condition of the index io * 16 + ii.
  std::optional<Interval> BoundsOfTerms(const Part& part) const {
    if (part.terms.empty() || part.conditions.empty()) return std::nullopt;
    Interval bounds = {-kFar, kFar};
    for (const Expr* condition : part.conditions) {
      const std::optional<Expr> at_most_zero = AtMostZero(*condition);
      if (!at_most_zero.has_value()) return std::nullopt;
      const Sum sum = SumOf(*at_most_zero);
      if (sum.terms.size() != part.terms.size() || IsFar(sum.constant)) return std::nullopt;
      // sum = scale * (the terms) + constant <= 0
      int64_t scale = 0;
      for (const Term* term : part.terms) {
        const Term* same = FindTerm(sum, *term);
        if (same == nullptr || IsFar(same->coefficient) || IsFar(term->coefficient)) return std::nullopt;
        const int64_t ratio = same->coefficient / term->coefficient;
        if (ratio * term->coefficient != same->coefficient || (scale != 0 && ratio != scale)) return std::nullopt;
        scale = ratio;
      }
      if (scale > 0) {
        bounds.second = std::min(bounds.second, FloorDivide(-sum.constant, scale));
      } else {
        bounds.first = std::max(bounds.first, -FloorDivide(-sum.constant, -scale));
      }
    }
    return bounds;
  }

  std::span<const ConstantLoop> loops_;
  int64_t& budget_;
};

}  // namespace

ValueSet::ValueSet(std::vector<Interval> intervals) : intervals_(std::move(intervals)) {
  if (intervals_.size() < 2) return;
  std::ranges::sort(intervals_);
  size_t last = 0;
  for (size_t i = 1; i < intervals_.size(); ++i) {
    if (intervals_[i].first <= intervals_[last].second + 1) {
      intervals_[last].second = std::max(intervals_[last].second, intervals_[i].second);
    } else {
      intervals_[++last] = intervals_[i];
    }
  }
  intervals_.resize(last + 1);
}

bool ValueSet::Contains(int64_t low, int64_t high) const {
  return std::ranges::any_of(intervals_, [&](const Interval& i) { return i.first <= low && high <= i.second; });
}

ValueSet ValueSet::Within(int64_t low, int64_t high) const {
  ValueSet within;
  for (const auto& [first, last] : intervals_) {
    if (first <= high && last >= low) within.intervals_.emplace_back(std::max(first, low), std::min(last, high));
  }
  return within;
}

void ValueSet::Add(const ValueSet& other) {
  std::vector<Interval> all = std::move(intervals_);
  all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
  *this = ValueSet(std::move(all));
}

std::optional<int64_t> ValueSet::FirstOutside(const ValueSet& other) const {
  for (const auto& [low, high] : intervals_) {
    const auto around = std::ranges::lower_bound(other.intervals_, low, {}, &Interval::second);
    if (around == other.intervals_.end() || around->first > low) return low;
    if (around->second < high) return around->second + 1;
  }
  return std::nullopt;
}

bool IsOverLoops(const Expr& e, std::span<const ConstantLoop> loops) {
  const DType type = e.type();
  if (!type.is_scalar() || type.is_float()) return false;
  if (e.As<IntImm>() != nullptr) return true;
  if (const VarRef* ref = e.As<VarRef>())
    return std::ranges::any_of(loops, [&](const ConstantLoop& loop) { return loop.var == ref->var; });
  const bool is_arithmetic = e.As<Binary>() != nullptr || e.As<Not>() != nullptr || e.As<Cast>() != nullptr ||
                             e.As<Select>() != nullptr || e.As<IfThenElseExpr>() != nullptr;
  if (!is_arithmetic) return false;
  bool over_loops = true;
  ForEachChild(e, [&](const Expr& child) { over_loops = over_loops && IsOverLoops(child, loops); });
  return over_loops;
}

std::optional<ValueSet> ValuesTaken(const Expr& e, std::span<const ConstantLoop> loops,
                                    std::span<const Expr> conditions, int64_t& budget) {
  if (loops.size() > kMaxLoops) return std::nullopt;
  return Enumeration(loops, budget).Values(SumOf(e), conditions);
}

}  // namespace hone
