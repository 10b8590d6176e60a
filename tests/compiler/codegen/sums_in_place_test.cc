// What goes round a loop in vector registers, several steps a turn: each value is the last one's, whichever operand of
// the next instruction it is.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/run_kernel.h"

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

class GoesRound : public ::testing::TestWithParam<Case> {};

TEST_P(GoesRound, AsItIsWritten) {
  const std::string turn = absl::StrReplaceAll(GetParam().turn, {{"x0", "X.vload([T.Ramp(k * 24, 1, 8)])"},
                                                                 {"x1", "X.vload([T.Ramp(k * 24 + 8, 1, 8)])"},
                                                                 {"x2", "X.vload([T.Ramp(k * 24 + 16, 1, 8)])"},
                                                                 {" r ", " R.vload([T.Ramp(0, 1, 8)]) "},
                                                                 {" r)", " R.vload([T.Ramp(0, 1, 8)]))"},
                                                                 {"(r,", "(R.vload([T.Ramp(0, 1, 8)]),"},
                                                                 {" s ", " S.vload([T.Ramp(0, 1, 8)]) "},
                                                                 {" s)", " S.vload([T.Ramp(0, 1, 8)]))"},
                                                                 {"(s,", "(S.vload([T.Ramp(0, 1, 8)]),"}});
  ExpectCompiledAgrees(ParseOrDie(absl::StrCat(R"(
@T.prim_func
def main(X: T.Buffer((120,), "float32"), C: T.Buffer((16,), "float32")):
    R = T.allocate((8,), "float32", scope="local")
    S = T.allocate((8,), "float32", scope="local")
    Q = T.allocate((8,), "float32", scope="local")
    R.vstore([T.Ramp(0, 1, 8)], X.vload([T.Ramp(0, 1, 8)]))
    S.vstore([T.Ramp(0, 1, 8)], X.vload([T.Ramp(8, 1, 8)]))
    for k in range(5):)",
                                               turn, R"(
    C.vstore([T.Ramp(0, 1, 8)], R.vload([T.Ramp(0, 1, 8)]))
    C.vstore([T.Ramp(8, 1, 8)], S.vload([T.Ramp(0, 1, 8)]))
)")));
}

INSTANTIATE_TEST_SUITE_P(Turns, GoesRound, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
