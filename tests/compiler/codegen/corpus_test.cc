// The programs that TVM prints (tests/compiler/text/corpus): those small enough are interpreted, lowered and
// interpreted again, compiled, and run; all three agree.
#include <filesystem>
#include <set>

#include "absl/strings/str_split.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/module.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/lower.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

constexpr char kFolder[] = HONE_TEST_DATA "/compiler/text/corpus/";
constexpr double kMostInstances = 2e6;  // of a program that is run

struct Named {
  std::string title;
  PrimFunc func;
};

// Statement instances of the program; infinite where a size is symbolic.
double Instances(const Stmt& stmt, double times = 1) {
  if (!stmt) return 0;
  if (const For* loop = stmt.As<For>()) {
    const std::optional<int64_t> trips = ConstantValue(loop->extent);
    return trips.has_value() ? Instances(loop->body, times * static_cast<double>(*trips)) : INFINITY;
  }
  if (stmt.As<Store>() != nullptr) return times;
  double sum = 0;
  ForEachChild(
      stmt, [&](const Stmt& child) { sum += Instances(child, times); }, [](const Expr&) {});
  return sum;
}

bool RunsOnACpu(const PrimFunc& func) {
  bool runs = true;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    runs = runs && (loop == nullptr || loop->kind != ForKind::kThreadBinding);
    return runs;
  });
  return runs;
}

// Integers are indices in these programs; the text does not say of what, so they are small.
PrimFunc WithSmallIndices(PrimFunc func) {
  std::vector<std::string> domains;
  for (const Buffer& param : func.params) domains.emplace_back(param.type().is_int() ? "int[0,8)" : "");
  func.attrs["domains"] = domains;
  return func;
}

// Of a network of the corpus, without two equal ones.
std::vector<Named> SmallPrograms(const std::string& network) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(kFolder, network, ".txt"));
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<Named> programs;
  std::set<uint64_t> seen;
  for (const absl::string_view part : absl::StrSplit(*text, "# ==== ", absl::SkipEmpty())) {
    const size_t end = part.find('\n');
    const absl::StatusOr<IrModule> module = ParseIrModule(std::string(part.substr(end + 1)));
    if (!module.ok()) continue;  // corpus/refused.txt
    for (const auto& function : module->functions) {
      const PrimFunc* func = std::get_if<PrimFunc>(&function);
      if (func == nullptr || !func->dims.empty() || !RunsOnACpu(*func)) continue;
      if (Instances(func->body) > kMostInstances || !seen.insert(StructuralHash(*func)).second) continue;
      programs.push_back({std::string(part.substr(0, end)), WithSmallIndices(*func)});
    }
  }
  return programs;
}

bool HasHalfPrecision(const PrimFunc& func) {
  return std::ranges::any_of(func.params, [](const Buffer& b) { return b.type().is_float() && b.type().bits < 32; });
}

class CorpusRuns : public ::testing::TestWithParam<std::string> {};

TEST_P(CorpusRuns, InterpretedLoweredAndCompiledAgree) {
  int run = 0;
  for (const Named& program : SmallPrograms(GetParam())) {
    SCOPED_TRACE(program.title + ", " + program.func.name);
    const double tolerance = HasHalfPrecision(program.func) ? 2e-2 : 1e-4;
    std::vector<NdArray> want = RandomArguments(program.func, 7, InputKind::kUniform);
    const std::vector<NdArray> inputs = want;
    const absl::Status interpreted = Interpret(program.func, want);
    ASSERT_TRUE(interpreted.ok()) << interpreted << "\n" << ToText(program.func);
    const absl::StatusOr<LoweredFunc> lowered = Lower(program.func, {.plain = true});
    ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n" << ToText(program.func);
    std::vector<NdArray> flat = inputs;
    for (NdArray& argument : flat) argument.shape = {argument.NumElements()};
    const absl::Status again = Interpret(lowered->func, flat);
    ASSERT_TRUE(again.ok()) << again << "\n" << ToText(lowered->func);
    ExpectOutputsNear(program.func, flat, want, tolerance);
    ExpectPlainAgrees(program.func, tolerance, InputKind::kUniform);
    if (HasFailure()) return;
    ++run;
  }
  RecordProperty("programs run", run);
  std::printf("%d programs of %s\n", run, GetParam().c_str());
}

std::vector<std::string> Networks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().stem() != "refused") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Networks, CorpusRuns, ::testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone
