// The regions of block_accesses.h and interval_set.h are hulls: the least that is known to contain what is touched,
// with symbolic ends. A proof that an element is not written needs the opposite bound for loads, so the accesses are
// walked with their exact conditions here, and enumerated (compiler/arith/exact_values.h).
#include "compiler/lower/checks/unwritten_reads.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/arith/exact_values.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/checks/needed_loads.h"

namespace hone {
namespace {

// Steps of enumeration, of some nanoseconds each: of one index, and of a program.
constexpr int64_t kStepsOfIndex = 1 << 15, kStepsOfProgram = 1 << 18;

// What is written along a dimension: all of it, or some of it.
struct Dimension {
  int64_t extent = -1;  // -1: symbolic
  bool whole = false;
  ValueSet written;
};

class UnwrittenReads {
 public:
  explicit UnwrittenReads(const PrimFunc& func) {
    for (size_t p = func.params.size() - static_cast<size_t>(func.num_outputs()); p < func.params.size(); ++p)
      Track(func.params[p]);
    // All stores before any load: the order of the program says little about loops around both.
    Walk(func.body);
    loads_ = std::ranges::any_of(tracked_, [](const auto& buffer) {
      return std::ranges::any_of(buffer.second, [](const Dimension& d) { return !d.whole; });
    });
    if (loads_) Walk(func.body);
  }

  std::optional<UnwrittenRead> found;

 private:
  void Track(const Buffer& buffer) {
    const auto [entry, is_new] = tracked_.try_emplace(buffer);
    if (!is_new) return;
    for (const Expr& extent : buffer.shape()) {
      const std::optional<int64_t> constant = ConstantValue(extent);
      entry->second.push_back({.extent = constant.value_or(-1), .whole = !constant.has_value()});
    }
  }
  std::vector<Dimension>* Tracked(const Buffer& buffer) {
    const auto entry = tracked_.find(buffer);
    return entry == tracked_.end() ? nullptr : &entry->second;
  }

  // ---- The walk ----

  void Walk(const Stmt& stmt) {
    if (stmt && !found.has_value()) std::visit([this](const auto& node) { Do(node); }, stmt.node().kind);
  }
  void Do(const For& loop) {
    Loads({loop.min, loop.extent});
    const std::optional<int64_t> min = ConstantValue(Resolved(loop.min)), extent = ConstantValue(Resolved(loop.extent));
    // A loop over an axis of threads inside another over the same axis is no loop of its own.
    const bool again = !loop.thread.empty() && !axes_.insert(loop.thread).second;
    if (min.has_value() && extent.has_value() && !again) {
      loops_.push_back({loop.var, *min, *extent});
      Walk(loop.body);
      loops_.pop_back();
    } else {
      ++unknown_;
      Walk(loop.body);
      --unknown_;
    }
    if (!loop.thread.empty() && !again) axes_.erase(loop.thread);
  }
  void Do(const BlockRealize& realize) {
    const Block& block = realize.block;
    Loads({realize.predicate});
    for (const Buffer& buffer : block.allocs) Track(buffer);
    for (size_t i = 0; i < block.iters.size(); ++i) Bind(block.iters[i].var, realize.values[i]);
    const Under runs(*this, realize.predicate);
    for (const MatchBuffer& match : block.matches) {
      matches_.insert_or_assign(match.buffer, match.source);
      for (const Range& range : match.source.region) Loads({range.min});
    }
    Walk(block.body);
    if (!block.init) return;
    Expr first = True();
    for (const IterVar& iter : block.iters) {
      if (iter.kind == IterKind::kReduce) first = And(first, Eq(iter.var, MakeCast(iter.var.type(), iter.domain.min)));
    }
    const Under starts(*this, first);
    Walk(block.init);
  }
  void Do(const Store& store) {
    Loads(store.indices);
    Loads({store.value});
    if (store.mask) Loads({store.mask});
    if (!loads_) Written(store);
  }
  void Do(const Seq& seq) {
    for (const Stmt& s : seq.stmts) Walk(s);
  }
  void Do(const IfThen& branch) {
    Loads({branch.condition});
    {
      const Under holds(*this, branch.condition);
      Walk(branch.yes);
    }
    const Under fails(*this, MakeNot(branch.condition));
    Walk(branch.no);
  }
  void Do(const While& loop) {
    Loads({loop.condition});
    const Under holds(*this, loop.condition);
    Walk(loop.body);
  }
  // What the value reads is read where the variable is used: a value without a use may be of unwritten elements.
  void Do(const Let& let) {
    Define(let.var, let.value);
    Walk(let.body);
  }
  void Do(const Alloc& alloc) {
    Track(alloc.buffer);
    Walk(alloc.body);
  }
  // Which elements of its operands' regions it reads and writes is the intrinsic's.
  void Do(const TileOp& op) {
    for (const BufferRegion& operand : op.operands) WrittenWhole(operand.buffer);
  }
  // A value without a use may be of unwritten elements, and prefetch reads nothing.
  void Do(const Evaluate& evaluate) {
    if (const std::optional<Store> effect = EffectStore(evaluate)) Do(*effect);
  }

