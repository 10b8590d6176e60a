#include "tuner/model/store_nest.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "absl/hash/hash.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

constexpr double kLineBytes = 64;

// A flat index as a constant and the steps that loops make.
struct LinearIndex {
  double constant = 0;
  std::vector<IndexTerm> terms;
  uint64_t shape = 0;  // equal for indices that differ by constants alone
};

bool IsMultiply(const Expr& e) {
  const Binary* binary = e.As<Binary>();
  return binary != nullptr && binary->op == BinaryOp::kMul;
}

class Collector {
 public:
  void Visit(const Stmt& stmt) {
    if (!stmt) return;
    if (const For* loop = stmt.As<For>()) {
      VisitLoop(*loop);
    } else if (const Seq* seq = stmt.As<Seq>()) {
      for (const Stmt& child : seq->stmts) Visit(child);
    } else if (const IfThen* branch = stmt.As<IfThen>()) {
      ++conditions_;
      Visit(branch->yes);
      Visit(branch->no);
      --conditions_;
    } else if (const Let* let = stmt.As<Let>()) {
      lets_[let->var.id()] = let->value;
      Visit(let->body);
    } else if (const Alloc* alloc = stmt.As<Alloc>()) {
      allocated_[alloc->buffer.id()] = loops_.size();
      Visit(alloc->body);
    } else if (const Store* store = stmt.As<Store>()) {
      VisitStore(*store);
    }
  }

  std::vector<StoreNest> Take() {
    CloseNests();
    return std::move(done_);
  }

 private:
  // A nest that more copies may join, as long as no loop starts or ends.
  struct Open {
    StoreNest nest;
    uint64_t shape = 0;
    double first_copy = 0;                    // operations are counted on the first alone
    std::set<double> targets;                 // constant parts of the target's index
    std::vector<uint64_t> access_shapes;      // beside nest.accesses
    std::vector<std::vector<double>> places;  // beside nest.accesses: constant parts of their indices
  };

  void VisitLoop(const For& loop) {
    CloseNests();
    NestLoop here;
    here.var = loop.var;
    here.extent = static_cast<double>(ConstantValue(loop.extent).value_or(1));
    here.parallel = loop.kind == ForKind::kParallel;
    depth_of_[loop.var.id()] = loops_.size();
    loops_.push_back(here);
    Visit(loop.body);
    CloseNests();
    loops_.pop_back();
    depth_of_.erase(loop.var.id());
  }

  // ---- indices ----

  // Distinct values of an index expression while the loops from `depth` on run.
  double Span(const Expr& e, size_t depth) const {
    if (const VarRef* ref = e.As<VarRef>()) {
      if (const auto let = lets_.find(ref->var.id()); let != lets_.end()) return Span(let->second, depth);
      const auto found = depth_of_.find(ref->var.id());
      return found != depth_of_.end() && found->second >= depth ? loops_[found->second].extent : 1;
    }
    const Binary* binary = e.As<Binary>();
    if (binary == nullptr) return 1;
    const double a = Span(binary->a, depth), b = Span(binary->b, depth);
    const double constant = std::abs(static_cast<double>(ConstantValue(binary->b).value_or(0)));
    switch (binary->op) {
      case BinaryOp::kMul: return constant > 0 ? (a - 1) * constant + 1 : a * b;
      case BinaryOp::kFloorDiv:
      case BinaryOp::kDiv: return constant > 0 ? std::ceil(a / constant) : a;
      case BinaryOp::kFloorMod:
      case BinaryOp::kMod: return constant > 0 ? std::min(a, constant) : a;
      case BinaryOp::kAdd:
      case BinaryOp::kSub: return a + b - 1;
      default: return std::max(a, b);
    }
  }

  uint64_t ShapeOf(const Expr& e) const {
    if (const VarRef* ref = e.As<VarRef>()) return absl::HashOf(1, ref->var.id());
    if (const Binary* binary = e.As<Binary>()) {
      const bool sum = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub;
      if (sum && binary->b.As<IntImm>() != nullptr) return ShapeOf(binary->a);
      return absl::HashOf(2, static_cast<int>(binary->op), ShapeOf(binary->a), ShapeOf(binary->b));
    }
    if (const IntImm* value = e.As<IntImm>()) return absl::HashOf(3, value->value);
    return absl::HashOf(4, e.node().kind.index());
  }

