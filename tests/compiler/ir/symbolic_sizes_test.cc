#include "compiler/ir/symbolic_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/structural.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// B[i] = A[i] + A[i + 2] over n elements, and C of 8 * m + 1; `sizes` says n and m.
absl::StatusOr<PrimFunc> Parse(const std::string& sizes) {
  return ParsePrimFunc("@T.prim_func\ndef main(" + sizes + R"(, A: T.Buffer((n + 2,), "float32"),
         C: T.Buffer((m * 8 + 1,), "float32"), B: T.Buffer((n,), "float32")):
    D = T.alloc_buffer((n, 3), "float32")
    for i in range(n):
        with T.block("D"):
            v = T.axis.spatial(n, i)
            D[v, 1] = A[v] + C[0]
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            B[v] = D[v, 1] + A[v + 2]
)");
}

TEST(SymbolicSizes, RangesAreReadPrintedAndPartOfTheProgram) {
  const absl::StatusOr<PrimFunc> func = Parse("n: T.int32(1, 512), m: T.int32");
  ASSERT_TRUE(func.ok()) << func.status();
  EXPECT_TRUE(Verify(*func).ok()) << Verify(*func);
  ASSERT_EQ(func->dims.size(), 2u);
  EXPECT_EQ(func->dims[0].range(), (SizeRange{1, 512}));
  EXPECT_EQ(func->dims[1].range(), SizeRange{});
  EXPECT_THAT(ToText(*func), HasSubstr("(n: T.int32(1, 512), m: T.int32, A:"));
  const absl::StatusOr<PrimFunc> again = ParsePrimFunc(ToText(*func));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(StructuralEqual(*func, *again));
  EXPECT_EQ(StructuralHash(*func), StructuralHash(*again));
  const absl::StatusOr<PrimFunc> other = Parse("n: T.int32(1, 511), m: T.int32");
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(StructuralEqual(*func, *other));
  EXPECT_NE(StructuralHash(*func), StructuralHash(*other));
  for (const char* wrong : {"(5, 4)", "(-1, 4)", "(1)", "(1, n)", "(1, 2, 3)"}) {
    EXPECT_THAT(std::string(Parse(std::string("n: T.int32") + wrong + ", m: T.int32").status().message()),
                HasSubstr("the range of a symbolic size is (least, greatest)"))
        << wrong;
  }
}

TEST(SymbolicSizes, FollowFromTheShapesOfArguments) {
  const absl::StatusOr<PrimFunc> func = Parse("n: T.int32(1, 512), m: T.int32(2, 4)");
  ASSERT_TRUE(func.ok()) << func.status();
  const auto sizes = [&](const std::vector<std::vector<int64_t>>& shapes) { return SizesFromShapes(*func, shapes); };
  const absl::StatusOr<std::vector<int64_t>> found = sizes({{9}, {25}, {7}});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found, ElementsAre(7, 3));
  const auto error = [&](const std::vector<std::vector<int64_t>>& shapes) {
    return std::string(sizes(shapes).status().message());
  };
  EXPECT_THAT(error({{9}, {25}, {8}}), HasSubstr("argument 2 (B) has size 8 in dimension 0, expected 7"));
  EXPECT_THAT(error({{9}, {26}, {7}}), HasSubstr("argument 1 (C) has size 26"));
  EXPECT_THAT(error({{9}, {41}, {7}}), HasSubstr("the size m is 5, outside of its range from 2 to 4"));
  EXPECT_THAT(error({{9}, {25, 1}, {7}}), HasSubstr("argument 1 (C) has 2 dimensions, expected 1"));
}

TEST(SymbolicSizes, NumbersTakeTheirPlace) {
  const absl::StatusOr<PrimFunc> func = Parse("n: T.int32(1, 512), m: T.int32");
  ASSERT_TRUE(func.ok()) << func.status();
  const PrimFunc fixed = WithSizes(*func, std::vector<int64_t>{7, 3});
  EXPECT_TRUE(Verify(fixed).ok()) << Verify(fixed);
  EXPECT_TRUE(fixed.dims.empty());
  EXPECT_THAT(ToText(fixed),
              testing::AllOf(HasSubstr("A: T.Buffer((9,), \"float32\"), C: T.Buffer((25,), \"float32\")"),
                             HasSubstr("D = T.alloc_buffer((7, 3), \"float32\")"), HasSubstr("for i in range(7):")));
}

TEST(SymbolicSizes, NarrowerRangesTakeTheirPlace) {
  const absl::StatusOr<PrimFunc> func = Parse("n: T.int32(1, 512), m: T.int32(2, 4)");
  ASSERT_TRUE(func.ok()) << func.status();
  const PrimFunc part = WithRanges(*func, std::vector<SizeRange>{{65, 128}, {3, 3}});
  EXPECT_TRUE(Verify(part).ok()) << Verify(part);
  ASSERT_EQ(part.dims.size(), 2u);
  EXPECT_EQ(part.dims[0].range()->min, 65);
  EXPECT_EQ(part.dims[0].range()->max, 128);
  EXPECT_THAT(ToText(part),
              testing::AllOf(HasSubstr("n: T.int32(65, 128), m: T.int32(3, 3)"), HasSubstr("C: T.Buffer((25,), "),
                             HasSubstr("D = T.alloc_buffer((n, 3), \"float32\")"), HasSubstr("for i in range(n):")));
}

TEST(SymbolicSizes, ASizeHasARange) {
  absl::StatusOr<PrimFunc> func = Parse("n: T.int32(1, 512), m: T.int32");
  ASSERT_TRUE(func.ok());
  func->dims.push_back(Var("k"));
  EXPECT_THAT(std::string(Verify(*func).message()), HasSubstr("size-range: function main: the symbolic size k"));
}

}  // namespace
}  // namespace hone
