// The networks of exported/ as modules of the text dialect, as imported and optimised: the text keeps the rules, reads
// back to an equal module, and is imported to a graph of that module and those constants again.
#include "absl/strings/numbers.h"
#include "compiler/frontend/module_import.h"
#include "compiler/graph/module_of_graph.h"
#include "compiler/graph/passes.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/models/exported_graph.h"

namespace hone {
namespace {

// The module that was read, imported with the constants of the one that was printed.
absl::StatusOr<Graph> ImportedAgain(const IrModule& read, const GraphModule& printed) {
  ImportOptions options;
  options.constants = [&](const std::string& name) -> std::shared_ptr<const NdArray> {
    size_t number = 0;
    return absl::SimpleAtoi(name, &number) ? printed.constants.at(number) : nullptr;
  };
  return ImportModule(read, options);
}

void ExpectReadsBack(const Graph& graph) {
  const GraphModule printed = ModuleOf(graph);
  ASSERT_TRUE(Verify(printed.module).ok()) << Verify(printed.module);
  const absl::StatusOr<IrModule> read = ParseIrModule(ToText(printed.module));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(StructuralEqual(*read, printed.module));
  const absl::StatusOr<Graph> again = ImportedAgain(*read, printed);
  ASSERT_TRUE(again.ok()) << again.status();
  const GraphModule of_again = ModuleOf(*again);
  EXPECT_EQ(ToText(of_again.module), ToText(printed.module));
  EXPECT_EQ(of_again.constants, printed.constants);
}

TEST(ExportedModules, ReadBackAsImportedAndOptimised) {
  for (const std::string& name : ExportedNetworks()) {
    SCOPED_TRACE(name);
    absl::StatusOr<Graph> graph = ExportedGraph(name);
    ASSERT_TRUE(graph.ok()) << graph.status();
    ExpectReadsBack(*graph);
    ASSERT_TRUE(Optimize(*graph).ok());
    ExpectReadsBack(*graph);
  }
}

}  // namespace
}  // namespace hone