  void AddLinear(const Expr& e, double factor, LinearIndex* index) const {
    if (const IntImm* value = e.As<IntImm>()) {
      index->constant += factor * static_cast<double>(value->value);
      return;
    }
    if (const Cast* cast = e.As<Cast>()) return AddLinear(cast->a, factor, index);
    if (const Broadcast* broadcast = e.As<Broadcast>()) return AddLinear(broadcast->value, factor, index);
    if (const VarRef* ref = e.As<VarRef>()) {
      if (const auto let = lets_.find(ref->var.id()); let != lets_.end()) return AddLinear(let->second, factor, index);
      const auto found = depth_of_.find(ref->var.id());
      if (found == depth_of_.end()) return;
      AddTerm({static_cast<int>(found->second), factor, loops_[found->second].extent}, index);
      return;
    }
    const Binary* binary = e.As<Binary>();
    if (binary != nullptr && (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub)) {
      AddLinear(binary->a, factor, index);
      AddLinear(binary->b, binary->op == BinaryOp::kAdd ? factor : -factor, index);
      return;
    }
    if (binary != nullptr && binary->op == BinaryOp::kMul) {
      if (const auto value = ConstantValue(binary->b))
        return AddLinear(binary->a, factor * static_cast<double>(*value), index);
      if (const auto value = ConstantValue(binary->a))
        return AddLinear(binary->b, factor * static_cast<double>(*value), index);
    }
    // A digit of a fused loop, or anything else: from every loop in it, the values it adds to those further in.
    index->shape = absl::HashOf(index->shape, factor, ShapeOf(e));
    double inside = 1;
    for (size_t depth = loops_.size(); depth-- > 0;) {
      const double values = Span(e, depth);
      if (values > inside) index->terms.push_back({static_cast<int>(depth), factor * inside, values / inside});
      inside = std::max(inside, values);
    }
  }

  static void AddTerm(const IndexTerm& term, LinearIndex* index) {
    index->shape = absl::HashOf(index->shape, term.loop, term.stride);
    for (IndexTerm& other : index->terms) {
      if (other.loop == term.loop && other.extent == term.extent) {
        other.stride += term.stride;
        return;
      }
    }
    index->terms.push_back(term);
  }

  LinearIndex IndexOf(const std::vector<Expr>& indices, NestAccess* access) const {
    LinearIndex index;
    for (const Expr& e : indices) {
      if (const Ramp* ramp = e.As<Ramp>()) {
        const int lanes = e.type().lanes;
        const double stride = static_cast<double>(ConstantValue(ramp->stride).value_or(0));
        access->lanes = lanes;
        access->gather = stride != 1;
        if (stride != 0) index.terms.push_back({kInside, stride, static_cast<double>(lanes)});
        index.shape = absl::HashOf(index.shape, lanes, stride);
        AddLinear(ramp->base, 1, &index);
      } else {
        if (e.type().lanes > 1 && e.As<Broadcast>() == nullptr) {
          access->lanes = e.type().lanes;
          access->gather = true;
        }
        AddLinear(e, 1, &index);
      }
    }
    return index;
  }

  // ---- statements ----

  struct Seen {
    NestAccess access;
    LinearIndex index;
  };
  struct Copy {
    std::array<double, kOperations> operations{};
    double vector_operations = 0, widest = 1;
    std::vector<Seen> accesses;
    bool reads_target = false;
    uint64_t shape = 0;
  };

  void Count(Operation operation, DType type, Copy* copy) const {
    copy->operations[operation] += type.lanes;
    copy->widest = std::max(copy->widest, static_cast<double>(type.lanes));
    if (type.is_float()) copy->vector_operations += 1;
    copy->shape = absl::HashOf(copy->shape, static_cast<int>(operation), type.lanes);
  }

  // The arithmetic of indices says nothing of the shape: copies differ by the constants they add.
  void CountIndex(const std::vector<Expr>& indices, Copy* copy) const {
    const uint64_t shape = copy->shape;
    for (const Expr& e : indices) {
      const Ramp* ramp = e.As<Ramp>();
      CountExpr(ramp != nullptr ? ramp->base : e, copy);
    }
    copy->shape = shape;
  }

