// What programs of TVM do with fragments of tensor cores is read as loops over the buffers that a block matches.
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/parse_or_die.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// A is loaded into a fragment from the second 16 rows and columns on.
constexpr char kLoads[] = R"(
@T.prim_func
def main(X: T.Buffer((32, 64), "float16"), Y: T.Buffer((16, 16), "float16")):
    F = T.alloc_buffer((16, 32), "float16", scope="wmma.matrix_a")
    for w in T.thread_binding(1, thread="threadIdx.y"):
        with T.block("load"):
            vw = T.axis.spatial(1, w)
            A = T.match_buffer(X[16:32, 16:32], (16, 16), "float16", strides=("a0", "a1"), offset_factor=16)
            C = T.match_buffer(F[0:16, 16:32], (16, 16), "float16", strides=("c0", "c1"), scope="wmma.matrix_a", offset_factor=16)
            T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // C.strides[0] // 16 * (C.strides[0] // 16) + C.elem_offset % C.strides[0] // 16, T.tvm_access_ptr(T.type_annotation("float16"), A.data, A.elem_offset, A.strides[0] * 16, 1), A.strides[0], "row_major")
        for i, j in T.grid(16, 16):
            with T.block("store"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = F[vi, vj + 16]
)";

TEST(TextFragmentTest, ALoadIsACopy) {
  const std::string text = ToText(ParseOrDie(kLoads));
  EXPECT_THAT(text, HasSubstr("F = T.alloc_buffer((16, 32), \"float16\", scope=\"warp\")"));
  EXPECT_THAT(text, HasSubstr("C[i, j] = A[i, j]"));
  EXPECT_TRUE(StructuralEqual(ParseOrDie(text), ParseOrDie(kLoads))) << text;
}

TEST(TextFragmentTest, AMatrixMayLieByColumns) {
  const std::string text = ToText(ParseOrDie(absl::StrReplaceAll(kLoads, {{"row_major", "col_major"}})));
  EXPECT_THAT(text, HasSubstr("C[i, j] = A[j, i]"));
}

TEST(TextFragmentTest, AProductIsASumInTheTypeOfTheSums) {
  const auto matched = [](const char* name, const char* type) {
    return absl::StrReplaceAll(
        "        N = T.match_buffer(W[0:16, 0:16], (16, 16), \"TYPE\", strides=(\"N0\", \"N1\"), scope=\"warp\")\n",
        {{"N", name}, {"W", absl::StrCat("W", name)}, {"TYPE", type}});
  };
  const auto number = [](const char* name) {
    return absl::StrReplaceAll(
        "N.data, N.elem_offset // N.strides[0] // 16 * (N.strides[0] // 16) + N.elem_offset % N.strides[0] // 16",
        {{"N", name}});
  };
  const std::string text =
      absl::StrCat(R"(
@T.prim_func
def main():
    WA = T.alloc_buffer((16, 16), "float16", scope="wmma.matrix_a")
    WB = T.alloc_buffer((16, 16), "float16", scope="wmma.matrix_b")
    WC = T.alloc_buffer((16, 16), "float32", scope="wmma.accumulator")
    with T.block("product"):
)",
                   matched("A", "float16"), matched("B", "float16"), matched("C", "float32"), "        T.tvm_mma_sync(",
                   number("C"), ", ", number("A"), ", ", number("B"), ", ", number("C"), ")\n");
  EXPECT_THAT(ToText(ParseOrDie(text)),
              HasSubstr("C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[k, j])"));
}

// Each place is twice the one before it.
TEST(TextFragmentTest, PlacesMadeOfPlacesAreLimited) {
  std::string text = R"(
@T.prim_func
def main(X: T.Buffer((4096,), "float32")):
    for p in range(1):
        with T.block("parts"):
            B0 = T.match_buffer(X[p:p + 1], (1,), "float32")
)";
  for (int i = 1; i < 40; ++i) {
    const std::string before = absl::StrCat("B", i - 1, ".elem_offset + B", i - 1, ".elem_offset");
    absl::StrAppend(&text, "            B", i, " = T.match_buffer(X[", before, ":", before,
                    " + 1], (1,), \"float32\")\n");
  }
  absl::StrAppend(&text, "            B0[0] = T.float32(0)\n");
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  ASSERT_FALSE(func.ok());
  EXPECT_THAT(std::string(func.status().message()), HasSubstr("this expression is deeper than 800 operations"));
}

struct Mistake {
  const char *name, *from, *to, *message;
};
constexpr Mistake kMistakes[] = {
    {"AnotherFragment", "C.elem_offset % C.strides[0] // 16,", "C.elem_offset % C.strides[0] // 16 + 1,",
     "found a fragment's number "},
    {"AnotherStart", "A.data, A.elem_offset,", "A.data, A.elem_offset + 16,", "found a matrix's start "},
    {"LongerRows", "1), A.strides[0],", "1), A.strides[0] * 2,", "found a row's length "},
    {"AnotherProduct", "C.data, 16, 16, 16,", "C.data, 8, 32, 16,",
     "a fragment of a product of 8 by 32 by 16 in a buffer of another size"},
    {"NoMatrix", "A.data, A.elem_offset", "X.data, A.elem_offset", "`X` is no matrix that its block matches"},
    {"NoDimension", "1), A.strides[0],", "1), A.strides[2],", "a stride of a dimension that a buffer of 2 has not"},
    {"NoLayout", "row_major", "diagonal", "a layout \"diagonal\"; expected \"row_major\" or \"col_major\""},
};
class FragmentMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(FragmentMistakes, AreNamed) {
  const std::string text = absl::StrReplaceAll(kLoads, {{GetParam().from, GetParam().to}});
  ASSERT_NE(text, kLoads);
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  ASSERT_FALSE(func.ok());
  EXPECT_THAT(std::string(func.status().message()), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(Texts, FragmentMistakes, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