  void Loads(std::span<const Expr> roots) {
    if (!loads_) return;
    seen_.clear();
    for (const Expr& root : roots) Visit(root);
  }
  void Loads(std::initializer_list<Expr> roots) { Loads(std::span(roots.begin(), roots.size())); }
  // Of an expression that stands in several places the first counts: to leave a load out is never wrong.
  void Visit(const Expr& e) {
    if (found.has_value() || !seen_.insert(&e.node()).second) return;
    if (const VarRef* ref = e.As<VarRef>()) {
      const auto let = lets_.find(ref->var);
      if (let != lets_.end()) Visit(let->second);
    } else if (const LetExpr* let = e.As<LetExpr>()) {
      Define(let->var, let->value);
      Visit(let->body);
    } else if (const Load* load = e.As<Load>()) {
      for (const Expr& index : load->indices) Visit(index);
      if (load->mask) Visit(load->mask);
      const Under read(*this, load->mask ? load->mask : True());
      Read(load->buffer, load->indices);
    } else if (const Binary* op = e.As<Binary>();
               op != nullptr && (op->op == BinaryOp::kAnd || op->op == BinaryOp::kOr)) {
      Visit(op->a);
      const Under asked(*this, op->op == BinaryOp::kAnd ? op->a : MakeNot(op->a));
      Visit(op->b);
    } else if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      VisitChoice(*choice);
    } else if (const Select* choice = e.As<Select>()) {  // reads both sides and uses one
      VisitChoice(*choice);
    } else {
      ForEachChild(e, [this](const Expr& child) { Visit(child); });
    }
  }
  template <class Choice>
  void VisitChoice(const Choice& choice) {
    Visit(choice.condition);
    {
      const Under holds(*this, choice.condition);
      Visit(choice.yes);
    }
    const Under fails(*this, MakeNot(choice.condition));
    Visit(choice.no);
  }

  // ---- Variables and conditions ----

