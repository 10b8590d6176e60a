// ldmatrix: where lanes get which elements, from the rows that lanes name, and what is wrong by name.
#include <algorithm>
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

struct Variant {
  std::string name, type;
  int matrices;
  bool transposed;

  int group() const { return 4 / ParseDType(type)->bytes(); }  // elements of a 32-bit register
};
// A case for every load of the registry that a warp does.
std::vector<Variant> Variants() {
  std::vector<Variant> variants;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads == 1 || row.operands.size() != 2 || row.operands[1].scope() != Scope::kShared) continue;
    const IterVar* i = row.FindAxis("i");
    const int64_t matrices = i == nullptr ? 0 : ConstantValue(i->domain.extent).value_or(0);
    variants.push_back({row.name, ToText(row.operands[0].type()), static_cast<int>(matrices),
                        row.name.find("_trans") != std::string::npos});
  }
  return variants;
}
Variant VariantOf(const char* name) {
  const std::vector<Variant> variants = Variants();
  return *std::ranges::find(variants, name, &Variant::name);
}

// Row and column of register i of a lane, as the PTX ISA has them, section 9.7.14.5.15: lane t gets fragment t % 4 of
// row t / 4 of each matrix; of a transposed one, rows and columns are exchanged. The row counts through all matrices.
struct Place {
  int row, column;
};
Place PlaceOf(const Variant& variant, int lane, int i) {
  const int group = variant.group(), matrix = i / group, element = lane % 4 * group + i % group;
  return variant.transposed ? Place{matrix * 8 + element, lane / 4} : Place{matrix * 8 + lane / 4, element};
}

class WarpLoadTest : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(Variants, WarpLoadTest, testing::ValuesIn(Variants()),
                         [](const auto& info) { return info.param.name; });

TEST_P(WarpLoadTest, LayoutIsThatOfThePtxIsaAndABijection) {
  const TileIntrinsic* row = FindTileIntrinsic(GetParam().name);
  EXPECT_EQ(row->threads, 32);
  EXPECT_FALSE(row->accumulates);
  EXPECT_EQ(row->operands[0].scope(), Scope::kRegister);
  EXPECT_EQ(row->operands[1].scope(), Scope::kShared);
  ASSERT_EQ(row->instructions.size(), 1u);
  EXPECT_EQ(row->instructions[0].feature, kMatrixLoadFeature);
  EXPECT_EQ(row->instructions[0].function, absl::StrCat("ldmatrix.sync.aligned.m8n8.x", GetParam().matrices,
                                                        GetParam().transposed ? ".trans" : "", ".shared.b16"));
  const Store* update = row->update.As<Store>();
  const Load* load = update->value.As<Load>();
  const int columns = 4 * GetParam().group();
  std::set<std::pair<int64_t, int64_t>> to, from;
  for (int i = 0; i < GetParam().matrices; ++i) {
    for (int r = 0; r < 8; ++r) {
      for (int c = 0; c < columns; ++c) {
        const auto at = [&](const Expr& index) {
          return *ConstantValue(Analyzer().Simplify(Substitute(index, [&](const Var& axis) -> std::optional<Expr> {
            return Expr(axis.name() == "i" ? i : axis.name() == "r" ? r : c);
          })));
        };
        const int64_t lane = at(update->indices[0]), reg = at(update->indices[1]);
        ASSERT_TRUE(to.emplace(lane, reg).second) << "two elements in lane " << lane << ", register " << reg;
        ASSERT_TRUE(from.emplace(at(load->indices[0]), at(load->indices[1])).second);
        const Place place = PlaceOf(GetParam(), static_cast<int>(lane), static_cast<int>(reg));
        EXPECT_EQ(place.row, at(load->indices[0]));
        EXPECT_EQ(place.column, at(load->indices[1]));
      }
    }
  }
  EXPECT_EQ(to.size(), static_cast<size_t>(32 * GetParam().matrices * GetParam().group()));
  EXPECT_EQ(to.rbegin()->first, 31);
  EXPECT_EQ(from.rbegin()->first, GetParam().matrices * 8 - 1);
}

