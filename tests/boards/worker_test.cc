// A model tuned for another CPU: built by this machine's builders, measured by a worker whose runners are on that CPU.
#include "compiler/sandbox/layers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

constexpr char kTarget[] = "cpu:cortex-a76,cores=1";

TEST(BoardWorker, TunesForItsCpu) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), bundle = folder / "tiny.hone";
  Service service(folder);
  service.StartWorker({"--target", kTarget, "--runner", HONE_BIN "/cortex-a76/hone-runner", "--allow-missing-layer",
                       "memory-limit,system-calls," + LayerNames(LayersSomeSystemsLack())});
  const Finished tune = RunProgram(
      folder, "hone",
      {"tune", model, "--server", service.address(), "--target", kTarget, "--trials", "8", "--threads", "1", "--json"},
      1200);
  ASSERT_EQ(tune.code, 0) << tune.errors;
  EXPECT_THAT(tune.errors, testing::HasSubstr("the model was not timed: this machine lacks aarch64"));
  const std::vector<Json> records = service.Records();
  ASSERT_FALSE(records.empty());
  for (const Json& record : records) {
    EXPECT_THAT(record.at("device_class").get<std::string>(), testing::StartsWith("aarch64-cortex-a76-neon"));
  }
  const Finished workers = Hone(folder, {"workers", "list", "--server", service.address()});
  EXPECT_THAT(workers.output, testing::HasSubstr("memory-limit"));

  const Finished compile =
      Hone(folder, {"compile", model, "-o", bundle, "--db", service.database(), "--target", kTarget, "--threads", "1"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  EXPECT_THAT(compile.errors, testing::HasSubstr("2 from records"));
  const TinyModel tiny;
  const std::vector<float> x = tiny.Input(1), want = tiny.Reference(x);
  WriteNpy(folder / "x.npy", {TinyModel::kRows, TinyModel::kIn}, x);
  const Finished run =
      RunProgram(folder, HONE_BIN "/cortex-a76/hone",
                 {"run", bundle, "--input", "x=" + (folder / "x.npy"), "--output", "y=" + (folder / "y.npy")});
  ASSERT_EQ(run.code, 0) << run.errors;
  const std::vector<float> got = ReadNpy(folder / "y.npy", {TinyModel::kRows, TinyModel::kOut});
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

TEST(BoardWorker, MeasuresWhatAnotherWorkerBuilds) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  Process& builder = service.StartWorker({"--role", "build"});
  service.StartWorker({"--role", "measure", "--target", kTarget, "--runner", HONE_BIN "/cortex-a76/hone-runner",
                       "--allow-missing-layer", "memory-limit,system-calls," + LayerNames(LayersSomeSystemsLack())});
  const Finished tune = RunProgram(
      folder, "hone",
      {"tune", model, "--server", service.address(), "--target", kTarget, "--trials", "4", "--threads", "1", "--json"},
      1200);
  ASSERT_EQ(tune.code, 0) << tune.errors << builder.Errors();
  const std::vector<Json> records = service.Records();
  ASSERT_FALSE(records.empty());
  for (const Json& record : records) {
    EXPECT_THAT(record.at("device_class").get<std::string>(), testing::StartsWith("aarch64-cortex-a76-neon"));
  }
}

// Before it takes work: what an emulator gives is found out by a runner without a candidate.
TEST(BoardWorker, IsRefusedForTheLayersAnEmulatorDoesNotGive) {
  const TempFolder folder;
  const Finished refused =
      RunProgram(folder, "hone-worker",
                 {"--server", "unix:x", "--target", kTarget, "--runner", HONE_BIN "/cortex-a76/hone-runner"});
  EXPECT_EQ(refused.code, 8);
  EXPECT_THAT(refused.errors,
              testing::HasSubstr("/cortex-a76/hone-runner cannot be locked in: this system does not give "
                                 "it memory-limit (a limit of address space), system-calls"));
}

TEST(BoardWorker, WantsTheTargetOfItsRunner) {
  const TempFolder folder;
  const Finished alone =
      RunProgram(folder, "hone-worker", {"--server", "unix:x", "--runner", HONE_BIN "/cortex-a76/hone-runner"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.errors, testing::HasSubstr("say what it runs on: --target cpu:"));
  const Finished unknown =
      RunProgram(folder, "hone-worker",
                 {"--server", "unix:x", "--runner", HONE_BIN "/cortex-a76/hone-runner", "--target", "cpu:nothing"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_THAT(unknown.errors, testing::HasSubstr("\"nothing\" names no known core"));
}

}  // namespace
}  // namespace hone::system_test
