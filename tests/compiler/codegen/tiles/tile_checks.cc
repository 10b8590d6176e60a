#include "tests/compiler/codegen/tiles/tile_checks.h"

#include <cmath>
#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/lower/lower.h"
#include "compiler/support/random.h"
#include "gmock/gmock.h"
#include "tests/boards/run_on_board.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/codegen/tiles/compile_emulated.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone::testing {
namespace {

// Sets at least half of the elements to the least or the largest value of their type, the others to one beside an end
// or around 0. Without `random`, all become the end that is larger in magnitude.
void SetToEnds(NdArray& array, Random* random) {
  const DType type = array.dtype;
  const bool is_signed = type.code == TypeCode::kInt;
  const int64_t values = int64_t{1} << type.bits, least = is_signed ? -values / 2 : 0, most = least + values - 1;
  const int64_t choices[] = {is_signed ? least : most, is_signed ? most : least, is_signed ? -1 : most - 1, 1};
  for (int64_t i = 0; i < array.NumElements(); ++i)
    array.SetInt(i, choices[random == nullptr ? 0 : random->Below(random->Chance(0.5) ? 2 : 4)]);
}

NdArray Meaning(const PrimFunc& workload, std::vector<NdArray> args) {
  const absl::Status ran = Interpret(workload, args);
  HONE_CHECK(ran.ok()) << ran;
  return args.back();
}

// How far a sum of products may be from another order of its terms: each of them adds half a unit in the last place of
// the sum of their magnitudes to either, at most (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
NdArray AllowedErrors(const PrimFunc& workload, const std::vector<NdArray>& args) {
  std::vector<NdArray> ones = args, magnitudes = args;
  for (size_t p = 0; p + 1 < args.size(); ++p) {
    for (int64_t i = 0; i < args[p].NumElements(); ++i) {
      ones[p].Set(i, 1);
      magnitudes[p].Set(i, std::abs(args[p].Get(i)));
    }
  }
  const NdArray terms = Meaning(workload, ones), size = Meaning(workload, magnitudes);
  const double unit = size.dtype.bits == 16 ? 0x1p-10 : 0x1p-23;
  NdArray allowed(DType::Float(64), size.shape);
  for (int64_t i = 0; i < size.NumElements(); ++i) allowed.Set(i, terms.Get(i) * unit * size.Get(i));
  return allowed;
}

struct Case {
  const char* name;
  std::vector<NdArray> args;
  NdArray want, allowed;  // what the interpreter computes, and how far other orders of the same sums may be from it
};
Case Drawn(const char* name, const PrimFunc& workload, InputKind kind) {
  Case drawn{name, RandomArguments(workload, 6, kind), {}, {}};
  const bool is_exact = workload.params[0].type().is_int() || kind == InputKind::kInteger;
  drawn.want = Meaning(workload, drawn.args);
  drawn.allowed = is_exact ? NdArray(DType::Float(64), drawn.want.shape) : AllowedErrors(workload, drawn.args);
  return drawn;
}
Case AtEnds(const char* name, const PrimFunc& workload, bool mixed) {
  Case drawn = Drawn(name, workload, InputKind::kUniform);
  Random random(8);
  for (size_t p = 0; p + 1 < drawn.args.size(); ++p) SetToEnds(drawn.args[p], mixed ? &random : nullptr);
  drawn.want = Meaning(workload, drawn.args);
  return drawn;
}
std::vector<Case> CasesOf(const PrimFunc& workload) {
  if (workload.params[0].type().is_int()) {
    return {Drawn("random", workload, InputKind::kUniform), AtEnds("ends", workload, true),
            AtEnds("largest in magnitude", workload, false)};
  }
  return {Drawn("exact", workload, InputKind::kInteger), Drawn("random", workload, InputKind::kUniform),
          Drawn("patterned", workload, InputKind::kPatterned)};
}

void ExpectMeaning(const Case& expected, const NdArray& got) {
  int shown = 0;
  for (int64_t i = 0; i < got.NumElements() && shown < 5; ++i) {
    const double a = got.Get(i), b = expected.want.Get(i);
    // Where the error has no limit (a product that overflows unless it is fused) whatever comes is right: oracle.h.
    if (std::isinf(expected.allowed.Get(i))) continue;
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= expected.allowed.Get(i)) continue;
    ADD_FAILURE() << "element " << i << " is " << a << ", the interpreter says " << b << ", which may be off by "
                  << expected.allowed.Get(i);
    ++shown;
  }
}

NdArray RunOn(const CompiledKernel& kernel, std::vector<NdArray> args) {
  const absl::Status ran = RunCompiled(kernel, args);
  EXPECT_TRUE(ran.ok()) << ran;
  return args.back();
}

}  // namespace

void ExpectComputes(const Schedule& schedule, const PrimFunc& workload, const Target& target,
                    const std::string& board) {
  for (const bool optimize : {true, false}) {
    std::vector<NdArray> want = RandomArguments(workload, 5, InputKind::kInteger), got = want;
    ASSERT_TRUE(Interpret(workload, want).ok());
    const absl::StatusOr<CompiledKernel> kernel = CompileKernel(schedule.Program(), target, {.optimize = optimize});
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(schedule.func());
    const absl::Status ran = board.empty() ? RunCompiled(*kernel, got) : RunOnBoard(*kernel, got, board);
    ASSERT_TRUE(ran.ok()) << ran;
    ExpectOutputsNear(workload, got, want, 1e-6);
  }
}

void ExpectComputesEmulated(const Schedule& schedule, const PrimFunc& workload, const Target& target,
                            const std::string& function) {
  const bool has_instructions = MissingFeatures(target, HostTarget()).empty();
  const std::vector<Case> cases = CasesOf(workload);
  for (const bool optimize : {true, false}) {
    const CompileOptions options{.optimize = optimize};
    const absl::StatusOr<EmulatedKernel> emulated = CompileEmulated(schedule.Program(), target, options);
    ASSERT_TRUE(emulated.ok()) << emulated.status();
    EXPECT_TRUE(function.empty() ? emulated->calls.empty() : emulated->calls.contains(function))
        << (function.empty() ? "functions are called" : function + " is not called");
    absl::StatusOr<CompiledKernel> compiled;
    if (has_instructions) {
      compiled = CompileKernel(schedule.Program(), target, options);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
    }
    for (const Case& expected : cases) {
      SCOPED_TRACE(expected.name);
      const NdArray got = RunOn(emulated->kernel, expected.args);
      EXPECT_THAT(TakeX86Faults(), ::testing::IsEmpty());
      ExpectMeaning(expected, got);
      if (has_instructions) {
        EXPECT_TRUE(got.data == RunOn(*compiled, expected.args).data) << "the instruction gives other bits";
      }
    }
  }
}

void ExpectPassesKeep(const Schedule& schedule, const Target& target, const std::string& intrinsic) {
  const LowerOptions options = LowerOptionsFor(target);
  const PrimFunc scheduled = schedule.Program().main;
  CheckPasses(scheduled, options);
  const absl::StatusOr<LoweredFunc> lowered = Lower(scheduled, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  bool left = false;
  ForEachStmt(lowered->func.body, [&](const Stmt& s) {
    const TileOp* op = s.As<TileOp>();
    left |= op != nullptr && op->intrinsic == intrinsic;
    return true;
  });
  EXPECT_TRUE(left) << ToText(lowered->func);
}

}  // namespace hone::testing
