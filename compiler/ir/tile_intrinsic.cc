#include "compiler/ir/tile_intrinsic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// ---- The table

// C[m, n] += A[m, k] * B[k, n]: the register tile, a block of rows times vectors that stays in registers along k.
constexpr char kFmaTile[] = R"(
@T.prim_func
def fma_tile(m: T.int32, n: T.int32, k: T.int32, A: T.Buffer((m, k), "TYPE"), B: T.Buffer((k, n), "TYPE"),
             C: T.Buffer((m, n), "TYPE")):
    for i, j, l in T.grid(m, n, k):
        with T.block("fma_tile"):
            vm, vn, vk = T.axis.remap("SSR", [i, j, l])
            C[vm, vn] = C[vm, vn] + A[vm, vk] * B[vk, vn]
)";

// C[n] += sum of GROUP products A[GROUP] * B[n, GROUP], in 32 bits.
constexpr char kDot[] = R"(
@T.prim_func
def dot(n: T.int32, A: T.Buffer((GROUP,), "LEFT"), B: T.Buffer((n, GROUP), "RIGHT"), C: T.Buffer((n,), "SUM")):
    for j, l in T.grid(n, GROUP):
        with T.block("dot"):
            vn, vl = T.axis.remap("SR", [j, l])
            C[vn] = C[vn] + T.Cast("SUM", A[vl]) * T.Cast("SUM", B[vn, vl])
)";

// Instructions that multiply four bytes a lane by the four bytes of A and add the products to 32 bits. `as_bytes`: how
// LLVM has them passed.
TileInstruction Dot4(const char* feature, const char* function, int lanes, bool as_bytes) {
  const DType type = DType::Int(as_bytes ? 8 : 32);
  const int width = as_bytes ? 4 * lanes : lanes;
  return {feature, function, {{"n", lanes}}, {{kInt32, lanes}, {type, width, 32}, {type, width}}};
}

// The product of pairs of 16 bits, exact in 32, of bytes that are extended first.
TileInstruction WidenedDot2(const char* feature, const char* function, int lanes) {
  const DType type = DType::Int(16);
  return {feature,
          function,
          {{"n", lanes}},
          {{kInt32, lanes}, {type, 2 * lanes, 16, true}, {type, 2 * lanes, 0, true}},
          true};
}

TileIntrinsic Row(std::string name, const std::string& text, std::vector<TileLoop> loops,
                  std::vector<TileInstruction> instructions = {}) {
  TileIntrinsic row;
  row.name = std::move(name);
  absl::StatusOr<PrimFunc> meaning = ParsePrimFunc(text);
  HONE_CHECK(meaning.ok()) << row.name << ": " << meaning.status().ToString();
  row.meaning = *std::move(meaning);
  row.loops = std::move(loops);
  row.instructions = std::move(instructions);
  const std::vector<Buffer>& params = row.meaning.params;
  const auto first_output = params.end() - row.meaning.num_outputs();
  row.operands.assign(first_output, params.end());
  row.operands.insert(row.operands.end(), params.begin(), first_output);
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
  return row;
}

