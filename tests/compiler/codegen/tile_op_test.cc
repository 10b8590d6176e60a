// Tile operations as machine code: as loops around registers, and as the instruction their intrinsic names.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/register_tile.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/te.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tests/boards/run_on_board.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

// On this machine or, where a board is named, on that CPU.
void ExpectComputes(const Schedule& schedule, const PrimFunc& workload, const Target& target,
                    const std::string& board = "") {
  for (const bool optimize : {true, false}) {
    std::vector<NdArray> want = RandomArguments(workload, 5, InputKind::kInteger), got = want;
    ASSERT_TRUE(Interpret(workload, want).ok());
    const absl::StatusOr<CompiledKernel> kernel = CompileKernel(schedule.Program(), target, {.optimize = optimize});
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(schedule.func());
    const absl::Status ran = board.empty() ? RunCompiled(*kernel, got) : RunOnBoard(*kernel, got, board);
    ASSERT_TRUE(ran.ok()) << ran;
    ExpectOutputsNear(workload, got, want, 1e-6);
  }
}

// Every pass keeps the result with what the target has, and leaves the intrinsic's instruction to the code generator.
void ExpectPassesKeep(const Schedule& schedule, const Target& target, const std::string& intrinsic) {
  const LowerOptions options{.features = {target.features.begin(), target.features.end()},
                             .vector_bits = target.vector_bits};
  const PrimFunc scheduled = schedule.Program().main;
  CheckPasses(scheduled, options);
  const absl::StatusOr<LoweredFunc> lowered = Lower(scheduled, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  bool left = false;
  ForEachStmt(lowered->func.body, [&](const Stmt& s) {
    const TileOp* op = s.As<TileOp>();
    left |= op != nullptr && op->intrinsic == intrinsic;
    return true;
  });
  EXPECT_TRUE(left) << ToText(lowered->func);
}

Schedule Tiled(const PrimFunc& workload, int64_t rows, int64_t columns, int64_t lanes, int64_t unroll) {
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, rows})), j = Get(Split(s, loops[1], {-1, columns}));
  Do(Reorder(s, {i[0], j[0], loops[2], i[1], j[1]}));
  Do(Parallel(s, i[0]));
  Do(RegisterTile(s, loops[2], lanes, unroll));
  return s;
}

TEST(TileOp, RegisterTilesOfAnyShape) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{5, 3, 2}, {7, 33, 5}, {13, 64, 8}, {30, 31, 12}}) {
    const PrimFunc workload = Matmul(m, n, k);
    ExpectComputes(Tiled(workload, 6, 32, 16, 4), workload, HostTarget());
    ExpectComputes(Tiled(workload, 4, 8, 0, 1), workload, HostTarget());
  }
}

// C[j] += as many products a lane as the intrinsic adds up, of its types.
PrimFunc DotOf(const char* intrinsic, int64_t columns, int64_t groups) {
  const std::vector<Buffer>& operands = FindTileIntrinsic(intrinsic)->operands;
  const int64_t group = *ConstantValue(operands[1].shape()[0]);
  const te::Tensor a = te::Placeholder({groups, group}, operands[1].type(), "A"),
                   b = te::Placeholder({groups, columns, group}, operands[2].type(), "B");
  const DType sum = operands[0].type();
  const te::ReduceAxis k(groups, "k"), l(group, "l");
  const te::Tensor c = te::Compute({columns},
                                   [&](const te::Indices& i) {
                                     return te::Sum(MakeCast(sum, a(k, l)) * MakeCast(sum, b(k, i[0], l)), {k, l});
                                   },
                                   "C", {.axes = {"j"}});
  return te::CreatePrimFunc({a, b}, {c}, "main");
}

Schedule Tensorized(const PrimFunc& workload, int64_t lanes, const char* intrinsic) {
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> j = Get(Split(s, loops[0], {-1, lanes}));
  Do(Reorder(s, {j[0], loops[1], j[1], loops[2]}));
  Do(Tensorize(s, j[1], intrinsic));
  return s;
}

