// `hone opt` on programs that do harm: whatever they do, the client says so with exit code 7 and goes on living.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;

std::string Program(const std::string& index) {
  return "@T.prim_func\n"
         "def main(A: T.Buffer((64,), \"int32\"), B: T.Buffer((64,), \"int32\")):\n"
         "    for i in range(64):\n"
         "        B[" +
         index + "] = A[i]\n";
}

void ExpectFault(const TempFolder& folder, const Arguments& arguments, const std::string& says) {
  const Finished finished = Hone(folder, arguments);
  EXPECT_EQ(finished.code, 7) << finished.errors;
  EXPECT_EQ(finished.output, "");
  EXPECT_EQ(finished.errors.rfind("hone: ", 0), 0u) << finished.errors;
  EXPECT_THAT(finished.errors, HasSubstr(says));
}

TEST(Opt, AProgramAtFaultHasACodeOfItsOwn) {
  const TempFolder folder;
  const std::string file = folder / "p.py";
  WriteAll(file, Program("i + 16"));
  ExpectFault(folder, {"opt", file, "--run", "llvm", "--output", "B=" + folder / "b.npy"}, "outside of its range");
  // The values of A are not known before it runs.
  for (const char* index : {"A[i] % 2 + i + 16", "A[i] % 2 + i * 100000000", "A[i] % 2 + i - 100000"}) {
    WriteAll(file, Program(index));
    ExpectFault(folder, {"opt", file, "--check"}, "is not proven to stay");
    ExpectFault(folder, {"opt", file, "--run", "interp"}, "index 0 of B is ");
    ExpectFault(folder, {"opt", file, "--run", "llvm", "--output", "B=" + folder / "b.npy"}, "the program crashed: ");
  }
  EXPECT_EQ(folder.Files(), std::vector<std::string>{"p.py"});
  WriteAll(file, Program("i"));
  EXPECT_EQ(Hone(folder, {"opt", file, "--check", "--run", "llvm", "--output", "B=" + folder / "b.npy"}).code, 0);
  EXPECT_THAT(Hone(folder, {"opt", "--help"}).output, HasSubstr("7 the program is at fault"));
  EXPECT_THAT(Hone(folder, {"--help"}).output, HasSubstr("7 the program given to hone opt is at fault"));
}

}  // namespace
}  // namespace hone::system_test
