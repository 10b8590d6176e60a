#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

// Of a longer loop, so many iterations at either end are tried: what leaves a buffer does so there.
constexpr int64_t kEndIterations = 8;
constexpr int kMostSteps = 1 << 12;  // of one search

// What stands around a place of the program, outermost first: loops, variables with a value, conditions.
struct Scope {
  struct Loop {
    Var var;
    Range range;
  };
  struct Definition {
    Var var;
    Expr value;
  };
  using Entry = std::variant<Loop, Definition, Expr>;
  std::vector<Entry> entries;
};

// Looks for values of the loops of a scope, all of whose conditions hold, at which a number is outside of a range.
class Counterexample {
 public:
  Counterexample(const Scope& scope, const Expr& value, const Expr& min, const Expr& extent)
      : scope_(scope), value_(value), min_(min), extent_(extent) {
    for (const Expr* e : {&value, &min, &extent}) relevant_.merge(FreeVars(*e));
    for (size_t i = scope.entries.size(); i-- > 0;) {
      const Scope::Entry& entry = scope.entries[i];
      if (const Expr* condition = std::get_if<Expr>(&entry)) relevant_.merge(FreeVars(*condition));
      if (const auto* definition = std::get_if<Scope::Definition>(&entry)) {
        if (relevant_.contains(definition->var)) relevant_.merge(FreeVars(definition->value));
      }
      if (const auto* loop = std::get_if<Scope::Loop>(&entry)) {
        relevant_.merge(FreeVars(loop->range.min));
        relevant_.merge(FreeVars(loop->range.extent));
      }
    }
  }

  // A value outside.
  std::optional<int64_t> Find() { return Search(0) ? outside_ : std::nullopt; }

 private:
  bool Search(size_t at) {
    if (++steps_ > kMostSteps) return false;
    if (at == scope_.entries.size()) return IsOutside();
    const Scope::Entry& entry = scope_.entries[at];
    if (const Expr* condition = std::get_if<Expr>(&entry))
      return EvaluateSize(*condition, vars_) == 1 && Search(at + 1);
    if (const auto* definition = std::get_if<Scope::Definition>(&entry)) {
      const std::optional<int64_t> value = EvaluateSize(definition->value, vars_);
      if (value.has_value()) {
        vars_.insert_or_assign(definition->var, *value);
      } else {
        vars_.erase(definition->var);
      }
      return Search(at + 1);
    }
    return SearchLoop(std::get<Scope::Loop>(entry), at);
  }
  bool SearchLoop(const Scope::Loop& loop, size_t at) {
    const std::optional<int64_t> min = EvaluateSize(loop.range.min, vars_),
                                 extent = EvaluateSize(loop.range.extent, vars_);
    if (!min.has_value() || !extent.has_value()) return false;
    const int64_t tried = relevant_.contains(loop.var) ? *extent : std::min<int64_t>(*extent, 1);
    for (int64_t i = 0; i < tried; ++i) {
      if (i == kEndIterations) i = std::max(i, tried - kEndIterations);
      vars_.insert_or_assign(loop.var, *min + i);
      if (Search(at + 1)) return true;
    }
    return false;
  }
  bool IsOutside() {
    const std::optional<int64_t> value = EvaluateSize(value_, vars_), min = EvaluateSize(min_, vars_),
                                 extent = EvaluateSize(extent_, vars_);
    if (!value.has_value() || !min.has_value() || !extent.has_value()) return false;
    outside_ = *value;
    return *value < *min || *value >= *min + *extent;
  }

  const Scope& scope_;
  const Expr &value_, &min_, &extent_;
  std::set<Var> relevant_;  // variables whose values matter
  SizeValues vars_;
  int steps_ = 0;
  std::optional<int64_t> outside_;
};

class BoundsCheck {
 public:
  absl::Status status;

