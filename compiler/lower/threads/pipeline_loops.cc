#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/leading_index.h"
#include "compiler/lower/threads/pipeline.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

struct Touch {
  bool reads = false, writes = false;
};

struct Part {
  std::vector<Stmt> stmts;
  int64_t stage = 0, place = 0;  // place: among the parts that run together
  bool asynchronous = false;
  std::map<Buffer, Touch> touches;
};

// What one round of the pipeline waits for: round t runs every part for iteration t - stage. A wait is the number of
// groups that may stay under way.
struct Round {
  std::optional<int64_t> wait_first;
  std::vector<std::optional<int64_t>> wait_before;  // each part
};

void CollectTouches(const Stmt& stmt, std::map<Buffer, Touch>& touches) {
  ForEachStmt(stmt, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) touches[store->buffer].writes = true;
    if (const TileOp* op = s.As<TileOp>()) {
      for (size_t i = 0; i < op->operands.size(); ++i) {
        Touch& touch = touches[op->operands[i].buffer];
        touch.reads = touch.reads || i > 0 || op->accumulates;
        touch.writes = touch.writes || i == 0;
      }
    }
    if (const Evaluate* evaluate = s.As<Evaluate>()) {
      if (const std::optional<Store> store = EffectStore(*evaluate)) touches[store->buffer].writes = true;
    }
    return true;
  });
  ForEachExpr(stmt, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) touches[load->buffer].reads = true;
    return true;
  });
}

// The part with its buffers in the versions of one iteration.
Stmt WithVersions(const Stmt& stmt, const std::map<Buffer, Buffer>& versioned, const Expr& iteration) {
  return WithLeadingIndex(stmt, versioned,
                          [&](const Buffer& buffer) { return FloorMod(iteration, buffer.shape()[0]); });
}

class Pipeline {
 public:
  explicit Pipeline(const For& loop) : loop_(loop), iterations_(*ConstantValue(loop.extent)) {}

  absl::StatusOr<Stmt> Run() {
    TakeParts();
    HONE_RETURN_IF_ERROR(CheckOrder());
    HONE_RETURN_IF_ERROR(CheckCopies());
    MakeVersions();
    Simulate();
    std::vector<Stmt> made;
    const int64_t steady = std::max<int64_t>(0, iterations_ - last_stage_);
    for (int64_t t = 0; t < last_stage_; ++t) EmitRound(rounds_[static_cast<size_t>(t)], t, made);
    if (steady > 0) made.push_back(SteadyLoop(steady));
    for (int64_t t = last_stage_ + steady; t < iterations_ + last_stage_; ++t)
      EmitRound(rounds_[static_cast<size_t>(t)], t, made);
    if (waited_ < groups_) made.push_back(MakeWaitGroup(0));
    Stmt pipeline = MakeSeq(std::move(made));
    for (size_t i = between_.size(); i-- > 0;) {
      const auto versioned = versioned_.find(between_[i]);
      pipeline = Stmt::Make(Alloc{versioned == versioned_.end() ? between_[i] : versioned->second, pipeline});
    }
    return pipeline;
  }

 private:
  template <class... Pieces>
  absl::Status CannotRun(const Pieces&... pieces) const {
    return absl::FailedPreconditionError(
        absl::StrCat("threads cannot run this program: the pipeline of loop ", loop_.var.name(), " ", pieces...));
  }
  const std::vector<int64_t>* Numbers(const char* key) const {
    const auto found = loop_.annotations.find(key);
    return found == loop_.annotations.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  }

  // ---- Parts

