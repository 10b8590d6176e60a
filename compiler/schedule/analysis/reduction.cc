#include "compiler/schedule/analysis/reduction.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/support/status_macros.h"

namespace hone {

namespace {

// Whether `e` is the element that the store writes.
bool IsTarget(const Expr& e, const Store& store) {
  const Load* load = e.As<Load>();
  if (load == nullptr || !load->buffer.SameAs(store.buffer)) return false;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!StructuralEqual(load->indices[d], store.indices[d])) return false;
  }
  return true;
}

}  // namespace

std::optional<ReductionUpdate> MatchUpdate(const Store& store) {
  const Binary* binary = store.value.As<Binary>();
  if (binary == nullptr) return std::nullopt;
  const bool associative = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul ||
                           binary->op == BinaryOp::kMin || binary->op == BinaryOp::kMax;
  if (!associative) return std::nullopt;
  // The simplifier has an order of its own for sums of integers, in which x may come last.
  for (const auto& [self, value] : {std::pair(binary->a, binary->b), std::pair(binary->b, binary->a)}) {
    if (IsTarget(self, store) && !LoadsFrom(value, store.buffer)) return ReductionUpdate{binary->op, value};
  }
  return std::nullopt;
}

namespace {

constexpr char kForms[] =
    "is not x = x + v, x * v, min(x, v) or max(x, v) of elements, each of a buffer of its own, nor an argmax or argmin";

// The stores of a body of lets and stores, with the lets put in; all of them see the elements as they were before.
absl::StatusOr<std::vector<Store>> StoresOf(const Stmt& body) {
  std::vector<std::pair<Var, Expr>> lets;
  const VarMap map = [&lets](const Var& var) -> std::optional<Expr> {
    for (const auto& [from, to] : lets) {
      if (from.SameAs(var)) return to;
    }
    return std::nullopt;
  };
  Stmt rest = body;
  while (const Let* let = rest.As<Let>()) {
    lets.push_back({let->var, Substitute(let->value, map)});
    rest = Stmt(let->body);
  }
  const Seq* seq = rest.As<Seq>();
  std::vector<Store> stores;
  for (const Stmt& stmt : seq != nullptr ? seq->stmts : std::vector<Stmt>{rest}) {
    const Store* store = stmt.As<Store>();
    if (store == nullptr || store->mask) return Refused(kForms);
    for (const Store& before : stores) {
      if (before.buffer.SameAs(store->buffer)) return Refused(kForms);
      if (LoadsFrom(store->value, before.buffer))
        return Refused("reads ", before.buffer, " after it has set it; compute the values of both stores in lets");
    }
    Store plain = *store;
    plain.value = Substitute(store->value, map);
    for (Expr& index : plain.indices) index = Substitute(index, map);
    stores.push_back(std::move(plain));
  }
  return stores;
}

// Which of the two is the greater where the comparison is true; nullopt when it does not compare these, or is true of
// equal ones where it must not be (`strict`).
enum class Greater { kFirst, kSecond };
template <class IsFirst, class IsSecond>
std::optional<Greater> Comparison(const Expr& e, bool strict, const IsFirst& is_first, const IsSecond& is_second) {
  const Binary* compare = e.As<Binary>();
  if (compare == nullptr) return std::nullopt;
  const bool above = compare->op == BinaryOp::kGt || (!strict && compare->op == BinaryOp::kGe);
  const bool below = compare->op == BinaryOp::kLt || (!strict && compare->op == BinaryOp::kLe);
  if (!above && !below) return std::nullopt;
  if (is_first(compare->a) && is_second(compare->b)) return above ? Greater::kFirst : Greater::kSecond;
  if (is_second(compare->a) && is_first(compare->b)) return above ? Greater::kSecond : Greater::kFirst;
  return std::nullopt;
}

// One part of a tuple of which a condition keeps the old or takes the new one.
struct Choice {
  Expr condition, term;
  bool keeps;  // the old one where the condition holds
};
std::optional<Choice> MatchChoice(const Store& store) {
  const Select* select = store.value.As<Select>();
  if (select == nullptr) return std::nullopt;
  if (IsTarget(select->yes, store)) return Choice{select->condition, select->no, true};
  if (IsTarget(select->no, store)) return Choice{select->condition, select->yes, false};
  return std::nullopt;
}

// The ranking by which `condition` holds for the winner: better or (equal and tie), the operands in any order. The
// winner is the old tuple where `keeps`.
std::optional<Ranking> RankingOf(const Expr& condition, bool keeps, const std::vector<Store>& stores,
                                 const std::vector<Expr>& terms, size_t value) {
  Ranking ranking{.value = value, .index = 1 - value};
  const auto old = [&](size_t part) { return [&stores, part](const Expr& e) { return IsTarget(e, stores[part]); }; };
  const auto fresh = [&](size_t part) {
    return [&terms, part](const Expr& e) { return StructuralEqual(e, terms[part]); };
  };
  const auto winner_is_greater = [keeps](Greater greater) { return (greater == Greater::kFirst) == keeps; };
  const Binary* either = condition.As<Binary>();
  if (either == nullptr || either->op != BinaryOp::kOr) return std::nullopt;
  for (const auto& [better, otherwise] : {std::pair(either->a, either->b), std::pair(either->b, either->a)}) {
    const Binary* both = otherwise.As<Binary>();
    const std::optional<Greater> greater = Comparison(better, true, old(value), fresh(value));
    if (!greater.has_value() || both == nullptr || both->op != BinaryOp::kAnd) continue;
    for (const auto& [equal, tie] : {std::pair(both->a, both->b), std::pair(both->b, both->a)}) {
      const Binary* same = equal.As<Binary>();
      if (same == nullptr || same->op != BinaryOp::kEq) continue;
      const bool of_values =
          (old(value)(same->a) && fresh(value)(same->b)) || (fresh(value)(same->a) && old(value)(same->b));
      const std::optional<Greater> higher = Comparison(tie, false, old(ranking.index), fresh(ranking.index));
      if (!of_values || !higher.has_value()) continue;
      ranking.greatest = winner_is_greater(*greater);
      ranking.last = winner_is_greater(*higher);
      return ranking;
    }
  }
  return std::nullopt;
}

// Whether the choice of the value leaves the one that the ranking does. Of equal ones it may take either.
bool KeepsTheBetter(const Choice& of_value, const Choice& of_index, const Ranking& ranking, const Store& store) {
  if (of_value.keeps == of_index.keeps && StructuralEqual(of_value.condition, of_index.condition)) return true;
  const std::optional<Greater> greater = Comparison(
      of_value.condition, false, [&store](const Expr& e) { return IsTarget(e, store); },
      [&of_value](const Expr& e) { return StructuralEqual(e, of_value.term); });
  return greater.has_value() && ((*greater == Greater::kFirst) == of_value.keeps) == ranking.greatest;
}

absl::Status MatchRanking(const std::vector<Store>& stores, BlockReduction& found) {
  if (stores.size() != 2) return Refused(kForms);
  const std::optional<Choice> choices[] = {MatchChoice(stores[0]), MatchChoice(stores[1])};
  if (!choices[0].has_value() || !choices[1].has_value()) return Refused(kForms);
  found.terms = {choices[0]->term, choices[1]->term};
  for (size_t value = 0; value < 2; ++value) {
    const Choice &of_value = *choices[value], &of_index = *choices[1 - value];
    const std::optional<Ranking> ranking = RankingOf(of_index.condition, of_index.keeps, stores, found.terms, value);
    if (!ranking.has_value() || !KeepsTheBetter(of_value, of_index, *ranking, stores[value])) continue;
    found.ranking = ranking;
    return absl::OkStatus();
  }
  if (choices[0]->keeps != choices[1]->keeps || !StructuralEqual(choices[0]->condition, choices[1]->condition))
    return Refused(kForms);
  return Refused(
      "chooses where ", choices[0]->condition,
      ", which is not `greater or (equal and lower index)`: of equal values the order of the reduction would "
      "choose");
}

absl::Status MatchStarts(const Block& block, BlockReduction& found) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Store> starts, StoresOf(block.init));
  for (const Store& element : found.elements) {
    const auto start = std::ranges::find_if(starts, [&](const Store& s) {
      return s.buffer.SameAs(element.buffer) &&
             std::ranges::equal(s.indices, element.indices,
                                [](const Expr& a, const Expr& b) { return StructuralEqual(a, b); });
    });
    if (start == starts.end() || starts.size() != found.elements.size())
      return Refused("adds to others than its init sets");
    found.starts.push_back(start->value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BlockReduction> MatchReduction(const Block& block) {
  if (!block.init) return Refused("has no init");
  if (!block.matches.empty() || !block.allocs.empty()) return Refused("has buffers of its own");
  HONE_ASSIGN_OR_RETURN(std::vector<Store> stores, StoresOf(block.body));
  if (stores.empty()) return Refused(kForms);
  BlockReduction found;
  if (std::ranges::any_of(stores, [](const Store& store) { return store.value.As<Select>() != nullptr; })) {
    HONE_RETURN_IF_ERROR(MatchRanking(stores, found));
  } else {
    for (const Store& store : stores) {
      const std::optional<ReductionUpdate> update = MatchUpdate(store);
      if (!update.has_value()) return Refused(kForms);
      found.ops.push_back(update->op);
      found.terms.push_back(update->value);
    }
  }
  for (Store& store : stores) {
    for (const Expr& term : found.terms) {
      if (LoadsFrom(term, store.buffer)) return Refused(kForms);
    }
    store.value = Expr();
  }
  found.elements = std::move(stores);
  HONE_RETURN_IF_ERROR(MatchStarts(block, found));
  return found;
}

bool BlockReduction::StartCountsOnce(size_t i) const {
  const Expr& start = starts[i];
  if (start.As<IntImm>() == nullptr && start.As<FloatImm>() == nullptr) return false;
  if (ranking.has_value() || ops[i] == BinaryOp::kMin || ops[i] == BinaryOp::kMax) return true;
  return IsNumber(start, ops[i] == BinaryOp::kAdd ? 0 : 1);
}

Stmt BlockReduction::Update(const std::vector<Buffer>& buffers, const std::vector<std::vector<Expr>>& at,
                            const std::vector<Expr>& terms) const {
  std::vector<Stmt> stores;
  if (!ranking.has_value()) {
    for (size_t i = 0; i < buffers.size(); ++i)
      stores.push_back(
          Stmt::Make(Store{buffers[i], at[i], MakeBinary(ops[i], MakeLoad(buffers[i], at[i]), terms[i]), Expr()}));
    return MakeSeq(std::move(stores));
  }
  std::vector<std::pair<Var, Expr>> lets;
  std::vector<Expr> old, next;
  for (size_t i = 0; i < buffers.size(); ++i) {
    old.push_back(MakeLoad(buffers[i], at[i]));
    lets.push_back({Var(Message("next", i), terms[i].type()), terms[i]});
    next.push_back(lets.back().first);
  }
  const auto [value, index, greatest, last] = *ranking;
  const Expr better = greatest ? old[value] > next[value] : old[value] < next[value];
  const Expr wins_tie = last ? old[index] > next[index] : old[index] < next[index];
  const Expr keep = Or(better, And(Eq(old[value], next[value]), wins_tie));
  for (size_t i = 0; i < buffers.size(); ++i) {
    lets.push_back({Var(Message("best", i), terms[i].type()), MakeSelect(keep, old[i], next[i])});
    stores.push_back(Stmt::Make(Store{buffers[i], at[i], lets.back().first, Expr()}));
  }
  Stmt body = MakeSeq(std::move(stores));
  for (size_t i = lets.size(); i-- > 0;) body = Stmt::Make(Let{lets[i].first, lets[i].second, std::move(body)});
  return body;
}

bool IsMadeOf(const BlockRealize& realize, const Var& loop, bool reduce) {
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const bool reduces = realize.block.iters[i].kind != IterKind::kSpatial;
    if (reduces == reduce && UsesVar(realize.values[i], loop)) return true;
  }
  return false;
}

bool IsNumber(const Expr& e, int64_t value) {
  const FloatImm* real = e.As<FloatImm>();
  return real == nullptr ? IsConst(e, value) : real->value == static_cast<double>(value);
}

}  // namespace hone