  void CountBinary(const Binary& binary, DType type, Copy* copy) const {
    const DType of = binary.a.type();
    switch (binary.op) {
      case BinaryOp::kAdd:
      case BinaryOp::kSub: {
        if (binary.b.As<IntImm>() != nullptr) return CountExpr(binary.a, copy);  // part of an address
        // A product that is added at once is one operation with it.
        const bool fused = IsMultiply(binary.a) || IsMultiply(binary.b);
        if (fused) {
          const Expr& product = IsMultiply(binary.b) ? binary.b : binary.a;
          const Expr& other = IsMultiply(binary.b) ? binary.a : binary.b;
          Count(type.is_float() ? kFloatMulAdd : kIntMulAdd, type, copy);
          CountExpr(product.As<Binary>()->a, copy);
          CountExpr(product.As<Binary>()->b, copy);
          CountExpr(other, copy);
          return;
        }
        Count(type.is_float() ? kFloatAddSub : kIntAddSub, type, copy);
        break;
      }
      case BinaryOp::kMul: Count(type.is_float() ? kFloatMul : kIntMul, type, copy); break;
      case BinaryOp::kDiv:
      case BinaryOp::kMod:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod: Count(type.is_float() ? kFloatDivMod : kIntDivMod, type, copy); break;
      case BinaryOp::kMin:
      case BinaryOp::kMax: Count(of.is_float() ? kFloatOther : kIntOther, of, copy); break;
      case BinaryOp::kEq:
      case BinaryOp::kNe:
      case BinaryOp::kLt:
      case BinaryOp::kLe:
      case BinaryOp::kGt:
      case BinaryOp::kGe: Count(of.is_float() ? kFloatCompare : kIntCompare, of, copy); break;
      case BinaryOp::kAnd:
      case BinaryOp::kOr: Count(kBoolOther, type, copy); break;
      default: Count(kIntOther, type, copy); break;
    }
    CountExpr(binary.a, copy);
    CountExpr(binary.b, copy);
  }

