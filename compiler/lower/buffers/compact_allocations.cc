#include <limits>
#include <set>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval_set.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

constexpr int64_t kMostRegisterElements = 4096;

// The regions of one buffer touched under its Alloc, relative to the loops around the Alloc but for those of `all_of`.
class Touched {
 public:
  Touched(const Buffer& buffer, const VarRanges& all_of, Analyzer& known)
      : buffer_(buffer), known_(known), inner_(all_of) {}

  void Visit(const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) {
      inner_[loop->var] = Range{loop->min, loop->extent};
      Expression(loop->min);
      Expression(loop->extent);
      Visit(loop->body);
      return;
    }
    if (const Store* store = stmt.As<Store>(); store != nullptr && store->buffer == buffer_) Add(store->indices);
    if (const TileOp* op = stmt.As<TileOp>()) {
      for (const BufferRegion& operand : op->operands) {
        if (operand.buffer == buffer_) AddRegion(operand);
      }
    }
    ForEachChild(
        stmt, [&](const Stmt& s) { Visit(s); }, [&](const Expr& e) { Expression(e); });
  }

  // nullopt when the whole buffer is needed. What a mask cuts off counts for a register tile: its rows keep the length
  // of the vectors that are written to them.
  std::optional<std::vector<Range>> Region() {
    if (accesses_.empty()) return std::nullopt;
    if (buffer_.scope() == Scope::kRegister) {
      if (std::optional<std::vector<Range>> whole = UnclippedRegion()) return whole;
    }
    std::vector<std::vector<Range>> relaxed;
    for (const std::vector<Expr>& indices : accesses_) {
      BufferRegion access{buffer_, {}};
      for (const Expr& index : indices) access.region.push_back(Range{index, IntConst(1, index.type())});
      relaxed.push_back(RelaxRegion(access, ToSets(inner_), known_, /*constant_extent=*/true));
    }
    return UnionRegions(relaxed, buffer_.shape(), known_, /*constant_extent=*/true);
  }

 private:
  void Expression(const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      if (const Load* load = e.As<Load>(); load != nullptr && load->buffer == buffer_) Add(load->indices);
      return true;
    });
  }

  void Add(const std::vector<Expr>& indices) { accesses_.push_back(indices); }
  // Its first and its last element.
  void AddRegion(const BufferRegion& region) {
    std::vector<Expr> first, last;
    for (const Range& range : region.region) {
      first.push_back(range.min);
      last.push_back(range.min + (range.extent - 1));
    }
    Add(first);
    Add(last);
  }

  std::optional<std::vector<Range>> UnclippedRegion() {
    std::vector<Range> region;
    for (size_t d = 0; d < buffer_.shape().size(); ++d) {
      IntervalSet set;
      for (size_t i = 0; i < accesses_.size(); ++i) {
        const IntervalSet one = EvalSet(accesses_[i][d], ToSets(inner_), known_);
        set = i == 0 ? one : Union(set, one, known_);
      }
      const std::optional<int64_t> extent = set.bounded() ? MaxExtent(set, known_) : std::nullopt;
      if (!extent.has_value() || *extent > kMostRegisterElements) return std::nullopt;
      region.push_back(Range{set.min, Expr(*extent)});
    }
    return region;
  }

  const Buffer& buffer_;
  Analyzer& known_;
  VarRanges inner_;
  std::vector<std::vector<Expr>> accesses_;  // indices
};

