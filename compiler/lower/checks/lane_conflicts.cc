#include "compiler/lower/checks/lane_conflicts.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

constexpr int64_t kMostAccesses = 20'000;

using Values = SizeValues;  // of loop variables

// Indices of the accesses to a buffer.
struct Accesses {
  std::vector<Expr> stores, loads;
};

// Buffers whose accesses may meet: those that are read and written, or written by several stores. What is allocated in
// the body is each lane's own.
std::map<Buffer, Accesses> AccessesThatMayMeet(const Stmt& body) {
  std::map<Buffer, Accesses> all;
  std::set<Buffer> own;
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (const Alloc* alloc = stmt.As<Alloc>()) own.insert(alloc->buffer);
    const Store* store = stmt.As<Store>();
    if (store != nullptr && store->indices.size() == 1) all[store->buffer].stores.push_back(store->indices[0]);
    return true;
  });
  ForEachExpr(body, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    if (load == nullptr || load->indices.size() != 1) return true;
    if (const auto found = all.find(load->buffer); found != all.end()) found->second.loads.push_back(load->indices[0]);
    return true;
  });
  std::erase_if(all, [&own](const auto& of_buffer) {
    const auto& [buffer, accesses] = of_buffer;
    return own.contains(buffer) || accesses.stores.empty() || accesses.stores.size() + accesses.loads.size() < 2;
  });
  return all;
}

// Every lane has one element of the buffer, which no other lane has: most loops.
bool LanesHaveOneElementEach(const Accesses& accesses, const For& loop, const std::vector<Var>& inner) {
  const Expr& first = accesses.stores[0];
  if (StrideOf(first, loop.var).value_or(0) == 0) return false;
  if (std::ranges::any_of(inner, [&](const Var& var) { return UsesVar(first, var); })) return false;
  const auto is_first = [&](const Expr& index) { return StructuralEqual(index, first); };
  return std::ranges::all_of(accesses.stores, is_first) && std::ranges::all_of(accesses.loads, is_first);
}

std::string Access(const Buffer& buffer, const Expr& index) {
  return absl::StrCat(buffer.name(), "[", ToText(index), "]");
}

// One execution of the loop as vectors: all lanes do an access before any does the next.
class LaneRun {
 public:
  LaneRun(const For& loop, const std::map<Buffer, Accesses>& followed, Values values)
      : var_(loop.var), followed_(followed), values_(std::move(values)) {}

  // false when nothing is known of some access.
  bool Run(const For& loop) {
    const std::optional<int64_t> min = EvaluateSize(loop.min, values_), extent = EvaluateSize(loop.extent, values_);
    if (!min.has_value() || !extent.has_value()) return false;
    ForEachStmt(loop.body, [&](const Stmt& stmt) {
      if (const Store* store = stmt.As<Store>()) written_.insert(store->buffer);
      return true;
    });
    std::vector<int64_t> lanes;
    for (int64_t lane = 0; lane < *extent; ++lane) lanes.push_back(*min + lane);
    if (!OnStmt(loop.body, lanes)) return false;
    if (left_ > 0) CompareLastStores();
    return true;
  }
  const std::optional<std::string>& conflict() const { return conflict_; }

 private:
  using Lanes = std::vector<int64_t>;  // values of the loop's variable
  struct Write {
    const Store* store = nullptr;
    Values at;  // of the loop variables; empty where this is the only store of the buffer
  };
  struct Element {
    std::map<int64_t, Write> last_of;                      // the last write of each lane that has written it
    int64_t last_lane = 0;                                 // of them all, where there is one
    std::vector<std::pair<int64_t, const Load*>> readers;  // two lanes at most that have read it, and not written it

    const Store* last() const { return last_of.empty() ? nullptr : last_of.at(last_lane).store; }
  };

  bool Done() const { return left_ <= 0 || conflict_.has_value(); }

  std::optional<int64_t> At(const Expr& e, int64_t lane) {
    values_[var_] = lane;
    return EvaluateSize(e, values_);
  }

  // Those of the lanes where the condition holds, and those where it does not; nullopt when it cannot be computed.
  std::optional<std::pair<Lanes, Lanes>> Divide(const Expr& condition, const Lanes& lanes) {
    std::pair<Lanes, Lanes> divided;
    for (const int64_t lane : lanes) {
      const std::optional<int64_t> holds = At(condition, lane);
      if (!holds.has_value()) return std::nullopt;
      (*holds != 0 ? divided.first : divided.second).push_back(lane);
    }
    return divided;
  }

