#include "compiler/tile/tile_intrinsic.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic_rows.h"

namespace hone {
namespace {

// ---- Operands

// The region is a run of the operand's elements, in place of a box of its shape.
bool IsFlat(const BufferRegion& region, const Buffer& operand) {
  return region.region.size() == 1 && operand.rank() > 1;
}

// The extents of a region that stand for the operand's dimensions. Not for flat ones.
std::span<const Range> OwnDimensions(const BufferRegion& region, const Buffer& operand) {
  return std::span<const Range>(region.region).last(static_cast<size_t>(operand.rank()));
}

std::optional<int64_t> NumberOf(const TileOp& op, const std::string& param) {
  const auto found = op.params.find(param);
  const int64_t* number = found == op.params.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// What the open sizes are: what a param says, else the extent of the first operand that has them; a flat operand leaves
// one of them to follow.
using Sizes = std::map<uint64_t, Expr>;
Sizes FindSizes(const TileIntrinsic& intrinsic, const TileOp& op) {
  Sizes sizes;
  for (const Var& dim : intrinsic.meaning.dims) {
    if (const std::optional<int64_t> size = NumberOf(op, SizeParam(dim))) sizes.emplace(dim.id(), Expr(*size));
  }
  for (size_t i = 0; i < intrinsic.operands.size(); ++i) {
    const Buffer& operand = intrinsic.operands[i];
    if (IsFlat(op.operands[i], operand)) continue;
    const std::span<const Range> own = OwnDimensions(op.operands[i], operand);
    for (size_t d = 0; d < own.size(); ++d) {
      if (const VarRef* size = operand.shape()[d].As<VarRef>()) sizes.emplace(size->var.id(), own[d].extent);
    }
  }
  return sizes;
}

Expr WithSizes(const Expr& e, const Sizes& sizes) {
  return Substitute(e, [&](const Var& var) -> std::optional<Expr> {
    const auto found = sizes.find(var.id());
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  });
}

template <class... Pieces>
absl::Status Unfit(const TileOp& op, const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(op.intrinsic, pieces...));
}

absl::Status CheckOperand(const TileIntrinsic& intrinsic, const TileOp& op, size_t i, const Sizes& sizes) {
  const BufferRegion& region = op.operands[i];
  const Buffer& operand = intrinsic.operands[i];
  if (intrinsic.threads > 1 && region.buffer.scope() != operand.scope()) {
    return Unfit(op, ": operand ", i, " (", operand.name(), ") is in ",
                 operand.scope() == Scope::kRegister ? "registers of each thread, " : "shared memory, ",
                 region.buffer.name(), " in scope ", std::string(ToText(region.buffer.scope())));
  }
  if (region.buffer.type() != operand.type()) {
    return Unfit(op, ": operand ", i, " (", operand.name(), ") is ", ToText(operand.type()), ", but ",
                 region.buffer.name(), " is ", ToText(region.buffer.type()));
  }
  if (IsFlat(region, operand)) {
    Expr elements = IntConst(1);
    for (size_t d = operand.shape().size(); d-- > 0;) {
      const Expr extent = WithSizes(operand.shape()[d], sizes);
      const std::optional<int64_t> apart = d == 0 ? NumberOf(op, RowParam(i)) : std::nullopt;
      elements = apart.has_value() ? (extent - 1) * IntConst(*apart) + elements : elements * extent;
    }
    if (ConstantValue(region.region[0].extent).has_value() && StructuralEqual(elements, region.region[0].extent))
      return absl::OkStatus();
    return Unfit(op, ": operand ", i, " (", operand.name(), ") is a run of ", ToText(region.region[0].extent),
                 " elements of ", region.buffer.name(), ", expected ", ToText(elements));
  }
  const size_t rank = static_cast<size_t>(operand.rank());
  if (operand.scope() == Scope::kRegister && rank == 1 &&
      ContiguousElements(region) == ConstantValue(operand.shape()[0]))
    return absl::OkStatus();
  if (region.region.size() < rank) {
    return Unfit(op, ": operand ", i, " (", operand.name(), ") has ", rank, " dimensions, the region of ",
                 region.buffer.name(), " has ", region.region.size());
  }
  for (size_t d = 0; d < region.region.size(); ++d) {
    const bool leading = d < region.region.size() - rank;
    const Expr expected = leading ? IntConst(1) : WithSizes(operand.shape()[d - (region.region.size() - rank)], sizes);
    const Expr& extent = region.region[d].extent;
    const std::optional<int64_t> want = ConstantValue(expected), have = ConstantValue(extent);
    if (want.has_value() && have.has_value() ? *want == *have : StructuralEqual(expected, extent)) continue;
    return Unfit(op, ": operand ", i, " (", operand.name(), ") takes ", ToText(expected), " elements along dimension ",
                 d, " of ", region.buffer.name(), ", not ", ToText(extent));
  }
  return absl::OkStatus();
}

bool HasRows(const TileIntrinsic& intrinsic, const TileOp& op, size_t i) {
  if (IsFlat(op.operands[i], intrinsic.operands[i])) return NumberOf(op, RowParam(i)).has_value();  // in lowering
  return RowStride(op.operands[i], intrinsic.operands[i].rank()).has_value();
}

// Whether the operand lies as the instruction takes it. Sums in tile registers are in register scope: what an
// instruction writes, and what is written to memory.
bool Lies(const TileIntrinsic& intrinsic, const TileInstruction& instruction, const TileOp& op, size_t i) {
  if (!instruction.in_tiles) {
    return instruction.operands[i].rows > 1 ? HasRows(intrinsic, op, i)
                                            : ContiguousElements(op.operands[i]).has_value();
  }
  const bool is_flat = IsFlat(op.operands[i], intrinsic.operands[i]);
  const bool in_registers = op.operands[i].buffer.scope() == Scope::kRegister;
  return (is_flat || in_registers == (i == SumOperand(intrinsic))) && HasRows(intrinsic, op, i);
}

}  // namespace

size_t SumOperand(const TileIntrinsic& intrinsic) { return intrinsic.operands.size() == 2 ? 1 : 0; }

std::string SizeParam(const Var& size) { return absl::StrCat("size_", size.name()); }
std::string RowParam(size_t operand) { return absl::StrCat("row_", operand); }

TileIntrinsic MakeTileIntrinsic(std::string name, const std::string& text, std::vector<TileLoop> loops,
                                std::vector<TileInstruction> instructions) {
  TileIntrinsic row;
  row.name = std::move(name);
  absl::StatusOr<PrimFunc> meaning = ParsePrimFunc(text);
  HONE_CHECK(meaning.ok()) << row.name << ": " << meaning.status().ToString();
  row.meaning = *std::move(meaning);
  row.loops = std::move(loops);
  row.instructions = std::move(instructions);
  const std::vector<Buffer>& params = row.meaning.params;
  HONE_CHECK(row.meaning.num_outputs() == 1) << row.name << " has " << row.meaning.num_outputs() << " outputs, not one";
  row.operands.assign(params.end() - 1, params.end());
  row.operands.insert(row.operands.end(), params.begin(), params.end() - 1);
  Stmt inside = row.meaning.body.As<BlockRealize>()->block.body;
  while (const For* loop = inside.As<For>()) inside = loop->body;
  const BlockRealize* realize = inside.As<BlockRealize>();
  HONE_CHECK(realize != nullptr && realize->block.body.As<Store>() != nullptr) << row.name << " is not one block";
  row.axes = realize->block.iters;
  row.update = realize->block.body;
  for (IterVar& axis : row.axes) {  // vm is the axis m
    const Var named(axis.var.name().substr(1), axis.var.type());
    row.update = Substitute(row.update, axis.var, named);
    axis.var = named;
  }
  ForEachExpr(row.update, [&](const Expr& e) {
    const Load* load = e.As<Load>();
    row.accumulates |= load != nullptr && load->buffer == row.operands[0];
    return true;
  });
  return row;
}

bool TileIntrinsic::adds_once() const {
  return accumulates && std::ranges::none_of(axes, [](const IterVar& axis) { return axis.kind == IterKind::kReduce; });
}

bool TileIntrinsic::in_rows() const {
  return std::ranges::any_of(instructions, [](const TileInstruction& instruction) {
    return instruction.in_tiles ||
           std::ranges::any_of(instruction.operands, [](const auto& operand) { return operand.rows > 1; });
  });
}

const IterVar* TileIntrinsic::FindAxis(std::string_view axis) const {
  for (const IterVar& iter : axes) {
    if (iter.var.name() == axis) return &iter;
  }
  return nullptr;
}

std::span<const TileIntrinsic> TileIntrinsics() {
  static const auto* table = [] {
    auto* rows = new std::vector<TileIntrinsic>;
    for (auto* of_file : {ThreadOperations, WarpProducts, WarpLoads, AsyncCopies}) {
      for (TileIntrinsic& row : of_file()) rows->push_back(std::move(row));
    }
    return rows;
  }();
  return *table;
}

const TileIntrinsic* FindTileIntrinsic(std::string_view name) {
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

absl::Status CheckTileOp(const TileOp& op) {
  const TileIntrinsic* intrinsic = FindTileIntrinsic(op.intrinsic);
  if (intrinsic == nullptr) {
    const auto name = [](std::string* out, const TileIntrinsic& row) { out->append(row.name); };
    return absl::InvalidArgumentError(absl::StrCat("no intrinsic is called ", op.intrinsic, "; there are ",
                                                   absl::StrJoin(TileIntrinsics(), ", ", name)));
  }
  return CheckTileOp(*intrinsic, op);
}

absl::Status CheckTileOp(const TileIntrinsic& intrinsic, const TileOp& op) {
  if (intrinsic.token != AsyncToken::kNone)
    return Unfit(op, " goes on beside what follows it, which no tile operation does; write T.async_copy");
  if (op.operands.size() != intrinsic.operands.size())
    return Unfit(op, " takes ", intrinsic.operands.size(), " operands, not ", op.operands.size());
  if (op.accumulates != intrinsic.accumulates) {
    return Unfit(op, intrinsic.accumulates ? " adds to its output; leave accumulates=False out"
                                           : " does not read its output; write accumulates=False");
  }
  const Sizes sizes = FindSizes(intrinsic, op);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (const absl::Status fits = CheckOperand(intrinsic, op, i, sizes); !fits.ok()) return fits;
    if (i > 0 && op.operands[i].buffer == op.operands[0].buffer)
      return Unfit(op, ": operand ", i, " is the buffer that operand 0 writes, ", op.operands[0].buffer.name());
  }
  for (const auto& [key, value] : op.params) {
    const int64_t* number = std::get_if<int64_t>(&value);
    const bool is_row = key.starts_with("row_");
    if (key != "lanes" && key != "unroll" && !is_row && !key.starts_with("size_") && intrinsic.FindAxis(key) == nullptr)
      return Unfit(op, " has no param \"", key, "\"");
    const int64_t most = is_row ? int64_t{1} << 40 : 4096;
    if (number == nullptr || *number < 1 || *number > most)
      return Unfit(op, ": param \"", key, "\" is no number from 1 to ", most);
  }
  return absl::OkStatus();
}

std::vector<Expr> TileExtents(const TileIntrinsic& intrinsic, const TileOp& op) {
  const Sizes sizes = FindSizes(intrinsic, op);
  std::vector<Expr> extents;
  for (const IterVar& axis : intrinsic.axes) extents.push_back(WithSizes(axis.domain.extent, sizes));
  return extents;
}

Stmt TileUpdate(const TileIntrinsic& intrinsic, const TileOp& op, std::span<const Expr> at) {
  HONE_CHECK(intrinsic.threads == 1) << intrinsic.name << " is done by " << intrinsic.threads << " threads together";
  const Sizes sizes = FindSizes(intrinsic, op);
  const auto place = [&](const Buffer& operand, const std::vector<Expr>& indices) {
    size_t i = 0;
    while (!(intrinsic.operands[i] == operand)) ++i;
    const BufferRegion& region = op.operands[i];
    std::vector<Expr> placed;
    if (IsFlat(region, operand)) {
      Expr flat = IntConst(0);
      for (size_t d = 0; d < indices.size(); ++d) flat = flat * WithSizes(operand.shape()[d], sizes) + indices[d];
      if (const std::optional<int64_t> apart = NumberOf(op, RowParam(i))) {
        flat = IntConst(0);
        for (size_t d = 1; d < indices.size(); ++d) flat = flat * WithSizes(operand.shape()[d], sizes) + indices[d];
        flat = indices[0] * IntConst(*apart) + flat;
      }
      placed.push_back(region.region[0].min + flat);
      return std::pair(region.buffer, std::move(placed));
    }
    const size_t leading = region.region.size() - indices.size();
    for (size_t d = 0; d < region.region.size(); ++d)
      placed.push_back(d < leading ? region.region[d].min : region.region[d].min + indices[d - leading]);
    return std::pair(region.buffer, std::move(placed));
  };
  const Stmt here = Substitute(intrinsic.update, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < intrinsic.axes.size(); ++i) {
      if (intrinsic.axes[i].var == var) return at[i];
    }
    return std::nullopt;
  });
  const Stmt loaded = RewriteExprs(here, [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr) return std::nullopt;
    auto [buffer, indices] = place(load->buffer, load->indices);
    return MakeLoad(std::move(buffer), std::move(indices));
  });
  const Store* store = loaded.As<Store>();
  auto [buffer, indices] = place(store->buffer, store->indices);
  return Stmt::Make(Store{std::move(buffer), std::move(indices), store->value, Expr()});
}

