#include <algorithm>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr int64_t kMostAccumulators = 1024;

// `value` < extent, where the extent is the least of several; what is certain because value <= most is left out.
Expr Below(const Expr& value, int64_t most, const Expr& extent) {
  if (const Binary* least = extent.As<Binary>(); least != nullptr && least->op == BinaryOp::kMin)
    return And(Below(value, most, least->a), Below(value, most, least->b));
  if (const std::optional<int64_t> n = ConstantValue(extent); n.has_value() && most < *n) return True();
  return value < extent;
}

class Expansion {
 public:
  explicit Expansion(const TileOp& op) : op_(op), intrinsic_(*FindTileIntrinsic(op.intrinsic)) {
    extents_ = TileExtents(intrinsic_, op);
    for (size_t i = 0; i < extents_.size(); ++i) {
      std::optional<int64_t> bound = ConstantValue(extents_[i]);
      if (!bound.has_value()) bound = Param(intrinsic_.axes[i].var.name());
      bounds_.push_back(bound);
    }
  }

  Stmt Run() {
    std::vector<size_t> all(extents_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (!WantsAccumulators()) return Nest(all, [&](const auto& at) { return TileUpdate(intrinsic_, op_, at); });

    // The output's axes number the accumulators; the update happens to those.
    const Store& update = *intrinsic_.update.As<Store>();
    std::vector<size_t> out;
    std::vector<Expr> shape;
    for (const Expr& index : update.indices) {
      out.push_back(AxisOf(index));
      shape.push_back(Expr(*bounds_[out.back()]));
    }
    const Buffer& target = op_.operands[0].buffer;
    const Buffer acc(target.name() + "_acc", target.type(), shape, Scope::kRegister);
    const auto acc_at = [&](const std::vector<Expr>& at) {
      std::vector<Expr> indices;
      for (const size_t axis : out) indices.push_back(at[axis]);
      return indices;
    };
    const auto target_at = [&](const std::vector<Expr>& at) {
      const Stmt placed = TileUpdate(intrinsic_, op_, at);
      return placed.As<Store>()->indices;
    };
    TileOp on_acc = op_;
    on_acc.operands[0] = {acc, {}};
    for (const size_t axis : out) on_acc.operands[0].region.push_back({IntConst(0), extents_[axis]});
    const Stmt load = Nest(out, [&](const std::vector<Expr>& at) {
      return Stmt::Make(Store{acc, acc_at(at), MakeLoad(target, target_at(at)), Expr()});
    });
    const Stmt run = Nest(all, [&](const std::vector<Expr>& at) { return TileUpdate(intrinsic_, on_acc, at); });
    const Stmt store = Nest(out, [&](const std::vector<Expr>& at) {
      return Stmt::Make(Store{target, target_at(at), MakeLoad(acc, acc_at(at)), Expr()});
    });
    return Stmt::Make(Alloc{acc, MakeSeq({load, run, store})});
  }

 private:
  std::optional<int64_t> Param(const std::string& name) const {
    const auto found = op_.params.find(name);
    if (found == op_.params.end()) return std::nullopt;
    return std::get<int64_t>(found->second);
  }

  size_t AxisOf(const Expr& index) const {
    const VarRef* ref = index.As<VarRef>();
    size_t i = 0;
    while (ref != nullptr && i < intrinsic_.axes.size() && !(intrinsic_.axes[i].var == ref->var)) ++i;
    HONE_CHECK(ref != nullptr && i < intrinsic_.axes.size()) << intrinsic_.name << " writes at no axis of its own";
    return i;
  }

  // When something is summed up in memory and fits into registers.
  bool WantsAccumulators() const {
    if (op_.operands[0].buffer.scope() == Scope::kRegister || intrinsic_.meaning.num_outputs() != 1) return false;
    bool reduces = false;
    for (size_t i = 0; i < extents_.size(); ++i)
      reduces |= intrinsic_.axes[i].kind == IterKind::kReduce && !IsConst(extents_[i], 1);
    int64_t elements = 1;
    for (const Expr& index : intrinsic_.update.As<Store>()->indices) {
      const std::optional<int64_t> bound = bounds_[AxisOf(index)];
      if (!bound.has_value()) return false;
      elements *= *bound;
    }
    return reduces && elements <= kMostAccumulators;
  }

  // Loops over the axes in the order of the table, around `body` at their values.
  template <class Body>
  Stmt Nest(const std::vector<size_t>& axes, Body body) const {
    std::vector<Expr> at(extents_.size(), IntConst(0));
    std::vector<For> loops;
    Expr inside = True();
    const auto add = [&](const std::string& name, const Expr& extent, ForKind kind) {
      const Var var(name, extent.type());
      loops.push_back(For{var, IntConst(0, var.type()), extent, kind, "", Attrs(), Stmt()});
      return var;
    };
    for (const TileLoop& plan : intrinsic_.loops) {
      const size_t axis = static_cast<size_t>(intrinsic_.FindAxis(plan.axis) - intrinsic_.axes.data());
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) continue;
      const Expr& extent = extents_[axis];
      const DType type = extent.type();
      if (plan.kind == ForKind::kSerial || !bounds_[axis].has_value()) {
        const int64_t steps = ConstantValue(extent).has_value() ? Param("unroll").value_or(1) : 1;
        if (steps > 1 && *ConstantValue(extent) % steps == 0) {
          const Var outer = add(plan.axis, IntConst(*ConstantValue(extent) / steps, type), ForKind::kSerial);
          const Var inner = add(plan.axis + "_step", IntConst(steps, type), ForKind::kUnrolled);
          at[axis] = Expr(outer) * IntConst(steps, type) + Expr(inner);
        } else {
          at[axis] = add(plan.axis, extent, ForKind::kSerial);
        }
        continue;
      }
      const int64_t bound = *bounds_[axis];
      const int64_t lanes = plan.kind == ForKind::kVectorized ? Param("lanes").value_or(bound) : bound;
      int64_t most = bound - 1;
      if (plan.kind == ForKind::kVectorized && lanes < bound) {
        const int64_t vectors = (bound + lanes - 1) / lanes;
        most = vectors * lanes - 1;
        const Var vector = add(plan.axis + "_vector", IntConst(vectors, type), ForKind::kUnrolled);
        const Var lane = add(plan.axis, IntConst(lanes, type), ForKind::kVectorized);
        at[axis] = Expr(vector) * IntConst(lanes, type) + Expr(lane);
      } else {
        at[axis] = add(plan.axis, IntConst(bound, type), plan.kind);
      }
      inside = And(inside, Below(at[axis], most, extent));
    }
    Stmt nest = body(at);
    if (!IsConst(inside, 1)) nest = Stmt::Make(IfThen{inside, std::move(nest), Stmt()});
    for (size_t i = loops.size(); i-- > 0;) {
      loops[i].body = std::move(nest);
      nest = Stmt::Make(std::move(loops[i]));
    }
    return nest;
  }

