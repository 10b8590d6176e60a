// One contract, every backend: the suite (store_conformance_*.cc) does not ask which it is running on. Instantiated
// where a backend is at hand: conformance_test.cc, postgres/conformance_test.cc.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "database/store/store.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"

namespace hone {

struct Backend {
  const char* name;
  // A new store with nothing in it; `folder` is empty and is removed afterwards. nullptr where the backend is missing.
  std::function<std::unique_ptr<TuningStore>(const std::string& folder)> open;
};

class StoreTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hone_store_XXXXXX";
    folder_ = mkdtemp(name);
    store_ = GetParam().open(folder_);
    if (store_ == nullptr && !HasFailure()) GTEST_SKIP() << "nothing to test";
    ASSERT_NE(store_, nullptr);
    const auto epoch = store_->BeginEpoch();
    ASSERT_TRUE(epoch.ok()) << epoch.status();
    epoch_ = *epoch;
    Commit(TestGround());
  }
  void TearDown() override {
    store_ = nullptr;
    std::filesystem::remove_all(folder_);
  }
  std::unique_ptr<TuningStore> OpenAnother() {
    std::filesystem::create_directory(folder_ + "/other");
    return GetParam().open(folder_ + "/other");
  }
  void Commit(const std::vector<Write>& writes) {
    const absl::Status status = store_->Commit(epoch_, writes);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::optional<BestEntry> Best(const std::string& workload, int threads, v1::NumericLevel numeric,
                                const std::string& device_class = "fake/c2") {
    v1::BestKey key;
    key.set_workload_hash(TestWorkload(workload).hash());
    key.set_threads(threads);
    key.set_numeric(numeric);
    key.set_device_class(device_class);
    auto answers = store_->Best(kLocalTenant, {&key, 1});
    EXPECT_TRUE(answers.ok()) << answers.status();
    return answers.ok() ? answers->entries.at(0) : std::nullopt;
  }
  std::vector<std::string> Traces(const RecordFilter& filter) {
    std::vector<std::string> traces;
    const auto page = store_->Records(kLocalTenant, filter);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const RecordRow& row : page->rows) traces.push_back(row.record.trace());
    return traces;
  }

  std::string folder_;
  std::unique_ptr<TuningStore> store_;
  uint64_t epoch_ = 0;
};

inline std::string NameOfBackend(const testing::TestParamInfo<Backend>& info) { return info.param.name; }

}  // namespace hone