Target TargetNamed(const char* text) {
  absl::StatusOr<Target> target = ParseTarget(text);
  HONE_CHECK(target.ok()) << target.status();
  return *std::move(target);
}

// What an instruction of this feature is compiled for; "" where no target is known here.
std::string TargetWith(const std::string& feature) {
  static const auto& targets = *new std::map<std::string, std::string>{
      {"avx2", "cpu:x86-64-v3"},
      {"avxvnni", "cpu:x86-64-v3+avxvnni"},
      {"avx512bw", "cpu:x86-64-v4"},
      {"avx512vnni", "cpu:x86-64-v4+avx512vnni"},
      {"avx512bf16", "cpu:x86-64-v4+avx512bf16"},
      {"dotprod", "cpu:cortex-a76"},
      {"i8mm", "cpu:neoverse-n2"},
      {"bf16", "cpu:neoverse-n2"},
  };
  const auto found = targets.find(feature);
  return found == targets.end() ? "" : found->second;
}

// What assemblers call the function; "" where that is not known here.
std::string Mnemonic(const std::string& function) {
  constexpr absl::string_view kNeon = "llvm.aarch64.neon.", kX86 = "llvm.x86.";
  if (absl::StartsWith(function, kNeon))
    return function.substr(kNeon.size(), function.find('.', kNeon.size()) - kNeon.size());
  if (!absl::StartsWith(function, kX86)) return "";
  for (const auto& [part, name] : {std::pair("vpdpbusd", "vpdpbusd"), std::pair("vpdpwssd", "vpdpwssd"),
                                   std::pair("dpbf16ps", "vdpbf16ps"), std::pair("pmadd", "vpmaddwd")})
    if (absl::StrContains(function, part)) return name;
  return "";
}

struct InstructionCase {
  const TileIntrinsic* row;
  const TileInstruction* instruction;

  const char* intrinsic() const { return row->name.c_str(); }
  int64_t lanes() const { return instruction->extents.at("n"); }
  std::string target() const { return TargetWith(instruction->feature); }
};

// All instructions of rows for one thread that tile operations apply, of which those on matrices have tests of their
// own below.
std::vector<InstructionCase> InstructionsOnVectors(bool matrices) {
  std::vector<InstructionCase> cases;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads > 1 || row.token != AsyncToken::kNone || row.in_tiles() || row.in_rows() != matrices) continue;
    for (const TileInstruction& instruction : row.instructions) cases.push_back({&row, &instruction});
  }
  return cases;
}

