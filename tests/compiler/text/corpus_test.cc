// Programs that TVM prints (make_corpus.py beside this file): all are read, print, read back equal and keep the rules
// of the verifier.
#include "tests/compiler/text/corpus.h"

#include "compiler/verify/verify.h"

namespace hone {
namespace {

class CorpusTest : public testing::TestWithParam<std::string> {};

TEST_P(CorpusTest, IsReadPrintedAndVerified) {
  for (const auto& [title, text] : CorpusTexts(GetParam())) {
    SCOPED_TRACE(title);
    const absl::StatusOr<IrModule> module = ParseIrModule(text);
    ASSERT_TRUE(module.ok()) << module.status();
    const std::string printed = ToText(*module);
    const absl::StatusOr<IrModule> back = ParseIrModule(printed);
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << printed;
    EXPECT_TRUE(StructuralEqual(*module, *back)) << printed;
    EXPECT_EQ(ToText(*back), printed);
    for (const auto& function : module->functions) {
      const PrimFunc* const f = std::get_if<PrimFunc>(&function);
      EXPECT_EQ(f == nullptr ? absl::OkStatus() : Verify(*f), absl::OkStatus());
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Networks, CorpusTest, testing::ValuesIn(CorpusFiles()),
                         [](const auto& info) { return info.param; });

TEST(CorpusCountTest, ThereAre300Programs) {
  size_t all = 0;
  for (const std::string& network : CorpusFiles()) all += CorpusTexts(network).size();
  EXPECT_GE(all, 300u);
}

}  // namespace
}  // namespace hone
