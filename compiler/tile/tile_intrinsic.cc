#include "compiler/tile/tile_intrinsic.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic_rows.h"

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

// C[n] += A * B[n]: a vector of a tile that the loops around it make, whose rows may be any places of A: those of a
// convolution, which has two variables of rows, steps between them and borders.
//
// This row and the next name no instruction, llvm.fma: it would round once where CompileOptions::fuse forbids that, be
// a call of fmaf on targets without the instruction, and leave the masks of a tile's edge to the code generator. What
// lowering makes of them, multiplications and additions that may be contracted, is the same code already: each is one
// instruction and sums stay in registers (tests/tuner/space/hot_loops_test.cc).
constexpr char kAxpy[] = R"(
@T.prim_func
def axpy(n: T.int32, A: T.Buffer((), "TYPE"), B: T.Buffer((n,), "TYPE"), C: T.Buffer((n,), "TYPE")):
    for j in range(n):
        with T.block("axpy"):
            vn = T.axis.spatial(n, j)
            C[vn] = C[vn] + A[()] * B[vn]
)";

// C[n] += A[n] * B[n]: where both factors move along the vector, as those of a depthwise convolution.
constexpr char kFma[] = R"(
@T.prim_func
def fma(n: T.int32, A: T.Buffer((n,), "TYPE"), B: T.Buffer((n,), "TYPE"), C: T.Buffer((n,), "TYPE")):
    for j in range(n):
        with T.block("fma"):
            vn = T.axis.spatial(n, j)
            C[vn] = C[vn] + A[vn] * B[vn]
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

// Rows of sums in tile registers. C[m, n] += A[m, k] * B[k, n], where B has GROUP elements of k side by side.
constexpr char kMma[] = R"(
@T.prim_func
def mma(m: T.int32, n: T.int32, groups: T.int32, A: T.Buffer((m, groups * GROUP), "LEFT"),
        B: T.Buffer((groups, n, GROUP), "RIGHT"), C: T.Buffer((m, n), "SUM")):
    for i, j, l in T.grid(m, n, groups * GROUP):
        with T.block("mma"):
            vm, vn, vk = T.axis.remap("SSR", [i, j, l])
            C[vm, vn] = C[vm, vn] + T.Cast("SUM", A[vm, vk]) * T.Cast("SUM", B[vk // GROUP, vn, vk % GROUP])
)";
constexpr char kZeroTile[] = R"(
@T.prim_func
def zero_tile(m: T.int32, n: T.int32, C: T.Buffer((m, n), "SUM")):
    for i, j in T.grid(m, n):
        with T.block("zero_tile"):
            vm, vn = T.axis.remap("SS", [i, j])
            C[vm, vn] = T.SUM(0)
)";
constexpr char kStoreTile[] = R"(
@T.prim_func
def store_tile(m: T.int32, n: T.int32, C: T.Buffer((m, n), "SUM"), D: T.Buffer((m, n), "SUM")):
    for i, j in T.grid(m, n):
        with T.block("store_tile"):
            vm, vn = T.axis.remap("SS", [i, j])
            D[vm, vn] = C[vm, vn]
)";

// Instructions that multiply the four bytes of a lane, or its two int16, by those of A and add the products to 32 bits.
// `as_bytes`: how LLVM has them passed.
TileInstruction DotOfLane(const char* feature, const char* function, int lanes, bool as_bytes) {
  const DType type = DType::Int(as_bytes ? 8 : 32);
  const int width = as_bytes ? 4 * lanes : lanes;
  return {feature, function, {{"n", lanes}}, {{kInt32, lanes}, {type, width, 32}, {type, width}}};
}