class InstructionTest : public ::testing::TestWithParam<InstructionCase> {
 protected:
  void SetUp() override {
    ASSERT_NE(GetParam().target(), "") << "a target with " << GetParam().instruction->feature;
    ASSERT_NE(Mnemonic(GetParam().instruction->function), "") << "a name for " << GetParam().instruction->function;
  }
};
TEST_P(InstructionTest, IsInTheCode) {
  const InstructionCase& c = GetParam();
  const Target target = TargetNamed(c.target().c_str());
  const Schedule s = Tensorized(DotOf(c.intrinsic(), 48, 5), c.lanes(), c.intrinsic());
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), target);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string name = Mnemonic(c.instruction->function);
  const char* registers = target.arch == "aarch64" ? "" : c.lanes() == 16 ? "%zmm" : c.lanes() == 8 ? "%ymm" : "%xmm";
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  EXPECT_TRUE(std::ranges::any_of(
      lines,
      [&](const std::string& line) { return absl::StrContains(line, name) && absl::StrContains(line, registers); }))
      << name << " of " << registers << "\n"
      << *text;
}
TEST_P(InstructionTest, EveryPassKeepsTheResult) {
  const InstructionCase& c = GetParam();
  ExpectPassesKeep(Tensorized(DotOf(c.intrinsic(), 48, 5), c.lanes(), c.intrinsic()), TargetNamed(c.target().c_str()),
                   c.intrinsic());
}
TEST_P(InstructionTest, DoesWhatTheIntrinsicMeans) {
  const InstructionCase& c = GetParam();
  const Target target = TargetNamed(c.target().c_str());
  const bool emulated = target.arch == "aarch64";
  if (const std::string missing = MissingFeatures(target, HostTarget()); !emulated && !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing;
  const PrimFunc workload = DotOf(c.intrinsic(), 48, 32);  // A ends at the end of a line
  ExpectComputes(Tensorized(workload, c.lanes(), c.intrinsic()), workload, target, emulated ? target.cpu : "");
}
INSTANTIATE_TEST_SUITE_P(Rows, InstructionTest, ::testing::ValuesIn(InstructionsOnVectors(/*matrices=*/false)),
                         [](const auto& info) {
                           return absl::StrCat(info.param.row->name, "_", info.param.instruction->feature, "_",
                                               info.param.lanes());
                         });

// C[i, j] += A[i, k] * B[k // group, j, k % group], in the types and the group of the intrinsic.
PrimFunc GroupedProduct(const char* intrinsic, int64_t m, int64_t n, int64_t k) {
  const std::vector<Buffer>& operands = FindTileIntrinsic(intrinsic)->operands;
  const int64_t group = *ConstantValue(operands[2].shape().back());
  const DType sum = operands[0].type();
  const te::Tensor a = te::Placeholder({m, k}, operands[1].type(), "A"),
                   b = te::Placeholder({k / group, n, group}, operands[2].type(), "B");
  const te::ReduceAxis l(k, "k");
  const te::Tensor c = te::Compute(
      {m, n},
      [&](const te::Indices& i) {
        const Expr at = l;
        return te::Sum(MakeCast(sum, a(i[0], at)) *
                           MakeCast(sum, b(FloorDiv(at, IntConst(group)), i[1], FloorMod(at, IntConst(group)))),
                       {l});
      },
      "C", {.axes = {"i", "j"}});
  return te::CreatePrimFunc({a, b}, {c}, "main");
}

// 6 x 16 sums in registers, four steps of k unrolled.
Schedule InVectorRegisters(const PrimFunc& workload, const char* intrinsic, int64_t lanes) {
  const int64_t group = *ConstantValue(FindTileIntrinsic(intrinsic)->operands[2].shape().back());
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const BlockRef copy = Get(CacheWrite(s, block, 0, Scope::kRegister));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, 6})), j = Get(Split(s, loops[1], {-1, 16 / lanes, lanes})),
                             k = Get(Split(s, loops[2], {-1, 4, group}));
  Do(Reorder(s, {i[0], j[0], k[0], k[1], i[1], j[1], j[2], k[2]}));
  Do(ReverseComputeAt(s, copy, j[0]));
  Get(DecomposeReduction(s, block, k[0]));
  for (const LoopRef loop : {k[1], i[1], j[1]}) Do(Unroll(s, loop));
  Do(Tensorize(s, j[2], intrinsic));
  return s;
}

