#include "tests/compiler/codegen/tiles/tile_programs.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/target/cpu_table.h"
#include "compiler/te/te.h"
#include "tests/boards/run_on_board.h"
#include "tests/compiler/schedule/expect.h"

namespace hone::testing {

Target TargetNamed(const std::string& text) {
  absl::StatusOr<Target> target = ParseTarget(text);
  HONE_CHECK(target.ok()) << target.status();
  return *std::move(target);
}

std::string TargetWith(const std::string& feature) {
  // Whether it is not emulated, and how many features it has.
  std::pair<bool, size_t> least;
  std::string found;
  for (const CpuInfo& cpu : CpuTable()) {
    const std::set<std::string> features = absl::StrSplit(std::string(cpu.features), ' ');
    if (features.count(feature) == 0) continue;
    std::string name(cpu.name);
    // A board may be a core without what the emulator lacks.
    if (const std::string without = name + "-zicond"; std::filesystem::exists(BoardRunner(without))) name = without;
    const std::pair<bool, size_t> costs(!std::filesystem::exists(BoardRunner(name)), features.size());
    if (!found.empty() && costs >= least) continue;
    least = costs;
    found = absl::StrCat("cpu:", name);
  }
  return found;
}

// Behind "llvm.aarch64.neon." comes the name, and behind it the types. Behind "llvm.x86." comes a feature, which
// functions on tile registers do not have, then the name, which may have dots in it, and the bits of a vector.
std::string Mnemonic(const std::string& function) {
  if (!absl::StartsWith(function, "llvm.")) return function;
  constexpr absl::string_view kNeon = "llvm.aarch64.neon.", kX86 = "llvm.x86.";
  if (absl::StartsWith(function, kNeon))
    return function.substr(kNeon.size(), function.find('.', kNeon.size()) - kNeon.size());
  if (!absl::StartsWith(function, kX86)) return "";
  std::vector<std::string> parts = absl::StrSplit(function.substr(kX86.size()), '.');
  if (parts.size() > 1) parts.erase(parts.begin());
  std::string name;
  for (const std::string& part : parts) {
    if (part != "128" && part != "256" && part != "512") name += part;
  }
  return name;
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<InstructionCase> InstructionsOnVectors(bool matrices) {
  std::vector<InstructionCase> cases;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads > 1 || row.token != AsyncToken::kNone || row.in_tiles() || row.in_rows() != matrices) continue;
    for (const TileInstruction& instruction : row.instructions) cases.push_back({&row, &instruction});
  }
  return cases;
}

std::vector<InstructionCase> ProductsInTiles() {
  std::vector<InstructionCase> cases;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (!row.in_tiles() || row.operands.size() != 3) continue;
    for (const TileInstruction& instruction : row.instructions) cases.push_back({&row, &instruction});
  }
  return cases;
}

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

Schedule InTileRegisters(const PrimFunc& workload, const char* intrinsic, const TileSizes& sizes, bool parallel) {
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
    // Of one tile down or across there may be no loop.
    for (size_t l = 0; l + 2 < inner.size(); ++l) Do(Unroll(s, inner[l]));
    Do(Tensorize(s, inner[inner.size() - 2], name));
  }
  Do(Unroll(s, i[1]));
  Do(Unroll(s, j[1]));
  if (parallel) Do(Parallel(s, i[0]));
  Do(Tensorize(s, i[2], intrinsic));
  return s;
}

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

}  // namespace hone::testing