  void Visit(const Stmt& stmt) {
    if (!status.ok() || stmt.As<While>() != nullptr) return;
    const size_t mark = known_.Save(), depth = scope_.entries.size();
    if (const For* loop = stmt.As<For>()) {
      known_.Bind(loop->var, Range{loop->min, loop->extent});
      scope_.entries.push_back(Scope::Loop{loop->var, {loop->min, loop->extent}});
      Visit(loop->body);
    } else if (const IfThen* branch = stmt.As<IfThen>()) {
      Visit(branch->condition);
      Under(branch->condition, [&] { Visit(branch->yes); });
      if (branch->no) Under(MakeNot(branch->condition), [&] { Visit(branch->no); });
    } else if (const Let* let = stmt.As<Let>()) {
      Visit(let->value);
      scope_.entries.push_back(Scope::Definition{let->var, let->value});
      Visit(let->body);
    } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      VisitBlock(*realize);
    } else {
      if (const Store* store = stmt.As<Store>(); store != nullptr && !store->mask)
        Access(store->buffer, store->indices);
      ForEachChild(
          stmt, [this](const Stmt& child) { Visit(child); }, [this](const Expr& child) { Visit(child); });
    }
    known_.Restore(mark);
    scope_.entries.resize(depth, Expr());
  }

 private:
  void VisitBlock(const BlockRealize& realize) {
    if (IsConst(realize.predicate, 0)) return;
    const Block& block = realize.block;
    const std::string outer = std::exchange(place_, block.name);
    Under(realize.predicate, [&] {
      for (size_t i = 0; i < block.iters.size(); ++i) {
        const IterVar& iter = block.iters[i];
        Visit(realize.values[i]);
        Inside(realize.values[i], iter.domain.min, iter.domain.extent, iter.var.name());
      }
      for (size_t i = 0; i < block.iters.size(); ++i) {
        // In terms of the loops, of which the predicate says more than the domain does.
        known_.Assume(block.iters[i].domain.min <= realize.values[i]);
        known_.Assume(realize.values[i] < block.iters[i].domain.min + block.iters[i].domain.extent);
        known_.Bind(block.iters[i].var, realize.values[i]);
        scope_.entries.push_back(Scope::Definition{block.iters[i].var, realize.values[i]});
      }
      for (const MatchBuffer& match : block.matches) parts_.insert(match.buffer);
      Expr starts = True();
      for (const IterVar& iter : block.iters) {
        if (iter.kind == IterKind::kReduce) starts = And(starts, Eq(iter.var, iter.domain.min));
      }
      if (block.init) Under(starts, [&] { Visit(block.init); });
      Visit(block.body);
    });
    place_ = outer;
  }

  void Visit(const Expr& e) {
    if (!status.ok()) return;
    if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      Visit(choice->condition);
      Under(choice->condition, [&] { Visit(choice->yes); });
      Under(MakeNot(choice->condition), [&] { Visit(choice->no); });
      return;
    }
    if (const LetExpr* let = e.As<LetExpr>()) {
      Visit(let->value);
      scope_.entries.push_back(Scope::Definition{let->var, let->value});
      Visit(let->body);
      scope_.entries.pop_back();
      return;
    }
    if (const Load* load = e.As<Load>(); load != nullptr && !load->mask) Access(load->buffer, load->indices);
    ForEachChild(e, [this](const Expr& child) { Visit(child); });
  }

  template <class F>
  void Under(const Expr& condition, F&& visit) {
    const size_t mark = known_.Save(), depth = scope_.entries.size();
    if (condition.type().is_scalar()) known_.Assume(condition);
    scope_.entries.emplace_back(condition);
    visit();
    known_.Restore(mark);
    scope_.entries.resize(depth, Expr());
  }

  void Access(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (parts_.contains(buffer)) return;  // its indices are those of a part of another
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].type().is_scalar())
        Inside(indices[d], IntConst(0, indices[d].type()), buffer.shape()[d],
               absl::StrCat("index ", d, " of ", buffer.name()));
    }
  }

  void Inside(const Expr& value, const Expr& min, const Expr& extent, const std::string& what) {
    if (!status.ok()) return;
    if (known_.CanProveLessEqual(min, value) && known_.CanProveLess(value, min + extent)) return;
    const std::optional<int64_t> outside = Counterexample(scope_, value, min, extent).Find();
    if (!outside.has_value()) return;
    status = absl::InvalidArgumentError(
        absl::StrCat("block ", place_, ": ", what, " is ", *outside, ", outside of its range"));
  }

  Analyzer known_;
  Scope scope_;
  std::set<Buffer> parts_;  // that stand for a part of another
  std::string place_;
};

}  // namespace

absl::Status CheckBounds(const PrimFunc& func) {
  BoundsCheck check;
  check.Visit(func.body);
  return check.status;
}

}  // namespace hone