struct TileSizes {
  int64_t down = 2, across = 2;  // tiles held at once
  int64_t rows = 16, depth = 64;
};
// Sums of down x across tiles stay in registers along k; a copy writes them to memory.
Schedule InTileRegisters(const PrimFunc& workload, const char* intrinsic, const TileSizes& sizes,
                         bool parallel = false) {
  const TileIntrinsic& row = *FindTileIntrinsic(intrinsic);
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const BlockRef copy = Get(CacheWrite(s, block, 0, Scope::kRegister));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, sizes.down, sizes.rows})),
                             j = Get(Split(s, loops[1], {-1, sizes.across, 16})),
                             k = Get(Split(s, loops[2], {-1, sizes.depth}));
  Do(Reorder(s, {i[0], j[0], k[0], i[1], j[1], i[2], j[2], k[1]}));
  Do(ReverseComputeAt(s, copy, j[0]));
  const BlockRef init = Get(DecomposeReduction(s, block, k[0]));
  for (const auto& [moved, name] : {std::pair(init, ZeroTile(row).name), std::pair(copy, StoreTile(row).name)}) {
    std::vector<LoopRef> inner = Get(GetLoops(s, moved));
    inner.erase(inner.begin(), inner.begin() + 2);
    if (inner.size() == 2) {
      const std::vector<LoopRef> r = Get(Split(s, inner[0], {-1, sizes.rows})), c = Get(Split(s, inner[1], {-1, 16}));
      inner = {r[0], c[0], r[1], c[1]};
      Do(Reorder(s, inner));
    }
    Do(Unroll(s, inner[0]));
    Do(Unroll(s, inner[1]));
    Do(Tensorize(s, inner[2], name));
  }
  Do(Unroll(s, i[1]));
  Do(Unroll(s, j[1]));
  if (parallel) Do(Parallel(s, i[0]));
  Do(Tensorize(s, i[2], intrinsic));
  return s;
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Where sums are additions of their own, which LLVM could put in another order, they are added in that of the schedule.
class PairsInRegisters : public ::testing::TestWithParam<const char*> {};
TEST_P(PairsInRegisters, AreNotSpilled) {
  const Target target = TargetNamed(GetParam());
  const Schedule s =
      InVectorRegisters(GroupedProduct("dot2_s16s16_s32", 12, 32, 64), "dot2_s16s16_s32", target.lanes());
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), target);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "\tvpmaddwd"), 4 * 6 * 16 / target.lanes()) << *text;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    EXPECT_FALSE(absl::StrContains(line, "(%rsp") && absl::StrContains(line, "mm")) << std::string(line);
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, PairsInRegisters, ::testing::Values("cpu:x86-64-v3", "cpu:x86-64-v4"),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{"cpu:", ""}, {"-", ""}});
                         });

// The products in tile registers; with them go the rows that zero and store their sums.
std::vector<const char*> ProductsInTiles() {
  std::vector<const char*> names;
  for (const TileIntrinsic& row : TileIntrinsics())
    if (row.in_tiles() && row.operands.size() == 3) names.push_back(row.name.c_str());
  return names;
}
constexpr char kWithTiles[] = "cpu:x86-64-v4+amx-tile+amx-int8+amx-bf16";
int64_t DepthOf(const char* intrinsic) { return FindTileIntrinsic(intrinsic)->instructions[0].extents.at("k"); }

class TileRegisterTest : public ::testing::TestWithParam<const char*> {};
// Two by two tiles: four products a step along k share four loads; the sums never leave their registers inside it.
TEST_P(TileRegisterTest, SumsStayInRegistersAcrossTheLoop) {
  const int64_t depth = DepthOf(GetParam());
  const PrimFunc workload = GroupedProduct(GetParam(), 64, 64, 4 * depth);
  const Schedule s = InTileRegisters(workload, GetParam(), {.depth = depth});
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(kWithTiles));
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string function = FindTileIntrinsic(GetParam())->instructions[0].function;
  EXPECT_EQ(CountOf(*text, "\t" + function.substr(function.rfind('.') + 1)), 4) << *text;
  EXPECT_EQ(CountOf(*text, "\ttileloadd"), 4) << *text;
  EXPECT_EQ(CountOf(*text, "\ttilezero"), 4);
  EXPECT_EQ(CountOf(*text, "\ttilestored"), 4);
  EXPECT_EQ(CountOf(*text, "\tldtilecfg"), 1);
  EXPECT_EQ(CountOf(*text, "\ttilerelease"), 1);
}
TEST_P(TileRegisterTest, EveryPassKeepsTheResult) {
  const int64_t depth = DepthOf(GetParam());
  const PrimFunc workload = GroupedProduct(GetParam(), 64, 64, 2 * depth);
  ExpectPassesKeep(InTileRegisters(workload, GetParam(), {.depth = depth}), TargetNamed(kWithTiles), GetParam());
}
TEST_P(TileRegisterTest, DoesWhatTheIntrinsicMeans) {
  const Target target = TargetNamed(kWithTiles);
  if (const std::string missing = MissingFeatures(target, HostTarget()); !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing;
  const int64_t depth = DepthOf(GetParam());
  for (const TileSizes& sizes :
       {TileSizes{2, 2, 16, depth}, TileSizes{1, 3, 7, depth / 2}, TileSizes{3, 2, 14, depth}}) {
    const PrimFunc workload =
        GroupedProduct(GetParam(), 2 * sizes.down * sizes.rows, 2 * sizes.across * 16, 3 * sizes.depth);
    for (const bool parallel : {false, true})
      ExpectComputes(InTileRegisters(workload, GetParam(), sizes, parallel), workload, target);
  }
}
// More sums than registers, and a target without them: loops that compute the same.
TEST_P(TileRegisterTest, OtherwiseItIsLoops) {
  const PrimFunc workload = GroupedProduct(GetParam(), 64, 64, 32);
  const Schedule s = InTileRegisters(workload, GetParam(), {4, 2, 16, 16});
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(kWithTiles));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "tmm"), 0);
  ExpectComputes(s, workload, TargetNamed("cpu:x86-64-v3"));
}
INSTANTIATE_TEST_SUITE_P(Rows, TileRegisterTest, ::testing::ValuesIn(ProductsInTiles()),
                         [](const auto& info) { return std::string(info.param); });

