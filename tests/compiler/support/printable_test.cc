#include "compiler/support/printable.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(Printable, LeavesAsciiAndLinesAndNothingElse) {
  EXPECT_EQ(Printable("touched 0x10,\n\"output 0\" ~"), "touched 0x10,\n\"output 0\" ~");
  EXPECT_EQ(Printable(std::string("a\0b\x1b\x7f\xff\xc3\xa9", 8)), "a?b?????");
}

TEST(Utf8Prefix, CutsNoCharacterInTwo) {
  const std::string text = "a\u00e9\u20ac\U0001f600z";  // of 1, 2, 3, 4 and 1 bytes
  const size_t kEnds[] = {0, 1, 3, 6, 10, 11};
  for (size_t most = 0; most <= text.size() + 2; ++most) {
    size_t longest = 0;
    for (const size_t end : kEnds) longest = end <= most ? end : longest;
    EXPECT_EQ(Utf8Prefix(text, most), text.substr(0, longest)) << most;
  }
}

}  // namespace
}  // namespace hone