  void TakeParts() {
    parts_.emplace_back();
    Take(loop_.body);
    const std::vector<int64_t>& stages = *Numbers(kPipelineStage);
    const std::vector<int64_t>* order = Numbers(kPipelineOrder);
    const std::vector<int64_t>* asynchronous = Numbers(kPipelineAsyncStages);
    HONE_CHECK(stages.size() == parts_.size()) << "a pass has moved the parts of loop " << loop_.var.name();
    for (size_t p = 0; p < parts_.size(); ++p) {
      Part& part = parts_[p];
      part.stage = stages[p];
      part.place = order == nullptr ? static_cast<int64_t>(p) : (*order)[p];
      part.asynchronous =
          asynchronous != nullptr && std::ranges::find(*asynchronous, part.stage) != asynchronous->end();
      for (const Stmt& s : part.stmts) CollectTouches(s, part.touches);
      last_stage_ = std::max(last_stage_, part.stage);
    }
    in_order_.resize(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) in_order_[static_cast<size_t>(parts_[p].place)] = p;
    // What one part alone uses is its own, whatever iteration it runs.
    for (const Buffer& buffer : allocated_) {
      std::vector<Part*> users;
      for (Part& part : parts_) {
        if (part.touches.contains(buffer)) users.push_back(&part);
      }
      if (users.size() > 1) between_.push_back(buffer);
      if (users.size() == 1) users[0]->stmts = {Stmt::Make(Alloc{buffer, MakeSeq(users[0]->stmts)})};
    }
  }

  void Take(const Stmt& s) {
    if (const Alloc* alloc = s.As<Alloc>()) {
      allocated_.push_back(alloc->buffer);
      return Take(alloc->body);
    }
    if (const Seq* seq = s.As<Seq>()) {
      for (const Stmt& child : seq->stmts) Take(child);
      return;
    }
    const Evaluate* evaluate = s.As<Evaluate>();
    if (evaluate != nullptr && ConstantValue(evaluate->value).has_value()) {
      parts_.emplace_back();
    } else {
      parts_.back().stmts.push_back(s);
    }
  }

  // ---- What the annotations ask for keeps what parts need of each other

  // Calls `visit` with parts a and b that both touch the buffer, a before b, one of them writing it.
  template <class Visit>
  absl::Status ForEachDependence(Visit visit) const {
    for (size_t a = 0; a < parts_.size(); ++a) {
      for (size_t b = a + 1; b < parts_.size(); ++b) {
        for (const auto& [buffer, touch] : parts_[a].touches) {
          const auto other = parts_[b].touches.find(buffer);
          if (other == parts_[b].touches.end() || (!touch.writes && !other->second.writes)) continue;
          HONE_RETURN_IF_ERROR(visit(a, b, buffer));
        }
      }
    }
    return absl::OkStatus();
  }

  bool IsBetween(const Buffer& buffer) const { return std::ranges::find(between_, buffer) != between_.end(); }

  absl::Status CheckOrder() const {
    return ForEachDependence([&](size_t a, size_t b, const Buffer& buffer) {
      const Part &first = parts_[a], &then = parts_[b];
      const auto which = [&](size_t p) {
        return absl::StrCat("statement ", p, " (stage ", parts_[p].stage, ", place ", parts_[p].place, ")");
      };
      if (first.stage > then.stage || (first.stage == then.stage && first.place > then.place)) {
        return CannotRun("lets ", which(b), " run before ", which(a), ", and both use ", buffer.name(),
                         "; give it a later stage, or a later place");
      }
      if (!IsBetween(buffer) && first.stage != then.stage) {
        return CannotRun("puts ", which(a), " and ", which(b), " into several stages, and both use ", buffer.name(),
                         ", which outlives an iteration; give them one stage");
      }
      return absl::OkStatus();
    });
  }

