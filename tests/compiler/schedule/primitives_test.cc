// Every primitive by its golden file: what it makes of a program, whole messages of what it refuses, the round trip of
// its trace, and the same numbers before and after.
#include <map>
#include <set>

#include "compiler/ir/structural.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/trace/trace.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/golden_file.h"

namespace hone::testing {
namespace {

std::string Outcome(const absl::StatusOr<Schedule>& played) {
  if (!played.ok()) return std::string(played.status().message()) + "\n";
  std::string text = ToText(played->func());
  for (const Prepare& prepare : played->prepares()) text += "\n" + ToText(prepare.func);
  return text;
}

class PrimitiveGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(PrimitiveGolden, Matches) {
  const std::vector<GoldenCase> cases = GoldenCases(GetParam());
  std::vector<std::string> outcomes;
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.title);
    const absl::StatusOr<PrimFunc> workload = ParsePrimFunc(golden.program);
    ASSERT_TRUE(workload.ok()) << workload.status();
    const absl::StatusOr<Schedule> played = Play(golden, *workload);
    outcomes.push_back(Outcome(played));
    EXPECT_EQ(played.ok(), !golden.refused) << outcomes.back();
    if (played.ok()) ExpectSound(*played, *workload);
  }
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
    const std::filesystem::path path = GoldenFolder() / (GetParam() + ".txt");
    std::string text;
    size_t next = 0;
    for (const GoldenSection& section : ReadSections(ReadTextFile(path))) {
      if (!section.head.empty()) text += "==== " + section.head + "\n";
      text += IsCase(section) ? section.body.substr(0, section.body.find("----\n")) + "----\n" + outcomes[next++]
                              : section.body;
    }
    std::ofstream(path) << text;
    return;
  }
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(outcomes[i], cases[i].expected) << cases[i].title;
}

INSTANTIATE_TEST_SUITE_P(Files, PrimitiveGolden, ::testing::ValuesIn(GoldenNames()),
                         [](const auto& info) { return info.param; });

// A new primitive without a golden file fails here.
TEST(Primitives, HaveGoldenRewritesAndRefusals) {
  for (const Primitive& primitive : AllPrimitives()) {
    const std::string name(primitive.info->name);
    if (!std::filesystem::exists(GoldenFolder() / (name + ".txt"))) {
      ADD_FAILURE() << "there is no golden/" << name << ".txt";
      continue;
    }
    int rewrites = 0;
    std::set<std::string> refusals;
    for (const GoldenCase& golden : GoldenCases(name)) {
      if (golden.refused) {
        if (golden.expected.find(name) != std::string::npos) refusals.insert(golden.expected);
        continue;
      }
      const absl::StatusOr<Trace> trace = ParseTrace(golden.trace);
      ASSERT_TRUE(trace.ok()) << name << ": " << trace.status();
      rewrites += std::any_of(trace->steps.begin(), trace->steps.end(),
                              [&](const Step& step) { return &step.info() == primitive.info; });
    }
    EXPECT_GE(rewrites, 1) << name << " has no golden rewrite";
    EXPECT_GE(refusals.size(), 2u) << name << " has fewer than two refusals with different messages";
  }
}

// Names are how traces name primitives.
TEST(Primitives, HaveNamesOfTheirOwn) {
  const std::span<const Primitive> all = AllPrimitives();
  EXPECT_GT(all.size(), 40u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(FindPrimitive(all[i].info->name), &all[i]) << all[i].info->name;
    EXPECT_EQ(all[i].make().info().name, all[i].info->name);
  }
  EXPECT_EQ(FindPrimitive("no_such_primitive"), nullptr);
}

TEST(GoldenPrograms, PrintAsTheyAreWritten) {
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder().parent_path() / "programs")) {
    const std::string text = ReadTextFile(entry.path());
    const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
    ASSERT_TRUE(func.ok()) << entry.path() << ": " << func.status();
    if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(entry.path()) << ToText(*func);
    } else {
      EXPECT_EQ(ToText(*func), text) << entry.path();
    }
  }
}

}  // namespace
}  // namespace hone::testing
