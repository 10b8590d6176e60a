// What tells two results apart is in the key, and every field of the key is in what records are named by.
#include <set>

#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

TEST(RecordId, ChangesWithEveryFieldOfTheKeyAndWithTheTrace) {
  const TuningKey key = TestKey("conv2d_1");
  // A field that is added does not compile here: it gets a line below, and a place in RecordId.
  const auto& [tenant, workload_hash, device_class, threads, numeric, protocol] = key;
  std::vector<TuningKey> others(6, key);
  others[0].tenant = tenant + 1;
  others[1].workload_hash = Sha256(workload_hash);
  others[2].device_class = device_class + "x";
  others[3].threads = threads + 1;
  others[4].numeric = numeric == v1::NUMERIC_STRICT ? v1::NUMERIC_DEFAULT : v1::NUMERIC_STRICT;
  others[5].protocol = protocol + 1;
  std::set<uint64_t> ids = {RecordId(key, "trace"), RecordId(key, "another trace")};
  for (const TuningKey& other : others) {
    EXPECT_NE(other, key);
    EXPECT_TRUE(ids.insert(RecordId(other, "trace")).second) << ids.size();
  }
  EXPECT_EQ(ids.size(), 8u);
}

// Files and bundles of the first release name records so.
TEST(RecordId, OfTheLocalTenantIsWhatItEverWas) {
  EXPECT_EQ(RecordId(TestKey("conv2d_1"), "trace"), 6286218176934367513u);
}

}  // namespace
}  // namespace hone