// Two warps; rows are as long as two matrices are wide, and each warp loads those of its half. Lanes beyond the rows
// name some row all the same.
std::string Program(const Variant& variant) {
  return absl::StrReplaceAll(
      R"(
@T.prim_func
def main(A: T.Buffer((32, WIDE), "TYPE"), C: T.Buffer((2, 32, REGS), "TYPE")):
    for w in T.thread_binding(2, thread="threadIdx.y"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S = T.allocate((32, WIDE), "TYPE", scope="shared")
            d = T.allocate((REGS,), "TYPE", scope="local")
            for j in range(LENGTH):
                S[t, w * LENGTH + j] = A[t, w * LENGTH + j]
            T.tvm_storage_sync("shared")
            T.tile_op("NAME", d[0:REGS], S[t % ROWS, w * LENGTH:w * LENGTH + LENGTH], accumulates=False)
            for i in range(REGS):
                C[w, t, i] = d[i]
)",
      {{"WIDE", absl::StrCat(8 * variant.group())},
       {"LENGTH", absl::StrCat(4 * variant.group())},
       {"REGS", absl::StrCat(variant.matrices * variant.group())},
       {"ROWS", absl::StrCat(8 * variant.matrices)},
       {"TYPE", variant.type},
       {"NAME", variant.name}});
}

TEST_P(WarpLoadTest, EveryLaneGetsItsElements) {
  const PrimFunc f = CheckedProgram(Program(GetParam()));
  const int regs = GetParam().matrices * GetParam().group(), wide = 8 * GetParam().group();
  for (const bool exact : {false, true}) {
    std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kInteger);
    const absl::Status ran = Interpret(f, args, {.double_accumulation = exact});
    ASSERT_TRUE(ran.ok()) << ran;
    for (int w = 0; w < 2; ++w) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < regs; ++i) {
          const Place from = PlaceOf(GetParam(), lane, i);
          ASSERT_EQ(args[1].Get((w * 32 + lane) * regs + i), args[0].Get(from.row * wide + w * wide / 2 + from.column))
              << "warp " << w << ", lane " << lane << ", register " << i;
        }
      }
    }
  }
}

struct WrongCase {
  const char *name, *from, *to, *message;
};
class WrongLoadTest : public testing::TestWithParam<WrongCase> {};
TEST_P(WrongLoadTest, IsNamed) {
  const std::string right = Program(VariantOf("ldmatrix_x2_bf16"));
  const std::string text = absl::StrReplaceAll(right, {{GetParam().from, GetParam().to}});
  ASSERT_NE(text, right);
  const PrimFunc f = CheckedProgram(text);
  std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kInteger);
  EXPECT_THAT(std::string(Interpret(f, args).message()), testing::HasSubstr(GetParam().message));
}
constexpr char kNamed[] = "S[t % 16, w * 8:w * 8 + 8]";
INSTANTIATE_TEST_SUITE_P(
    Cases, WrongLoadTest,
    testing::Values(WrongCase{"NoBarrier", "            T.tvm_storage_sync(\"shared\")\n", "", "data race for S["},
                    WrongCase{"BetweenRows", kNamed, "S[t % 16, w * 4:w * 4 + 8]",
                              "misaligned row: threadIdx.x = 0, threadIdx.y = 1 names S[0, 4] in "},
                    WrongCase{"BeyondTheEnd", kNamed, "S[t % 16 + 17, w * 8:w * 8 + 8]",
                              "index 0 of S is 32, outside of [0, 32)"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WarpLoads, ARowOfALaneThatDoesNotCountMayBeAnywhere) {
  const Variant variant = VariantOf("ldmatrix_x2_bf16");
  const PrimFunc f = CheckedProgram(absl::StrReplaceAll(Program(variant), {{"S[t % 16, w * 8:", "S[t, w * 8:"}}));
  std::vector<NdArray> args = RandomArguments(f, 7, InputKind::kInteger);
  EXPECT_TRUE(Interpret(f, args).ok());
}

TEST(WarpLoads, AreFromSharedMemory) {
  const std::string text =
      absl::StrReplaceAll(Program(VariantOf("ldmatrix_x1_f16")), {{"scope=\"shared\"", "scope=\"local\""}});
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  ASSERT_TRUE(f.ok()) << f.status();
  EXPECT_THAT(std::string(Verify(*f).message()),
              testing::HasSubstr("ldmatrix_x1_f16: operand 1 (S) is in shared memory, S in scope local"));
}

TEST(WarpLoads, AreFoundByWhatTheyLoad) {
  const std::set<std::string> features = {kMatrixLoadFeature};
  EXPECT_EQ(FindMatrixLoad(DType::BFloat16(), 8, false, features)->name, "ldmatrix_x4_bf16");
  EXPECT_EQ(FindMatrixLoad(DType::Float(16), 4, true, features)->name, "ldmatrix_x2_trans_f16");
  EXPECT_EQ(FindMatrixLoad(DType::Int(8), 8, false, features)->name, "ldmatrix_x2_s8");
  EXPECT_EQ(FindMatrixLoad(DType::Int(8), 8, true, features), nullptr);
  EXPECT_EQ(FindMatrixLoad(DType::BFloat16(), 8, false, {}), nullptr);
}

}  // namespace
}  // namespace hone
