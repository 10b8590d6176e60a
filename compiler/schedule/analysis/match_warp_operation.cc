#include "compiler/schedule/analysis/match_warp_operation.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// A variable of the block that has several values in one operation: of the tile's, or of the threads'.
struct Digit {
  size_t iter = 0;
  int64_t values = 1;
  bool of_lanes = false;
  std::vector<int64_t> at;  // of lanes: its value in each
};

// How an axis of the intrinsic is made of digits: the sum of each times its weight.
using Axis = std::map<size_t, int64_t>;  // weight by digit

// An index of an operand: what does not change in one operation, and how far each digit moves it.
struct Index {
  Expr base;
  std::vector<int64_t> moves;
};

// The intrinsic's operand as its update names it: A[lane, register], over the axes that it has.
struct Operand {
  const Load* record = nullptr;  // of the intrinsic
  const Load* own = nullptr;     // of the block
  std::vector<const IterVar*> axes;
};

const Load* LoadIn(const Expr& e) {
  const Cast* cast = e.As<Cast>();
  return cast != nullptr ? LoadIn(cast->a) : e.As<Load>();
}

// The loads of x = x + a * b; nullopt when the value is something else.
std::optional<std::array<const Load*, 2>> Factors(const Store& update) {
  const std::optional<ReductionUpdate> sum = MatchUpdate(update);
  const Binary* product = sum.has_value() && sum->op == BinaryOp::kAdd ? sum->value.As<Binary>() : nullptr;
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  const Load *a = LoadIn(product->a), *b = LoadIn(product->b);
  return a == nullptr || b == nullptr || a->mask || b->mask ? std::nullopt : std::optional(std::array{a, b});
}

class Matcher {
 public:
  // `swapped`: the factors of the block are those of the intrinsic the other way round.
  Matcher(const ProgramIndex& index, const DividedBlock& divided, const TileIntrinsic& intrinsic,
          const std::vector<const TileIntrinsic*>& loads, bool swapped, const std::string& where)
      : index_(index),
        divided_(divided),
        block_(index.block(divided.block)),
        intrinsic_(intrinsic),
        loads_(loads),
        swapped_(swapped),
        where_(Message(where, ": block ", block_.name, " does not do what ", intrinsic.name, " means: ")) {}

  absl::StatusOr<WarpOperation> Run() {
    HONE_RETURN_IF_ERROR(FindOperands());
    HONE_RETURN_IF_ERROR(FindDigits());
    HONE_RETURN_IF_ERROR(FindAxes());
    HONE_RETURN_IF_ERROR(CheckResults());
    return Operation();
  }

 private:
  absl::Status FindOperands() {
    if (!IsConst(divided_.tile_predicate, 1) || !IsConst(divided_.inside_predicate, 1))
      return Refused(where_, "some threads would do less than the others; pad the block first");
    const Store *store = block_.body.As<Store>(), *update = intrinsic_.update.As<Store>();
    const auto own = store == nullptr ? std::nullopt : Factors(*store), record = Factors(*update);
    if (!own.has_value() || store->mask) return Refused(where_, "it is no sum of products, x = x + a * b");
    sums_ = store;
    if (store->buffer.scope() != Scope::kRegister) return Refused(where_, store->buffer, " is not in registers");
    if (store->buffer.type() != update->buffer.type())
      return Refused(where_, "its sums are ", ToText(store->buffer.type()), ", not ", ToText(update->buffer.type()));
    for (size_t o = 0; o < operands_.size(); ++o) {
      operands_[o] = {(*record)[o], (*own)[swapped_ ? 1 - o : o], {}};
      for (const IterVar& axis : intrinsic_.axes) {
        if (std::ranges::any_of((*record)[o]->indices, [&](const Expr& e) { return UsesVar(e, axis.var); }))
          operands_[o].axes.push_back(&axis);
      }
      const Buffer &wanted = operands_[o].record->buffer, &given = operands_[o].own->buffer;
      if (given.type() != wanted.type())
        return Refused(where_, given, " is ", ToText(given.type()), ", not ", ToText(wanted.type()));
    }
    return absl::OkStatus();
  }