// The same of pairs of bfloat16 and sums in float32. Denormal numbers count as 0 (Intel SDM, VDPBF16PS; Arm ARM, BFDOT,
// which also rounds to odd).
TileInstruction Dot2Bfloat16(const char* feature, const char* function, int lanes) {
  const DType type = DType::BFloat16();
  return {feature, function, {{"n", lanes}}, {{kFloat32, lanes}, {type, 2 * lanes, 32}, {type, 2 * lanes}}};
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

// .. of elements that are 16 bits in memory.
TileInstruction Dot2Int16(const char* feature, const char* function, int lanes) {
  const DType type = DType::Int(16);
  return {feature, function, {{"n", lanes}}, {{kInt32, lanes}, {type, 2 * lanes, 32}, {type, 2 * lanes}}, true};
}

// An instruction on tile registers, of as many sums as one holds. A product takes a cycle for each row and a latency of
// 52 (Intel's optimisation manual, chapter 20).
TileInstruction InTiles(const char* feature, const char* function, std::map<std::string, int64_t> extents = {}) {
  extents.insert({{"m", kTileRows}, {"n", kTileRowBytes / 4}});
  return {feature, function, std::move(extents), {}, false, true, kTileRows, 52};
}

TileIntrinsic FmaTile(const char* name, const char* type) {
  return MakeTileIntrinsic(name, absl::StrReplaceAll(kFmaTile, {{"TYPE", type}}),
                           {{"k", ForKind::kSerial}, {"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}});
}

TileIntrinsic OfVectors(std::string name, const char* text, const char* type) {
  return MakeTileIntrinsic(std::move(name), absl::StrReplaceAll(text, {{"TYPE", type}}), {{"n", ForKind::kVectorized}});
}

TileIntrinsic Dot(const char* name, const char* group, const char* left, const char* right, const char* sum,
                  std::vector<TileInstruction> instructions) {
  return MakeTileIntrinsic(
      name, absl::StrReplaceAll(kDot, {{"GROUP", group}, {"LEFT", left}, {"RIGHT", right}, {"SUM", sum}}),
      {{"l", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, std::move(instructions));
}

TileIntrinsic Mma(const char* name, const char* group, const char* left, const char* right, const char* sum,
                  TileInstruction instruction) {
  return MakeTileIntrinsic(
      name, absl::StrReplaceAll(kMma, {{"GROUP", group}, {"LEFT", left}, {"RIGHT", right}, {"SUM", sum}}),
      {{"k", ForKind::kSerial}, {"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, {std::move(instruction)});
}

TileIntrinsic OnSums(const char* name, const char* text, const char* sum, const char* function) {
  return MakeTileIntrinsic(name, absl::StrReplaceAll(text, {{"SUM", sum}}),
                           {{"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, {InTiles("amx-tile", function)});
}

std::vector<TileIntrinsic> MakeTable() {
  const std::vector<TileInstruction> widened = {WidenedDot2("avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16),
                                                WidenedDot2("avx2", "llvm.x86.avx2.pmadd.wd", 8)};
  std::vector<TileIntrinsic> table;
  table.push_back(FmaTile("fma_tile_f32", "float32"));
  table.push_back(FmaTile("fma_tile_f64", "float64"));
  table.push_back(FmaTile("fma_tile_s32", "int32"));
  for (const auto& [type, suffix] : {std::pair("float32", "f32"), {"float64", "f64"}, {"int32", "s32"}}) {
    table.push_back(OfVectors(absl::StrCat("axpy_", suffix), kAxpy, type));
    table.push_back(OfVectors(absl::StrCat("fma_", suffix), kFma, type));
  }
  // The names with avx512 are those of AVX-VNNI's as well.
  table.push_back(Dot("dot4_u8s8_s32", "4", "uint8", "int8", "int32",
                      {DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, false),
                       DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpbusd.256", 8, false),
                       DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpbusd.128", 4, false),
                       DotOfLane("avxvnni", "llvm.x86.avx512.vpdpbusd.256", 8, false),
                       DotOfLane("avxvnni", "llvm.x86.avx512.vpdpbusd.128", 4, false),
                       DotOfLane("i8mm", "llvm.aarch64.neon.usdot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot4_s8s8_s32", "4", "int8", "int8", "int32",
                      {DotOfLane("dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot4_u8u8_s32", "4", "uint8", "uint8", "int32",
                      {DotOfLane("dotprod", "llvm.aarch64.neon.udot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot2_u8s8_s32", "2", "uint8", "int8", "int32", widened));
  table.push_back(Dot("dot2_s8s8_s32", "2", "int8", "int8", "int32", widened));
  table.push_back(Dot("dot2_u8u8_s32", "2", "uint8", "uint8", "int32", widened));
  table.push_back(Dot("dot2_s8u8_s32", "2", "int8", "uint8", "int32", widened));
  table.push_back(
      Dot("dot2_s16s16_s32", "2", "int16", "int16", "int32",
          {DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpwssd.512", 16, false),
           DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpwssd.256", 8, false),
           DotOfLane("avxvnni", "llvm.x86.avx512.vpdpwssd.256", 8, false),
           Dot2Int16("avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16), Dot2Int16("avx2", "llvm.x86.avx2.pmadd.wd", 8)}));
  table.push_back(
      Dot("dot2_bf16_f32", "2", "bfloat16", "bfloat16", "float32",
          {Dot2Bfloat16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512", 16),
           Dot2Bfloat16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.256", 8),
           Dot2Bfloat16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.128", 4),
           Dot2Bfloat16("bf16", "llvm.aarch64.neon.bfdot.v4f32.v8bf16", 4)}));
  const auto mma4 = [&](const char* name, const char* left, const char* right, const char* function) {
    table.push_back(Mma(name, "4", left, right, "int32", InTiles("amx-int8", function, {{"k", kTileRowBytes}})));
  };
  mma4("mma4_u8s8_s32", "uint8", "int8", "llvm.x86.tdpbusd");
  mma4("mma4_s8s8_s32", "int8", "int8", "llvm.x86.tdpbssd");
  mma4("mma4_u8u8_s32", "uint8", "uint8", "llvm.x86.tdpbuud");
  mma4("mma4_s8u8_s32", "int8", "uint8", "llvm.x86.tdpbsud");
  table.push_back(Mma("mma2_bf16_f32", "2", "bfloat16", "bfloat16", "float32",
                      InTiles("amx-bf16", "llvm.x86.tdpbf16ps", {{"k", kTileRowBytes / 2}})));
  table.push_back(OnSums("zero_tile_s32", kZeroTile, "int32", "llvm.x86.tilezero"));
  table.push_back(OnSums("zero_tile_f32", kZeroTile, "float32", "llvm.x86.tilezero"));
  table.push_back(OnSums("store_tile_s32", kStoreTile, "int32", "llvm.x86.tilestored64"));
  table.push_back(OnSums("store_tile_f32", kStoreTile, "float32", "llvm.x86.tilestored64"));
  for (TileIntrinsic& row : WarpProducts()) table.push_back(std::move(row));
  for (TileIntrinsic& row : WarpLoads()) table.push_back(std::move(row));
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

// Rows are in one piece each. Sums are in register scope: what an instruction writes, and what is written to memory.
bool FitsTileRegister(const TileIntrinsic& intrinsic, const TileOp& op, size_t i) {
  if (IsFlat(op.operands[i], intrinsic.operands[i])) return NumberOf(op, RowParam(i)).has_value();  // in lowering
  const bool in_registers = op.operands[i].buffer.scope() == Scope::kRegister;
  return in_registers == (i == SumOperand(intrinsic)) &&
         RowStride(op.operands[i], intrinsic.operands[i].rank()).has_value();
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
  if (op.accumulates != intrinsic->accumulates) {
    return Unfit(op, intrinsic->accumulates ? " adds to its output; leave accumulates=False out"
                                            : " does not read its output; write accumulates=False");
  }
  const Sizes sizes = FindSizes(*intrinsic, op);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (const absl::Status fits = CheckOperand(*intrinsic, op, i, sizes); !fits.ok()) return fits;
    if (i > 0 && op.operands[i].buffer == op.operands[0].buffer)
      return Unfit(op, ": operand ", i, " is the buffer that operand 0 writes, ", op.operands[0].buffer.name());
  }
  for (const auto& [key, value] : op.params) {
    const int64_t* number = std::get_if<int64_t>(&value);
    const bool is_row = key.starts_with("row_");
    if (key != "lanes" && key != "unroll" && !is_row && !key.starts_with("size_") &&
        intrinsic->FindAxis(key) == nullptr)
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
    for (size_t i = 0; i < op.operands.size(); ++i)
      fits = fits && (instruction.in_tiles ? FitsTileRegister(*intrinsic, op, i)
                                           : ContiguousElements(op.operands[i]).has_value());
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

namespace {

// The largest divisor of `extent` up to `most` that is a multiple of `step`; 0: there is none.
int64_t LargestDivisor(int64_t extent, int64_t most, int64_t step) {
  for (int64_t size = most / step * step; size >= step; size -= step) {
    if (extent % size == 0) return size;
  }
  return 0;
}

// A tile takes the cycles of a whole one, whatever is in it: below a quarter, vectors add more products in them.
constexpr int64_t kLeastOfTile = 4;

std::optional<DotProduct> Fitted(const TileIntrinsic& row, const TileInstruction& instruction,
                                 const ProductShape& shape) {
  const auto most = [&](const char* axis) { return instruction.extents.at(axis); };
  DotProduct dot{&row, &instruction};
  dot.group = ConstantValue(row.operands[2].shape().back()).value_or(1);
  dot.lanes = most("n");
  dot.depth = dot.group;
  if (instruction.in_tiles) {
    dot.rows = LargestDivisor(shape.rows, most("m"), 1);
    dot.depth = LargestDivisor(shape.depth, most("k"), dot.group);
    if (dot.rows * dot.depth * kLeastOfTile < most("m") * most("k")) return std::nullopt;
  }
  const bool divide = shape.columns % dot.lanes == 0 && shape.depth % dot.depth == 0;
  return divide ? std::optional(dot) : std::nullopt;
}

// "zero_tile" for "mma4_u8s8_s32": "zero_tile_s32".
const TileIntrinsic& OfSums(const char* prefix, const TileIntrinsic& product) {
  const TileIntrinsic* row =
      FindTileIntrinsic(absl::StrCat(prefix, product.operands[0].type() == kFloat32 ? "_f32" : "_s32"));
  HONE_CHECK(row != nullptr) << product.name << " has sums without a " << prefix;
  return *row;
}

}  // namespace

std::optional<DotProduct> FindDotProduct(const ProductShape& shape, const std::set<std::string>& features) {
  std::optional<DotProduct> best;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.operands.size() != 3 || row.instructions.empty()) continue;
    if (row.operands[0].type() != shape.sum || row.operands[1].type() != shape.left ||
        row.operands[2].type() != shape.right)
      continue;
    for (const TileInstruction& instruction : row.instructions) {
      if (features.count(instruction.feature) == 0) continue;
      const std::optional<DotProduct> dot = Fitted(row, instruction, shape);
      if (dot.has_value() && (!best.has_value() || dot->products() > best->products())) best = dot;
    }
  }
  return best;
}

std::vector<const TileIntrinsic*> VectorProducts(DType type) {
  std::vector<const TileIntrinsic*> found;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const bool of_vectors = row.threads == 1 && row.operands.size() == 3 && row.axes.size() == 1 && row.adds_once();
    if (of_vectors && std::ranges::all_of(row.operands, [&](const Buffer& b) { return b.type() == type; }))
      found.push_back(&row);
  }
  return found;
}

const TileIntrinsic* FindWarpProduct(DType left, DType right, DType sum, const std::set<std::string>& features) {
  if (features.count(kWarpProductFeature) == 0) return nullptr;
  const auto terms = [](const TileIntrinsic& row) {
    return ConstantValue(row.FindAxis("k")->domain.extent).value_or(0);
  };
  const TileIntrinsic* found = nullptr;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const std::vector<Buffer>& operands = row.operands;
    if (row.threads == 1 || operands.size() != 3 || operands[0].type() != sum || operands[1].type() != left ||
        operands[2].type() != right)
      continue;
    if (found == nullptr || terms(row) > terms(*found)) found = &row;
  }
  return found;
}

const TileIntrinsic* FindMatrixLoad(DType type, int64_t registers, bool transposed,
                                    const std::set<std::string>& features) {
  if (features.count(kMatrixLoadFeature) == 0) return nullptr;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads == 1 || row.operands.size() != 2 || row.operands[0].type() != type) continue;
    const bool is_transposed = row.name.find("_trans") != std::string::npos;
    if (is_transposed == transposed && IsConst(row.operands[0].shape()[0], registers)) return &row;
  }
  return nullptr;
}

const TileIntrinsic& ZeroTile(const TileIntrinsic& product) { return OfSums("zero_tile", product); }
const TileIntrinsic& StoreTile(const TileIntrinsic& product) { return OfSums("store_tile", product); }

}  // namespace hone
