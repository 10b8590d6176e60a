// Runs c_program, which is C and links nothing but the runtime, on a bundle.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

TEST(CProgram, UsesTheHeaderAlone) {
  const std::string path = testing::TempDir() + "/sample_" + std::to_string(getpid()) + ".hone";
  std::ofstream(path, std::ios::binary) << SampleMembers().Archive();
  FILE* program = popen((std::string(HONE_BIN) + "/runtime_c_program '" + path + "' 2>&1").c_str(), "r");
  ASSERT_NE(program, nullptr);
  std::string output;
  for (char buffer[256]; std::fgets(buffer, sizeof(buffer), program) != nullptr;) output += buffer;
  EXPECT_EQ(pclose(program), 0) << output;
  EXPECT_EQ(output, "ok\n");
  unlink(path.c_str());
}

}  // namespace
}  // namespace hone