  // The loop around the tile that is bound to the lanes; nullptr where none of so many threads is.
  const For* Lanes() const {
    for (int n = index_.parent(divided_.loop); n >= 0; n = index_.parent(n)) {
      if (index_.IsLoop(n) && index_.loop(n).thread == kThreadAxes[0])
        return ConstantValue(index_.loop(n).extent) == intrinsic_.threads ? &index_.loop(n) : nullptr;
    }
    return nullptr;
  }

  absl::Status FindDigits() {
    const For* lanes = Lanes();
    if (lanes == nullptr) return Refused(where_, "it is not under a loop of ", intrinsic_.threads, " over threadIdx.x");
    for (size_t i = 0; i < divided_.iters.size(); ++i) {
      const DividedIter& part = divided_.iters[i];
      Digit digit{.iter = i, .values = part.factor};
      if (UsesVar(part.tile_value, lanes->var)) {
        digit.of_lanes = true;
        for (int64_t t = 0; t < intrinsic_.threads; ++t) {
          const Expr here = Substitute(part.tile_value, lanes->var, IntConst(t, lanes->var.type()));
          const std::optional<int64_t> value = ConstantValue(Analyzer().Simplify(here));
          if (!value.has_value() || part.factor != 1)
            return Refused(where_, block_.iters[i].var, " is made of lanes and of more: ", part.tile_value);
          digit.at.push_back(*value);
          digit.values = std::max(digit.values, *value + 1);
        }
      }
      if (digit.values > 1) digits_.push_back(std::move(digit));
    }
    return FindLane();
  }

