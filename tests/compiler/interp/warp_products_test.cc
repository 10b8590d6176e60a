// mma.sync: where lanes hold the elements, what a warp computes, and who has to come to it.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/arith/analyzer.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/interp/checked_program.h"

namespace hone {
namespace {

struct Shape {
  std::string name;
  int k;
  std::string left, right, sum;

  int group() const { return 4 / ParseDType(left)->bytes(); }  // elements of a 32-bit register
};
// A case for every product of the registry that a warp does.
std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads == 1 || row.operands.size() != 3) continue;
    const IterVar* k = row.FindAxis("k");
    const int64_t terms = k == nullptr ? 0 : ConstantValue(k->domain.extent).value_or(0);
    shapes.push_back({row.name, static_cast<int>(terms), ToText(row.operands[1].type()), ToText(row.operands[2].type()),
                      ToText(row.operands[0].type())});
  }
  return shapes;
}
Shape ShapeOf(const char* name) {
  const std::vector<Shape> shapes = Shapes();
  return *std::ranges::find(shapes, name, &Shape::name);
}

// Row and column of register i of a lane, as the PTX ISA has them, section 9.7.14.5, of m16n8k8 to m16n8k32: by the
// lane's group (lane / 4) and its number in the group, formulas apart from those of the table of intrinsics. Elements
// of a 32-bit register are neighbours; A has rows 8 apart in one register after the other, then columns, B has rows.
struct Place {
  int row, column;
};
Place PlaceOfA(int group, int lane, int i) {
  const int reg = i / group;
  return {lane / 4 + reg % 2 * 8, lane % 4 * group + i % group + reg / 2 * 4 * group};
}
Place PlaceOfB(int group, int lane, int i) { return {lane % 4 * group + i % group + i / group * 4 * group, lane / 4}; }
Place PlaceOfC(int lane, int i) { return {i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)}; }

class WarpProductTest : public testing::TestWithParam<Shape> {};

// The layout of an operand: its (lane, register) for every value of the axes.
TEST_P(WarpProductTest, LayoutsAreThoseOfThePtxIsaAndBijections) {
  const TileIntrinsic* row = FindTileIntrinsic(GetParam().name);
  EXPECT_EQ(row->threads, 32);
  const int group = GetParam().group();
  std::map<std::string, std::vector<Expr>> layouts;  // of A, B and C
  const auto note = [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) layouts[load->buffer.name()] = load->indices;
    return true;
  };
  ForEachExpr(row->update, note);
  ASSERT_EQ(layouts.size(), 3u);
  for (const auto& [name, indices] : layouts) {
    SCOPED_TRACE(name);
    std::set<std::pair<int64_t, int64_t>> used;
    const int rows = name == "B" ? GetParam().k : 16, columns = name == "A" ? GetParam().k : 8;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const auto at = [&](const Expr& index) {
          return *ConstantValue(Analyzer().Simplify(Substitute(index, [&](const Var& axis) -> std::optional<Expr> {
            const std::string first = name == "B" ? "k" : "m";
            return Expr(axis.name() == first ? r : c);
          })));
        };
        const int lane = static_cast<int>(at(indices[0])), reg = static_cast<int>(at(indices[1]));
        ASSERT_TRUE(used.emplace(lane, reg).second) << "two elements in lane " << lane << ", register " << reg;
        const Place place = name == "A"   ? PlaceOfA(group, lane, reg)
                            : name == "B" ? PlaceOfB(group, lane, reg)
                                          : PlaceOfC(lane, reg);
        EXPECT_EQ(place.row, r);
        EXPECT_EQ(place.column, c);
      }
    }
    EXPECT_EQ(static_cast<int>(used.size()), rows * columns);
    EXPECT_EQ(rows * columns % 32, 0);
    EXPECT_EQ(used.rbegin()->first, 31);
  }
}