  void CountExpr(const Expr& e, Copy* copy) const {
    const DType type = e.type();
    if (const Load* load = e.As<Load>()) return CountLoad(*load, /*broadcast=*/false, copy);
    if (const Binary* binary = e.As<Binary>()) return CountBinary(*binary, type, copy);
    if (const Broadcast* broadcast = e.As<Broadcast>()) {
      const Load* load = broadcast->value.As<Load>();
      return load != nullptr ? CountLoad(*load, /*broadcast=*/true, copy) : CountExpr(broadcast->value, copy);
    }
    if (const Call* call = e.As<Call>()) {
      const bool fma = call->name == "fma";
      Count(type.is_float() ? (fma ? kFloatMulAdd : kFloatMath) : (fma ? kIntMulAdd : kIntMath), type, copy);
      for (const Expr& argument : call->args) CountExpr(argument, copy);
    } else if (const Select* select = e.As<Select>()) {
      Count(kSelect, type, copy);
      CountExpr(select->condition, copy);
      CountExpr(select->yes, copy);
      CountExpr(select->no, copy);
    } else if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
      Count(kSelect, type, copy);
      CountExpr(choice->condition, copy);
      CountExpr(choice->yes, copy);
      CountExpr(choice->no, copy);
    } else if (const Cast* cast = e.As<Cast>()) {
      if (!(type.is_int() && cast->a.type().is_int())) Count(type.is_float() ? kFloatOther : kIntOther, type, copy);
      CountExpr(cast->a, copy);
    } else if (const Not* negation = e.As<Not>()) {
      Count(kBoolOther, type, copy);
      CountExpr(negation->a, copy);
    } else if (const LetExpr* let = e.As<LetExpr>()) {
      CountExpr(let->value, copy);
      CountExpr(let->body, copy);
    } else if (const Ramp* ramp = e.As<Ramp>()) {
      CountExpr(ramp->base, copy);
    }
  }

  void CountLoad(const Load& load, bool broadcast, Copy* copy) const {
    if (load.mask) CountExpr(load.mask, copy);
    if (load.buffer.SameAs(target_)) copy->reads_target = true;
    copy->shape = absl::HashOf(copy->shape, load.buffer.id(), load.mask ? 1 : 0);
    if (load.buffer.scope() == Scope::kRegister) return;
    CountIndex(load.indices, copy);
    Seen seen;
    seen.access.buffer = load.buffer;
    seen.access.broadcast = broadcast;
    seen.access.masked = load.mask ? 1 : 0;
    seen.index = IndexOf(load.indices, &seen.access);
    copy->shape = absl::HashOf(copy->shape, seen.index.shape);
    copy->accesses.push_back(std::move(seen));
  }

  void VisitStore(const Store& store) {
    target_ = store.buffer;
    Copy copy;
    CountExpr(store.value, &copy);
    if (store.mask) CountExpr(store.mask, &copy);
    const int lanes = store.value.type().lanes;
    const bool in_register = store.buffer.scope() == Scope::kRegister;
    Seen target;
    target.access.buffer = store.buffer;
    target.access.write = true;
    target.access.masked = store.mask ? 1 : 0;
    target.index = IndexOf(store.indices, &target.access);
    if (!in_register) {
      CountIndex(store.indices, &copy);
      copy.accesses.push_back(target);
    }
    const bool guarded = store.mask || conditions_ > 0;
    const uint64_t shape = absl::HashOf(copy.shape, store.buffer.id(), lanes, target.index.shape, guarded);
    Open* open = nullptr;
    for (Open& other : open_) {
      if (other.shape == shape) open = &other;
    }
    if (open == nullptr) open = &Start(store, target.index, copy, shape);
    Join(copy, target.index.constant, guarded, open);
  }

  Open& Start(const Store& store, const LinearIndex& target, const Copy& copy, uint64_t shape) {
    Open& open = open_.emplace_back();
    open.shape = shape;
    StoreNest& nest = open.nest;
    nest.loops = loops_;
    nest.target = store.buffer;
    nest.lanes = store.value.type().lanes;
    nest.copies = 0;
    nest.accumulates = copy.reads_target;
    nest.widest = copy.widest;
    const auto allocated = allocated_.find(store.buffer.id());
    if (allocated != allocated_.end()) {
      nest.allocated_at = static_cast<int>(allocated->second);
      nest.allocated_bytes = static_cast<double>(store.buffer.NumElements().value_or(0)) *
                             static_cast<double>(store.buffer.type().bytes());
    }
    for (size_t l = 0; l < nest.loops.size(); ++l) {
      bool moves = allocated != allocated_.end() && l < allocated->second;  // another buffer every time
      for (const IndexTerm& term : target.terms) moves = moves || term.loop == static_cast<int>(l);
      nest.loops[l].reduce = !moves;
    }
    return open;
  }

  static void Join(const Copy& copy, double target, bool guarded, Open* open) {
    StoreNest& nest = open->nest;
    nest.copies += 1;
    nest.masked += guarded ? 1 : 0;
    open->targets.insert(target);
    for (size_t i = 0; i < kOperations; ++i) nest.operations[i] += copy.operations[i];
    nest.vector_operations += copy.vector_operations;
    for (const Seen& seen : copy.accesses) {
      size_t a = 0;
      while (a < nest.accesses.size() &&
             !(open->access_shapes[a] == seen.index.shape && nest.accesses[a].buffer.SameAs(seen.access.buffer) &&
               nest.accesses[a].write == seen.access.write)) {
        ++a;
      }
      if (a == nest.accesses.size()) {
        nest.accesses.push_back(seen.access);
        nest.accesses[a].terms = seen.index.terms;
        nest.accesses[a].masked = nest.accesses[a].repeats = 0;
        open->access_shapes.push_back(seen.index.shape);
        open->places.emplace_back();
      }
      nest.accesses[a].repeats += 1;
      nest.accesses[a].masked += seen.access.masked;
      open->places[a].push_back(seen.index.constant);
    }
  }

  // Equally spaced constants are one step, groups of them that repeat another.
  static void AddCopies(std::vector<double> places, std::vector<IndexTerm>* terms) {
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (int level = 0; level < 4 && places.size() > 1; ++level) {
      const double stride = places[1] - places[0];
      size_t run = 1;
      while (run < places.size() && places[run] - places[run - 1] == stride) ++run;
      if (places.size() % run != 0) {
        const double mean = (places.back() - places.front()) / static_cast<double>(places.size() - 1);
        terms->push_back({kInside, mean, static_cast<double>(places.size())});
        return;
      }
      terms->push_back({kInside, stride, static_cast<double>(run)});
      std::vector<double> firsts;
      for (size_t i = 0; i < places.size(); i += run) firsts.push_back(places[i]);
      places = std::move(firsts);
    }
  }

  void CloseNests() {
    for (Open& open : open_) {
      StoreNest& nest = open.nest;
      nest.targets = static_cast<double>(open.targets.size());
      nest.masked /= nest.copies;
      for (size_t a = 0; a < nest.accesses.size(); ++a) {
        NestAccess& access = nest.accesses[a];
        const std::set<double> distinct(open.places[a].begin(), open.places[a].end());
        access.distinct = static_cast<double>(distinct.size());
        access.masked /= access.repeats;
        AddCopies(std::move(open.places[a]), &access.terms);
        for (IndexTerm& term : access.terms) term.stride = std::abs(term.stride);
        std::erase_if(access.terms, [](const IndexTerm& term) { return term.stride == 0 || term.extent <= 1; });
        std::sort(access.terms.begin(), access.terms.end(),
                  [](const IndexTerm& x, const IndexTerm& y) { return x.stride < y.stride; });
      }
      done_.push_back(std::move(nest));
    }
    open_.clear();
  }

  std::vector<NestLoop> loops_;
  std::unordered_map<uint64_t, size_t> depth_of_;   // of a loop's variable
  std::unordered_map<uint64_t, size_t> allocated_;  // loops around a buffer's Alloc
  std::unordered_map<uint64_t, Expr> lets_;
  int conditions_ = 0;
  Buffer target_;
  std::vector<Open> open_;
  std::vector<StoreNest> done_;
};

}  // namespace

