#include "compiler/oracle/oracle.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/oracle/error_rules.h"
#include "compiler/oracle/minimal_filtering.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using error_analysis::ErrorRules;
using error_analysis::Estimate;
using error_analysis::FilterWindow;
using error_analysis::SumGrowth;
using error_analysis::UnitRoundoff;

constexpr DType kF64 = DType::Float(64);

DType ValueType(DType type) { return type.is_float() ? kF64 : type; }

// Returns whether the value of the expression is free of rounding and doubt. `inexact` holds the ids of buffers,
// `inexact_vars` those of lets, that are not.
bool IsExact(const Expr& root, const std::unordered_set<uint64_t>& inexact,
             const std::unordered_set<uint64_t>& inexact_vars) {
  bool exact = true;
  ForEachExpr(root, [&](const Expr& e) {
    const bool is_float = e.type().is_float();
    if (const Load* load = e.As<Load>()) {
      exact = exact && !inexact.contains(load->buffer.id());
    } else if (const Binary* n = e.As<Binary>()) {
      exact = exact && (!is_float || n->op == BinaryOp::kMin || n->op == BinaryOp::kMax);
    } else if (const Cast* n = e.As<Cast>()) {
      const DType from = n->a.type();
      exact = exact && (!is_float || from.is_float() || from.is_bool() || from.bits <= 8);
    } else if (const Call* n = e.As<Call>()) {
      const bool steps =
          n->name == "abs" || n->name == "floor" || n->name == "ceil" || n->name == "round" || n->name == "trunc";
      exact = exact && (!is_float || steps);
    } else if (const VarRef* n = e.As<VarRef>()) {
      exact = exact && !inexact_vars.contains(n->var.id());
    }
    return exact;
  });
  return exact;
}

class OracleMaker {
 public:
  explicit OracleMaker(const PrimFunc& f)
      : f_(f), rules_([this](const Buffer& b, std::vector<Expr> indices) { return Element(b, std::move(indices)); }) {}

