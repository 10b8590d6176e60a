// Runs c_program, which is C and links nothing but the runtime (as an archive, as a shared library), on a bundle.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

class CProgram : public testing::TestWithParam<const char*> {};

TEST_P(CProgram, UsesTheHeaderAlone) {
  const std::string path = testing::TempDir() + "/sample_" + std::to_string(getpid()) + ".hone";
  std::ofstream(path, std::ios::binary) << SampleMembers().Archive();
  const std::string command = std::string(HONE_BIN) + "/c_program_" + GetParam() + " '" + path + "' 2>&1";
  FILE* program = popen(command.c_str(), "r");
  ASSERT_NE(program, nullptr);
  std::string output;
  for (char buffer[256]; std::fgets(buffer, sizeof(buffer), program) != nullptr;) output += buffer;
  EXPECT_EQ(pclose(program), 0) << output;
  EXPECT_EQ(output, "ok\n");
  unlink(path.c_str());
}
INSTANTIATE_TEST_SUITE_P(Libraries, CProgram, testing::Values("hone_runtime", "hone_runtime_shared"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace hone