// Sums of 8 x 8 stay in vector registers along k, 2 x 2 in each; a copy writes them to memory.
Schedule InMatrixRegisters(const PrimFunc& workload, const char* intrinsic) {
  const std::map<std::string, int64_t>& extents = FindTileIntrinsic(intrinsic)->instructions[0].extents;
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const BlockRef copy = Get(CacheWrite(s, block, 0, Scope::kRegister));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, 8 / extents.at("m"), extents.at("m")})),
                             j = Get(Split(s, loops[1], {-1, 8 / extents.at("n"), extents.at("n")})),
                             k = Get(Split(s, loops[2], {-1, extents.at("k")}));
  Do(Reorder(s, {i[0], j[0], k[0], i[1], j[1], i[2], j[2], k[1]}));
  Do(ReverseComputeAt(s, copy, j[0]));
  const BlockRef init = Get(DecomposeReduction(s, block, k[0]));
  for (const BlockRef moved : {init, copy}) {
    const int64_t lanes = moved == copy ? 4 : extents.at("n");  // two registers have a vector of results
    const std::vector<LoopRef> parts = Get(Split(s, Get(GetLoops(s, moved)).back(), {-1, lanes}));
    Do(Unroll(s, parts[0]));
    Do(Vectorize(s, parts[1]));
  }
  Do(Unroll(s, i[1]));
  Do(Unroll(s, j[1]));
  Do(Tensorize(s, i[2], intrinsic));
  return s;
}

class MatrixRegisterTest : public ::testing::TestWithParam<InstructionCase> {};
// The body of the loop along k: 16 products and loads of their factors, of which four pairs of rows come by halves.
// Sums are not moved about.
TEST_P(MatrixRegisterTest, SumsStayInRegistersAcrossTheLoop) {
  const InstructionCase& c = GetParam();
  const std::string name = Mnemonic(c.instruction->function);
  const Schedule s = InMatrixRegisters(GroupedProduct(c.intrinsic(), 16, 24, 80), c.intrinsic());
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed("cpu:neoverse-n2"));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, absl::StrCat("\t", name, "\t")), 16) << *text;
  const size_t product = text->find(name), begin = text->rfind("\n.L", product);
  const std::string body = text->substr(begin, text->find("\tb.", product) - begin);
  EXPECT_EQ(CountOf(body, "\tmov\tv") + CountOf(body, "\tld1"), 4) << body;
  for (const char* moves : {"\tzip", "\tuzp", "\ttrn", "\text", "\tst", "[sp"})
    EXPECT_EQ(CountOf(body, moves), 0) << body;
}
TEST_P(MatrixRegisterTest, EveryPassKeepsTheResult) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 16, 8, 80);
  ExpectPassesKeep(InMatrixRegisters(workload, GetParam().intrinsic()), TargetNamed("cpu:neoverse-n2"),
                   GetParam().intrinsic());
}
TEST_P(MatrixRegisterTest, DoesWhatTheIntrinsicMeans) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 16, 24, 80);
  const Target target = TargetNamed("cpu:neoverse-n2");
  ExpectComputes(InMatrixRegisters(workload, GetParam().intrinsic()), workload, target, target.cpu);
}
TEST_P(MatrixRegisterTest, OtherwiseItIsLoops) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 16, 24, 80);
  ExpectComputes(InMatrixRegisters(workload, GetParam().intrinsic()), workload, HostTarget());
}
INSTANTIATE_TEST_SUITE_P(Rows, MatrixRegisterTest, ::testing::ValuesIn(InstructionsOnVectors(/*matrices=*/true)),
                         [](const auto& info) { return Mnemonic(info.param.instruction->function); });

