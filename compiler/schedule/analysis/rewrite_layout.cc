#include "compiler/schedule/analysis/rewrite_layout.h"

#include <set>
#include <utility>

#include "absl/strings/strip.h"
#include "compiler/arith/interval_set.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/touched_regions.h"

namespace hone {
namespace {

bool HasChoice(const Expr& root) {
  bool found = false;
  ForEachExpr(root, [&](const Expr& e) {
    const Binary* op = e.As<Binary>();
    found |= op != nullptr && (op->op == BinaryOp::kMin || op->op == BinaryOp::kMax);
    return !found;
  });
  return found;
}

class LayoutRewriter {
 public:
  LayoutRewriter(const Buffer& from, const Buffer& to, const IndexMap& map) : from_(from), to_(to), map_(map) {
    for (const Expr& output : map.outputs) {
      const std::set<Var> joined = FreeVars(output);
      if (joined.size() > 1) joined_.insert(joined.begin(), joined.end());
    }
  }

  Stmt Rewrite(const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) {
      known_.Bind(loop->var, Range{loop->min, loop->extent});
    } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      for (const IterVar& it : realize->block.iters) known_.Bind(it.var, it.domain);
    }
    Stmt copy = MapChildren(
        stmt, [&](const Stmt& s) { return Rewrite(s); }, [&](const Expr& e) { return Rewrite(e); });
    if (const Store* store = copy.As<Store>(); store != nullptr && store->buffer.SameAs(from_)) {
      return Stmt::Make(Store{to_, Map(store->indices), store->value, store->mask});
    }
    if (const BlockRealize* realize = copy.As<BlockRealize>()) {
      bool touches = false;
      for (const BufferRegion& r : realize->block.reads) touches |= r.buffer.SameAs(from_);
      for (const BufferRegion& w : realize->block.writes) touches |= w.buffer.SameAs(from_);
      for (const Buffer& b : realize->block.allocs) touches |= b.SameAs(from_);
      if (!touches) return copy;
      BlockRealize changed = *realize;
      for (BufferRegion& r : changed.block.reads) MapRegion(r);
      for (BufferRegion& w : changed.block.writes) MapRegion(w);
      for (Buffer& b : changed.block.allocs) {
        if (b.SameAs(from_)) b = to_;
      }
      return Stmt::Make(std::move(changed));
    }
    return copy;
  }

 private:
  Expr Rewrite(const Expr& root) {
    return RewriteBottomUp(root, [&](const Expr& e) -> std::optional<Expr> {
      const Load* load = e.As<Load>();
      if (load == nullptr || !load->buffer.SameAs(from_)) return std::nullopt;
      return MakeLoad(to_, Map(load->indices), load->mask);
    });
  }
  std::vector<Expr> Map(std::vector<Expr> indices) {
    // An index that is read from memory lies in its dimension, but nothing proves it: joined with others it could be
    // anywhere in the buffer.
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!joined_.contains(map_.inputs[d]) || !HasLoad(indices[d])) continue;
      const DType type = indices[d].type();
      indices[d] = Max(Min(indices[d], MakeCast(type, from_.shape()[d] - 1)), IntConst(0, type));
    }
    std::vector<Expr> mapped = map_.Map(indices);
    for (Expr& e : mapped) e = known_.Simplify(e);
    return mapped;
  }
  void MapRegion(BufferRegion& access) {
    if (!access.buffer.SameAs(from_)) return;
    bool point = true;
    for (const Range& r : access.region) point = point && IsConst(r.extent, 1);
    std::vector<Range> region;
    if (point) {
      std::vector<Expr> indices;
      for (const Range& r : access.region) indices.push_back(r.min);
      for (const Expr& e : Map(indices)) region.push_back(Range{e, IntConst(1, e.type())});
    } else {
      SetMap sets;
      std::vector<Range> outputs;
      std::vector<Expr> mins;
      for (size_t d = 0; d < access.region.size(); ++d) sets[map_.inputs[d]] = IntervalSet::FromRange(access.region[d]);
      for (const Expr& e : map_.outputs) outputs.push_back(Range{e, IntConst(1, e.type())});
      region = RelaxRegion(BufferRegion{to_, outputs}, sets, known_);
      // Where the region was cut off at an edge of the buffer, an end may be a choice, of which the verifier can prove
      // little: the whole dimension then.
      for (size_t d = 0; d < region.size(); ++d) {
        const Expr& size = to_.shape()[d];
        if (HasChoice(region[d].min) || HasChoice(region[d].extent)) region[d] = {IntConst(0, size.type()), size};
      }
    }
    access = BufferRegion{to_, std::move(region)};
  }

  const Buffer& from_;
  const Buffer& to_;
  const IndexMap& map_;
  std::set<Var> joined_;  // indices of which an output is made together with others
  Analyzer known_;
};