  bool OnStmt(const Stmt& stmt, const Lanes& lanes) {
    if (lanes.empty() || Done()) return true;
    if (const Seq* seq = stmt.As<Seq>())
      return std::ranges::all_of(seq->stmts, [&](const Stmt& s) { return OnStmt(s, lanes); });
    if (const Alloc* alloc = stmt.As<Alloc>()) return OnStmt(alloc->body, lanes);
    if (const Store* store = stmt.As<Store>()) return OnStore(*store, lanes);
    if (const For* loop = stmt.As<For>()) return OnLoop(*loop, lanes);
    if (const IfThen* branch = stmt.As<IfThen>()) {
      const std::optional<std::pair<Lanes, Lanes>> divided = Divide(branch->condition, lanes);
      if (!divided.has_value()) return false;
      return OnStmt(branch->yes, divided->first) && (!branch->no || OnStmt(branch->no, divided->second));
    }
    return false;
  }

  bool OnLoop(const For& loop, const Lanes& lanes) {
    const std::optional<int64_t> min = At(loop.min, lanes[0]), extent = At(loop.extent, lanes[0]);
    if (!min.has_value() || !extent.has_value()) return false;
    for (const int64_t lane : lanes)
      if (At(loop.min, lane) != min || At(loop.extent, lane) != extent) return false;
    bool known = true;
    for (int64_t i = 0; i < *extent && known && !Done(); ++i) {
      values_[loop.var] = *min + i;
      known = OnStmt(loop.body, lanes);
    }
    values_.erase(loop.var);
    return known;
  }

  bool OnStore(const Store& store, const Lanes& lanes) {
    if (store.mask) return false;
    const bool updates = LoadsFrom(store.value, store.buffer);
    OnLoads(store.value, lanes, updates ? &store : nullptr);
    const bool followed = followed_.contains(store.buffer);
    for (size_t i = 0; followed && i < lanes.size() && !Done(); ++i) {
      const std::optional<int64_t> at = At(store.indices[0], lanes[i]);
      if (!at.has_value()) return false;
      --left_;
      OnWrite(store, lanes[i], elements_[{store.buffer, *at}]);
    }
    return true;
  }

  // A load by some lanes alone is left out: which ones is not known.
  void OnLoads(const Expr& e, const Lanes& lanes, const Store* update) {
    if (lanes.empty() || Done()) return;
    if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      OnLoads(choice->condition, lanes, update);
      const std::optional<std::pair<Lanes, Lanes>> divided = Divide(choice->condition, lanes);
      if (!divided.has_value()) return;
      OnLoads(choice->yes, divided->first, update);
      OnLoads(choice->no, divided->second, update);
      return;
    }
    ForEachChild(e, [&](const Expr& child) { OnLoads(child, lanes, update); });
    const Load* load = e.As<Load>();
    if (load == nullptr || !followed_.contains(load->buffer)) return;
    for (const int64_t lane : lanes) {
      const std::optional<int64_t> at = At(load->indices[0], lane);
      if (!at.has_value() || Done()) return;
      --left_;
      OnRead(*load, lane, elements_[{load->buffer, *at}], update);
    }
  }

  void OnRead(const Load& load, int64_t lane, Element& element, const Store* update) {
    if (!element.last_of.contains(lane)) {
      if (element.last() != nullptr) return Say(lane, load, element.last_lane, *element.last());
      const auto is_lane = [&](const auto& reader) { return reader.first == lane; };
      if (element.readers.size() < 2 && std::ranges::none_of(element.readers, is_lane))
        element.readers.emplace_back(lane, &load);
    } else if (update != nullptr && update->buffer == load.buffer && element.last_lane != lane &&
               LoadsFrom(element.last()->value, load.buffer)) {
      Say(lane, load, element.last_lane, *element.last());
    }
  }

  void OnWrite(const Store& store, int64_t lane, Element& element) {
    for (const auto& [reader, load] : element.readers)
      if (reader != lane) return Say(reader, *load, lane, store);
    const bool one_of_several = followed_.at(store.buffer).stores.size() > 1;
    element.last_of[lane] = {&store, one_of_several ? values_ : Values{}};
    element.last_lane = lane;
  }

  void Say(int64_t reader, const Load& load, int64_t writer, const Store& store) {
    conflict_ = absl::StrCat("with ", var_.name(), " = ", reader, " it reads ", Access(load.buffer, load.indices[0]),
                             ", an element that ", Access(store.buffer, store.indices[0]), " with ", var_.name(), " = ",
                             writer, " writes");
  }

  void CompareLastStores() {
    for (const auto& [place, element] : elements_) {
      if (element.last_of.empty() || Done()) continue;
      const auto& [lane, in_loop] = *element.last_of.rbegin();
      const Write& with_vectors = element.last_of.at(element.last_lane);
      if (in_loop.store == with_vectors.store || WriteTheSame(in_loop, with_vectors)) continue;
      const Store& store = *in_loop.store;
      conflict_ = absl::StrCat("with ", var_.name(), " = ", lane, " it writes ", Access(store.buffer, store.indices[0]),
                               ", an element that ", Access(store.buffer, with_vectors.store->indices[0]), " with ",
                               var_.name(), " = ", element.last_lane, " writes before it");
    }
  }

  // Copies of one store, as a loop that is unrolled or split at its tail has them, write the same where windows
  // overlap: with numbers in place of the loop variables their values are one expression, of nothing that changes in
  // the loop.
  bool WriteTheSame(const Write& a, const Write& b) const {
    const auto value = [](const Write& write) {
      return Analyzer().Simplify(Substitute(write.store->value, [&](const Var& var) -> std::optional<Expr> {
        const auto found = write.at.find(var);
        if (found == write.at.end()) return std::nullopt;
        return IntConst(found->second, var.type());
      }));
    };
    const auto changes = [&](const Write& write) {
      return std::ranges::any_of(written_, [&](const Buffer& buffer) { return LoadsFrom(write.store->value, buffer); });
    };
    return !changes(a) && !changes(b) && StructuralEqual(value(a), value(b));
  }

  const Var var_;
  const std::map<Buffer, Accesses>& followed_;
  Values values_;
  std::set<Buffer> written_;  // in the loop
  std::map<std::pair<Buffer, int64_t>, Element> elements_;
  std::optional<std::string> conflict_;
  int64_t left_ = kMostAccesses;
};

