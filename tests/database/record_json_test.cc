// Records as lines: what is torn or changed is refused by its number, the rest comes in.
#include "database/store/record_json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/support/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/database/memory_store.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Line(const std::string& trace, double us = 12.5, bool best = false) {
  RecordLine line{
      .row = TestRecord(TestKey("conv2d_1"), trace, us, "object"), .workload = TestWorkload("conv2d_1"), .best = best};
  return ToJsonLine(line);
}

TEST(RecordJson, ComesBackAsItWas) {
  const auto line = RecordFromJsonLine(Line("for i in range(3):\n  \"x\" \t é", 0.1 + 0.2, true));
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->row.record.median_us(), 0.1 + 0.2);
  EXPECT_EQ(line->row.record.trace(), "for i in range(3):\n  \"x\" \t é");
  EXPECT_EQ(line->row.record.object(), "object");
  EXPECT_EQ(line->row.key, TestKey("conv2d_1"));
  EXPECT_EQ(line->workload.text(), "text of conv2d_1");
  EXPECT_TRUE(line->best);
  EXPECT_EQ(line->row.record.id(), RecordId(TestKey("conv2d_1"), line->row.record.trace()));
}

TEST(RecordJson, StatesTheDriverWhereThereIsOne) {
  EXPECT_THAT(Line("a"), testing::Not(HasSubstr("driver"))) << "lines of earlier releases are what they were";
  RecordLine line{.row = TestRecord(TestKey("conv2d_1"), "a", 1), .workload = TestWorkload("conv2d_1")};
  line.row.record.set_driver("550.54");
  const auto read = RecordFromJsonLine(ToJsonLine(line));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->row.record.driver(), "550.54");
  EXPECT_EQ(RecordFromJsonLine(Line("a"))->row.record.driver(), "");
}

TEST(RecordJson, WhiteSpaceAndOrderOfKeysDoNotMatter) {
  const nlohmann::json json = nlohmann::json::parse(Line("a"));
  EXPECT_TRUE(RecordFromJsonLine(json.dump(1)).ok());
}

TEST(RecordJson, EveryTornLineIsRefused) {
  const std::string line = Line("a");
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(RecordFromJsonLine(line.substr(0, size)).ok()) << size;
  }
}

TEST(RecordJson, EveryFlippedBitIsRefused) {
  const std::string line = Line("a");
  for (size_t at = 0; at < line.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = line;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      const auto read = RecordFromJsonLine(changed);
      // A flip may turn a space, a digit's spelling or a letter's case into the same value; anything read must be the
      // same.
      if (read.ok()) {
        EXPECT_EQ(ToJsonLine(RecordLine{read->row, read->workload, read->best}), line) << at << " " << bit;
      }
    }
  }
}

TEST(RecordJson, NestingTakesNoStack) {
  const std::string deep(1 << 17, '[');
  const std::string line = Line("a");
  for (const char* field : {"other", "checksum", "best", "hone_record", "hone_check"}) {
    const std::string closed = deep + std::string(deep.size(), ']');
    const std::string text = absl::StrCat(line.substr(0, line.size() - 1), ",\"", field, "\":", closed, "}");
    EXPECT_FALSE(RecordFromJsonLine(text).ok()) << field;
    MemoryStore store;
    const auto plan = PlanImport(store, kLocalTenant, absl::StrCat("{\"", field, "\":", closed, "}\n", line));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->refused.size(), 1u) << field;
    EXPECT_EQ(plan->records, 1u) << field;
  }
}