  absl::Status CheckCopies() const {
    for (const Part& part : parts_) {
      absl::Status status;
      for (const Stmt& stmt : part.stmts) {
        ForEachStmt(stmt, [&](const Stmt& s) {
          const Store* store = s.As<Store>();
          if (store == nullptr && s.As<TileOp>() == nullptr && s.As<Evaluate>() == nullptr) return true;
          if (!part.asynchronous || !status.ok() || (store != nullptr && IsCopy(*store))) return true;
          const std::string text = ToText(s);
          status = CannotRun("has `", text.substr(0, text.find('\n')), "` in the asynchronous stage ", part.stage,
                             ", and only copies of elements from global to shared memory are asynchronous");
          return true;
        });
      }
      HONE_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

  static bool IsCopy(const Store& store) {
    if (store.mask || store.buffer.scope() != Scope::kShared || !IsCopiedValue(store.value)) return false;
    const IfThenElseExpr* choice = store.value.As<IfThenElseExpr>();
    return (choice == nullptr ? store.value : choice->yes).As<Load>()->buffer.scope() == Scope::kGlobal;
  }

  // An element written by part a of iteration i is in use until part b of iteration i is over. Between the two a runs
  // for as many later iterations as their stages are apart, and for one more where it comes first in a round.
  void MakeVersions() {
    std::map<Buffer, int64_t> versions;
    const absl::Status always = ForEachDependence([&](size_t a, size_t b, const Buffer& buffer) {
      const int64_t apart = parts_[b].stage - parts_[a].stage + (parts_[a].place < parts_[b].place ? 1 : 0);
      versions[buffer] = std::max(versions[buffer], apart);
      return absl::OkStatus();
    });
    HONE_CHECK(always.ok());
    for (const Buffer& buffer : between_) {
      const int64_t count = std::min(versions[buffer], std::max<int64_t>(iterations_, 1));
      if (count < 2) continue;
      std::vector<Expr> shape = {IntConst(count)};
      shape.insert(shape.end(), buffer.shape().begin(), buffer.shape().end());
      versioned_[buffer] = Buffer(buffer.name(), buffer.type(), std::move(shape), buffer.scope());
    }
  }

  // ---- Groups of copies

  bool Runs(const Part& part, int64_t t) const { return t >= part.stage && t - part.stage < iterations_; }

  // Whether the part at this place of a round is the last of a run of asynchronous parts of one stage: a group.
  bool EndsGroup(size_t place) const {
    const Part& part = parts_[in_order_[place]];
    if (!part.asynchronous) return false;
    return place + 1 == in_order_.size() || !parts_[in_order_[place + 1]].asynchronous ||
           parts_[in_order_[place + 1]].stage != part.stage;
  }

  // Plays all rounds and counts, for every part, the groups behind the ones that it needs.
  void Simulate() {
    std::map<std::pair<size_t, int64_t>, int64_t> group_of;  // part and iteration
    for (int64_t t = 0; t < iterations_ + last_stage_; ++t) {
      Round round{std::nullopt, std::vector<std::optional<int64_t>>(parts_.size())};
      const int64_t groups_first = groups_;
      for (size_t place = 0; place < in_order_.size(); ++place) {
        const size_t p = in_order_[place];
        const Part& part = parts_[p];
        if (!Runs(part, t)) continue;
        for (size_t from = 0; from < p; ++from) {
          if (!parts_[from].asynchronous || !Needs(parts_[from], part)) continue;
          const bool earlier_round = parts_[from].stage < part.stage;
          const int64_t group = group_of.at({from, t - part.stage});
          const int64_t behind = (earlier_round ? groups_first : groups_) - group - 1;
          std::optional<int64_t>& wait = earlier_round ? round.wait_first : round.wait_before[p];
          wait = std::min(wait.value_or(behind), behind);
          waited_ = std::max(waited_, group + 1);
        }
        if (part.asynchronous) group_of[{p, t - part.stage}] = groups_;
        if (EndsGroup(place)) ++groups_;
      }
      rounds_.push_back(std::move(round));
    }
  }

  static bool Needs(const Part& from, const Part& part) {
    return std::ranges::any_of(
        from.touches, [&](const auto& touch) { return touch.second.writes && part.touches.contains(touch.first); });
  }

  // ---- What is emitted

  // `round`: the number of the round, or in the steady loop an expression for it.
  void EmitRound(const Round& waits, const Expr& round, std::vector<Stmt>& out) const {
    const std::optional<int64_t> number = ConstantValue(round);
    // The barrier shows all threads what has landed, and keeps the copies of this round behind the reads of the last
    // one.
    if (waits.wait_first.has_value()) {
      out.push_back(MakeWaitGroup(*waits.wait_first));
      out.push_back(MakeBarrier());
    }
    for (size_t place = 0; place < in_order_.size(); ++place) {
      const size_t p = in_order_[place];
      const Part& part = parts_[p];
      if (number.has_value() && !Runs(part, *number)) continue;
      if (waits.wait_before[p].has_value()) out.push_back(MakeWaitGroup(*waits.wait_before[p]));
      const Expr iteration = round - IntConst(part.stage);
      Stmt once = WithVersions(MakeSeq(part.stmts), versioned_, iteration);
      if (part.asynchronous) once = AsCopies(once);
      once = Substitute(once, loop_.var, MakeCast(loop_.var.type(), loop_.min + iteration));
      out.push_back(RenewDefinitions(once));
      if (EndsGroup(place)) out.push_back(MakeCommitGroup());
    }
  }

  static Stmt AsCopies(const Stmt& part) {
    return RewriteBottomUp(part, [](const Stmt& s) -> std::optional<Stmt> {
      const Store* store = s.As<Store>();
      if (store == nullptr) return std::nullopt;
      return MakeAsyncCopy(store->buffer, store->indices, store->value);
    });
  }

  // All parts run in every round; a wait that holds for each of the rounds holds for the loop.
  Stmt SteadyLoop(int64_t steady) const {
    Round waits = rounds_[static_cast<size_t>(last_stage_)];
    const auto least = [](std::optional<int64_t>& all, const std::optional<int64_t>& one) {
      if (one.has_value()) all = std::min(all.value_or(*one), *one);
    };
    for (int64_t t = last_stage_; t < last_stage_ + steady; ++t) {
      const Round& round = rounds_[static_cast<size_t>(t)];
      least(waits.wait_first, round.wait_first);
      for (size_t p = 0; p < parts_.size(); ++p) least(waits.wait_before[p], round.wait_before[p]);
    }
    const Var var(loop_.var.name(), loop_.var.type());
    std::vector<Stmt> body;
    EmitRound(waits, Expr(var) + IntConst(last_stage_), body);
    For loop = loop_;
    std::erase_if(loop.annotations, [](const auto& a) { return a.first.starts_with(kPipelinePrefix); });
    loop.var = var;
    loop.min = IntConst(0, var.type());
    loop.extent = IntConst(steady, var.type());
    loop.body = MakeSeq(std::move(body));
    return Stmt::Make(std::move(loop));
  }

  const For& loop_;
  const int64_t iterations_;
  int64_t last_stage_ = 0;
  std::vector<Part> parts_;
  std::vector<size_t> in_order_;   // the part at each place of a round
  std::vector<Buffer> allocated_;  // in an iteration
  std::vector<Buffer> between_;    // those that several parts use
  std::map<Buffer, Buffer> versioned_;
  std::vector<Round> rounds_;
  int64_t groups_ = 0, waited_ = 0;  // all that are committed; how many of them something has waited for
};

}  // namespace

absl::StatusOr<Stmt> PipelineLoops(const Stmt& body) {
  absl::Status status;
  const Stmt made = RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    if (loop == nullptr || !loop->annotations.contains(kPipelineStage) || !status.ok()) return std::nullopt;
    absl::StatusOr<Stmt> pipeline = Pipeline(*loop).Run();
    if (pipeline.ok()) return *std::move(pipeline);
    status = pipeline.status();
    return std::nullopt;
  });
  HONE_RETURN_IF_ERROR(status);
  return made;
}

}  // namespace hone
