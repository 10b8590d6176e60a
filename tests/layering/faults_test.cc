// The page of faults names tests that are there: a label on a name that is none would be silent.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Faults, EveryTestOfThePageIsThere) {
  const fs::path tests = HONE_TEST_DATA;
  const std::string page = ReadAll(tests / "faults.md");
  const std::regex row("\\n\\| ([0-9]+) \\|[^\\n]*"), name("`([a-z/]+):([A-Za-z]+)\\.([A-Za-z]+)`");
  int rows = 0;
  for (std::sregex_iterator line(page.begin(), page.end(), row), end; line != end; ++line) {
    EXPECT_EQ(std::stoi((*line)[1]), ++rows);
    const std::string text = line->str();
    int named = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), name); at != end; ++at, ++named) {
      const std::regex test("TEST(_F|_P)?\\(" + (*at)[2].str() + ",\\s*" + (*at)[3].str() + "\\)");
      bool there = false;
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tests / (*at)[1].str())) {
        const bool source = entry.path().extension() == ".cc";
        there = there || (source && std::regex_search(ReadAll(entry.path()), test));
      }
      EXPECT_TRUE(there) << "row " << rows << ": " << at->str();
    }
    EXPECT_GE(named, 1) << "row " << rows;
  }
  EXPECT_EQ(rows, 40);
}

}  // namespace
