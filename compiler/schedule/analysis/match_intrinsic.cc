#include "compiler/schedule/analysis/match_intrinsic.h"

#include <utility>

#include "compiler/arith/analyzer.h"
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

class Matcher {
 public:
  Matcher(const DividedBlock& divided, const Block& block, const TileIntrinsic& intrinsic)
      : divided_(divided), block_(block), intrinsic_(intrinsic), operands_(intrinsic.operands.size()) {}

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

  TileOp Operation() const {
    TileOp op{intrinsic_.name, {}, {}, intrinsic_.accumulates};
    for (const auto& operand : operands_) op.operands.push_back(*operand);
    return op;
  }

 private:
  struct State {
    std::vector<std::pair<const IterVar*, int>> axes;  // of the intrinsic, and the block's variable; -1: one value
    std::vector<std::optional<BufferRegion>> operands;
  };

  int AxisOf(int iter) const {
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].second == iter) return static_cast<int>(a);
    }
    return -1;
  }

  std::string Match(const Expr& wanted, const Expr& given) {
    if (wanted.type() != given.type()) return Message("it computes ", ToText(given.type()), " at ", given);
    if (const Load* load = wanted.As<Load>()) {
      const Load* own = given.As<Load>();
      if (own == nullptr || own->mask) return Message(given, " is no element of a buffer");
      return Place(load->buffer, load->indices, own->buffer, own->indices);
    }
    if (const Cast* cast = wanted.As<Cast>()) {
      const Cast* own = given.As<Cast>();
      return own == nullptr ? Message(given, " is no cast") : Match(cast->a, own->a);
    }
    if (const std::optional<double> constant = AnyConstant(wanted)) {
      return AnyConstant(given) == constant ? "" : Message("it computes ", given, ", not ", wanted);
    }
    const Binary *binary = wanted.As<Binary>(), *own = given.As<Binary>();
    if (binary == nullptr || own == nullptr || binary->op != own->op)
      return Message("it computes ", given, " where the intrinsic has another operation");
    const State before = {axes_, operands_};
    const std::string first = Match(binary->a, own->a);
    const std::string differs = first.empty() ? Match(binary->b, own->b) : first;
    const bool swaps = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul;
    if (differs.empty() || !swaps) return differs;
    axes_ = before.axes;
    operands_ = before.operands;
    const std::string first_swapped = Match(binary->a, own->b);
    const std::string swapped = first_swapped.empty() ? Match(binary->b, own->a) : first_swapped;
    if (swapped.empty()) return "";
    // What is told is the way that got further.
    return !first.empty() && first_swapped.empty() ? swapped : differs;
  }

  // `indices` of the intrinsic's operand are axes; those of the block's buffer are sums in which one of the block's
  // variables runs through the tile. Dimensions the operand does not have stand still.
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
      if (intrinsic_.operands[i] == operand) operands_[i] = region;
    }
    return "";
  }

  // What one index, of dimension d, runs over in a tile: nothing where there is no axis.
  std::string Along(const Expr* axis, const Buffer& operand, const Buffer& buffer, size_t d, const Expr& index,
                    Range& found) {
    const std::optional<TileRange> range = RangeInTile(divided_, block_, Range{index, IntConst(1, index.type())});
    if (!range.has_value())
      return Message(buffer, " is used at ", index, ", which is no sum of the variables of the tile");
    int roams = -1;
    for (size_t i = 0; i < range->steps.size(); ++i) {
      if (range->steps[i] == 0) continue;
      if (roams >= 0) return Message(buffer, " is used at ", index, ", which two variables of the tile move");
      if (range->steps[i] != 1) return Message(buffer, " is used at ", index, ", whose elements are not neighbours");
      roams = static_cast<int>(i);
    }
    found = {range->first, range->extent};
    if (axis != nullptr) return Assign(*axis, roams);
    if (roams < 0) return "";
    return Message(buffer, " is moved along dimension ", d, " by ", block_.iters[static_cast<size_t>(roams)].var,
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
};

}  // namespace

absl::StatusOr<TileOp> MatchIntrinsic(const ProgramIndex& index, const DividedBlock& divided,
                                      const TileIntrinsic& intrinsic, const std::string& where) {
  const Block& block = index.block(divided.block);
  const auto refuse = [&](const std::string& why) {
    return Refused(where, ": block ", block.name, " does not do what ", intrinsic.name, " means: ", why);
  };
  if (!block.allocs.empty() || !block.matches.empty()) return refuse("it has buffers of its own");
  Matcher matcher(divided, block, intrinsic);
  if (const std::string differs = matcher.Run(); !differs.empty()) return refuse(differs);
  TileOp op = matcher.Operation();
  if (const absl::Status fits = CheckTileOp(op); !fits.ok()) return refuse(std::string(fits.message()));
  return op;
}

}  // namespace hone
