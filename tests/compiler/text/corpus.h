// The programs that TVM prints (corpus/*.txt, written by make_corpus.py): how tests read them, and which they run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/module.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"

namespace hone {

inline constexpr char kCorpus[] = HONE_TEST_DATA "/compiler/text/corpus/";
inline constexpr double kMostCorpusInstances = 2e6;  // of statements of a program that is run

// The files of the corpus by name, without what lists refusals.
inline std::vector<std::string> CorpusFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    if (entry.path().extension() == ".txt" && entry.path().stem() != "refused") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Programs of a file as text, by title: each follows a line "# ==== title".
inline std::vector<std::pair<std::string, std::string>> CorpusTexts(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(kCorpus, file, ".txt"));
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<std::pair<std::string, std::string>> programs;
  for (const absl::string_view part : absl::StrSplit(text.value_or(""), "# ==== ", absl::SkipEmpty())) {
    const size_t end = part.find('\n');
    programs.emplace_back(std::string(part.substr(0, end)), std::string(part.substr(end + 1)));
  }
  return programs;
}

// Statement instances of a program; infinite where a size is symbolic.
inline double CorpusInstances(const Stmt& stmt, double times = 1) {
  if (!stmt) return 0;
  if (const For* loop = stmt.As<For>()) {
    const std::optional<int64_t> trips = ConstantValue(loop->extent);
    return trips.has_value() ? CorpusInstances(loop->body, times * static_cast<double>(*trips)) : INFINITY;
  }
  if (stmt.As<Store>() != nullptr) return times;
  double sum = 0;
  ForEachChild(
      stmt, [&](const Stmt& child) { sum += CorpusInstances(child, times); }, [](const Expr&) {});
  return sum;
}

inline bool IsThreadBound(const PrimFunc& func) {
  bool bound = false;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    bound = bound || (loop != nullptr && loop->kind == ForKind::kThreadBinding);
    return !bound;
  });
  return bound;
}

// Integers are indices in these programs; the text does not say of what, so they are small.
inline PrimFunc WithSmallIndices(PrimFunc func) {
  std::vector<std::string> domains;
  for (const Buffer& param : func.params) domains.emplace_back(param.type().is_int() ? "int[0,8)" : "");
  func.attrs["domains"] = domains;
  return func;
}

// Symbolic sizes as small numbers, above the indices of WithSmallIndices and each another one, so that one in the place
// of another is seen.
inline PrimFunc WithSmallSizes(const PrimFunc& func) {
  std::vector<int64_t> sizes;
  for (const Var& size : func.dims) {
    const SizeRange range = size.range().value_or(SizeRange{});
    sizes.push_back(std::clamp<int64_t>(9 + 2 * static_cast<int64_t>(sizes.size()), range.min, range.max));
  }
  return WithSizes(func, sizes);
}

// Whether callers choose all sizes: one of an output alone follows from what the inputs hold.
inline bool SizesAreOfInputs(const PrimFunc& func) {
  const size_t inputs = func.params.size() - static_cast<size_t>(func.num_outputs());
  return std::ranges::all_of(func.dims, [&](const Var& size) {
    return std::any_of(func.params.begin(), func.params.begin() + static_cast<ptrdiff_t>(inputs), [&](const Buffer& b) {
      return std::ranges::any_of(b.shape(), [&](const Expr& extent) { return UsesVar(extent, size); });
    });
  });
}

struct CorpusProgram {
  std::string title;
  PrimFunc func;
};

// Programs of a file that are small enough to run, with small numbers in place of the sizes that callers choose,
// without two equal ones: those that bind loops to threads, or those that do not.
inline std::vector<CorpusProgram> SmallCorpusPrograms(const std::string& file, bool thread_bound,
                                                      double most_instances = kMostCorpusInstances) {
  std::vector<CorpusProgram> programs;
  std::set<uint64_t> seen;
  for (const auto& [title, text] : CorpusTexts(file)) {
    const absl::StatusOr<IrModule> module = ParseIrModule(text);
    EXPECT_TRUE(module.ok()) << title << ": " << module.status();
    if (!module.ok()) continue;
    for (const auto& function : module->functions) {
      const PrimFunc* symbolic = std::get_if<PrimFunc>(&function);
      if (symbolic == nullptr || !SizesAreOfInputs(*symbolic) || IsThreadBound(*symbolic) != thread_bound) continue;
      const PrimFunc func = WithSmallSizes(*symbolic);
      if (CorpusInstances(func.body) > most_instances || !seen.insert(StructuralHash(func)).second) continue;
      programs.push_back({title, WithSmallIndices(func)});
    }
  }
  return programs;
}

// How far two right results of a program may be from one another, relative to the larger of 1 and the result.
inline double CorpusTolerance(const PrimFunc& func) {
  const bool half =
      std::ranges::any_of(func.params, [](const Buffer& b) { return b.type().is_float() && b.type().bits < 32; });
  return half ? 2e-2 : 1e-4;
}

}  // namespace hone
