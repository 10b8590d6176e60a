#include "tuner/dispatch/state/id_containers.h"

#include <set>
#include <string>
#include <vector>

#include "compiler/support/random.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(SortedIds, IsASetInOrder) {
  Random random(1);
  SortedIds ids;
  std::set<uint64_t> expected;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t id = random.Below(100);
    if (random.Below(2) == 0) {
      ids.insert(id);
      expected.insert(id);
    } else {
      ids.erase(id);
      expected.erase(id);
    }
    ASSERT_EQ(std::vector<uint64_t>(ids.begin(), ids.end()), std::vector<uint64_t>(expected.begin(), expected.end()));
    ASSERT_EQ(ids.count(id), expected.count(id));
    ASSERT_EQ(ids.empty(), expected.empty());
  }
}

TEST(MapById, IsGoneThroughInOrderWhateverTheOrderOfItsFilling) {
  MapById<std::string> map;
  for (const uint64_t id : {7, 2, 9, 4}) EXPECT_TRUE(map.emplace(id, std::to_string(id)).second);
  EXPECT_FALSE(map.emplace(9, "another").second) << "what is there stays";
  map[5] = "5";
  map.erase(2);
  map.erase(3);  // it has none
  std::string all;
  for (const auto& [id, text] : map) all += std::to_string(id) + "=" + text + " ";
  EXPECT_EQ(all, "4=4 5=5 7=7 9=9 ");
  EXPECT_EQ(map.size(), 4u);
}

TEST(MapById, FindsWhatIsThereAndNothingElse) {
  MapById<std::string> map;
  const std::string* first = &map[1];
  for (uint64_t id = 2; id < 1000; ++id) map[id] = std::to_string(id);
  EXPECT_EQ(first, &map.at(1)) << "it stays where it is";
  map.erase(500);
  EXPECT_EQ(map.count(500), 0u);
  EXPECT_TRUE(map.find(500) == map.end());
  EXPECT_EQ(map.find(501)->second, "501");
}

TEST(Replace, MovesAnElementOrPutsItThere) {
  std::set<int> set = {1, 5};
  Replace(set, 1, 7);
  EXPECT_EQ(set, (std::set<int>{5, 7}));
  Replace(set, 2, 3);
  EXPECT_EQ(set, (std::set<int>{3, 5, 7}));
  Replace(set, 3, 5);
  EXPECT_EQ(set, (std::set<int>{5, 7})) << "one that is there already";
}

}  // namespace
}  // namespace hone