// Whether an output is made of several indices, other than as a swizzle.
bool FusesIndices(const IndexMap& map) {
  for (const Expr& output : map.outputs) {
    const Binary* top = output.As<Binary>();
    if (FreeVars(output).size() > 1 && (top == nullptr || top->op != BinaryOp::kBitXor)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<InverseMap> InvertLayout(const IndexMap& map, std::span<const Expr> shape) {
  absl::StatusOr<InverseMap> digits = Invert(map, shape);
  if (digits.ok() || map.inputs.size() != shape.size() || map.outputs.size() > kMostBufferDimensions ||
      !FusesIndices(map))
    return digits;
  std::vector<int64_t> extents;
  for (const Expr& extent : shape) {
    const std::optional<int64_t> known = ConstantValue(extent);
    if (!known.has_value()) {
      return Invalid(digits.status().message(), "; dimensions are fused where the shape is constant, it has ", extent);
    }
    extents.push_back(*known);
  }
  absl::StatusOr<InverseMap> fused = InvertOneToOne(map, extents);
  if (fused.ok()) return fused;
  const std::string prefix = Message("index map ", ToText(map), ": ");
  return Invalid(digits.status().message(), "; dimensions are fused where the map is one to one, but ",
                 absl::StripPrefix(fused.status().message(), prefix));
}

LayoutPlaces PlacesOf(const InverseMap& inverse) {
  LayoutPlaces places;
  Analyzer known;
  for (size_t d = 0; d < inverse.shape.size(); ++d) {
    places.iters.push_back(SpatialIter(Message("v", d), inverse.shape[d]));
    known.Bind(places.iters.back().var, places.iters.back().domain);
    places.indices.push_back(places.iters.back().var);
  }
  const VarMap bind = [&](const Var& var) -> std::optional<Expr> {
    for (size_t d = 0; d < inverse.indices.size(); ++d) {
      if (inverse.indices[d].SameAs(var)) return places.indices[d];
    }
    return std::nullopt;
  };
  for (const Expr& e : inverse.original) places.original.push_back(known.Simplify(Substitute(e, bind)));
  places.inside = known.Simplify(Substitute(inverse.inside, bind));
  return places;
}

Stmt WithLayout(const Stmt& root, const Buffer& from, const Buffer& to, const IndexMap& map) {
  return LayoutRewriter(from, to, map).Rewrite(root);
}

bool StaysBox(const BufferRegion& write, const Block& block, const IndexMap& map) {
  Analyzer known;
  for (const IterVar& iter : block.iters) known.Bind(iter.var, iter.domain);
  VarRanges runs;  // positions in the region
  std::vector<Expr> indices;
  for (const Range& range : write.region) {
    indices.push_back(range.min);
    if (IsConst(range.extent, 1)) continue;
    const Var run("run", range.extent.type());
    runs[run] = Range{IntConst(0, run.type()), range.extent};
    known.Bind(run, runs[run]);
    indices.back() = indices.back() + Expr(run);
  }
  std::vector<Range> mapped;
  for (const Expr& e : map.Map(indices)) mapped.push_back(Range{known.Simplify(e), IntConst(1, e.type())});
  return runs.empty() || FillsBox(mapped, runs).ok();
}

bool IsMatched(const Stmt& root, const Buffer& buffer) {
  bool found = false;
  ForEachStmt(root, [&](const Stmt& stmt) {
    if (const TileOp* op = stmt.As<TileOp>()) {
      for (const BufferRegion& r : op->operands) found |= r.buffer.SameAs(buffer);
    } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      for (const MatchBuffer& m : realize->block.matches) found |= m.source.buffer.SameAs(buffer);
    }
    return !found;
  });
  return found;
}

}  // namespace hone
