// clang-format off
// Programs with one fault planted in each, and the check that finds it; without the fault every check is content.
// The checks, in the order in which they are asked:
//   verifier        the rules of compiler/verify, declared regions among them
//   initialisation  CheckInitialised: an accumulator without a start, an element that no store writes
//   bounds          ProveInBounds, of programs of which the proof is found without the fault
//   interpreter     an index is out of range, an element is read before it is written, an output is left out, threads
//                   do not meet at a barrier, or race
//   numbers         the outputs are others than those of the right program
//   order           they are when parallel iterations, vector lanes and threads run in reverse order
// clang-format on
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/arith/prove_bounds.h"
#include "compiler/ir/visit.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/lower/planted_faults.h"
#include "tests/compiler/schedule/reference.h"

namespace hone::testing {
namespace {

std::vector<NdArray> ArgumentsOf(const PrimFunc& f) { return RandomArguments(f, 5, InputKind::kInteger); }

bool SameOutputs(const PrimFunc& f, const std::vector<NdArray>& a, const std::vector<NdArray>& b) {
  for (size_t p = f.params.size() - f.num_outputs(); p < f.params.size(); ++p) {
    if (a[p].data != b[p].data) return false;
  }
  return true;
}

bool IsOfWarps(const PrimFunc& f) {
  bool found = false;
  ForEachStmt(f.body, [&](const Stmt& s) {
    const TileOp* op = s.As<TileOp>();
    found |= op != nullptr && FindTileIntrinsic(op->intrinsic)->threads > 1;
    return !found;
  });
  return found;
}

// The first check that finds something in the program, which should compute what the right one does; "" when none does.
std::string FoundBy(const PrimFunc& program, const PrimFunc& right) {
  if (!Verify(program).ok()) return "verifier";
  if (!CheckInitialised(ExpandVectorOps(program)).ok()) return "initialisation";
  if (ProveInBounds(right).ok() && !ProveInBounds(program).ok()) return "bounds";
  std::vector<NdArray> want = ArgumentsOf(right), got = want, reversed = want;
  const absl::Status reference = Interpret(right, want);
  HONE_CHECK(reference.ok()) << reference;
  if (!Interpret(program, got).ok()) return "interpreter";
  if (!SameOutputs(right, got, want)) return "numbers";
  if (IsOfWarps(right)) return "";  // which thread has which number counts
  if (!Interpret(Reversed({program, {}}).main, reversed).ok() || !SameOutputs(right, reversed, want)) return "order";
  return "";
}

TEST(PlantedFaults, NothingIsFoundWithoutThem) {
  std::set<std::string> programs;
  for (const Plant& plant : kPlants) programs.insert(plant.program);
  for (const std::string& text : programs) {
    const PrimFunc right = ParseOrDie(text);
    EXPECT_EQ(FoundBy(right, right), "") << Verify(right) << CheckInitialised(ExpandVectorOps(right))
                                         << ProveInBounds(right) << text;
  }
}

TEST(PlantedFaults, EachIsFound) {
  std::map<std::string, int> found;
  for (const Plant& plant : kPlants) {
    SCOPED_TRACE(plant.what);
    const std::string planted = absl::StrReplaceAll(plant.program, {{plant.from, plant.to}});
    ASSERT_NE(planted, plant.program) << "there is no `" << plant.from << "`";
    const absl::StatusOr<PrimFunc> program = ParsePrimFunc(planted);
    ASSERT_TRUE(program.ok()) << program.status() << planted;
    const std::string by = FoundBy(*program, ParseOrDie(plant.program));
    EXPECT_EQ(by, plant.found_by);
    ++found[by];
  }
  EXPECT_GE(std::size(kPlants), 50u);
  for (const char* check : {"verifier", "initialisation", "bounds", "interpreter", "numbers", "order"})
    EXPECT_GE(found[check], 1) << "no fault needs the check " << check;
}

}  // namespace
}  // namespace hone::testing