  const TileOp& op_;
  const TileIntrinsic& intrinsic_;
  std::vector<Expr> extents_;                   // of the axes
  std::vector<std::optional<int64_t>> bounds_;  // the largest they can be
};

// A block that adds one product to every element of a tile: loops around a block of one element, so that where the tile
// is cut off is said once, of the element.
class ElementBlocks {
 public:
  // nullopt when the block is of another form.
  static std::optional<ElementBlocks> Match(const BlockRealize& tile) {
    const Block& block = tile.block;
    const Seq* seq = block.body.As<Seq>();
    const TileOp* op = (seq == nullptr || seq->stmts.empty() ? block.body : seq->stmts.back()).As<TileOp>();
    const size_t fills = seq == nullptr ? 0 : seq->stmts.size() - 1;
    if (op == nullptr || block.init || !block.matches.empty() || block.allocs.size() != fills) return std::nullopt;
    ElementBlocks found(tile, *op);
    if (!found.FindAxes()) return std::nullopt;
    for (size_t i = 0; i < fills; ++i) {
      if (!found.AddFill(seq->stmts[i], block.allocs[i])) return std::nullopt;
    }
    return found;
  }

  const TileOp& op() const { return op_; }

  Stmt Run() const {
    BlockRealize element = tile_;
    std::vector<Expr> at;
    std::vector<For> loops;
    Expr inside = True();
    for (const Axis& axis : axes_) {
      const DType type = axis.extent.type();
      const Var loop(axis.name, type), own("v" + axis.name, type);
      const Range all{IntConst(0, type), IntConst(axis.width, type)};
      loops.push_back(For{loop, all.min, all.extent, axis.kind, "", Attrs(), Stmt()});
      element.block.iters.push_back({own, all, IterKind::kSpatial});
      element.values.push_back(loop);
      at.push_back(own);
      inside = And(inside, Below(Expr(loop), axis.width - 1, InValues(axis.extent)));
    }
    element.predicate = Where(inside, loops);
    element.block.body = WithValues(TileUpdate(intrinsic_, op_, at));
    element.block.allocs.clear();
    DeclareRegions(element.block);
    Stmt nest = Stmt::Make(std::move(element));
    for (size_t i = loops.size(); i-- > 0;) {
      loops[i].body = std::move(nest);
      nest = Stmt::Make(std::move(loops[i]));
    }
    return nest;
  }

 private:
  struct Axis {
    std::string name;
    ForKind kind = ForKind::kSerial;
    Expr extent;
    int64_t width = 0;  // the largest extent
  };
  // fragment[position] = value
  struct Fill {
    Buffer fragment;
    std::optional<Var> position;  // absent: 0
    Expr value;
  };