  absl::StatusOr<PrimFunc> Make() {
    const int outputs = f_.num_outputs();
    const int inputs = static_cast<int>(f_.params.size()) - outputs;
    if (outputs < 1 || inputs < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(f_.name, " has ", f_.params.size(), " parameters, of which ", outputs, " are outputs"));
    }
    FindInexact(f_.body);
    PrimFunc oracle{.name = absl::StrCat(f_.name, "_oracle"), .dims = f_.dims, .attrs = f_.attrs};
    std::vector<Stmt> last;
    for (int i = 0; i < inputs; ++i) {
      const Buffer& param = f_.params[static_cast<size_t>(i)];
      oracle.params.push_back(param);
      pairs_[param.id()] = {param, Buffer(), true};
    }
    for (int i = inputs; i < static_cast<int>(f_.params.size()); ++i)
      AddOutput(f_.params[static_cast<size_t>(i)], oracle, last);
    Block root{.name = "root"};
    const BlockRealize* outer = f_.body.As<BlockRealize>();
    const bool has_root =
        outer != nullptr && outer->block.iters.empty() && !outer->block.init && outer->block.matches.empty();
    std::vector<Buffer> shared = f_.params;
    if (has_root) {
      for (const Buffer& b : outer->block.allocs) AddPair(b, root.allocs);
      shared.insert(shared.end(), outer->block.allocs.begin(), outer->block.allocs.end());
    }
    const Stmt& body = has_root ? outer->block.body : f_.body;
    HONE_ASSIGN_OR_RETURN(Stmt rewritten, Rewrite(body));
    std::vector<Stmt> stmts = {std::move(rewritten)};
    HONE_ASSIGN_OR_RETURN(const bool loosened, Loosen(StagesOf(body, shared), stmts));
    for (int i = inputs; loosened && i < static_cast<int>(f_.params.size()); ++i)
      AddScale(f_.params[static_cast<size_t>(i)], "_default_scale", oracle, last);
    oracle.attrs["outputs"] = static_cast<int64_t>(oracle.params.size()) - inputs;
    if (const auto domains = oracle.attrs.find("domains"); domains != oracle.attrs.end()) {
      if (auto* texts = std::get_if<std::vector<std::string>>(&domains->second)) {
        texts->resize(static_cast<size_t>(inputs));
        texts->resize(oracle.params.size());
      }
    }
    stmts.insert(stmts.end(), last.begin(), last.end());
    root.allocs.insert(root.allocs.end(), root_allocs_.begin(), root_allocs_.end());
    root.body = MakeSeq(std::move(stmts));
    oracle.body = Stmt::Make(BlockRealize{{}, True(), std::move(root)});
    return oracle;
  }

 private:
  struct Pair {
    Buffer value;
    Buffer error;        // absent: every element is exact
    bool input = false;  // loads are converted
  };

  // The two outputs for one of the workload's, and in `last` what computes them of its pair.
  void AddOutput(const Buffer& param, PrimFunc& oracle, std::vector<Stmt>& last) {
    const Buffer value(absl::StrCat(param.name(), "_value"), kF64, param.shape());
    oracle.params.push_back(value);
    Pair pair{value, Buffer(), false};
    if (!param.type().is_float()) pair.value = RootBuffer(param.name(), param.type(), param.shape());
    if (inexact_.contains(param.id()))
      pair.error = RootBuffer(absl::StrCat(param.name(), "_error"), kF64, param.shape());
    pairs_[param.id()] = pair;
    if (!param.type().is_float()) {
      last.push_back(Elementwise(absl::StrCat(param.name(), "_to_value"), value,
                                 [&](const std::vector<Expr>& i) { return MakeCast(kF64, MakeLoad(pair.value, i)); }));
    }
    AddScale(param, "_scale", oracle, last);
  }
  // An output for the error of one of the workload's as it is carried now.
  void AddScale(const Buffer& param, const char* suffix, PrimFunc& oracle, std::vector<Stmt>& last) {
    const Buffer scale(absl::StrCat(param.name(), suffix), kF64, param.shape());
    oracle.params.push_back(scale);
    const Pair& pair = pairs_.at(param.id());
    const double eps = Epsilon(param.type());
    last.push_back(Elementwise(scale.name(), scale, [&](const std::vector<Expr>& i) {
      return pair.error ? MakeLoad(pair.error, i) * FloatConst(1 / eps, kF64) : FloatConst(0, kF64);
    }));
  }

  // Buffers that a rounded or uncertain value reaches.
  void FindInexact(const Stmt& body) {
    std::unordered_set<uint64_t> vars;
    for (bool changed = true; changed;) {
      changed = false;
      ForEachStmt(body, [&](const Stmt& s) {
        if (const Store* store = s.As<Store>(); store != nullptr && !IsExact(store->value, inexact_, vars)) {
          changed = inexact_.insert(store->buffer.id()).second || changed;
        }
        if (const Let* let = s.As<Let>(); let != nullptr && !IsExact(let->value, inexact_, vars)) {
          changed = vars.insert(let->var.id()).second || changed;
        }
        return true;
      });
    }
  }

  Buffer RootBuffer(std::string name, DType type, const std::vector<Expr>& shape) {
    root_allocs_.emplace_back(std::move(name), type, shape);
    return root_allocs_.back();
  }

  void AddPair(const Buffer& b, std::vector<Buffer>& allocs) {
    Pair pair{Buffer(b.name(), ValueType(b.type()), b.shape()), Buffer(), false};
    allocs.push_back(pair.value);
    if (inexact_.contains(b.id())) {
      pair.error = Buffer(absl::StrCat(b.name(), "_error"), kF64, b.shape());
      allocs.push_back(pair.error);
    }
    pairs_[b.id()] = std::move(pair);
  }

  absl::StatusOr<Estimate> Element(const Buffer& b, std::vector<Expr> indices) const {
    const auto found = pairs_.find(b.id());
    if (found == pairs_.end())
      return absl::InvalidArgumentError(absl::StrCat("buffer ", b.name(), " is used outside of its scope"));
    const Pair& pair = found->second;
    Estimate element;
    element.value = MakeLoad(pair.value, indices);
    if (pair.input && b.type().is_float()) element.value = MakeCast(kF64, element.value);
    if (pair.error) element.error = MakeLoad(pair.error, std::move(indices));
    return element;
  }

  // for i, j in grid(shape): block: target[vi, vj] = value([vi, vj])
  template <class F>
  static Stmt Elementwise(const std::string& name, const Buffer& target, F&& value) {
    Block block{.name = name};
    std::vector<Expr> indices, bindings;
    std::vector<Var> loops;
    for (size_t d = 0; d < target.shape().size(); ++d) {
      const DType type = target.shape()[d].type();
      loops.emplace_back(absl::StrCat("i", d), type);
      const Var v(absl::StrCat("v", d), type);
      block.iters.push_back({v, {IntConst(0, type), target.shape()[d]}, IterKind::kSpatial});
      indices.push_back(v);
      bindings.push_back(loops.back());
    }
    block.body = Stmt::Make(Store{target, indices, value(indices), Expr()});
    DeclareRegions(block);
    Stmt stmt = Stmt::Make(BlockRealize{std::move(bindings), True(), std::move(block)});
    for (size_t d = loops.size(); d-- > 0;) {
      stmt = Stmt::Make(For{
          .var = loops[d], .min = IntConst(0, loops[d].type()), .extent = target.shape()[d], .body = std::move(stmt)});
    }
    return stmt;
  }

  absl::StatusOr<Expr> Value(const Expr& e) {
    HONE_ASSIGN_OR_RETURN(const Estimate estimate, rules_.Of(e));
    return ErrorRules::Wrap(rules_.TakeNames(), estimate.value);
  }

  // ---- levels that allow another algorithm

  // A statement of the root block, and which of the buffers that the statements share it reads and writes.
  struct Stage {
    Stmt stmt;
    std::optional<FilterWindow> window;
    std::vector<Buffer> reads, writes;
  };

  std::vector<Stage> StagesOf(const Stmt& body, const std::vector<Buffer>& shared) const {
    const Seq* seq = body.As<Seq>();
    std::vector<Stage> stages;
    for (const Stmt& stmt : seq == nullptr ? std::vector<Stmt>{body} : seq->stmts) {
      Stage stage{.stmt = stmt};
      for (const Buffer& buffer : shared) {
        bool reads = false, writes = false;
        ForEachExpr(stmt, [&](const Expr& e) {
          const Load* load = e.As<Load>();
          reads = reads || (load != nullptr && load->buffer == buffer);
          return true;
        });
        ForEachStmt(stmt, [&](const Stmt& s) {
          const Store* store = s.As<Store>();
          writes = writes || (store != nullptr && store->buffer == buffer);
          return true;
        });
        if (reads) stage.reads.push_back(buffer);
        if (writes) stage.writes.push_back(buffer);
      }
      const Stmt* inner = &stmt;
      while (const For* loop = inner->As<For>()) inner = &loop->body;
      if (const BlockRealize* realize = inner->As<BlockRealize>()) {
        stage.window = error_analysis::MatchFilterWindow(f_, *realize);
      }
      stages.push_back(std::move(stage));
    }
    return stages;
  }

  // Adds the errors at levels other than strict: those of windows are larger, and whatever reads them is computed once
  // more from those. Afterwards `pairs_` holds them. False where no window is; so it is where several stages write one
  // buffer, whose order the second turn would change.
  absl::StatusOr<bool> Loosen(const std::vector<Stage>& stages, std::vector<Stmt>& stmts) {
    std::unordered_set<uint64_t> written, loose;
    for (const Stage& stage : stages) {
      for (const Buffer& buffer : stage.writes) {
        if (!written.insert(buffer.id()).second) return false;
      }
    }
    for (const Stage& stage : stages) {
      if (std::ranges::any_of(stage.reads, [&](const Buffer& b) { return loose.contains(b.id()); })) {
        const Stmt again = RenewDefinitions(stage.stmt);
        FindInexact(again);
        for (const Buffer& buffer : stage.writes) {
          AddPair(buffer, root_allocs_);
          loose.insert(buffer.id());
        }
        HONE_ASSIGN_OR_RETURN(Stmt rewritten, Rewrite(again));
        stmts.push_back(std::move(rewritten));
      }
      if (!stage.window.has_value()) continue;
      Pair& y = pairs_.at(stage.window->y.id());
      const Buffer error = RootBuffer(absl::StrCat(y.error.name(), "_default"), kF64, y.error.shape());
      const Buffer& x = pairs_.at(stage.window->x.id()).value;
      for (Stmt& stmt : error_analysis::AddFilteringError(*stage.window, x, y.error, error, root_allocs_)) {
        stmts.push_back(std::move(stmt));
      }
      y.error = error;
      loose.insert(stage.window->y.id());
    }
    return !loose.empty();
  }

  // ---- statements

  absl::StatusOr<Stmt> Rewrite(const Stmt& stmt) {
    if (!stmt) return Stmt();
    return std::visit([this](const auto& node) { return Do(node); }, stmt.node().kind);
  }

  absl::StatusOr<Stmt> Do(const For& n) {
    For loop = n;
    HONE_ASSIGN_OR_RETURN(loop.min, Value(n.min));
    HONE_ASSIGN_OR_RETURN(loop.extent, Value(n.extent));
    trips_.emplace_back(n.var, n.extent);
    HONE_ASSIGN_OR_RETURN(loop.body, Rewrite(n.body));
    trips_.pop_back();
    return Stmt::Make(std::move(loop));
  }

  absl::StatusOr<Stmt> Do(const BlockRealize& n) {
    if (!n.block.matches.empty())
      return absl::UnimplementedError("an oracle of matched buffers; it is made from the workload");
    BlockRealize realize{{}, Expr(), n.block};
    for (const Expr& value : n.values) {
      HONE_ASSIGN_OR_RETURN(Expr rewritten, Value(value));
      realize.values.push_back(std::move(rewritten));
    }
    HONE_ASSIGN_OR_RETURN(realize.predicate, Value(n.predicate));
    Block& block = realize.block;
    block.allocs.clear();
    for (const Buffer& b : n.block.allocs) AddPair(b, block.allocs);
    std::vector<std::pair<Var, Expr>> outer = trips_;
    if (!n.block.iters.empty()) {
      trips_.clear();
      for (const IterVar& iter : n.block.iters) trips_.emplace_back(iter.var, iter.domain.extent);
    }
    in_init_ = true;
    absl::StatusOr<Stmt> init = Rewrite(n.block.init);
    in_init_ = false;
    if (!init.ok()) return init.status();
    block.init = *std::move(init);
    HONE_ASSIGN_OR_RETURN(block.body, Rewrite(n.block.body));
    trips_ = std::move(outer);
    DeclareRegions(block);
    return Stmt::Make(std::move(realize));
  }

  absl::StatusOr<Stmt> Do(const Seq& n) {
    std::vector<Stmt> stmts;
    for (const Stmt& s : n.stmts) {
      HONE_ASSIGN_OR_RETURN(Stmt rewritten, Rewrite(s));
      stmts.push_back(std::move(rewritten));
    }
    return MakeSeq(std::move(stmts));
  }

  // Two programs may leave it after different numbers of rounds, and no error of one round bounds that.
  absl::StatusOr<Stmt> Do(const While&) {
    return absl::UnimplementedError("an oracle of a while; how often it runs may depend on what was rounded");
  }

  absl::StatusOr<Stmt> Do(const IfThen& n) {
    IfThen branch;
    HONE_ASSIGN_OR_RETURN(branch.condition, Value(n.condition));
    HONE_ASSIGN_OR_RETURN(branch.yes, Rewrite(n.yes));
    HONE_ASSIGN_OR_RETURN(branch.no, Rewrite(n.no));
    return Stmt::Make(std::move(branch));
  }

  absl::StatusOr<Stmt> Do(const Let& n) {
    HONE_ASSIGN_OR_RETURN(Estimate estimate, rules_.Of(n.value));
    Estimate named{rules_.Bind(estimate.value), rules_.Bind(estimate.error), estimate.relative};
    const ErrorRules::Names names = rules_.TakeNames();
    rules_.Define(n.var, std::move(named));
    HONE_ASSIGN_OR_RETURN(Stmt body, Rewrite(n.body));
    return ErrorRules::Wrap(names, std::move(body));
  }

  absl::StatusOr<Stmt> Do(const Alloc& n) {
    std::vector<Buffer> buffers;
    AddPair(n.buffer, buffers);
    HONE_ASSIGN_OR_RETURN(Stmt body, Rewrite(n.body));
    for (size_t i = buffers.size(); i-- > 0;) body = Stmt::Make(Alloc{buffers[i], std::move(body)});
    return body;
  }

  absl::StatusOr<Stmt> Do(const TileOp& n) {
    return absl::UnimplementedError(
        absl::StrCat("an oracle of tile operation ", n.intrinsic, "; it is made from the workload"));
  }
  absl::StatusOr<Stmt> Do(const Evaluate&) { return absl::UnimplementedError("an oracle of a program with effects"); }

  // Terms of a sum, with their signs.
  static void Terms(const Expr& e, bool minus, std::vector<std::pair<Expr, bool>>& terms) {
    const Binary* n = e.As<Binary>();
    if (n != nullptr && (n->op == BinaryOp::kAdd || n->op == BinaryOp::kSub)) {
      Terms(n->a, minus, terms);
      Terms(n->b, minus != (n->op == BinaryOp::kSub), terms);
    } else {
      terms.emplace_back(e, minus);
    }
  }

  static bool IsSelf(const Expr& e, const Store& n) {
    const Load* load = e.As<Load>();
    if (load == nullptr || !(load->buffer == n.buffer) || load->indices.size() != n.indices.size()) return false;
    for (size_t i = 0; i < n.indices.size(); ++i) {
      if (!StructuralEqual(load->indices[i], n.indices[i])) return false;
    }
    return true;
  }

  // How often the store runs for one element: the loops its index does not mention.
  Expr Repetitions(const Store& n) const {
    std::set<Var> used;
    for (const Expr& index : n.indices) used.merge(FreeVars(index));
    Expr count = IntConst(1, kInt64);
    for (const auto& [var, extent] : trips_) {
      if (!used.contains(var)) count = count * MakeCast(kInt64, extent);
    }
    return count;
  }

  absl::StatusOr<Stmt> Do(const Store& n) {
    if (n.mask || !n.value.type().is_scalar())
      return absl::UnimplementedError("an oracle of a program with vectors; it is made from the workload");
    const Pair pair = pairs_.at(n.buffer.id());
    std::vector<Expr> indices;
    for (const Expr& index : n.indices) {
      HONE_ASSIGN_OR_RETURN(const Estimate i, rules_.Of(index));
      indices.push_back(i.value);
    }
    HONE_ASSIGN_OR_RETURN(const Estimate stored, Stored(n, pair, indices));
    // Both are computed before either is stored: they may read what they replace.
    const Expr value = rules_.Bind(stored.value);
    std::vector<Stmt> stmts = {Stmt::Make(Store{pair.value, indices, value, Expr()})};
    if (pair.error) {
      const Expr error = rules_.Absolute(stored);
      stmts.push_back(Stmt::Make(Store{pair.error, indices, error ? rules_.Bind(error) : FloatConst(0, kF64), Expr()}));
    }
    return ErrorRules::Wrap(rules_.TakeNames(), MakeSeq(std::move(stmts)));
  }

  absl::StatusOr<Estimate> Stored(const Store& n, const Pair& pair, const std::vector<Expr>& indices) {
    const DType type = n.buffer.type();
    const Binary* update = n.value.As<Binary>();
    if (update != nullptr && !in_init_ && type.is_float() && pair.error) {
      const bool extremum = update->op == BinaryOp::kMin || update->op == BinaryOp::kMax;
      if (extremum && (IsSelf(update->a, n) || IsSelf(update->b, n))) {
        HONE_ASSIGN_OR_RETURN(const Estimate term, rules_.Of(IsSelf(update->a, n) ? update->b : update->a));
        const Expr old = MakeLoad(pair.error, indices), off = rules_.Absolute(term);
        return Estimate{MakeBinary(update->op, MakeLoad(pair.value, indices), term.value), off ? Max(old, off) : old};
      }
      std::vector<std::pair<Expr, bool>> terms;
      Terms(n.value, false, terms);
      const auto is_self = [&](const auto& t) { return !t.second && IsSelf(t.first, n); };
      const Expr repetitions = Repetitions(n);
      if (terms.size() >= 2 && std::ranges::count_if(terms, is_self) == 1 && !IsConst(repetitions, 1)) {
        return Accumulated(terms, is_self, repetitions, type, pair, indices);
      }
    }
    return rules_.Of(n.value);
  }

  // A sum in any order: every term counts with the roundings of the whole sum.
  template <class IsSelfTerm>
  absl::StatusOr<Estimate> Accumulated(const std::vector<std::pair<Expr, bool>>& terms, const IsSelfTerm& is_self,
                                       const Expr& repetitions, DType type, const Pair& pair,
                                       const std::vector<Expr>& indices) {
    const Expr count = repetitions * IntConst(static_cast<int64_t>(terms.size()) - 1, kInt64);
    const Expr growth = SumGrowth(count, type) * FloatConst(UnitRoundoff(type), kF64);
    Expr value = MakeLoad(pair.value, indices), error = MakeLoad(pair.error, indices);
    for (const auto& term : terms) {
      if (is_self(term)) continue;
      HONE_ASSIGN_OR_RETURN(const Estimate t, rules_.Of(term.first));
      value = term.second ? value - t.value : value + t.value;
      if (t.error) error = error + t.error;
      error = error + MakeCall("abs", {t.value}) * (growth + FloatConst(t.relative, kF64));
    }
    return Estimate{value, error};
  }

  const PrimFunc& f_;
  ErrorRules rules_;
  std::unordered_map<uint64_t, Pair> pairs_;
  std::unordered_set<uint64_t> inexact_;
  std::vector<Buffer> root_allocs_;
  std::vector<std::pair<Var, Expr>> trips_;  // loops around, as far as an index may mention them
  bool in_init_ = false;
};

}  // namespace

absl::StatusOr<PrimFunc> MakeOracle(const PrimFunc& workload) { return OracleMaker(workload).Make(); }

}  // namespace hone