TileIntrinsic FmaTile(const char* name, const char* type) {
  return Row(name, absl::StrReplaceAll(kFmaTile, {{"TYPE", type}}),
             {{"k", ForKind::kSerial}, {"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}});
}

TileIntrinsic Dot(const char* name, const char* group, const char* left, const char* right, const char* sum,
                  std::vector<TileInstruction> instructions) {
  return Row(name, absl::StrReplaceAll(kDot, {{"GROUP", group}, {"LEFT", left}, {"RIGHT", right}, {"SUM", sum}}),
             {{"l", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, std::move(instructions));
}

std::vector<TileIntrinsic> MakeTable() {
  const std::vector<TileInstruction> widened = {WidenedDot2("avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16),
                                                WidenedDot2("avx2", "llvm.x86.avx2.pmadd.wd", 8)};
  std::vector<TileIntrinsic> table;
  table.push_back(FmaTile("fma_tile_f32", "float32"));
  table.push_back(FmaTile("fma_tile_f64", "float64"));
  table.push_back(FmaTile("fma_tile_s32", "int32"));
  // The names with avx512 are those of AVX-VNNI's as well.
  table.push_back(Dot("dot4_u8s8_s32", "4", "uint8", "int8", "int32",
                      {Dot4("avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, false),
                       Dot4("avx512vnni", "llvm.x86.avx512.vpdpbusd.256", 8, false),
                       Dot4("avx512vnni", "llvm.x86.avx512.vpdpbusd.128", 4, false),
                       Dot4("avxvnni", "llvm.x86.avx512.vpdpbusd.256", 8, false),
                       Dot4("avxvnni", "llvm.x86.avx512.vpdpbusd.128", 4, false),
                       Dot4("i8mm", "llvm.aarch64.neon.usdot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot4_s8s8_s32", "4", "int8", "int8", "int32",
                      {Dot4("dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot2_u8s8_s32", "2", "uint8", "int8", "int32", widened));
  table.push_back(Dot("dot2_s8s8_s32", "2", "int8", "int8", "int32", widened));
  table.push_back(Dot("dot2_u8u8_s32", "2", "uint8", "uint8", "int32", widened));
  table.push_back(Dot("dot2_s8u8_s32", "2", "int8", "uint8", "int32", widened));
  return table;
}

// ---- Operands

// The region is a run of the operand's elements, in place of a box of its shape.
bool IsFlat(const BufferRegion& region, const Buffer& operand) {
  return region.region.size() == 1 && operand.rank() > 1;
}

// The extents of a region that stand for the operand's dimensions. Not for flat ones.
std::span<const Range> OwnDimensions(const BufferRegion& region, const Buffer& operand) {
  return std::span<const Range>(region.region).last(static_cast<size_t>(operand.rank()));
}

// What the open sizes are: the extent of the first operand that has them; a flat operand leaves one of them to follow.
using Sizes = std::map<uint64_t, Expr>;
Sizes FindSizes(const TileIntrinsic& intrinsic, const TileOp& op) {
  Sizes sizes;
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
  if (region.buffer.type() != operand.type()) {
    return Unfit(op, ": operand ", i, " (", operand.name(), ") is ", ToText(operand.type()), ", but ",
                 region.buffer.name(), " is ", ToText(region.buffer.type()));
  }
  if (IsFlat(region, operand)) {
    Expr elements = IntConst(1);
    for (const Expr& extent : operand.shape()) elements = elements * WithSizes(extent, sizes);
    if (ConstantValue(region.region[0].extent).has_value() && StructuralEqual(elements, region.region[0].extent))
      return absl::OkStatus();
    return Unfit(op, ": operand ", i, " (", operand.name(), ") is a run of ", ToText(region.region[0].extent),
                 " elements of ", region.buffer.name(), ", expected ", ToText(elements));
  }
  const size_t rank = static_cast<size_t>(operand.rank());
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

}  // namespace

const IterVar* TileIntrinsic::FindAxis(std::string_view axis) const {
  for (const IterVar& iter : axes) {
    if (iter.var.name() == axis) return &iter;
  }
  return nullptr;
}

std::span<const TileIntrinsic> TileIntrinsics() {
  static const auto* table = new std::vector<TileIntrinsic>(MakeTable());
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
  if (op.operands.size() != intrinsic->operands.size())
    return Unfit(op, " takes ", intrinsic->operands.size(), " operands, not ", op.operands.size());
  const Sizes sizes = FindSizes(*intrinsic, op);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (const absl::Status fits = CheckOperand(*intrinsic, op, i, sizes); !fits.ok()) return fits;
    for (size_t o = 0; o < static_cast<size_t>(intrinsic->meaning.num_outputs()) && o < i; ++o) {
      if (op.operands[o].buffer == op.operands[i].buffer)
        return Unfit(op, ": operand ", i, " is the buffer that operand ", o, " writes, ", op.operands[o].buffer.name());
    }
  }
  for (const auto& [key, value] : op.params) {
    const int64_t* number = std::get_if<int64_t>(&value);
    if (key != "lanes" && key != "unroll" && intrinsic->FindAxis(key) == nullptr)
      return Unfit(op, " has no param \"", key, "\"");
    if (number == nullptr || *number < 1 || *number > 4096)
      return Unfit(op, ": param \"", key, "\" is no number from 1 to 4096");
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
  const Sizes sizes = FindSizes(intrinsic, op);
  const auto place = [&](const Buffer& operand, const std::vector<Expr>& indices) {
    size_t i = 0;
    while (!(intrinsic.operands[i] == operand)) ++i;
    const BufferRegion& region = op.operands[i];
    std::vector<Expr> placed;
    if (IsFlat(region, operand)) {
      Expr flat = IntConst(0);
      for (size_t d = 0; d < indices.size(); ++d) flat = flat * WithSizes(operand.shape()[d], sizes) + indices[d];
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

const TileInstruction* FindInstruction(const TileOp& op, const std::vector<std::string>& features) {
  const TileIntrinsic* intrinsic = FindTileIntrinsic(op.intrinsic);
  if (intrinsic == nullptr || intrinsic->instructions.empty()) return nullptr;
  for (const BufferRegion& region : op.operands) {
    if (!ContiguousElements(region).has_value()) return nullptr;
  }
  const std::vector<Expr> extents = TileExtents(*intrinsic, op);
  for (const TileInstruction& instruction : intrinsic->instructions) {
    if (std::find(features.begin(), features.end(), instruction.feature) == features.end()) continue;
    bool fits = true;
    for (size_t i = 0; i < extents.size(); ++i) {
      const auto wanted = instruction.extents.find(intrinsic->axes[i].var.name());
      fits = fits && (wanted == instruction.extents.end() || IsConst(extents[i], wanted->second));
    }
    if (fits) return &instruction;
  }
  return nullptr;
}

std::optional<DotProduct> FindDotProduct(DType sum, DType left, DType right, int64_t columns,
                                         const std::set<std::string>& features) {
  DotProduct best;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.operands.size() != 3 || row.operands[0].rank() != 1 || row.operands[2].rank() != 2) continue;
    if (row.operands[0].type() != sum || row.operands[1].type() != left || row.operands[2].type() != right) continue;
    const std::optional<int64_t> group = ConstantValue(row.operands[1].shape()[0]);
    for (const TileInstruction& instruction : row.instructions) {
      const int64_t lanes = instruction.extents.at("n");
      if (!group.has_value() || columns % lanes != 0 || features.count(instruction.feature) == 0) continue;
      if (*group * lanes > best.group * best.lanes) best = {&row, &instruction, *group, lanes};
    }
  }
  return best.intrinsic == nullptr ? std::nullopt : std::optional(best);
}

}  // namespace hone
