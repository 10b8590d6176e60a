// The path a user takes: tune, compile, run, bench, inspect.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"
#include "tests/thorough.h"

namespace hone::system_test {
namespace {

// On one input, since a device's compiler starts for each; HONE_THOROUGH=1: on three.
void ExpectComputesTiny(const TempFolder& folder, const std::string& bundle) {
  const TinyModel tiny;
  for (uint64_t seed = 0; seed < (Thorough() ? 3 : 1); ++seed) {
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

// The same on a device: a worker that measures it, records of its class, a bundle of what was found. `result`: what
// hone tune says at the end.
void ExpectTunesDevice(const TempFolder& folder, const std::string& target, int trials, Json* result) {
  const std::string model = SaveTiny(folder.path()), database = folder / "tuning.db", bundle = folder / "tiny.hone";
  const Finished tune = RunProgram(folder, "hone",
                                   {"tune", model, "--db", database, "--target", target, "--trials",
                                    std::to_string(trials), "--wait", "3m", "--json"},
                                   280);
  ASSERT_EQ(tune.code, 0) << tune.errors;
  const std::vector<Json> events = JsonLines(tune.output);
  ASSERT_FALSE(events.empty());
  *result = events.back();
  EXPECT_GE(result->at("trials").get<int>(), trials) << result->dump();
  EXPECT_GT(result->at("model_ms_after").get<double>(), 0);
  const Finished list = Hone(folder, {"records", "list", "--json", "--db", database});
  ASSERT_EQ(list.code, 0) << list.errors;
  const std::vector<Json> records = JsonLines(list.output);
  EXPECT_EQ(records.size(), result->at("trials").get<size_t>());
  ExpectDistinct(records);
  std::string of_class = target;
  of_class[of_class.find(':')] = '-';
  for (const Json& record : records)
    EXPECT_TRUE(record.at("device_class").get<std::string>().starts_with(of_class + "-")) << record.dump();
  const Finished compile =
      Hone(folder, {"compile", model, "-o", bundle, "--db", database, "--target", target, "--json"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  const Json made = JsonLines(compile.output).back();
  // By its record, or by the default schedule where that was faster inside the model.
  EXPECT_EQ(made.at("from_records").get<int>() + made.at("from_faster_defaults").get<int>(), 2) << made.dump();
  ExpectComputesTiny(folder, bundle);
}

// Of two tasks, whose defaults are the first: each process of a trial starts the device's compiler anew, which takes
// seconds.
constexpr int kTrialsOnDevice = 4;

// PoCL, where there is no other.
TEST(System, TunesAnOpenClDevice) {
  const TempFolder folder;
  ::setenv("POCL_CACHE_DIR", folder.path().c_str(), 1);
  for (const Json& row : JsonLines(Hone(folder, {"doctor", "--json"}).output)) {
    const std::string found = row.value("found", "");
    if (row.value("check", "") == "opencl" && found.starts_with("none")) GTEST_SKIP() << found;
  }
  Json result;
  ExpectTunesDevice(folder, "opencl:generic", kTrialsOnDevice, &result);
}

// The kernels of the tests' own driver run on CPUs that others use too: their times may not be of one piece.
Json FailuresButOfTiming(const Json& result) {
  Json failures = result.at("failed");
  failures.erase("invalid_timing");
  return failures;
}

// By the driver and the compiler of the tests' own: NVRTC in a builder that is locked in, a runner for every candidate.
TEST(System, TunesACudaDevice) {
  const TempFolder folder;
  UseFakeCuda();
  Json result;
  ExpectTunesDevice(folder, "cuda:sm_90a", kTrialsOnDevice, &result);
  EXPECT_EQ(FailuresButOfTiming(result).dump(), "{}");
}

// What the driver says of one call of all processes, while candidates are measured.
struct LostDevice {
  const char *name, *failure, *failed;
};
constexpr LostDevice kLost[] = {
    // The candidate that ran is the one that has it; the next has a process of its own.
    {"ByALaunch", "cuLaunchKernel:9:719", R"({"crash":1})"},
    // No candidate is to blame, and the attempt is made again.
    {"BeforeACandidate", "cuDevicePrimaryCtxRetain:4:46", "{}"},
};
class ADeviceIsLost : public testing::TestWithParam<LostDevice> {};
TEST_P(ADeviceIsLost, AndOneAttemptWithIt) {
  const TempFolder folder;
  const std::string counts = "/dev/shm/hone-lost-" + std::to_string(::getpid());  // where runners may write, too
  UseFakeCuda(std::string("fail=") + GetParam().failure + " count=" + counts);
  Json result;
  ExpectTunesDevice(folder, "cuda:sm_90a", 6, &result);
  EXPECT_EQ(FailuresButOfTiming(result).dump(), GetParam().failed);
  const std::string entry = std::string(GetParam().failure).substr(0, std::string(GetParam().failure).find(':'));
  EXPECT_GT(std::filesystem::file_size(counts + "." + entry), 9u);  // it went on
  std::filesystem::remove(counts + "." + entry);
}
INSTANTIATE_TEST_SUITE_P(Errors, ADeviceIsLost, testing::ValuesIn(kLost),
                         [](const auto& info) { return info.param.name; });

// What is missing for CUDA, and with what hone ends that needs it.
struct NoCuda {
  const char *name, *library, *words, *says;
  const char* doctor = nullptr;  // what hone doctor says; nullptr: the same
};
constexpr NoCuda kNoCuda[] = {
    {"NoLibrary", "/no/such/driver.so", "", "/no/such/driver.so, which HONE_CUDA_LIBRARY names, cannot be opened"},
    {"NoDevice", nullptr, "devices=0", "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"},
    {"TooOld", nullptr, "driver=10020", "of CUDA 10.2, and 11.4 is the oldest that will do"},
    {"OtherArchitecture", nullptr, "capability=8.0",
     "no CUDA device here runs code for sm_90a: there is 0, Fake GPU 0 (sm_80)", "CUDA 13.0, sm_80, GPU, 4 units"},
};
class CudaIsMissing : public testing::TestWithParam<NoCuda> {};
TEST_P(CudaIsMissing, AndSaysWhat) {
  const TempFolder folder;
  UseFakeCuda(GetParam().words);
  const std::string model = SaveTiny(folder.path()), bundle = folder / "tiny.hone";
  const Arguments compiled{"compile", model, "-o", bundle, "--target", "cuda:sm_90a", "--untuned"};
  const Finished compile = Hone(folder, compiled);  // no device is needed for that
  ASSERT_EQ(compile.code, 0) << compile.errors;
  if (GetParam().library != nullptr) ::setenv("HONE_CUDA_LIBRARY", GetParam().library, 1);
  const Finished run = Hone(folder, {"run", bundle, "--random"});
  EXPECT_EQ(run.code, 10);
  EXPECT_THAT(run.errors, testing::HasSubstr(GetParam().says));
  const Finished tune = Hone(folder, {"tune", model, "--target", "cuda:sm_90a", "--db", folder / "tuning.db"});
  EXPECT_EQ(tune.code, 5);
  EXPECT_THAT(tune.errors, testing::HasSubstr(GetParam().says));
  const char* const says = GetParam().doctor != nullptr ? GetParam().doctor : GetParam().says;
  for (const Json& row : JsonLines(Hone(folder, {"doctor", "--json"}).output)) {
    if (row.at("check") != "cuda") continue;
    EXPECT_THAT(row.at("found").get<std::string>(), testing::HasSubstr(says));
  }
}
INSTANTIATE_TEST_SUITE_P(Reasons, CudaIsMissing, testing::ValuesIn(kNoCuda),
                         [](const auto& info) { return info.param.name; });

// A kernel that a device is lost by ends the program that runs it, with the driver's words.
TEST(System, RunSaysThatTheDeviceWasLost) {
  const TempFolder folder;
  UseFakeCuda("fail=cuLaunchKernel:1:700");
  const std::string model = SaveTiny(folder.path()), bundle = folder / "tiny.hone";
  const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--target", "cuda:sm_90a", "--untuned"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  const Finished run = Hone(folder, {"run", bundle, "--random"});
  EXPECT_EQ(run.code, 10);
  EXPECT_THAT(run.errors, testing::HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"));
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
  EXPECT_EQ(TunedKernels(compile), 2) << compile.errors;
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
  int by_default = 0;
  for (const Json& kernel : times.at("kernels")) {
    EXPECT_GT(kernel.at("us").get<double>(), 0);
    const std::string record = kernel.at("record");
    by_default += record.empty();
    EXPECT_TRUE(record.empty() || best.count(record) == 1) << kernel.dump();
  }
  EXPECT_LE(by_default, result.at("faster_defaults").get<int>() + again.at("faster_defaults").get<int>());

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

// One job for this machine and for another class, which its runners run too. The part for that class waits for a worker
// of it and says so, while the other one is tuned.
TEST(System, TunesForSeveralTargets) {
#ifndef __x86_64__
  GTEST_SKIP() << "this machine runs one class of devices alone";
#endif
  constexpr char kNative[] = "cpu:native", kOther[] = "cpu:x86-64-v3,cores=1";
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), bundle = folder / "tiny.hone";
  Service service(folder);
  service.StartWorker();
  Process tune(folder, "hone",
               {"tune", model, "--server", service.address(), "--target", kNative, "--target", kOther, "--trials", "8",
                "--threads", "1", "--wait", "2m", "--json"});
  ASSERT_TRUE(WaitUntil([&] { return service.Job(1).value("trials", 0) >= 8; }, 120)) << tune.Errors();
  const Json waits = service.Job(2);
  EXPECT_EQ(waits.value("part_of", 0), 1) << waits;
  EXPECT_EQ(waits.value("state", ""), "waiting") << waits;
  EXPECT_EQ(waits.value("trials", -1), 0) << waits;
  EXPECT_THAT(waits.value("reason", ""),
              testing::HasSubstr("none of the 1 workers fits: the job needs target cpu:x86-64-v3,"));
  ASSERT_TRUE(tune.running()) << "the job ends after its parts";
  Process& other = service.StartWorker({"--target", kOther, "--runner", HONE_BIN "/hone-runner"});
  ASSERT_EQ(tune.Wait(), 0) << tune.Errors() << other.Errors();

  std::vector<Json> results;
  for (const Json& event : JsonLines(tune.Output())) {
    if (event.at("event") == "result") results.push_back(event);
  }
  ASSERT_EQ(results.size(), 2u);
  std::set<std::string> classes;
  for (const Json& result : results) EXPECT_GE(result.at("trials").get<int>(), 8) << result.dump();
  const std::vector<Json> records = service.Records();
  ExpectDistinct(records);
  for (const Json& record : records) classes.insert(record.at("device_class").get<std::string>());
  EXPECT_EQ(classes.size(), 2u);
  EXPECT_EQ(records.size(), results[0].at("trials").get<size_t>() + results[1].at("trials").get<size_t>());
  for (const char* target : {kNative, kOther}) {
    const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--server", service.address(), "--target",
                                           target, "--threads", "1", "--json"});
    ASSERT_EQ(compile.code, 0) << compile.errors;
    const Json made = JsonLines(compile.output).back();
    // By its record, or by the default schedule where that was faster inside the model.
    EXPECT_EQ(made.at("from_records").get<int>() + made.at("from_faster_defaults").get<int>(), 2) << made.dump();
    ExpectComputesTiny(folder, bundle);
  }
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
