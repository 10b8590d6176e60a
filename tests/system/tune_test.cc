// The path a user takes: tune, compile, run, bench, inspect.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

void ExpectComputesTiny(const TempFolder& folder, const std::string& bundle) {
  const TinyModel tiny;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<float> x = tiny.Input(seed);
    WriteNpy(folder / "x.npy", {TinyModel::kRows, TinyModel::kIn}, x);
    const Finished run =
        Hone(folder, {"run", bundle, "--input", "x=" + (folder / "x.npy"), "--output", "y=" + (folder / "y.npy")});
    ASSERT_EQ(run.code, 0) << run.errors;
    const std::vector<float> y = ReadNpy(folder / "y.npy", {TinyModel::kRows, TinyModel::kOut});
    const std::vector<float> want = tiny.Reference(x);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(y[i], want[i], 1e-4 + 1e-3 * std::abs(want[i])) << "element " << i;
  }
}

// No program was measured twice for the same key.
void ExpectDistinct(const std::vector<Json>& records) {
  std::set<std::tuple<std::string, std::string, int, std::string, std::string>> seen;
  for (const Json& record : records) {
    EXPECT_TRUE(seen.emplace(record.at("workload"), record.at("device_class"), record.at("threads"),
                             record.at("numeric"), record.at("trace"))
                    .second)
        << record.dump();
  }
}

void CheckResult(const Json& result) {
  SCOPED_TRACE(result.dump());
  EXPECT_EQ(result.at("event"), "result");
  EXPECT_GE(result.at("job").get<int>(), 1);
  EXPECT_TRUE(result.at("failed").is_object());
  const double seconds = result.at("seconds");
  EXPECT_GT(seconds, 0);
  double phases = 0;
  for (const char* phase : {"search_seconds", "build_seconds", "verify_seconds", "measure_seconds"}) {
    EXPECT_GE(result.at(phase).get<double>(), 0) << phase;
    phases += result.at(phase).get<double>();
  }
  EXPECT_LE(phases, 1.2 * seconds + 1) << "one worker does one thing at a time";
  EXPECT_NEAR(result.at("trials_per_hour").get<double>(), result.at("trials").get<double>() / seconds * 3600, 1);
  EXPECT_GT(result.at("model_ms_before").get<double>(), 0);
  EXPECT_GT(result.at("model_ms_after").get<double>(), 0);
  int trials = 0;
  for (const Json& task : result.at("tasks")) {
    trials += task.at("trials").get<int>();
    EXPECT_FALSE(task.at("name").get<std::string>().empty());
    EXPECT_EQ(task.at("weight"), 1);
    for (const char* field : {"flop", "default_us", "best_us", "lower_bound_us", "gflops"}) {
      ASSERT_TRUE(task.at(field).is_number()) << field;
    }
    EXPECT_GT(task.at("flop").get<double>(), 0);
    EXPECT_GT(task.at("default_us").get<double>(), 0);
    EXPECT_GT(task.at("best_us").get<double>(), 0);
    EXPECT_LE(task.at("best_us").get<double>(), task.at("default_us").get<double>()) << task.dump();
    EXPECT_GT(task.at("lower_bound_us").get<double>(), 0);
    EXPECT_NEAR(task.at("gflops").get<double>(), task.at("flop").get<double>() / task.at("best_us").get<double>() / 1e3,
                1e-3);
    EXPECT_TRUE(task.at("record").is_string());
    EXPECT_EQ(task.at("verified"), true);
  }
  EXPECT_EQ(trials, result.at("trials").get<int>());
}

