// The rule binding-domain: blocks whose variables leave their domains are refused by name, others are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

struct Case {
  const char* name;
  const char* body;     // loops and the block's variable v, of a function with A and B: (64,)
  const char* message;  // "": the program is accepted
};

const Case kCases[] = {
    {"EveryIteration", R"(
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i))",
     ""},
    {"OneTooMany", R"(
    for i in range(9):
        with T.block("b"):
            v = T.axis.spatial(8, i))",
     "binding-domain: block b: v is 8 at i = 8, its domain is from 0 to 7"},
    {"BelowZero", R"(
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i - 1))",
     "binding-domain: block b: v is -1 at i = 0, its domain is from 0 to 7"},
    {"OfNoLoop", R"(
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, 8))",
     "binding-domain: block b: v is 8, its domain is from 0 to 7"},
    {"CutOff", R"(
    for i in range(12):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.where(i < 8))",
     ""},
    {"CutOffLate", R"(
    for i in range(12):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.where(i < 10))",
     "binding-domain: block b: v is 9 at i = 9, its domain is from 0 to 7"},
    {"OneQuotientTooMany", R"(
    for i in range(40):
        with T.block("b"):
            v = T.axis.spatial(2, i // 5 - 4)
            T.where(20 <= i and i < 31))",
     "binding-domain: block b: v is 2 at i = 30, its domain is from 0 to 1"},
    {"WholeQuotients", R"(
    for i in range(40):
        with T.block("b"):
            v = T.axis.spatial(2, i // 5 - 4)
            T.where(20 <= i and i < 30))",
     ""},
    {"TailOfTwoLoops", R"(
    for i, j in T.grid(3, 4):
        with T.block("b"):
            v = T.axis.spatial(10, i * 4 + j))",
     "binding-domain: block b: v is 11 at i = 2, j = 3, its domain is from 0 to 9"},
    {"TailOfTwoLoopsIsCutOff", R"(
    for i, j in T.grid(3, 4):
        with T.block("b"):
            v = T.axis.spatial(10, i * 4 + j)
            T.where(i * 4 + j < 10))",
     ""},
    {"ConditionOnAnotherLoop", R"(
    for i, j in T.grid(9, 4):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.where(j < 3))",
     "binding-domain: block b: v is 8 at i = 8, j = 2, its domain is from 0 to 7"},
    {"NeverRuns", R"(
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i + 8)
            T.where(T.bool(False)))",
     ""},
    {"ConditionOnBothLoops", R"(
    for i, j in T.grid(9, 4):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.where(i + j < 8))",
     ""},
    {"Guarded", R"(
    for i in range(9):
        if i < 8:
            with T.block("b"):
                v = T.axis.spatial(8, i))",
     ""},
};

class OutsideDomain : public ::testing::TestWithParam<Case> {};

TEST_P(OutsideDomain, IsRefusedByName) {
  const std::string body = GetParam().body;
  const size_t line = body.rfind('\n') + 1;
  const std::string indent(body.find_first_not_of(' ', line) - line, ' ');
  const std::string text = absl::StrCat(
      "@T.prim_func\ndef main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):", body, "\n", indent,
      "T.reads(A[v + 32])\n", indent, "T.writes(B[v + 32])\n", indent, "B[v + 32] = A[v + 32]\n");
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  ASSERT_TRUE(func.ok()) << func.status() << "\n" << text;
  const absl::Status status = Verify(*func);
  EXPECT_EQ(std::string(status.message()), GetParam().message) << text;
}

INSTANTIATE_TEST_SUITE_P(, OutsideDomain, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
