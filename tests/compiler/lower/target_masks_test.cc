// Targets without masks: vectors where all lanes are on, each lane for itself where not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/lower/loops/lane_conditions.h"
#include "compiler/lower/passes.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

struct MasksCase {
  const char* name;
  const char* body;     // of a loop over `o` from 0 to 3
  bool by_versions;     // rather than lane by lane under a mask, which is said
  int masked_bits = 0;  // of the target
};
class TargetMasks : public ::testing::TestWithParam<MasksCase> {};

TEST_P(TargetMasks, AreUsedWhereThereAreAny) {
  const MasksCase& param = GetParam();
  const PrimFunc func = ParseOrDie(absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((24,), "float32"), N: T.Buffer((24,), "int16"), C: T.Buffer((24,), "float32"), D: T.Buffer((24,), "int16")):
    for z in range(24):
        C[z] = T.float32(7)
        D[z] = T.int16(7)
    for o in range(3):
        for i in T.vectorized(8):
)",
                                                param.body));
  const LowerOptions options{.masked_bits = param.masked_bits};
  const absl::StatusOr<PrimFunc> lowered = VectorizeLoops(func, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(NarrowestMasked(lowered->body).has_value(), !param.by_versions) << ToText(*lowered);
  const bool has_masks = param.masked_bits == 16;
  EXPECT_EQ(SerialLoops(*lowered).empty(), param.by_versions || has_masks) << ToText(*lowered);
  CheckPasses(func, options);
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, TargetMasks,
    ::testing::Values(
        MasksCase{"Tail", "            if o * 8 + i < 19:\n                C[o * 8 + i] = A[o * 8 + i]\n", true},
        MasksCase{"BothEnds",
                  "            if 2 <= o * 8 + i and o * 8 + i < 19:\n"
                  "                C[o * 8 + i] = A[o * 8 + i]\n",
                  true},
        MasksCase{"Padding",
                  "            C[o * 8 + i] = T.if_then_else(1 <= o * 8 + i and o * 8 + i < 20, "
                  "A[o * 8 + i - 1], T.float32(0))\n",
                  true},
        MasksCase{"ElementsWithoutMasks",
                  "            if o * 8 + i < 19:\n                D[o * 8 + i] = N[o * 8 + i]\n", true, 32},
        MasksCase{"ElementsWithMasks", "            if o * 8 + i < 19:\n                D[o * 8 + i] = N[o * 8 + i]\n",
                  false, 16},
        MasksCase{"ByWhatIsRead",
                  "            if T.float32(0) < A[o * 8 + i]:\n                C[o * 8 + i] = T.float32(1)\n", false}),
    [](const auto& info) { return std::string(info.param.name); });

// A vector may be read with what is behind the registers, and no further.
TEST(RegistersReadWhole, AsFarAsThereIsMemory) {
  const auto masked_loads = [](int64_t registers, int64_t begin) {
    const PrimFunc func = ParseOrDie(absl::StrCat(R"(
@T.prim_func
def main(C: T.Buffer((64,), "int8")):
    R = T.allocate(()",
                                                  registers, R"(,), "int8", scope="local")
    for o in range(9):
        for i in T.vectorized(64):
            if )",
                                                  begin, " + o * 64 + i < ", registers, R"(:
                C[i] = R[)",
                                                  begin, R"( + o * 64 + i]
)"));
    const absl::StatusOr<PrimFunc> lowered = VectorizeLoops(func, {.vector_bits = 512});
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    int masked = 0;
    ForEachExpr(lowered->body, [&](const Expr& e) {
      if (const Load* load = e.As<Load>()) masked += load->mask ? 1 : 0;
      return true;
    });
    return masked;
  };
  EXPECT_EQ(masked_loads(62 + 8 * 64, 0), 0);
  EXPECT_EQ(masked_loads(62 + 8 * 64 - kBehindRegisters, 0), 1);
}

}  // namespace
}  // namespace hone