// The same on an OpenCL device, PoCL where there is no other: a worker that measures it, records of its class, a bundle
// of what was found.
TEST(System, TunesAnOpenClDevice) {
  const TempFolder folder;
  ::setenv("POCL_CACHE_DIR", folder.path().c_str(), 1);
  for (const Json& row : JsonLines(Hone(folder, {"doctor", "--json"}).output)) {
    const std::string found = row.value("found", "");
    if (row.value("check", "") == "opencl" && found.starts_with("none")) GTEST_SKIP() << found;
  }
  const std::string model = SaveTiny(folder.path()), database = folder / "tuning.db", bundle = folder / "tiny.hone";
  const Finished tune = RunProgram(
      folder, "hone",
      {"tune", model, "--db", database, "--target", "opencl:generic", "--trials", "10", "--wait", "3m", "--json"}, 500);
  ASSERT_EQ(tune.code, 0) << tune.errors;
  const std::vector<Json> events = JsonLines(tune.output);
  ASSERT_FALSE(events.empty());
  const Json& result = events.back();
  EXPECT_GE(result.at("trials").get<int>(), 10) << result.dump();
  EXPECT_GT(result.at("model_ms_after").get<double>(), 0);
  const Finished list = Hone(folder, {"records", "list", "--json", "--db", database});
  ASSERT_EQ(list.code, 0) << list.errors;
  const std::vector<Json> records = JsonLines(list.output);
  EXPECT_EQ(records.size(), result.at("trials").get<size_t>());
  ExpectDistinct(records);
  for (const Json& record : records)
    EXPECT_TRUE(record.at("device_class").get<std::string>().starts_with("opencl-generic-")) << record.dump();
  const Finished compile =
      Hone(folder, {"compile", model, "-o", bundle, "--db", database, "--target", "opencl:generic", "--json"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  const Json made = JsonLines(compile.output).back();
  // By its record, or by the default schedule where that was faster inside the model.
  EXPECT_EQ(made.at("from_records").get<int>() + made.at("from_faster_defaults").get<int>(), 2) << made.dump();
  ExpectComputesTiny(folder, bundle);
}

TEST(System, TunesCompilesAndRuns) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), database = folder / "tuning.db";
  const Arguments tune{"tune", model, "--db", database, "--trials", "24", "--threads", "1", "--json"};
  const Finished first = Hone(folder, tune);
  ASSERT_EQ(first.code, 0) << first.errors;
  const std::vector<Json> events = JsonLines(first.output);
  ASSERT_FALSE(events.empty());
  for (size_t i = 0; i + 1 < events.size(); ++i) EXPECT_EQ(events[i].at("event"), "progress");
  const Json& result = events.back();
  CheckResult(result);
  EXPECT_GE(result.at("trials").get<int>(), 24);
  ASSERT_EQ(result.at("tasks").size(), 2u);

  const Finished list = Hone(folder, {"records", "list", "--json", "--db", database});
  ASSERT_EQ(list.code, 0) << list.errors;
  const std::vector<Json> records = JsonLines(list.output);
  EXPECT_EQ(records.size(), result.at("trials").get<size_t>());
  ExpectDistinct(records);

  // The same again: a second daemon or the same one, nothing is measured twice.
  const Finished second = Hone(folder, tune);
  ASSERT_EQ(second.code, 0) << second.errors;
  const Json again = JsonLines(second.output).back();
  const std::vector<Json> after = JsonLines(Hone(folder, {"records", "list", "--json", "--db", database}).output);
  EXPECT_EQ(after.size(), records.size() + again.at("trials").get<size_t>());
  ExpectDistinct(after);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE(again.at("tasks")[i].at("best_us").get<double>(),
              1.001 * result.at("tasks")[i].at("best_us").get<double>());
  }

  const std::string bundle = folder / "tiny.hone";
  const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--db", database, "--threads", "1"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  EXPECT_THAT(compile.errors, testing::HasSubstr("2 from records"));
  ExpectComputesTiny(folder, bundle);

  const Finished bench = Hone(folder, {"bench", bundle, "--seconds", "0.2", "--json"});
  ASSERT_EQ(bench.code, 0) << bench.errors;
  const Json times = JsonLines(bench.output).at(0);
  EXPECT_LE(times.at("latency_ms").at("p10").get<double>(), times.at("latency_ms").at("p50").get<double>());
  EXPECT_LE(times.at("latency_ms").at("p50").get<double>(), times.at("latency_ms").at("p90").get<double>());
  EXPECT_GE(times.at("runs").get<int>(), 10);
  EXPECT_EQ(times.at("threads"), 1);
  ASSERT_EQ(times.at("kernels").size(), 2u);
  std::set<std::string> best;
  for (const Json& record : JsonLines(Hone(folder, {"records", "best", "--json", "--db", database}).output)) {
    best.insert(record.at("id").get<std::string>());
  }
  for (const Json& kernel : times.at("kernels")) {
    EXPECT_GT(kernel.at("us").get<double>(), 0);
    EXPECT_TRUE(best.count(kernel.at("record").get<std::string>()) == 1) << kernel.dump();
  }

  const Finished inspect = Hone(folder, {"inspect", bundle, "--json"});
  ASSERT_EQ(inspect.code, 0) << inspect.errors;
  EXPECT_TRUE(JsonLines(inspect.output).at(0).is_object());
}

TEST(System, CompilesWithoutRecords) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  for (const char* numeric : {"default", "strict"}) {
    for (const char* threads : {"1", "2"}) {
      const std::string bundle = folder / "untuned.hone";
      const Finished compile =
          Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--numeric", numeric, "--threads", threads});
      ASSERT_EQ(compile.code, 0) << compile.errors;
      EXPECT_TRUE(compile.output.empty()) << "progress goes to standard error";
      ExpectComputesTiny(folder, bundle);
    }
  }
  const Finished inspect = Hone(folder, {"inspect", model, "--json"});
  ASSERT_EQ(inspect.code, 0) << inspect.errors;
  const Json json = JsonLines(inspect.output).at(0);
  ASSERT_EQ(json.at("tasks").size(), 2u);
  EXPECT_EQ(json.at("inputs")[0].at("shape"), Json({TinyModel::kRows, TinyModel::kIn}));
  EXPECT_EQ(json.at("outputs")[0].at("name"), "y");
}

TEST(System, InterruptedTuneKeepsWhatItMeasured) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  service.StartWorker();
  Process tune(folder, "hone",
               {"tune", model, "--server", service.address(), "--budget", "120s", "--threads", "1", "--json"});
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) > 0; }, 90)) << tune.Errors();
  tune.Signal(SIGINT);
  EXPECT_EQ(tune.Wait(), 130);
  EXPECT_THAT(tune.Errors(), testing::HasSubstr("trials are kept"));
  EXPECT_THAT(tune.Errors(), testing::HasSubstr("to go on"));
  EXPECT_TRUE(WaitUntil([&] { return service.Job(1).value("state", "") == "stopped"; }));
  EXPECT_GT(service.Records().size(), 0u);
}

// The model the documentation starts with, as tests/models writes it.
TEST(System, TunesTheModelsMlp) {
  const char* models = std::getenv("HONE_MODELS");
  if (models == nullptr) GTEST_SKIP() << "HONE_MODELS is not set; tests/run sets it";
  const std::string model = std::string(models) + "/mlp.onnx";
  ASSERT_TRUE(std::filesystem::exists(model)) << model;
  const TempFolder folder;
  Service service(folder);
  service.StartWorker();
  const Finished tune =
      Hone(folder, {"tune", model, "--server", service.address(), "--trials", "6", "--threads", "1", "--json"});
  ASSERT_EQ(tune.code, 0) << tune.errors;
  CheckResult(JsonLines(tune.output).back());
}

}  // namespace
}  // namespace hone::system_test