  ElementBlocks(const BlockRealize& tile, const TileOp& op)
      : tile_(tile), op_(op), intrinsic_(*FindTileIntrinsic(op.intrinsic)) {}

  // False when the operation adds up several products, or nothing says how far an axis runs.
  bool FindAxes() {
    if (intrinsic_.threads > 1 || !intrinsic_.adds_once() || op_.params.contains("lanes")) return false;
    const std::vector<Expr> extents = TileExtents(intrinsic_, op_);
    for (size_t a = 0; a < extents.size(); ++a) {
      const std::string& name = intrinsic_.axes[a].var.name();
      const auto most = op_.params.find(name);
      const std::optional<int64_t> width =
          most == op_.params.end() ? ConstantValue(extents[a]) : std::get<int64_t>(most->second);
      if (!width.has_value()) return false;
      axes_.push_back({name, std::ranges::find(intrinsic_.loops, name, &TileLoop::axis)->kind, extents[a], *width});
    }
    return true;
  }

  // False when the statement does not fill `fragment`, or reads what the block writes.
  bool AddFill(const Stmt& stmt, const Buffer& fragment) {
    const For* loop = stmt.As<For>();
    const Store* store = (loop == nullptr ? stmt : loop->body).As<Store>();
    if (store == nullptr || store->mask || store->indices.size() != 1 || !(store->buffer == fragment)) return false;
    const VarRef* index = store->indices[0].As<VarRef>();
    if (loop == nullptr ? !IsConst(store->indices[0], 0) : index == nullptr || !(index->var == loop->var)) return false;
    bool reads_results = false;
    ForEachExpr(store->value, [&](const Expr& e) {
      const Load* load = e.As<Load>();
      reads_results |=
          load != nullptr && (load->buffer == op_.operands[0].buffer ||
                              std::ranges::find(tile_.block.allocs, load->buffer) != tile_.block.allocs.end());
      return !reads_results;
    });
    if (reads_results) return false;
    fills_.push_back({fragment, loop == nullptr ? std::nullopt : std::optional(loop->var), store->value});
    return true;
  }

  // Of an expression over the block's variables.
  Expr InValues(const Expr& e) const {
    return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < tile_.values.size(); ++i) {
        if (tile_.block.iters[i].var == var) return MakeCast(var.type(), tile_.values[i]);
      }
      return std::nullopt;
    });
  }

  // That there is such a tile follows where one of its elements is inside.
  Expr Where(const Expr& inside, const std::vector<For>& loops) const {
    Analyzer known;
    for (const For& loop : loops) known.Bind(loop.var, Range{loop.min, loop.extent});
    known.Assume(inside);
    Expr where = True();
    for (const Expr& part : Conjuncts(tile_.predicate)) {
      if (!known.CanProve(part)) where = And(where, part);
    }
    return And(where, inside);
  }

  // The update with what would be in fragments in their place.
  Stmt WithValues(const Stmt& update) const {
    return RewriteExprs(update, [&](const Expr& e) -> std::optional<Expr> {
      const Load* load = e.As<Load>();
      if (load == nullptr) return std::nullopt;
      const auto fill = std::ranges::find(fills_, load->buffer, &Fill::fragment);
      if (fill == fills_.end()) return std::nullopt;
      return fill->position.has_value() ? Substitute(fill->value, *fill->position, load->indices[0]) : fill->value;
    });
  }

  const BlockRealize& tile_;
  const TileOp& op_;
  const TileIntrinsic& intrinsic_;
  std::vector<Axis> axes_;
  std::vector<Fill> fills_;
};

Stmt ExpandVectorOpsOf(const Stmt& body, const LowerOptions& options) {
  if (const BlockRealize* realize = body.As<BlockRealize>()) {
    const std::optional<ElementBlocks> blocks = ElementBlocks::Match(*realize);
    if (blocks.has_value() && FindInstruction(blocks->op(), options.features) == nullptr) return blocks->Run();
  }
  return MapChildren(
      body, [&](const Stmt& s) { return ExpandVectorOpsOf(s, options); }, [](const Expr& e) { return e; });
}

}  // namespace

PrimFunc ExpandVectorOps(PrimFunc func, const LowerOptions& options) {
  func.body = ExpandVectorOpsOf(func.body, options);
  return func;
}

Stmt ExpandTileOps(const Stmt& body, const LowerOptions& options) {
  return RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const TileOp* op = s.As<TileOp>();
    if (op == nullptr || FindInstruction(*op, options.features) != nullptr) return std::nullopt;
    if (FindTileIntrinsic(op->intrinsic)->threads > 1) return std::nullopt;  // no loops of one thread do it
    return Expansion(*op).Run();
  });
}

}  // namespace hone