double StoreNest::Iterations() const {
  double iterations = 1;
  for (const NestLoop& loop : loops) iterations *= loop.extent;
  return iterations;
}

std::vector<StoreNest> StoreNests(const LoweredFunc& lowered) {
  Collector collector;
  collector.Visit(lowered.func.body);
  return collector.Take();
}

bool MovesWith(const NestAccess& access, size_t loop) {
  return std::any_of(access.terms.begin(), access.terms.end(),
                     [&](const IndexTerm& term) { return term.loop == static_cast<int>(loop); });
}

Footprint FootprintOf(const NestAccess& access, size_t depth) {
  // Terms are in the order of their strides. A term whose steps fall on those of the one before it makes that longer
  // instead of multiplying: the windows of a convolution overlap.
  std::array<IndexTerm, 16> merged;
  size_t count = 0;
  for (const IndexTerm& term : access.terms) {
    if (term.loop != kInside && term.loop < static_cast<int>(depth)) continue;
    if (count > 0) {
      IndexTerm& last = merged[count - 1];
      const double ratio = term.stride / last.stride;
      if (ratio <= last.extent && ratio == std::floor(ratio)) {
        last.extent += ratio * (term.extent - 1);
        continue;
      }
    }
    if (count == merged.size()) break;
    merged[count++] = term;
  }
  double run = 1, runs = 1;
  for (size_t i = 0; i < count; ++i) {
    if (merged[i].stride <= run) {
      run += merged[i].stride * (merged[i].extent - 1);
    } else {
      runs *= merged[i].extent;
    }
  }
  const double bytes = static_cast<double>(access.buffer.type().bytes());
  const double size = static_cast<double>(access.buffer.NumElements().value_or(0));
  Footprint footprint{run * runs, 0};
  if (size > 0) footprint.elements = std::min(footprint.elements, size);
  // Runs that are nearer to each other than a line share it.
  double apart = 0;
  for (size_t i = 0; i < count && apart == 0; ++i) {
    if (merged[i].stride > run) apart = merged[i].stride;
  }
  const double lines_of_run = std::ceil(run * bytes / kLineBytes);
  const double sharing = apart > 0 && apart * bytes < kLineBytes ? apart * bytes / kLineBytes : 1;
  footprint.lines = std::max(1.0, std::min(lines_of_run * runs * sharing, std::ceil(size * bytes / kLineBytes)));
  return footprint;
}

}  // namespace hone