  // The lane over the tile's variables: each has the weight of the first lane in which it alone is 1.
  absl::Status FindLane() {
    std::vector<int64_t> lane(static_cast<size_t>(intrinsic_.threads), 0);
    lane_ = IntConst(0);
    for (const Digit& digit : digits_) {
      if (!digit.of_lanes) continue;
      const auto first = std::ranges::find(digit.at, 1);
      const int64_t weight = first - digit.at.begin();
      for (size_t t = 0; t < lane.size(); ++t) lane[t] += weight * digit.at[t];
      lane_ = lane_ + MakeCast(kInt32, Expr(divided_.iters[digit.iter].tile)) * IntConst(weight);
    }
    for (size_t t = 0; t < lane.size(); ++t) {
      if (lane[t] != static_cast<int64_t>(t))
        return Refused(where_, "its variables that lanes move do not tell one lane from another");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Index> IndexOf(const Buffer& buffer, const Expr& index) const {
    const std::optional<TileRange> range = RangeInTile(divided_, block_, Range{index, IntConst(1, index.type())});
    const auto refuse = [&] {
      return Refused(where_, buffer, " is used at ", index, ", which is no sum of the variables of the tile");
    };
    if (!range.has_value()) return refuse();
    std::vector<Var> lanes;
    for (const Digit& digit : digits_) {
      if (digit.of_lanes) lanes.push_back(divided_.iters[digit.iter].tile);
    }
    const std::optional<LinearForm> form = DetectLinear(range->first, lanes);
    if (!form.has_value()) return refuse();
    Index found{form->base, {}};
    size_t of_lanes = 0;
    for (const Digit& digit : digits_)
      found.moves.push_back(digit.of_lanes ? form->coefficients[of_lanes++] : range->steps[digit.iter]);
    return found;
  }

  // Which digits an axis is made of: those that move the operands that have it, and no others. The weights are those by
  // which they move the first index.
  absl::Status FindAxes() {
    for (size_t o = 0; o < operands_.size(); ++o) {
      for (const Expr& index : operands_[o].own->indices) {
        HONE_ASSIGN_OR_RETURN(Index found, IndexOf(operands_[o].own->buffer, index));
        indices_[o].push_back(std::move(found));
      }
    }
    for (const IterVar& axis : intrinsic_.axes) {
      for (size_t o = 0; o < operands_.size(); ++o) {
        if (std::ranges::find(operands_[o].axes, &axis) == operands_[o].axes.end()) continue;
        if (axes_.count(&axis) == 0) axes_[&axis] = DigitsOf(o, axis.kind == IterKind::kReduce);
        HONE_RETURN_IF_ERROR(SetMoves(o, axis));
      }
    }
    for (size_t d = 0; d < digits_.size(); ++d) {
      const auto has = [d](const auto& axis) { return axis.second.count(d) > 0; };
      if (std::ranges::count_if(axes_, has) != 1)
        return Refused(where_, block_.iters[digits_[d].iter].var, " is not of one of its axes");
    }
    return absl::OkStatus();
  }

  bool Moves(size_t operand, size_t digit) const {
    return std::ranges::any_of(indices_[operand], [digit](const Index& i) { return i.moves[digit] != 0; });
  }

  // The digits of an axis of operand `o`: those that move the other one as well, or those that do not.
  Axis DigitsOf(size_t o, bool shared) const {
    Axis axis;
    for (const Index& index : indices_[o]) {
      for (size_t d = 0; d < digits_.size(); ++d) {
        if (index.moves[d] > 0 && Moves(1 - o, d) == shared && axis.count(d) == 0) axis[d] = index.moves[d];
      }
    }
    int64_t least = 0;
    for (const auto& [digit, weight] : axis) least = least == 0 ? weight : std::min(least, weight);
    for (auto& [digit, weight] : axis) weight /= least;
    return axis;
  }

  // By how much each index of an operand moves along the axis: for all its digits the same, times their weights.
  absl::Status SetMoves(size_t o, const IterVar& axis) {
    const int64_t extent = ConstantValue(axis.domain.extent).value_or(0);
    int64_t values = 1;
    for (const auto& [digit, weight] : axes_[&axis]) {
      values *= digits_[digit].values;
      if (block_.iters[digits_[digit].iter].kind != axis.kind)
        return Refused(where_, block_.iters[digits_[digit].iter].var, " is of another kind than axis ", axis.var);
    }
    if (values != extent) return Refused(where_, "axis ", axis.var, " has ", values, " values, not ", extent);
    for (const Index& index : indices_[o]) {
      std::optional<int64_t> move;
      for (const auto& [digit, weight] : axes_[&axis]) {
        if (index.moves[digit] % weight != 0 || (move.has_value() && index.moves[digit] != *move * weight))
          return Refused(where_, operands_[o].own->buffer, " is not read along one line over axis ", axis.var);
        move = index.moves[digit] / weight;
      }
      moves_[o][&axis].push_back(move.value_or(0));
    }
    return absl::OkStatus();
  }

  // Every element of the result, in every lane and register, is the one that the intrinsic puts there.
  absl::Status CheckResults() {
    const Store& update = *intrinsic_.update.As<Store>();
    std::vector<TileRange> region;
    for (const Expr& index : sums_->indices) {
      const std::optional<TileRange> range = RangeInTile(divided_, block_, Range{index, IntConst(1, index.type())});
      if (!range.has_value()) return Refused(where_, "its sums are no box");
      region.push_back(*range);
      result_.region.push_back({range->first, range->extent});
    }
    result_.buffer = sums_->buffer;
    std::vector<int64_t> at(digits_.size(), 0);
    do {
      std::map<const IterVar*, int64_t> axes;
      for (const auto& [axis, digits] : axes_) {
        for (const auto& [digit, weight] : digits) axes[axis] += weight * at[digit];
      }
      const auto placed = [&](const Expr& e) {
        return ConstantValue(Analyzer().Simplify(Substitute(e, [&](const Var& var) -> std::optional<Expr> {
          const IterVar* axis = intrinsic_.FindAxis(var.name());
          return axis == nullptr ? std::nullopt : std::optional(IntConst(axes[axis], var.type()));
        })));
      };
      if (placed(update.indices[0]) != LaneAt(at) || placed(update.indices[1]) != RegisterAt(region, at))
        return Refused(where_, "its results are in other lanes or registers than the intrinsic's");
    } while (Next(at));
    return absl::OkStatus();
  }

  // The next values of the digits that results are made of; false after the last.
  bool Next(std::vector<int64_t>& at) const {
    for (size_t d = digits_.size(); d-- > 0;) {
      if (block_.iters[digits_[d].iter].kind == IterKind::kReduce) continue;
      if (++at[d] < digits_[d].values) return true;
      at[d] = 0;
    }
    return false;
  }

  int64_t LaneAt(const std::vector<int64_t>& at) const {
    int64_t lane = 0;
    for (size_t d = 0; d < digits_.size(); ++d) {
      if (digits_[d].of_lanes) lane += at[d] * (std::ranges::find(digits_[d].at, 1) - digits_[d].at.begin());
    }
    return lane;
  }
  int64_t RegisterAt(const std::vector<TileRange>& region, const std::vector<int64_t>& at) const {
    int64_t place = 0;
    for (const TileRange& range : region) {
      place *= ConstantValue(range.extent).value_or(1);
      for (size_t d = 0; d < digits_.size(); ++d)
        place += digits_[d].of_lanes ? 0 : range.steps[digits_[d].iter] * at[d];
    }
    return place;
  }

  absl::StatusOr<WarpOperation> Operation() const {
    WarpOperation made;
    std::vector<Stmt> stmts;
    TileOp op{intrinsic_.name, {result_}, {}, intrinsic_.accumulates};
    for (size_t o = 0; o < operands_.size(); ++o) {
      const bool together = o < loads_.size() && loads_[o] != nullptr;
      HONE_ASSIGN_OR_RETURN(const Stmt load, together ? LoadMatrices(o, *loads_[o], made) : LoadFragment(o, made));
      stmts.push_back(load);
      const Buffer& fragment = made.fragments.back();
      op.operands.push_back({fragment, {Range{IntConst(0), fragment.shape()[0]}}});
    }
    if (const absl::Status fits = CheckTileOp(op); !fits.ok()) return Refused(where_, fits.message());
    stmts.push_back(Stmt::Make(std::move(op)));
    made.body = MakeSeq(std::move(stmts));
    return made;
  }

  // for r: fragment[r] = the element that the intrinsic has in this lane's register r; neighbours in memory at once.
  absl::StatusOr<Stmt> LoadFragment(size_t o, WarpOperation& made) const {
    const Operand& operand = operands_[o];
    const Buffer& buffer = operand.own->buffer;
    HONE_ASSIGN_OR_RETURN(const InverseMap inverse, InverseOf(operand));
    const int64_t registers = ConstantValue(inverse.shape[1]).value_or(0);
    const Buffer fragment(Message(buffer.name(), "_fragment"), buffer.type(), {inverse.shape[1]}, Scope::kRegister);
    made.fragments.push_back(fragment);
    made.reads.push_back(ReadByAll(o));

    int64_t together = 32 / buffer.type().bits;
    while (registers % together != 0 || !AreNeighbours(o, inverse, together)) together /= 2;
    const Var group("r", kInt32), place("s", kInt32);
    const Expr at = together == 1 ? Expr(group) : Expr(group) * IntConst(together) + Expr(place);
    Analyzer known;
    for (const DividedIter& part : divided_.iters) known.Bind(part.tile, part.tile_domain);
    known.Bind(group, Range{IntConst(0), IntConst(registers / together)});
    known.Bind(place, Range{IntConst(0), IntConst(together)});
    std::vector<Expr> indices = ElementOf(o, inverse, lane_, at);
    for (Expr& index : indices) index = known.Simplify(index);
    Stmt load = Stmt::Make(Store{fragment, {at}, MakeLoad(buffer, indices), Expr()});
    if (together > 1)
      load = Stmt::Make(For{place, IntConst(0), IntConst(together), ForKind::kVectorized, "", {}, std::move(load)});
    return Stmt::Make(
        For{group, IntConst(0), IntConst(registers / together), ForKind::kSerial, "", {}, std::move(load)});
  }

  // All lanes load together: each names the row that the load wants of it, of elements that are neighbours in memory.
  absl::StatusOr<Stmt> LoadMatrices(size_t o, const TileIntrinsic& load, WarpOperation& made) const {
    const Buffer& buffer = operands_[o].own->buffer;
    const Store* update = load.update.As<Store>();
    const Load* from = update->value.As<Load>();
    HONE_ASSIGN_OR_RETURN(const InverseMap inverse, InverseOf(operands_[o]));
    const bool fits = load.threads == intrinsic_.threads && from != nullptr && load.operands.size() == 2 &&
                      load.operands[0].type() == buffer.type() && buffer.scope() == Scope::kShared &&
                      ConstantValue(load.operands[0].shape()[0]) == ConstantValue(inverse.shape[1]);
    if (!fits) return Refused(where_, load.name, " does not load its registers of ", buffer);
    std::vector<const IterVar*> axes;
    for (const IterVar& axis : load.axes) axes.push_back(&axis);
    HONE_ASSIGN_OR_RETURN(const InverseMap source, InverseOf(axes, from->indices));
    const auto element = [&](const Expr& row, const Expr& column) {
      const auto placed = [&](const Expr& index) {
        return Substitute(index, [&](const Var& var) -> std::optional<Expr> {
          for (size_t a = 0; a < axes.size(); ++a)
            if (axes[a]->var.SameAs(var))
              return Substitute(Substitute(source.original[a], source.indices[0], row), source.indices[1], column);
          return std::nullopt;
        });
      };
      return ElementOf(o, inverse, placed(update->indices[0]), placed(update->indices[1]));
    };
    Analyzer known;
    for (const DividedIter& part : divided_.iters) known.Bind(part.tile, part.tile_domain);
    const int64_t elements = ConstantValue(load.operands[1].shape()[0]).value_or(0);
    const Expr row = FloorMod(lane_, source.shape[0]);
    std::vector<Expr> first = element(row, IntConst(0));
    for (Expr& index : first) index = known.Simplify(index);
    for (int64_t c = 1; c < elements; ++c) {
      const std::vector<Expr> here = element(row, IntConst(c));
      for (size_t d = 0; d < here.size(); ++d) {
        const int64_t apart = d + 1 == here.size() ? c : 0;
        if (!known.CanProveEqual(here[d], first[d] + IntConst(apart, here[d].type())))
          return Refused(where_, "rows of ", load.name, " are no neighbours in ", buffer);
      }
    }
    if (!known.IsMultipleOf(first.back(), elements))
      return Refused(where_, "rows of ", load.name, " begin at other places of ", buffer, " than multiples of ",
                     elements, ": ", first.back());
    const Buffer fragment(Message(buffer.name(), "_fragment"), buffer.type(), {inverse.shape[1]}, Scope::kRegister);
    made.fragments.push_back(fragment);
    made.reads.push_back(ReadByAll(o));
    BufferRegion named{buffer, {}};
    for (size_t d = 0; d < first.size(); ++d)
      named.region.push_back({first[d], IntConst(d + 1 == first.size() ? elements : 1, first[d].type())});
    TileOp op{load.name, {{fragment, {Range{IntConst(0), inverse.shape[1]}}}, named}, {}, load.accumulates};
    if (const absl::Status known_op = CheckTileOp(op); !known_op.ok()) return Refused(where_, known_op.message());
    return Stmt::Make(std::move(op));
  }

  // Of (lane, register) of an operand to its axes.
  static absl::StatusOr<InverseMap> InverseOf(const Operand& operand) {
    return InverseOf(operand.axes, operand.record->indices);
  }
  static absl::StatusOr<InverseMap> InverseOf(const std::vector<const IterVar*>& axes,
                                              const std::vector<Expr>& indices) {
    IndexMap layout{{}, indices};
    std::vector<int64_t> extents;
    for (const IterVar* axis : axes) {
      layout.inputs.push_back(axis->var);
      extents.push_back(ConstantValue(axis->domain.extent).value_or(0));
    }
    return InvertOneToOne(layout, extents);
  }

  // The indices of the element that a lane has in a register.
  std::vector<Expr> ElementOf(size_t o, const InverseMap& inverse, const Expr& lane, const Expr& place) const {
    std::vector<Expr> indices;
    for (size_t d = 0; d < indices_[o].size(); ++d) {
      Expr index = indices_[o][d].base;
      for (size_t a = 0; a < operands_[o].axes.size(); ++a) {
        const int64_t move = moves_[o].at(operands_[o].axes[a])[d];
        if (move == 0) continue;
        const Expr along = Substitute(inverse.original[a], [&](const Var& var) -> std::optional<Expr> {
          if (var.SameAs(inverse.indices[0])) return lane;
          return var.SameAs(inverse.indices[1]) ? std::optional(place) : std::nullopt;
        });
        index = index + MakeCast(index.type(), along * IntConst(move, along.type()));
      }
      indices.push_back(index);
    }
    return indices;
  }

  // Whether registers from each multiple of `together` on hold neighbours along the last index.
  bool AreNeighbours(size_t o, const InverseMap& inverse, int64_t together) const {
    Analyzer known;
    for (const DividedIter& part : divided_.iters) known.Bind(part.tile, part.tile_domain);
    const int64_t registers = ConstantValue(inverse.shape[1]).value_or(0);
    for (int64_t r = 0; r < registers; ++r) {
      const std::vector<Expr> first = ElementOf(o, inverse, lane_, IntConst(r / together * together));
      const std::vector<Expr> here = ElementOf(o, inverse, lane_, IntConst(r));
      for (size_t d = 0; d < here.size(); ++d) {
        const int64_t apart = d + 1 == here.size() ? r % together : 0;
        if (!known.CanProveEqual(here[d], first[d] + IntConst(apart, here[d].type()))) return false;
      }
    }
    return true;
  }

  // What all threads together read of an operand.
  BufferRegion ReadByAll(size_t o) const {
    BufferRegion read{operands_[o].own->buffer, {}};
    for (size_t d = 0; d < indices_[o].size(); ++d) {
      int64_t extent = 1;
      for (const IterVar* axis : operands_[o].axes)
        extent += moves_[o].at(axis)[d] * (ConstantValue(axis->domain.extent).value_or(1) - 1);
      const Expr& base = indices_[o][d].base;
      read.region.push_back({base, IntConst(extent, base.type())});
    }
    return read;
  }

  const ProgramIndex& index_;
  const DividedBlock& divided_;
  const Block& block_;
  const TileIntrinsic& intrinsic_;
  const std::vector<const TileIntrinsic*>& loads_;
  const bool swapped_;
  const std::string where_;
  const Store* sums_ = nullptr;
  BufferRegion result_;
  std::array<Operand, 2> operands_;
  std::vector<Digit> digits_;
  Expr lane_;  // over the tile's variables
  std::array<std::vector<Index>, 2> indices_;
  std::map<const IterVar*, Axis> axes_;
  std::array<std::map<const IterVar*, std::vector<int64_t>>, 2> moves_;  // of each index along an axis
};

}  // namespace

absl::StatusOr<WarpOperation> MatchWarpOperation(const ProgramIndex& index, const DividedBlock& divided,
                                                 const TileIntrinsic& intrinsic,
                                                 const std::vector<const TileIntrinsic*>& loads,
                                                 const std::string& where) {
  const absl::StatusOr<WarpOperation> made = Matcher(index, divided, intrinsic, loads, false, where).Run();
  if (made.ok()) return made;
  const absl::StatusOr<WarpOperation> swapped = Matcher(index, divided, intrinsic, loads, true, where).Run();
  return swapped.ok() ? swapped : made;
}

}  // namespace hone