struct ForgedCase {
  const char* name;
  const char* field;
  nlohmann::json value;
  const char* message;
};
class Forged : public testing::TestWithParam<ForgedCase> {};
// Edited and given a right checksum: a checksum is against accidents, so what it covers is checked as well.
TEST_P(Forged, IsRefusedWithItsReason) {
  nlohmann::json json = nlohmann::json::parse(Line("a"));
  json.erase("checksum");
  if (GetParam().value.is_discarded()) json.erase(GetParam().field);
  if (!GetParam().value.is_discarded()) json[GetParam().field] = GetParam().value;
  json["checksum"] = ToHex(Sha256(json.dump())).substr(0, 16);
  EXPECT_THAT(std::string(RecordFromJsonLine(json.dump()).status().message()), HasSubstr(GetParam().message));
}
const nlohmann::json kGone(nlohmann::json::value_t::discarded);
INSTANTIATE_TEST_SUITE_P(
    Cases, Forged,
    testing::Values(ForgedCase{"NewerFormat", "hone_record", 2, "newer format"},
                    ForgedCase{"NoFormat", "hone_record", kGone, "not a Hone record"},
                    ForgedCase{"NoTrace", "trace", kGone, "\"trace\" is missing"},
                    ForgedCase{"TraceIsANumber", "trace", 3, "\"trace\" is not text"},
                    ForgedCase{"NegativeTime", "median_us", -1.0, "not a positive time"},
                    ForgedCase{"ZeroTime", "median_us", 0, "not a positive time"},
                    ForgedCase{"TimeIsText", "median_us", "fast", "is not a number"},
                    ForgedCase{"NoThreads", "threads", 0, "outside 1..65536"},
                    ForgedCase{"ManyThreads", "threads", 1e300, "not an integer"},
                    ForgedCase{"UnknownLevel", "numeric", "loose", "none of strict, default, bf16"},
                    ForgedCase{"OtherText", "workload_text", "another", "digest of the workload's text"},
                    ForgedCase{"ShortHash", "workload", "abcd", "not 32 bytes in hex"},
                    ForgedCase{"NotHex", "program_hash", "xy", "is not hex"},
                    ForgedCase{"OtherObject", "object", "AAAA", "does not have the digest"},
                    ForgedCase{"NotBase64", "object", "!!", "is not base64"},
                    ForgedCase{"NoDevice", "device_class", "", "is empty"},
                    ForgedCase{"LongDevice", "device_class", std::string(1025, 'x'), "has more than 1024 bytes"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RecordJson, ImportRefusesByNumberAndTakesTheRest) {
  MemoryStore store;
  const uint64_t epoch = *store.BeginEpoch();
  std::string broken = Line("broken");
  broken[broken.find("12.5")] = '2';
  const std::string text = Line("a") + "\n\n" + broken + "\r\n" + Line("a") + "\nnonsense\n" + Line("b", 3, true) +
                           "\n" + Line("torn").substr(0, 200);
  const auto plan = PlanImport(store, kLocalTenant, text, 10);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->records, 2u);
  EXPECT_EQ(plan->duplicates, 1u);
  EXPECT_THAT(plan->refused, ElementsAre("line 12: checksum does not match", HasSubstr("line 14: not a JSON object"),
                                         HasSubstr("line 16: not a JSON object")));
  ASSERT_TRUE(store.Commit(epoch, plan->writes).ok());
  EXPECT_EQ(store.best().at(TestKey("conv2d_1")).second, 3);
}

TEST(RecordJson, AnImportedBestDoesNotReplaceOneThatIsThere) {
  MemoryStore store;
  const uint64_t epoch = *store.BeginEpoch();
  ASSERT_TRUE(store.Commit(epoch, TestGround()).ok());
  const TuningKey key = TestKey("conv2d_1");
  const std::vector<Write> writes = {PutRecord{TestRecord(key, "mine", 5)}, SetBest{key, RecordId(key, "mine"), 5}};
  ASSERT_TRUE(store.Commit(epoch, writes).ok());
  const auto plan = PlanImport(store, kLocalTenant, Line("theirs", 1, true) + "\n");
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(store.Commit(epoch, plan->writes).ok());
  EXPECT_EQ(store.best().at(key).first, RecordId(key, "mine"));
  EXPECT_EQ(store.records().size(), 2u) << "it is kept, to be tried by the next job";
}

TEST(RecordJson, NonsenseNeverCrashes) {
  Random random(5);
  const std::string line = Line("a");
  for (int i = 0; i < 3000; ++i) {
    std::string text = line;
    for (uint64_t n = random.Below(6); n > 0; --n) {
      const size_t at = random.Below(text.size());
      switch (random.Below(3)) {
        case 0: text[at] = static_cast<char>(random.Next()); break;
        case 1: text.erase(at, random.Below(50)); break;
        case 2: text.insert(at, text.substr(random.Below(text.size()), random.Below(50))); break;
      }
    }
    EXPECT_TRUE(RecordFromJsonLine(text).ok() || true);
  }
  EXPECT_FALSE(RecordFromJsonLine(std::string(100'000, '[')).ok());
}

}  // namespace
}  // namespace hone
