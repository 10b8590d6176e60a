// Programs that TVM prints (make_corpus.py beside this file): nearly all are read, what is not is listed with its
// reason, and what is read prints, reads back equal and keeps the rules of the verifier.
#include "tests/compiler/text/corpus.h"

#include <map>

#include "compiler/verify/verify.h"

namespace hone {
namespace {

// corpus/refused.txt: "title: message", one a line.
std::map<std::string, std::string> Refused() {
  std::map<std::string, std::string> refused;
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat(kCorpus, "refused.txt"));
  EXPECT_TRUE(text.ok()) << text.status();
  for (const absl::string_view line : absl::StrSplit(text.value_or(""), '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (parts.size() == 2 && line[0] != '#') refused.emplace(parts[0], parts[1]);
  }
  return refused;
}

class CorpusTest : public testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, IsReadPrintedAndVerified) {
  const std::map<std::string, std::string> refused = Refused();
  for (const auto& [title, text] : CorpusTexts(GetParam())) {
    SCOPED_TRACE(title);
    const absl::StatusOr<IrModule> module = ParseIrModule(text);
    const auto expected = refused.find(title);
    if (!module.ok()) {
      const std::string message(module.status().message());
      EXPECT_EQ(message.rfind("line ", 0), 0u) << message;
      EXPECT_EQ(message, expected == refused.end() ? "" : expected->second) << title << ": " << message;
      continue;
    }
    const std::string printed = ToText(*module);
    const absl::StatusOr<IrModule> back = ParseIrModule(printed);
    ASSERT_TRUE(back.ok()) << back.status().ToString() << "\n" << printed;
    EXPECT_TRUE(StructuralEqual(*module, *back)) << printed;
    EXPECT_EQ(ToText(*back), printed);
    absl::Status verified = absl::OkStatus();
    for (const auto& function : module->functions) {
      if (const PrimFunc* f = std::get_if<PrimFunc>(&function); f != nullptr && verified.ok()) verified = Verify(*f);
    }
    EXPECT_EQ(std::string(verified.message()), expected == refused.end() ? "" : expected->second)
        << title << ": " << verified.ToString();
  }
}
INSTANTIATE_TEST_SUITE_P(Networks, CorpusTest, testing::ValuesIn(CorpusFiles()),
                         [](const auto& info) { return info.param; });

TEST(CorpusCountTest, OfAtLeast300ProgramsNineteenInTwentyAreRead) {
  size_t all = 0, read = 0;
  for (const std::string& network : CorpusFiles()) {
    for (const auto& [title, text] : CorpusTexts(network)) {
      ++all;
      read += ParseIrModule(text).ok();
    }
  }
  RecordProperty("programs", static_cast<int>(all));
  RecordProperty("read", static_cast<int>(read));
  EXPECT_GE(all, 300u);
  EXPECT_GE(read * 100, all * 95) << read << " of " << all;
}

}  // namespace
}  // namespace hone