// One product by two warps, each of its own rows: fragments are loaded element by element as the PTX ISA lays them out.
std::string Product(const Shape& shape) {
  const int group = shape.group(), half = 4 * group;
  return absl::StrReplaceAll(
      R"(
@T.prim_func
def main(A: T.Buffer((32, K), "LEFT"), B: T.Buffer((K, 8), "RIGHT"), C: T.Buffer((32, 8), "SUM")):
    for w in T.thread_binding(2, thread="threadIdx.y"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            a = T.allocate((A_REGS,), "LEFT", scope="local")
            b = T.allocate((B_REGS,), "RIGHT", scope="local")
            c = T.allocate((4,), "SUM", scope="local")
            for i in range(A_REGS):
                a[i] = A[w * 16 + t // 4 + i // GROUP % 2 * 8, t % 4 * GROUP + i % GROUP + i // (2 * GROUP) * HALF]
            for i in range(B_REGS):
                b[i] = B[t % 4 * GROUP + i % GROUP + i // GROUP * HALF, t // 4]
            for i in range(4):
                c[i] = T.SUM(1)
            T.tile_op("NAME", c[0:4], a[0:A_REGS], b[0:B_REGS])
            for i in range(4):
                C[w * 16 + t // 4 + i // 2 * 8, t % 4 * 2 + i % 2] = c[i]
)",
      {{"A_REGS", absl::StrCat(shape.k / 2)},
       {"B_REGS", absl::StrCat(shape.k / 4)},
       {"LEFT", shape.left},
       {"RIGHT", shape.right},
       {"SUM", shape.sum},
       {"NAME", shape.name},
       {"GROUP", absl::StrCat(group)},
       {"HALF", absl::StrCat(half)},
       {"K", absl::StrCat(shape.k)}});
}

TEST_P(WarpProductTest, EveryWarpComputesTheProduct) {
  const PrimFunc f = CheckedProgram(Product(GetParam()));
  std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kInteger);
  for (const bool exact : {false, true}) {
    const absl::Status ran = Interpret(f, args, {.double_accumulation = exact});
    ASSERT_TRUE(ran.ok()) << ran;
    for (int64_t i = 0; i < 32; ++i) {
      for (int64_t j = 0; j < 8; ++j) {
        double sum = 1;
        for (int64_t k = 0; k < GetParam().k; ++k) sum += args[0].Get(i * GetParam().k + k) * args[1].Get(k * 8 + j);
        ASSERT_EQ(args[2].Get(i * 8 + j), sum) << i << " " << j;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, WarpProductTest, testing::ValuesIn(Shapes()),
                         [](const auto& info) { return info.param.name; });

struct IncompleteCase {
  const char *name, *from, *to, *message;
};
class IncompleteWarpTest : public testing::TestWithParam<IncompleteCase> {};
TEST_P(IncompleteWarpTest, IsNamed) {
  const std::string right = Product(ShapeOf("mma_m16n8k8_f16f16_f32"));
  const std::string text = absl::StrReplaceAll(right, {{GetParam().from, GetParam().to}});
  ASSERT_NE(text, right);
  const PrimFunc f = CheckedProgram(text);
  std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kInteger);
  EXPECT_EQ(Interpret(f, args, {.check_uninitialised = false}).message(), GetParam().message);
}
constexpr char kOperation[] = "            T.tile_op(\"mma_m16n8k8_f16f16_f32\", c[0:4], a[0:4], b[0:2])\n";
INSTANTIATE_TEST_SUITE_P(
    Cases, IncompleteWarpTest,
    testing::Values(
        IncompleteCase{"OneLaneLeavesItOut", kOperation,
                       "            if t < 31 or w < 1:\n"
                       "                T.tile_op(\"mma_m16n8k8_f16f16_f32\", c[0:4], a[0:4], b[0:2])\n",
                       "interpreting main: incomplete warp: thread threadIdx.x = 0, threadIdx.y = 1 is at "
                       "mma_m16n8k8_f16f16_f32, which takes all 32 lanes of its warp, and lane 31 has ended"},
        IncompleteCase{"OneLaneWaitsAtABarrier", kOperation,
                       "            if t == 4:\n"
                       "                T.tvm_storage_sync(\"shared\")\n"
                       "            T.tile_op(\"mma_m16n8k8_f16f16_f32\", c[0:4], a[0:4], b[0:2])\n",
                       "interpreting main: incomplete warp: thread threadIdx.x = 0, threadIdx.y = 0 is at "
                       "mma_m16n8k8_f16f16_f32, which takes all 32 lanes of its warp, and lane 4 waits at a barrier"},
        IncompleteCase{"OtherIterations", kOperation,
                       "            for r in range(3):\n"
                       "                if (t + r) % 2 == 0:\n"
                       "                    T.tile_op(\"mma_m16n8k8_f16f16_f32\", c[0:4], a[0:4], b[0:2])\n",
                       "interpreting main: incomplete warp: thread threadIdx.x = 0, threadIdx.y = 0 is at "
                       "mma_m16n8k8_f16f16_f32, which takes all 32 lanes of its warp, and lane 1 is there with r = 1, "
                       "not 0"},
        IncompleteCase{"HalfAWarp", "T.thread_binding(32", "T.thread_binding(24",
                       "interpreting main: incomplete warp: thread threadIdx.x = 8, threadIdx.y = 1 is at "
                       "mma_m16n8k8_f16f16_f32, which takes all 32 lanes of its warp, and lane 16 is none of the "
                       "block's threads"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WarpProductsTest, OperandsAreRegistersOfEachThread) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(absl::StrReplaceAll(
      Product(ShapeOf("mma_m16n8k8_f16f16_f32")),
      {{"T.allocate((4,), \"float32\", scope=\"local\")", "T.allocate((4,), \"float32\", scope=\"shared\")"}}));
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_EQ(Verify(*f).message(),
            "tile-op: function main: mma_m16n8k8_f16f16_f32: operand 0 (C) is in registers of each thread, c in scope "
            "shared");
}

TEST(WarpProductsTest, StandAmongThreads) {
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(absl::StrReplaceAll(
      Product(ShapeOf("mma_m16n8k8_f16f16_f32")), {{"T.thread_binding(32, thread=\"threadIdx.x\")", "range(32)"},
                                                   {"T.thread_binding(2, thread=\"threadIdx.y\")", "range(2)"}}));
  ASSERT_TRUE(f.ok()) << f.status();
  std::vector<NdArray> args = RandomArguments(*f, 7, InputKind::kInteger);
  EXPECT_EQ(Interpret(*f, args).message(),
            "interpreting main: mma_m16n8k8_f16f16_f32 is done by 32 threads of a launch together, and stands outside "
            "of them");
}

}  // namespace
}  // namespace hone
