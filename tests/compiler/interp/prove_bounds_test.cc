// The proof of bounds against the interpreter, on every program of the schedule tests: what is right is proven, and a
// program in which the interpreter finds an index out of bounds never is.
#include "compiler/arith/prove_bounds.h"

#include <filesystem>

#include "absl/strings/str_split.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/visit.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

std::vector<PrimFunc> Programs() {
  std::vector<PrimFunc> programs;
  for (const auto& entry : std::filesystem::directory_iterator(HONE_TEST_DATA "/compiler/schedule/golden")) {
    for (const absl::string_view part : absl::StrSplit(*ReadFile(entry.path().string()), "\n----\n")) {
      const size_t from = part.find("@T.prim_func");
      if (from == absl::string_view::npos) continue;
      const std::string text(part.substr(from, part.find("\n====", from) - from));
      absl::StatusOr<PrimFunc> func = ParsePrimFunc(text + "\n");
      if (func.ok() && func->dims.empty() && Verify(*func).ok()) programs.push_back(*std::move(func));
    }
  }
  return programs;
}

TEST(ProveInBounds, HoldsForWhatPrimitivesMake) {
  const std::vector<PrimFunc> programs = Programs();
  ASSERT_GT(programs.size(), 50u);
  for (const PrimFunc& program : programs) {
    const absl::Status proven = ProveInBounds(program);
    EXPECT_TRUE(proven.ok()) << proven.message() << "\n" << ToText(program);
  }
}

// The program with 1 added to (or taken from) one index of its `which`-th load or store.
PrimFunc Shifted(const PrimFunc& program, int which, int by) {
  int seen = 0;
  const auto shift = [&](const std::vector<Expr>& indices) -> std::optional<std::vector<Expr>> {
    if (seen++ != which || indices.empty()) return std::nullopt;
    std::vector<Expr> shifted = indices;
    Expr& index = shifted[static_cast<size_t>(which) % shifted.size()];
    if (!index.type().is_scalar()) return std::nullopt;
    index = index + by;
    return shifted;
  };
  PrimFunc changed = program;
  changed.body = RewriteExprs(program.body, [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr) return std::nullopt;
    const auto indices = shift(load->indices);
    return indices ? std::optional(MakeLoad(load->buffer, *indices, load->mask)) : std::nullopt;
  });
  changed.body = RewriteBottomUp(changed.body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Store* store = s.As<Store>();
    if (store == nullptr) return std::nullopt;
    const auto indices = shift(store->indices);
    return indices ? std::optional(Stmt::Make(Store{store->buffer, *indices, store->value, store->mask}))
                   : std::nullopt;
  });
  return changed;
}

TEST(ProveInBounds, NeverProvesWhatTheInterpreterFinds) {
  int found = 0, missed_by_proof = 0;
  for (const PrimFunc& program : Programs()) {
    for (int which = 0; which < 8; ++which) {
      const PrimFunc changed = Shifted(program, which, which % 2 == 0 ? 1 : -1);
      std::vector<NdArray> args = RandomArguments(changed, 1, InputKind::kUniform);
      const absl::Status ran = Interpret(changed, args, {.check_uninitialised = false, .max_steps = 20000});
      const absl::Status proven = ProveInBounds(changed);
      if (absl::IsOutOfRange(ran)) {
        ++found;
        EXPECT_FALSE(proven.ok()) << ran.message() << "\n" << ToText(changed);
      } else if (ran.ok() && !proven.ok()) {
        ++missed_by_proof;  // right, and not proven: allowed, but seldom
      }
    }
  }
  EXPECT_GT(found, 100);
  EXPECT_LT(missed_by_proof, found / 10);
}

}  // namespace
}  // namespace hone