class Compact {
 public:
  Stmt Visit(const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) {
      const ConstraintScope inside(known_, True());  // that the loop runs at all is known inside it alone
      known_.Bind(loop->var, Range{loop->min, loop->extent});
      outer_.insert(loop->var);
      if (loop->thread.starts_with("threadIdx")) threads_.push_back(loop);
      Stmt made = MapChildren(
          stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
      if (loop->thread.starts_with("threadIdx")) threads_.pop_back();
      return made;
    }
    if (const Let* let = stmt.As<Let>()) outer_.insert(let->var);
    const Alloc* alloc = stmt.As<Alloc>();
    if (alloc == nullptr)
      return MapChildren(
          stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
    Touched touched(alloc->buffer, ThreadsThatShare(alloc->buffer.scope()), known_);
    touched.Visit(alloc->body);
    const std::optional<std::vector<Range>> region = touched.Region();
    if (!region.has_value() || !Shrinks(alloc->buffer, *region)) {
      return Stmt::Make(Alloc{alloc->buffer, Visit(alloc->body)});
    }
    return Shrink(*alloc, *region);
  }

 private:
  // The loops around over axes of threads that have one such buffer together.
  VarRanges ThreadsThatShare(Scope scope) const {
    ThreadExtents extents = {1, 1, 1};
    for (const For* loop : threads_)
      extents.at(ThreadAxisNumber(loop->thread)) = ConstantValue(loop->extent).value_or(1);
    VarRanges shared;
    for (const For* loop : threads_) {
      const bool of_several =
          scope == Scope::kWarp && WarpAxisOf(extents, ThreadAxisNumber(loop->thread)) == WarpAxis::kWarps;
      if (IsSharedByThreads(scope) && !of_several) shared[loop->var] = Range{loop->min, loop->extent};
    }
    return shared;
  }

  // Ends of the region may mention only what is defined around the Alloc.
  bool Shrinks(const Buffer& buffer, const std::vector<Range>& region) const {
    int64_t elements = 1;
    for (const Range& range : region) {
      const std::optional<int64_t> extent = ConstantValue(range.extent);
      if (!extent.has_value()) return false;
      elements *= *extent;
      for (const Var& v : FreeVars(range.min)) {
        if (outer_.count(v) == 0 && !v.range().has_value()) return false;
      }
    }
    if (buffer.scope() == Scope::kRegister && elements <= kMostRegisterElements) return true;
    return elements < MostElements(buffer).value_or(std::numeric_limits<int64_t>::max());
  }

  Stmt Shrink(const Alloc& alloc, const std::vector<Range>& region) {
    std::vector<Expr> shape;
    for (const Range& range : region) shape.push_back(range.extent);
    const Buffer small(alloc.buffer.name(), alloc.buffer.type(), shape, alloc.buffer.scope());
    const auto shift = [&](const std::vector<Expr>& indices) {  // a variable of an inner loop is a symbol here
      std::vector<Expr> out;
      for (size_t d = 0; d < indices.size(); ++d) out.push_back(known_.Simplify(indices[d] - region[d].min));
      return out;
    };
    Stmt body = RewriteExprs(alloc.body, [&](const Expr& e) -> std::optional<Expr> {
      const Load* load = e.As<Load>();
      if (load == nullptr || load->buffer != alloc.buffer) return std::nullopt;
      return MakeLoad(small, shift(load->indices), load->mask);
    });
    body = RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
      if (const TileOp* op = s.As<TileOp>()) return ShiftOperands(*op, alloc.buffer, small, region);
      const Store* store = s.As<Store>();
      if (store == nullptr || store->buffer != alloc.buffer) return std::nullopt;
      return Stmt::Make(Store{small, shift(store->indices), store->value, store->mask});
    });
    return Stmt::Make(Alloc{small, Visit(body)});
  }

  Stmt ShiftOperands(const TileOp& op, const Buffer& from, const Buffer& to, const std::vector<Range>& region) {
    TileOp shifted = op;
    for (BufferRegion& operand : shifted.operands) {
      if (operand.buffer != from) continue;
      operand.buffer = to;
      for (size_t d = 0; d < region.size(); ++d)
        operand.region[d].min = known_.Simplify(operand.region[d].min - region[d].min);
    }
    return Stmt::Make(std::move(shifted));
  }

  Analyzer known_;
  std::set<Var> outer_;
  std::vector<const For*> threads_;  // the loops over axes of threads around
};

}  // namespace

Stmt CompactAllocations(const Stmt& body) { return Compact().Visit(body); }

}  // namespace hone
