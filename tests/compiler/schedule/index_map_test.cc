#include "compiler/schedule/analysis/index_map.h"

#include "compiler/text/text.h"
#include "tests/compiler/schedule/expect.h"

namespace hone::testing {
namespace {

TEST(IndexMap, ReadsWhatItPrints) {
  for (const char* text :
       {"lambda k, n: (n // 32, k, n % 32)", "lambda i: (i // 4 % 2, i // 8, i % 4)", "lambda i: (i,)",
        "lambda a, b: (a * 8 + b,)", "lambda a, b: ((a + b) * 2 - 3, a % (2 * 4))"}) {
    EXPECT_EQ(ToText(Get(ParseIndexMap(ToText(Get(ParseIndexMap(text)))))), ToText(Get(ParseIndexMap(text)))) << text;
  }
  EXPECT_EQ(ToText(Get(ParseIndexMap("lambda k,n:[n//32,k,n%32,]"))), "lambda k, n: (n // 32, k, n % 32)");
}

std::string Texts(const std::vector<Expr>& extents) {
  std::string text;
  for (const Expr& extent : extents) text += (text.empty() ? "" : " | ") + ToText(extent);
  return text;
}

TEST(IndexMap, InvertsDigits) {
  const InverseMap inverse =
      Get(Invert(Get(ParseIndexMap("lambda k, n: (n // 32, k, n % 32)")), std::vector<Expr>{3, 40}));
  EXPECT_EQ(Texts(inverse.shape), "2 | 3 | 32");
  EXPECT_EQ(ToText(inverse.original[0]), "p1");
  EXPECT_EQ(ToText(inverse.original[1]), "p2 + p0 * 32");
  EXPECT_EQ(ToText(inverse.inside), "p2 + p0 * 32 < 40");
  EXPECT_TRUE(IsConst(
      Get(Invert(Get(ParseIndexMap("lambda i: (i // 8, i // 4 % 2, i % 4)")), std::vector<Expr>{16})).inside, 1));
}

TEST(IndexMap, InvertsDigitsOfSymbolicExtents) {
  const Var n("n", kInt32, {1, 512});
  const InverseMap panels =
      Get(Invert(Get(ParseIndexMap("lambda k, n: (n // 32, k, n % 32)")), std::vector<Expr>{3, n}));
  EXPECT_EQ(Texts(panels.shape), "(n + 31) // 32 | 3 | 32");
  EXPECT_EQ(ToText(panels.original[1]), "p2 + p0 * 32");
  EXPECT_EQ(ToText(panels.inside), "p2 + p0 * 32 < n");
  const InverseMap turned = Get(Invert(Get(ParseIndexMap("lambda k, n: (n, k)")), std::vector<Expr>{3, n}));
  EXPECT_EQ(Texts(turned.shape), "n | 3");
  EXPECT_TRUE(IsConst(turned.inside, 1));
  EXPECT_TRUE(Says(Invert(Get(ParseIndexMap("lambda n: (n // 4, n % 4)")), std::vector<Expr>{Var("m")}).status(),
                   "has no bound below 2**31"));
}

std::vector<Expr> Extents(const std::vector<int64_t>& shape) {
  std::vector<Expr> extents;
  for (const int64_t extent : shape) extents.push_back(IntConst(extent));
  return extents;
}

std::string IntoDimensions(size_t count) {
  std::string text = "lambda i: (";
  for (size_t d = 1; d < count; ++d) text += "0, ";
  return text + "i,)";
}

struct BadMap {
  const char* name;
  std::string map;
  std::vector<int64_t> shape;
  const char* says;
};
class BadMaps : public ::testing::TestWithParam<BadMap> {};
TEST_P(BadMaps, SayWhy) {
  absl::StatusOr<IndexMap> map = ParseIndexMap(GetParam().map);
  EXPECT_TRUE(Says(map.ok() ? Invert(*map, Extents(GetParam().shape)).status() : map.status(), GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Maps, BadMaps,
    ::testing::Values(BadMap{"Rank", "lambda i: (i,)", {2, 3}, "it takes 1 indices, the tensor has 2 dimensions"},
                      BadMap{"Sum", "lambda i, j: (i + j, i)", {4, 4}, "output 0 (i + j) is not a digit of one index"},
                      BadMap{"Lost", "lambda i: (i // 4,)", {16}, "its digits reach 1 and go on at 4"},
                      BadMap{"TooShort", "lambda i: (i % 4,)", {16}, "index i runs to 16, its digits only to 4"},
                      BadMap{"Gap", "lambda i: (i // 8, i % 4)", {16}, "its digits reach 4 and go on at 8"},
                      BadMap{"SwizzleOfSix",
                             "lambda i, j: (i, j ^ i % 4)",
                             {8, 6},
                             "output 1 (j ^ i % 4) swizzles 6 places by i % 4; it must be a power of two"},
                      BadMap{"MaskTooWide", "lambda i, j: (i, j ^ i)", {8, 4}, "and the mask below it"},
                      BadMap{"SwizzledByItself", "lambda i, j: (i ^ j, j ^ i)", {4, 4}, "output 0 is swizzled by j"},
                      BadMap{"TooManyDimensions", IntoDimensions(65), {16}, "it makes 65 dimensions, at most 64"},
                      BadMap{"NoLambda", "i: (i,)", {16}, "expected \"lambda\""},
                      BadMap{"Empty", "lambda i: ()", {16}, "no new index"},
                      BadMap{"Unknown", "lambda i: (j,)", {16}, "expected a number or one of the indices"},
                      BadMap{"Twice", "lambda i, i: (i,)", {16, 2}, "the index i is there twice"},
                      BadMap{"Tail", "lambda i: (i,) 3", {16}, "expected"}),
    [](const ::testing::TestParamInfo<BadMap>& info) { return info.param.name; });

}  // namespace
}  // namespace hone::testing