  void Define(const Var& var, const Expr& value) {
    lets_.insert_or_assign(var, value);
    Bind(var, value);
  }
  void Bind(const Var& var, const Expr& value) {
    const Expr resolved = Resolved(value);
    if (IsOverLoops(resolved, loops_)) {
      bindings_.insert_or_assign(var, MakeCast(var.type(), resolved));
    } else {
      bindings_.erase(var);
    }
  }
  Expr Resolved(const Expr& e) const {
    return Substitute(e, [this](const Var& var) -> std::optional<Expr> {
      const auto found = bindings_.find(var);
      return found == bindings_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  // A condition that holds for as long as it lives. Parts that cannot be enumerated are counted alone.
  class Under {
   public:
    Under(UnwrittenReads& walk, const Expr& condition)
        : walk_(walk), conditions_(walk.conditions_.size()), unknown_(walk.unknown_) {
      for (const Expr& part : Conjuncts(condition)) {
        const Expr resolved = walk.Resolved(part);
        if (IsOverLoops(resolved, walk.loops_)) {
          walk.conditions_.push_back(resolved);
        } else {
          ++walk.unknown_;
        }
      }
    }
    ~Under() {
      walk_.conditions_.resize(conditions_);
      walk_.unknown_ = unknown_;
    }
    Under(const Under&) = delete;
    Under& operator=(const Under&) = delete;

   private:
    UnwrittenReads& walk_;
    const size_t conditions_;
    const int unknown_;
  };

  // ---- Accesses ----

  struct Access {
    Buffer buffer;
    std::vector<Expr> indices;
  };
  // In terms of the buffer that a matched buffer is a part of.
  Access InSource(Buffer buffer, std::vector<Expr> indices) const {
    for (auto match = matches_.find(buffer); match != matches_.end(); match = matches_.find(buffer)) {
      const BufferRegion& source = match->second;
      const size_t extra = source.region.size() - std::min(source.region.size(), indices.size());
      std::vector<Expr> in_source;
      for (size_t d = 0; d < source.region.size(); ++d) {
        const Expr& min = source.region[d].min;
        if (d < extra) {
          in_source.push_back(min);
        } else if (const Expr& index = indices[d - extra]; index.type().is_scalar()) {
          in_source.push_back(min + index);
        } else {
          in_source.push_back(MakeBroadcast(min, index.type().lanes) + index);
        }
      }
      buffer = source.buffer;
      indices = std::move(in_source);
    }
    return {std::move(buffer), std::move(indices)};
  }

  // The values of an index of the access that is being made, which may be a vector; nullopt when they are not known.
  std::optional<ValueSet> Values(const Expr& index) {
    if (const Broadcast* splat = index.As<Broadcast>()) return Values(splat->value);
    if (const Ramp* ramp = index.As<Ramp>()) {
      const Var lane("lane", ramp->base.type());
      loops_.push_back({lane, 0, index.type().lanes});
      std::optional<ValueSet> values = Values(ramp->base + ramp->stride * lane);
      loops_.pop_back();
      return values;
    }
    const Expr resolved = Resolved(index);
    if (!IsOverLoops(resolved, loops_)) return std::nullopt;
    int64_t steps = std::min(kStepsOfIndex, steps_);
    steps_ -= steps;
    std::optional<ValueSet> values = ValuesTaken(resolved, loops_, conditions_, steps);
    steps_ += std::max<int64_t>(steps, 0);
    return values;
  }

  void Written(const Store& store) {
    const auto& [buffer, indices] = InSource(store.buffer, store.indices);
    std::vector<Dimension>* dimensions = Tracked(buffer);
    if (dimensions == nullptr || std::ranges::all_of(*dimensions, &Dimension::whole)) return;
    if (NeedsLoad(store.value, lets_, [&](const Load& load) { return IsElement(load, store); })) return;
    for (size_t d = 0; d < dimensions->size() && d < indices.size(); ++d) {
      Dimension& dimension = (*dimensions)[d];
      if (dimension.whole) continue;
      if (const std::optional<ValueSet> values = Values(indices[d])) {
        dimension.written.Add(*values);
        dimension.whole = dimension.extent > 0 && dimension.written.Contains(0, dimension.extent - 1);
      } else {
        dimension.whole = true;
      }
    }
  }
  static bool IsElement(const Load& load, const Store& store) {
    return load.buffer == store.buffer &&
           std::ranges::equal(load.indices, store.indices,
                              [](const Expr& a, const Expr& b) { return StructuralEqual(a, b); });
  }
  void WrittenWhole(const Buffer& part) {
    std::vector<Dimension>* dimensions = Tracked(InSource(part, {}).buffer);
    if (dimensions == nullptr) return;
    for (Dimension& dimension : *dimensions) dimension.whole = true;
  }
  void Read(const Buffer& part, const std::vector<Expr>& part_indices) {
    if (unknown_ > 0 || found.has_value()) return;
    const auto& [buffer, indices] = InSource(part, part_indices);
    std::vector<Dimension>* dimensions = Tracked(buffer);
    if (dimensions == nullptr) return;
    for (size_t d = 0; d < dimensions->size() && d < indices.size() && !found.has_value(); ++d) {
      const Dimension& dimension = (*dimensions)[d];
      if (dimension.whole) continue;
      const std::optional<ValueSet> values = Values(indices[d]);
      if (!values.has_value()) continue;
      // An index outside of the buffer is another's fault.
      const std::optional<int64_t> index = values->Within(0, dimension.extent - 1).FirstOutside(dimension.written);
      if (index.has_value()) found = UnwrittenRead{buffer, static_cast<int>(d), *index};
    }
  }

  std::map<Buffer, std::vector<Dimension>> tracked_;
  std::map<Buffer, BufferRegion> matches_;
  std::map<Var, Expr> lets_;
  std::map<Var, Expr> bindings_;  // of what is over loops_ alone, in terms of those
  std::vector<ConstantLoop> loops_;
  std::set<std::string> axes_;
  std::vector<Expr> conditions_;
  int unknown_ = 0;  // loops and conditions around that cannot be enumerated
  bool loads_ = false;
  absl::flat_hash_set<const ExprNode*> seen_;
  int64_t steps_ = kStepsOfProgram;
};

}  // namespace

std::optional<UnwrittenRead> FindUnwrittenRead(const PrimFunc& func) { return UnwrittenReads(func).found; }

}  // namespace hone
