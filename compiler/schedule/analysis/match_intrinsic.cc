#include "compiler/schedule/analysis/match_intrinsic.h"

#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

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
    TileOp op{intrinsic_.name, {}, {}};
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
      const std::optional<TileRange> range =
          RangeInTile(divided_, block_, Range{indices[d], IntConst(1, indices[d].type())});
      if (!range.has_value())
        return Message(buffer, " is used at ", indices[d], ", which is no sum of the variables of the tile");
      int roams = -1;
      for (size_t i = 0; i < range->steps.size(); ++i) {
        if (range->steps[i] == 0) continue;
        if (roams >= 0) return Message(buffer, " is used at ", indices[d], ", which two variables of the tile move");
        if (range->steps[i] != 1)
          return Message(buffer, " is used at ", indices[d], ", whose elements are not neighbours");
        roams = static_cast<int>(i);
      }
      if (d < leading) {
        if (roams >= 0)
          return Message(buffer, " is moved along dimension ", d, " by ", block_.iters[static_cast<size_t>(roams)].var,
                         ", the operand ", operand, " has its last ", axes.size(), " dimensions alone");
      } else if (std::string differs = Assign(axes[d - leading], roams); !differs.empty()) {
        return differs;
      }
      region.region.push_back({range->first, range->extent});
    }
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (intrinsic_.operands[i] == operand) operands_[i] = region;
    }
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