// The first iteration of all loops around, or the last; nullopt when their bounds or a condition are not known, or it
// does not run.
std::optional<Values> Iteration(const AroundLoop& around, bool first) {
  Values values;
  for (const For& loop : around.loops) {
    const std::optional<int64_t> min = EvaluateSize(loop.min, values), extent = EvaluateSize(loop.extent, values);
    if (!min.has_value() || !extent.has_value() || *extent <= 0) return std::nullopt;
    values[loop.var] = first ? *min : *min + *extent - 1;
  }
  for (const Expr& condition : around.conditions)
    if (EvaluateSize(condition, values).value_or(0) == 0) return std::nullopt;
  return values;
}

// Two accesses that move by different numbers of elements from lane to lane meet in some element, where the buffer is
// large enough and other loops do not keep them apart.
std::optional<std::string> ConflictOfStrides(const For& loop, const std::map<Buffer, Accesses>& followed) {
  for (const auto& [buffer, accesses] : followed) {
    std::map<int64_t, Expr> by_stride;
    const auto add = [&](const Expr& index) {
      if (const std::optional<int64_t> stride = StrideOf(index, loop.var)) by_stride.emplace(*stride, index);
    };
    std::ranges::for_each(accesses.stores, add);
    std::ranges::for_each(accesses.loads, add);
    if (by_stride.size() < 2) continue;
    return absl::StrCat("it writes ", Access(buffer, accesses.stores[0]), ", and where one iteration does ",
                        Access(buffer, by_stride.begin()->second), " another may do ",
                        Access(buffer, std::next(by_stride.begin())->second));
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> LaneConflict(const For& loop, const AroundLoop& around) {
  std::map<Buffer, Accesses> followed = AccessesThatMayMeet(loop.body);
  std::vector<Var> inner;
  ForEachStmt(loop.body, [&](const Stmt& stmt) {
    if (const For* inside = stmt.As<For>()) inner.push_back(inside->var);
    return true;
  });
  std::erase_if(followed,
                [&](const auto& of_buffer) { return LanesHaveOneElementEach(of_buffer.second, loop, inner); });
  if (followed.empty()) return std::nullopt;
  bool known = false;
  for (const bool first : {true, false}) {
    const std::optional<Values> values = Iteration(around, first);
    if (!values.has_value()) continue;
    LaneRun run(loop, followed, *values);
    known = run.Run(loop) || known;
    if (run.conflict().has_value()) return run.conflict();
  }
  return known ? std::nullopt : ConflictOfStrides(loop, followed);
}

}  // namespace hone
