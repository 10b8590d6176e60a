// What goes round a loop in vector registers, several steps a turn: each value is the last one's, whichever operand of
// the next instruction it is.
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "compiler/support/random.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/schedule/campaign.h"

namespace hone {
namespace {

// A turn of the loop takes three rows of X, "x0" to "x2" in its text; "r" and "s" are what goes round.
struct Case {
  const char* name;
  const char* turn;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"Sums", R"(
        R.vstore([T.Ramp(0, 1, 8)], r + x0 * x1)
        R.vstore([T.Ramp(0, 1, 8)], r + x1 * x2)
        R.vstore([T.Ramp(0, 1, 8)], r + x2 * x0))"},
    {"AFactor", R"(
        R.vstore([T.Ramp(0, 1, 8)], r * x0 + x1)
        R.vstore([T.Ramp(0, 1, 8)], r * x1 + x2)
        R.vstore([T.Ramp(0, 1, 8)], r * x2 + x0))"},
    {"TheOtherFactor", R"(
        R.vstore([T.Ramp(0, 1, 8)], x0 * r + x1)
        R.vstore([T.Ramp(0, 1, 8)], x1 * r + x2)
        R.vstore([T.Ramp(0, 1, 8)], x2 * r + x0))"},
    {"BothFactors", R"(
        R.vstore([T.Ramp(0, 1, 8)], r * r + x0)
        R.vstore([T.Ramp(0, 1, 8)], r * r + x1))"},
    {"FactorAndSum", R"(
        R.vstore([T.Ramp(0, 1, 8)], r * x0 + r)
        R.vstore([T.Ramp(0, 1, 8)], x1 * r + r))"},
    {"NegatedProducts", R"(
        R.vstore([T.Ramp(0, 1, 8)], x0 - r * x1)
        R.vstore([T.Ramp(0, 1, 8)], r - x1 * x2)
        R.vstore([T.Ramp(0, 1, 8)], x2 - x0 * r))"},
    {"SumsOfSums", R"(
        R.vstore([T.Ramp(0, 1, 8)], r + x0 * x1)
        S.vstore([T.Ramp(0, 1, 8)], s + r * x2)
        R.vstore([T.Ramp(0, 1, 8)], r * x1 + s)
        S.vstore([T.Ramp(0, 1, 8)], s * x2 + r))"},
    {"TwoThatChangePlaces", R"(
        Q.vstore([T.Ramp(0, 1, 8)], r + x0 * x1)
        R.vstore([T.Ramp(0, 1, 8)], s * x1 + x2)
        S.vstore([T.Ramp(0, 1, 8)], Q.vload([T.Ramp(0, 1, 8)]) + x2 * x0))"},
    {"AnyOperation", R"(
        R.vstore([T.Ramp(0, 1, 8)], x0 - r)
        R.vstore([T.Ramp(0, 1, 8)], T.max(r, x1) * x2)
        S.vstore([T.Ramp(0, 1, 8)], T.min(s, r) + x0)
        R.vstore([T.Ramp(0, 1, 8)], s - r))"},
};

// Reads of "r", "s", "x0" and so on, where they stand between other signs than letters, are loads of vectors.
PrimFunc ProgramOf(const std::string& turn) {
  const std::map<std::string, std::string> loads = {{"r", "R.vload([T.Ramp(0, 1, 8)])"},
                                                    {"s", "S.vload([T.Ramp(0, 1, 8)])"},
                                                    {"x0", "X.vload([T.Ramp(k * 24, 1, 8)])"},
                                                    {"x1", "X.vload([T.Ramp(k * 24 + 8, 1, 8)])"},
                                                    {"x2", "X.vload([T.Ramp(k * 24 + 16, 1, 8)])"}};
  const auto part_of_word = [](char c) { return absl::ascii_isalnum(c) || c == '.' || c == '_'; };
  std::string text;
  for (size_t i = 0, end; i < turn.size(); i = end) {
    for (end = i + 1; part_of_word(turn[i]) && end < turn.size() && part_of_word(turn[end]);) ++end;
    const std::string word = turn.substr(i, end - i);
    const auto load = loads.find(word);
    text += load == loads.end() ? word : load->second;
  }
  return ParseOrDie(absl::StrCat(R"(
@T.prim_func
def main(X: T.Buffer((120,), "float32"), C: T.Buffer((16,), "float32")):
    R = T.allocate((8,), "float32", scope="local")
    S = T.allocate((8,), "float32", scope="local")
    Q = T.allocate((8,), "float32", scope="local")
    R.vstore([T.Ramp(0, 1, 8)], X.vload([T.Ramp(0, 1, 8)]))
    S.vstore([T.Ramp(0, 1, 8)], X.vload([T.Ramp(8, 1, 8)]))
    for k in range(5):)",
                                 text, R"(
    C.vstore([T.Ramp(0, 1, 8)], R.vload([T.Ramp(0, 1, 8)]))
    C.vstore([T.Ramp(8, 1, 8)], S.vload([T.Ramp(0, 1, 8)]))
)"));
}

class GoesRound : public ::testing::TestWithParam<Case> {};

TEST_P(GoesRound, AsItIsWritten) { ExpectCompiledAgrees(ProgramOf(GetParam().turn)); }

// Three operations a turn, of numbers that stay small enough to be exact.
TEST(WhateverGoesRound, IsWhatItWouldBe) {
  for (int64_t seed = 0; seed < testing::FromEnvironment("HONE_SEEDS", 500); ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<uint64_t>(seed));
    const auto value = [&] {
      constexpr const char* kValues[] = {"r", "r", "s", "s", "x0", "x1", "x2"};
      return kValues[random.Below(std::size(kValues))];
    };
    std::string turn;
    for (const char* const name : {"R", "S"}) {
      absl::StrAppend(&turn, "\n        ", name, ".vstore([T.Ramp(0, 1, 8)], T.max(T.min(", absl::AsciiStrToLower(name),
                      ", T.Broadcast(T.float32(4), 8)), T.Broadcast(T.float32(-4), 8)))");
    }
    for (int i = 0; i < 3; ++i) {
      constexpr const char* kOperations[] = {"$0 * $1 + $2", "$2 + $0 * $1", "$2 - $0 * $1",
                                             "$0 * $1 - $2", "$0 - $1",      "T.max($0, $1)"};
      const std::string operation =
          absl::Substitute(kOperations[random.Below(std::size(kOperations))], value(), value(), value());
      absl::StrAppend(&turn, "\n        ", random.Below(2) == 0 ? "R" : "S", ".vstore([T.Ramp(0, 1, 8)], ", operation,
                      ")");
    }
    ExpectCompiledAgrees(ProgramOf(turn));
    if (HasFailure()) FAIL() << turn;
  }
}

INSTANTIATE_TEST_SUITE_P(Turns, GoesRound, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