// Sums of float16 as the program has them: vectors that stay in float16 where the target adds and multiplies them
// there.
PrimFunc HalfProduct(int64_t m, int64_t n, int64_t k) {
  const DType half = DType::Float(16);
  const te::Tensor a = te::Placeholder({m, k}, half, "A"), b = te::Placeholder({k, n}, half, "B");
  const te::ReduceAxis l(k, "k");
  const te::Tensor c = te::Compute({m, n}, [&](const te::Indices& i) { return te::Sum(a(i[0], l) * b(l, i[1]), {l}); },
                                   "C", {.axes = {"i", "j"}});
  return te::CreatePrimFunc({a, b}, {c}, "main");
}
Schedule InHalfVectors(const PrimFunc& workload, int64_t lanes) {
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const BlockRef copy = Get(CacheWrite(s, block, 0, Scope::kRegister));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, 6})), j = Get(Split(s, loops[1], {-1, lanes}));
  Do(Reorder(s, {i[0], j[0], loops[2], i[1], j[1]}));
  Do(ReverseComputeAt(s, copy, j[0]));
  const BlockRef init = Get(DecomposeReduction(s, block, loops[2]));
  for (const BlockRef moved : {init, copy}) Do(Vectorize(s, Get(GetLoops(s, moved)).back()));
  Do(Unroll(s, i[1]));
  Do(Tensorize(s, j[1], "axpy_f16"));
  return s;
}

struct HalfCase {
  const char* name;
  const char* target;
  int64_t lanes;
  const char* instruction;
};
class HalfSumsTest : public ::testing::TestWithParam<HalfCase> {};
TEST_P(HalfSumsTest, AreOneInstructionAVector) {
  const Schedule s = InHalfVectors(HalfProduct(12, 64, 40), GetParam().lanes);
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(GetParam().target));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, GetParam().instruction), 6) << *text;
  EXPECT_EQ(CountOf(*text, "cvt"), 0) << "float32 in between: " << *text;
}
TEST_P(HalfSumsTest, DoWhatTheProgramSays) {
  const Target target = TargetNamed(GetParam().target);
  const bool emulated = target.arch == "aarch64";
  if (const std::string missing = MissingFeatures(target, HostTarget()); !emulated && !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing;
  const PrimFunc workload = HalfProduct(12, 64, 40);
  ExpectComputes(InHalfVectors(workload, GetParam().lanes), workload, target, emulated ? target.cpu : "");
}
INSTANTIATE_TEST_SUITE_P(Cases, HalfSumsTest,
                         ::testing::Values(HalfCase{"Avx512", "cpu:x86-64-v4+avx512fp16", 32, "\tvfmadd231ph"},
                                           HalfCase{"Avx512Narrow", "cpu:x86-64-v4+avx512fp16", 16, "\tvfmadd231ph"},
                                           HalfCase{"Neon", "cpu:cortex-a76", 8, "\tfmla\tv"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TileOp, WithoutTheInstructionItIsLoops) {
  const PrimFunc workload = DotOf("dot4_s8s8_s32", 19, 3);
  ExpectComputes(Tensorized(workload, 8, "dot4_s8s8_s32"), workload, HostTarget());
}

}  // namespace
}  // namespace hone::testing