TileOp StateLayout(const TileOp& op) {
  const TileIntrinsic* intrinsic = FindTileIntrinsic(op.intrinsic);
  HONE_CHECK(intrinsic != nullptr) << "no intrinsic is called " << op.intrinsic;
  TileOp stated = op;
  const Sizes sizes = FindSizes(*intrinsic, op);
  for (const Var& dim : intrinsic->meaning.dims) stated.params[SizeParam(dim)] = *ConstantValue(sizes.at(dim.id()));
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (!IsFlat(op.operands[i], intrinsic->operands[i]))
      stated.params[RowParam(i)] = RowStride(op.operands[i], intrinsic->operands[i].rank()).value();
  return stated;
}

Stmt TileMeaning(const TileOp& op) {
  const TileIntrinsic* intrinsic = FindTileIntrinsic(op.intrinsic);
  HONE_CHECK(intrinsic != nullptr) << "no intrinsic is called " << op.intrinsic;
  const std::vector<Expr> extents = TileExtents(*intrinsic, op);
  std::vector<Var> vars;
  std::vector<Expr> at;
  for (size_t i = 0; i < extents.size(); ++i) {
    vars.emplace_back(intrinsic->axes[i].var.name(), extents[i].type());
    at.push_back(vars.back());
  }
  Stmt nest = TileUpdate(*intrinsic, op, at);
  for (size_t i = vars.size(); i-- > 0;) {
    nest = Stmt::Make(
        For{vars[i], IntConst(0, vars[i].type()), extents[i], ForKind::kSerial, "", Attrs(), std::move(nest)});
  }
  return nest;
}

