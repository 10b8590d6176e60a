// Random graphs as modules of the text dialect: what is printed and read back is the same graph, and what somebody has
// changed in the text gives one message or a graph that can be planned. HONE_MUTATED_MODULES=10000 changes as many.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/frontend/module_import.h"
#include "compiler/graph/module_of_graph.h"
#include "compiler/graph/op.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "tests/models/random_graph.h"

namespace hone {
namespace {

constexpr uint64_t kGraphs = 100;

absl::StatusOr<Graph> GraphFromText(const std::string& text, const GraphModule& made) {
  const absl::StatusOr<IrModule> module = ParseIrModule(text);
  if (!module.ok()) return module.status();
  ImportOptions options;
  options.constants = [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<const NdArray>> {
    size_t number = 0;
    return absl::SimpleAtoi(name, &number) && number < made.constants.size() ? made.constants[number] : nullptr;
  };
  return ImportModule(*module, options);
}

TEST(RandomModules, AreTheGraphsTheyArePrintedFrom) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const GraphModule made = ModuleOf(RandomGraph(seed));
    const std::string text = ToText(made.module);
    const absl::StatusOr<Graph> graph = GraphFromText(text, made);
    ASSERT_TRUE(graph.ok()) << graph.status() << "\n" << text;
    ASSERT_EQ(ToText(ModuleOf(*graph).module), text);
  }
}

// A number, a name or a mark.
std::vector<std::string> TokensOf(const std::string& text) {
  std::vector<std::string> tokens;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at++;
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    while (is_word(text[begin]) && at < text.size() && is_word(text[at])) ++at;
    tokens.push_back(text.substr(begin, at - begin));
  }
  return tokens;
}

std::string OtherToken(const std::vector<std::string>& tokens, const std::string& token, Random& random) {
  static const auto* operators = new std::vector<std::string_view>(OpNames());
  if (token.starts_with("R.hone."))
    return absl::StrCat("R.hone.", std::string((*operators)[random.Below(operators->size())]));
  constexpr const char* kNumbers[] = {"0",  "1", "2", "3", "7", "64", "1048576", "1099511627776", "9223372036854775807",
                                      "0.5"};
  if (std::isdigit(static_cast<unsigned char>(token[0])) != 0) return kNumbers[random.Below(std::size(kNumbers))];
  for (int tries = 0; tries < 50; ++tries) {  // a word for a word, a mark for a mark
    const std::string& other = tokens[random.Below(tokens.size())];
    if ((std::isalpha(static_cast<unsigned char>(other[0])) != 0) ==
        (std::isalpha(static_cast<unsigned char>(token[0])) != 0))
      return other;
  }
  return "";
}

std::string Mutated(std::vector<std::string> tokens, Random& random) {
  const uint64_t changes = 1 + random.Below(3);
  for (uint64_t i = 0; i < changes; ++i) {
    const size_t at = random.Below(tokens.size());
    switch (random.Below(8)) {
      case 0: tokens[at] = ""; break;
      case 1: tokens[at] += tokens[random.Below(tokens.size())]; break;
      case 2: tokens[at] = absl::StrCat("-", tokens[at]); break;
      default: tokens[at] = OtherToken(tokens, tokens[at].empty() ? " " : tokens[at], random);
    }
  }
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

TEST(RandomModules, ThatAreChangedAreRefusedOrPlanned) {
  const char* count_text = std::getenv("HONE_MUTATED_MODULES");
  uint64_t count = 3000, read = 0, planned = 0;
  if (count_text != nullptr) { ASSERT_TRUE(absl::SimpleAtoi(count_text, &count)); }
  GraphModule made;
  std::vector<std::string> tokens;
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 30 == 0) {
      made = ModuleOf(RandomGraph(i / 30));
      tokens = TokensOf(ToText(made.module));
    }
    Random random(7, i);
    absl::StatusOr<Graph> graph = GraphFromText(Mutated(tokens, random), made);
    if (!graph.ok()) {
      ASSERT_FALSE(graph.status().message().empty());
      continue;
    }
    ++read;
    planned += MakePlan(*std::move(graph)).ok();
  }
  std::printf("%llu changed modules: %llu are graphs, %llu of them planned\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(read), static_cast<unsigned long long>(planned));
  EXPECT_GT(planned, count / 20);
}

}  // namespace
}  // namespace hone
