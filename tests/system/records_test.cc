// Records go from one database to another, and the bundle made from them is the same.
#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

std::map<std::string, Json> Best(const TempFolder& folder, const std::string& database) {
  std::map<std::string, Json> best;
  const Finished list = Hone(folder, {"records", "best", "--json", "--db", database});
  EXPECT_EQ(list.code, 0) << list.errors;
  for (const Json& record : JsonLines(list.output)) best[record.at("workload").get<std::string>()] = record;
  return best;
}

TEST(Records, ExportedAndImportedAreTheSame) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  const Finished tune =
      Hone(folder, {"tune", model, "--server", service.address(), "--trials", "24", "--threads", "1", "--json"});
  ASSERT_EQ(tune.code, 0) << tune.errors;

  const std::string exported = folder / "records.jsonl", copy = folder / "copy.db";
  ASSERT_EQ(Hone(folder, {"records", "export", "--server", service.address(), "-o", exported}).code, 0);
  const Finished by_file = Hone(folder, {"records", "export", "--db", service.database()});
  ASSERT_EQ(by_file.code, 0) << by_file.errors;
  EXPECT_EQ(by_file.output, ReadAll(exported)) << "daemon and file say the same";
  const Finished import = Hone(folder, {"records", "import", exported, "--db", copy});
  ASSERT_EQ(import.code, 0) << import.errors;
  EXPECT_EQ(Hone(folder, {"records", "export", "--db", copy}).output, by_file.output);

  const std::map<std::string, Json> here = Best(folder, service.database()), there = Best(folder, copy);
  EXPECT_EQ(here.size(), 2u);
  ASSERT_EQ(here.size(), there.size());
  for (const auto& [workload, record] : here) {
    for (const char* field : {"id", "trace", "median_us", "device_class", "threads", "numeric"}) {
      EXPECT_EQ(record.at(field), there.at(workload).at(field)) << field;
    }
  }

  // The same kernels: from the same records, and byte for byte the same code. Of another model of the same tasks, since
  // where `hone tune` found a default faster inside a model, that model's bundles have it.
  TinyModel other;
  other.b2[0] += 1;
  Save(other.Proto(), model);
  std::vector<std::string> images;
  std::vector<Json> kernels;
  for (const std::string& database : {service.database(), copy}) {
    const std::string bundle = folder / "tiny.hone";
    const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--db", database, "--threads", "1"});
    ASSERT_EQ(compile.code, 0) << compile.errors;
    EXPECT_THAT(compile.errors, testing::HasSubstr("2 from records"));
    images.push_back(ReadAll(bundle));
    const Finished inspect = Hone(folder, {"inspect", bundle, "--json"});
    ASSERT_EQ(inspect.code, 0) << inspect.errors;
    kernels.push_back(JsonLines(inspect.output).at(0).at("kernels"));
  }
  EXPECT_EQ(kernels[0], kernels[1]);
  EXPECT_TRUE(images[0] == images[1]) << "bundles of " << images[0].size() << " and " << images[1].size() << " bytes";

  // Again: nothing is there twice. A line that was tampered with is refused, the others are taken.
  const Finished twice = Hone(folder, {"records", "import", exported, "--db", copy});
  EXPECT_EQ(twice.code, 0) << twice.errors;
  EXPECT_EQ(Hone(folder, {"records", "export", "--db", copy}).output, by_file.output);
  std::string tampered = by_file.output;
  const size_t digit = tampered.find("\"median_us\":") + 12;
  tampered[digit] = tampered[digit] == '1' ? '2' : '1';
  WriteAll(exported, tampered);
  const Finished refused = Hone(folder, {"records", "import", exported, "--db", folder / "third.db"});
  EXPECT_EQ(refused.code, 9) << refused.errors;
  EXPECT_THAT(refused.errors, testing::HasSubstr("line 1"));
}

}  // namespace
}  // namespace hone::system_test