std::optional<int64_t> ContiguousElements(const BufferRegion& region) {
  int64_t elements = 1;
  bool whole = true;  // every dimension behind this one is there in full
  for (size_t d = region.region.size(); d-- > 0;) {
    const std::optional<int64_t> extent = ConstantValue(region.region[d].extent);
    if (!extent.has_value() || (!whole && *extent != 1)) return std::nullopt;
    elements *= *extent;
    whole = whole && StructuralEqual(region.region[d].extent, region.buffer.shape()[d]);
  }
  return elements;
}

std::optional<int64_t> RowStride(const BufferRegion& region, int rank) {
  if (static_cast<int>(region.region.size()) < rank) return std::nullopt;
  const size_t rows = region.region.size() - static_cast<size_t>(rank);
  BufferRegion row = region;
  row.region[rows].extent = IntConst(1);
  if (!ContiguousElements(row).has_value()) return std::nullopt;
  int64_t stride = 1;
  for (size_t d = rows + 1; d < region.region.size(); ++d) {
    const std::optional<int64_t> extent = ConstantValue(region.buffer.shape()[d]);
    if (!extent.has_value()) return std::nullopt;
    stride *= *extent;
  }
  return stride;
}

const TileInstruction* FindInstruction(const TileOp& op, const std::vector<std::string>& features) {
  const TileIntrinsic* intrinsic = FindTileIntrinsic(op.intrinsic);
  if (intrinsic == nullptr || intrinsic->instructions.empty()) return nullptr;
  const std::vector<Expr> extents = TileExtents(*intrinsic, op);
  for (const TileInstruction& instruction : intrinsic->instructions) {
    if (std::find(features.begin(), features.end(), instruction.feature) == features.end()) continue;
    bool fits = true;
    for (size_t i = 0; i < op.operands.size(); ++i) fits = fits && Lies(*intrinsic, instruction, op, i);
    for (size_t i = 0; i < extents.size(); ++i) {
      const auto wanted = instruction.extents.find(intrinsic->axes[i].var.name());
      if (wanted == instruction.extents.end()) continue;
      fits = fits && (instruction.in_tiles
                          ? ConstantValue(extents[i]).value_or(std::numeric_limits<int64_t>::max()) <= wanted->second
                          : IsConst(extents[i], wanted->second));
    }
    if (fits) return &instruction;
  }
  return nullptr;
}

}  // namespace hone
