#include "compiler/schedule/analysis/match_intrinsic.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The value of a constant of any type.
std::optional<double> AnyConstant(const Expr& e) {
  if (const FloatImm* imm = e.As<FloatImm>()) return imm->value;
  const std::optional<int64_t> value = ConstantValue(e);
  return value.has_value() ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

// The operation that compares as `op` does with its sides exchanged; itself for any other one.
BinaryOp Mirrored(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLt: return BinaryOp::kGt;
    case BinaryOp::kLe: return BinaryOp::kGe;
    case BinaryOp::kGt: return BinaryOp::kLt;
    case BinaryOp::kGe: return BinaryOp::kLe;
    default: return op;
  }
}

class Matcher {
 public:
  Matcher(const DividedBlock& divided, const Block& block, const TileIntrinsic& intrinsic)
      : divided_(divided),
        block_(block),
        intrinsic_(intrinsic),
        operands_(intrinsic.operands.size()),
        fills_(operands_.size()) {}

  // Empty when it matches; else what differs.
  std::string Run() {
    const Store* update = block_.body.As<Store>();
    const Store& wanted = *intrinsic_.update.As<Store>();
    if (update == nullptr || update->mask) return "its body is not the store of one element";
    std::string differs = Place(wanted.buffer, wanted.indices, update->buffer, update->indices);
    if (differs.empty()) differs = Match(wanted.value, update->value);
    if (!differs.empty()) return differs;
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      if (divided_.iters[i].factor != 1 && AxisOf(static_cast<int>(i)) < 0)
        return Message("variable ", block_.iters[i].var, " is none of its axes");
    }
    for (const auto& operand : operands_) {
      if (!operand.has_value()) return "an operand is missing";
    }
    return "";
  }

  MatchedTile Tile() const {
    MatchedTile tile{.op = {intrinsic_.name, {}, {}, intrinsic_.accumulates}};
    for (size_t i = 0; i < operands_.size(); ++i) {
      tile.op.operands.push_back(*operands_[i]);
      if (!fills_[i]) continue;
      tile.fragments.push_back(operands_[i]->buffer);
      tile.fills.push_back(fills_[i]);
    }
    for (const auto& [axis, iter] : axes_)
      if (iter >= 0) tile.axes[axis->var.name()] = static_cast<size_t>(iter);
    return tile;
  }

 private:
  struct State {
    std::vector<std::pair<const IterVar*, int>> axes;  // of the intrinsic, and the block's variable; -1: one value
    std::vector<std::optional<BufferRegion>> operands;
    std::vector<Stmt> fills;
  };
  State Saved() const { return {axes_, operands_, fills_}; }
  void Restore(const State& state) {
    axes_ = state.axes;
    operands_ = state.operands;
    fills_ = state.fills;
  }

  int AxisOf(int iter) const {
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].second == iter) return static_cast<int>(a);
    }
    return -1;
  }

  std::string Match(const Expr& wanted, const Expr& given) {
    if (wanted.type() != given.type()) return Message("it computes ", ToText(given.type()), " at ", given);
    if (const Load* load = wanted.As<Load>()) {
      const State before = Saved();
      const Load* own = given.As<Load>();
      const std::string differs = own == nullptr || own->mask
                                      ? Message(given, " is no element of a buffer")
                                      : Place(load->buffer, load->indices, own->buffer, own->indices);
      if (differs.empty() || !ComesByFragment(load->buffer)) return differs;
      Restore(before);
      return PutInFragment(*load, given);
    }
    if (const std::optional<double> constant = AnyConstant(wanted)) {
      return AnyConstant(given) == constant ? "" : Message("it computes ", given, ", not ", wanted);
    }
    const Binary *binary = wanted.As<Binary>(), *own = given.As<Binary>();
    if (binary != nullptr && own != nullptr && own->op != binary->op && Mirrored(own->op) == binary->op)
      return Match(wanted, MakeBinary(binary->op, own->b, own->a));
    if (!IsSameOperation(wanted, given))
      return Message("it computes ", given, " where the intrinsic has another operation");
    const bool swaps = binary != nullptr && (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul);
    return swaps ? MatchEitherWay(*binary, *own) : MatchArguments(wanted, given);
  }

  // Returns whether both apply one operation that the matcher knows, to whatever arguments.
  static bool IsSameOperation(const Expr& wanted, const Expr& given) {
    if (wanted.node().kind.index() != given.node().kind.index()) return false;
    if (const Binary* binary = wanted.As<Binary>()) return binary->op == given.As<Binary>()->op;
    if (const Call* call = wanted.As<Call>())
      return call->name == given.As<Call>()->name && call->args.size() == given.As<Call>()->args.size();
    return wanted.As<Cast>() != nullptr || wanted.As<Not>() != nullptr || wanted.As<Select>() != nullptr ||
           wanted.As<IfThenElseExpr>() != nullptr;
  }

  std::string MatchArguments(const Expr& wanted, const Expr& given) {
    std::vector<Expr> arguments;
    ForEachChild(given, [&](const Expr& argument) { arguments.push_back(argument); });
    std::string differs;
    size_t i = 0;
    ForEachChild(wanted, [&](const Expr& argument) {
      if (differs.empty()) differs = Match(argument, arguments[i]);
      ++i;
    });
    return differs;
  }

  // Of an operation whose sides may be the other way round.
  std::string MatchEitherWay(const Binary& wanted, const Binary& own) {
    const State before = Saved();
    const std::string first = Match(wanted.a, own.a);
    const std::string differs = first.empty() ? Match(wanted.b, own.b) : first;
    if (differs.empty()) return "";
    Restore(before);
    const std::string first_swapped = Match(wanted.a, own.b);
    const std::string swapped = first_swapped.empty() ? Match(wanted.b, own.a) : first_swapped;
    if (swapped.empty()) return "";
    // What is told is the way that got further.
    return !first.empty() && first_swapped.empty() ? swapped : differs;
  }

  // `indices` of the intrinsic's operand are axes; those of the block's buffer are sums in which one of the block's
  // variables runs through the tile. In dimensions that the operand does not have the index is one for the whole tile.
  std::string Place(const Buffer& operand, const std::vector<Expr>& axes, const Buffer& buffer,
                    const std::vector<Expr>& indices) {
    if (buffer.type() != operand.type())
      return Message(buffer, " is ", ToText(buffer.type()), ", not ", ToText(operand.type()));
    if (indices.size() < axes.size())
      return Message(buffer, " has ", indices.size(), " dimensions, the operand ", operand, " has ", axes.size());
    const size_t leading = indices.size() - axes.size();
    BufferRegion region{buffer, {}};
    for (size_t d = 0; d < indices.size(); ++d) {
      Range range;
      const Expr* axis = d < leading ? nullptr : &axes[d - leading];
      const Binary *of_axis = axis == nullptr ? nullptr : axis->As<Binary>(), *own = indices[d].As<Binary>();
      std::string differs;
      if (of_axis == nullptr) {
        differs = Along(axis, operand, buffer, d, indices[d], range);
      } else if (own == nullptr || own->op != of_axis->op || !StructuralEqual(own->b, of_axis->b)) {
        differs = Message(buffer, " is used at ", indices[d], ", the operand ", operand, " at ", *axis);
      } else {  // a quotient or remainder: of what runs along the axis
        differs = Along(&of_axis->a, operand, buffer, d, own->a, range);
        if (differs.empty()) differs = Divide(*own, range);
      }
      if (!differs.empty()) return differs;
      region.region.push_back(std::move(range));
    }
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!(intrinsic_.operands[i] == operand)) continue;
      if (operands_[i].has_value() && !SameRegion(*operands_[i], region))
        return Message(buffer, " is used where the intrinsic has ", operands_[i]->buffer, " again, at the same place");
      operands_[i] = region;
    }
    return "";
  }

  bool ComesByFragment(const Buffer& operand) const {
    return intrinsic_.adds_once() && !(operand == intrinsic_.operands[0]) && operand.rank() <= 1;
  }

  //   for j in vectorized(16): fragment[j] = value at position j of the tile
  std::string PutInFragment(const Load& wanted, const Expr& value) {
    bool reads_sums = false;
    ForEachExpr(value, [&](const Expr& e) {
      const Load* load = e.As<Load>();
      reads_sums |= load != nullptr && load->buffer == operands_[0]->buffer;
      return true;
    });
    if (reads_sums) return Message(value, " reads ", operands_[0]->buffer, ", which the tile writes");
    int along = -1;  // which of the block's variables
    if (!wanted.indices.empty()) {
      const auto axis = std::ranges::find_if(axes_, [&](const auto& known) {
        const VarRef* ref = wanted.indices[0].As<VarRef>();
        return ref != nullptr && known.first->var == ref->var;
      });
      if (axis == axes_.end()) return Message(value, " runs along no axis of the tile");
      along = axis->second;
    }
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      if (static_cast<int>(i) != along && divided_.iters[i].factor != 1 && UsesVar(value, block_.iters[i].var))
        return Message(value, " moves with ", block_.iters[i].var, ", the operand ", wanted.buffer, " does not");
    }
    Analyzer known;
    for (const DividedIter& part : divided_.iters) known.Bind(part.tile, part.tile_domain);
    const DividedIter* moves = along < 0 ? nullptr : &divided_.iters[static_cast<size_t>(along)];
    const DType type = moves == nullptr ? kInt32 : moves->tile.type();
    const Var position(Message(wanted.buffer, "_lane"), type);
    const Expr at = moves == nullptr ? IntConst(0, type) : Expr(position);
    const Expr count = moves == nullptr ? IntConst(1, type) : known.Simplify(moves->count);
    const Expr placed = Substitute(value, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < block_.iters.size(); ++i) {
        if (!block_.iters[i].var.SameAs(var)) continue;
        const DividedIter& part = divided_.iters[i];
        return static_cast<int>(i) == along ? part.first + at : part.first;
      }
      return std::nullopt;
    });
    const Buffer fragment(Message(wanted.buffer, "_fragment"), wanted.buffer.type(),
                          {IntConst(moves == nullptr ? 1 : moves->factor)}, Scope::kRegister);
    Stmt fill = Stmt::Make(Store{fragment, {at}, placed, Expr()});
    if (moves != nullptr) {
      const ForKind kind = ConstantValue(count).has_value() ? ForKind::kVectorized : ForKind::kSerial;
      fill = Stmt::Make(For{position, IntConst(0, type), count, kind, "", {}, std::move(fill)});
    }
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!(intrinsic_.operands[i] == wanted.buffer)) continue;
      operands_[i] = BufferRegion{fragment, {Range{IntConst(0, type), count}}};
      fills_[i] = fill;
    }
    return "";
  }

  // What one index, of dimension d, runs over in a tile: nothing where there is no axis.
  std::string Along(const Expr* axis, const Buffer& operand, const Buffer& buffer, size_t d, const Expr& index,
                    Range& found) {
    const std::optional<TileRange> range = RangeInTile(divided_, block_, Range{index, IntConst(1, index.type())});
    if (!range.has_value())
      return Message(buffer, " is used at ", index, ", which is no sum of the variables of the tile");
    int moved_by = -1;
    for (size_t i = 0; i < range->steps.size(); ++i) {
      if (range->steps[i] == 0) continue;
      if (moved_by >= 0) return Message(buffer, " is used at ", index, ", which two variables of the tile move");
      if (range->steps[i] != 1) return Message(buffer, " is used at ", index, ", whose elements are not neighbours");
      moved_by = static_cast<int>(i);
    }
    found = {range->first, range->extent};
    if (axis != nullptr) return Assign(*axis, moved_by);
    if (moved_by < 0) return "";
    return Message(buffer, " is moved along dimension ", d, " by ", block_.iters[static_cast<size_t>(moved_by)].var,
                   ", the operand ", operand, " has its last ", operand.rank(), " dimensions alone");
  }

  // [first, first + extent) over or modulo a number that divides both.
  std::string Divide(const Binary& division, Range& range) const {
    const std::optional<int64_t> by = ConstantValue(division.b), extent = ConstantValue(range.extent);
    Analyzer known;
    for (const DividedIter& part : divided_.iters) known.Bind(part.tile, part.tile_domain);
    if (!by.has_value() || !extent.has_value() || *extent % *by != 0 || !known.IsMultipleOf(range.min, *by))
      return Message("the tile cuts what is divided by ", division.b);
    const bool quotient = division.op == BinaryOp::kFloorDiv;
    range.min = quotient ? known.Simplify(FloorDiv(range.min, division.b)) : IntConst(0, range.min.type());
    range.extent = IntConst(quotient ? *extent / *by : *by, range.extent.type());
    return "";
  }

  std::string Assign(const Expr& axis_index, int iter) {
    const VarRef* ref = axis_index.As<VarRef>();
    const IterVar* axis = ref == nullptr ? nullptr : intrinsic_.FindAxis(ref->var.name());
    if (axis == nullptr) return "the intrinsic's operands are no boxes";
    for (const auto& [known, assigned] : axes_) {
      if (known != axis) continue;
      if (assigned == iter) return "";
      const auto name = [&](int i) {
        return i < 0 ? std::string("nothing") : block_.iters[static_cast<size_t>(i)].var.name();
      };
      return Message("axis ", axis->var, " would be ", name(assigned), " and ", name(iter), " at once");
    }
    if (iter >= 0) {
      const IterVar& own = block_.iters[static_cast<size_t>(iter)];
      if (own.kind != axis->kind) {
        return Message("variable ", own.var, " is a ", own.kind == IterKind::kSpatial ? "spatial" : "reduce",
                       " one, axis ", axis->var, " of the intrinsic is not");
      }
      if (AxisOf(iter) >= 0) return Message("variable ", own.var, " would be two of its axes");
    }
    axes_.push_back({axis, iter});
    return "";
  }

  const DividedBlock& divided_;
  const Block& block_;
  const TileIntrinsic& intrinsic_;
  std::vector<std::pair<const IterVar*, int>> axes_;
  std::vector<std::optional<BufferRegion>> operands_;
  std::vector<Stmt> fills_;  // of operands that come by fragments
};

}  // namespace

absl::StatusOr<MatchedTile> MatchIntrinsic(const ProgramIndex& index, const DividedBlock& divided,
                                           const TileIntrinsic& intrinsic, const std::string& where) {
  const Block& block = index.block(divided.block);
  const auto refuse = [&](const std::string& why) {
    return Refused(where, ": block ", block.name, " does not do what ", intrinsic.name, " means: ", why);
  };
  if (!block.allocs.empty() || !block.matches.empty()) return refuse("it has buffers of its own");
  Matcher matcher(divided, block, intrinsic);
  if (const std::string differs = matcher.Run(); !differs.empty()) return refuse(differs);
  MatchedTile tile = matcher.Tile();
  if (const absl::Status fits = CheckTileOp(intrinsic, tile.op); !fits.ok()) return refuse(std::string(fits.message()));
  return tile;
}

}  // namespace hone
