// What a bundle is made of when records are at hand, whoever wrote them: code generated here, from the records' traces.
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/bundles/model_gain.h"
#include "compiler/driver/models/model.h"
#include "compiler/driver/models/sandboxed_prepare.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "compiler/support/sha256.h"
#include "database/sqlite/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/compiler/package/hand_object.h"
#include "tests/deploy/runtime/machine_code.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

using testing::HasSubstr;

NdArray Randoms(std::vector<int64_t> shape, uint64_t seed) {
  NdArray array(kFloat32, std::move(shape));
  Random random(seed);
  for (int64_t i = 0; i < array.NumElements(); ++i) array.As<float>()[i] = static_cast<float>(random.Uniform() - 0.5);
  return array;
}

// y = relu(x w1) w2: two tasks, whose constant operands are packed.
Model Mlp() {
  Graph graph;
  graph.name = "mlp";
  const int x = graph.AddValue("x", {kFloat32, {12, 50}});
  graph.inputs = {x};
  const int w1 = graph.AddConstant("w1", Randoms({50, 64}, 1)), w2 = graph.AddConstant("w2", Randoms({64, 30}, 3));
  const int h = *graph.Add("dense", "h", {x, w1});
  const int r = *graph.Add("relu", "r", {h});
  graph.outputs = {*graph.Add("dense", "y", {r, w2})};
  graph.output_names = {"y"};
  Model model;
  model.plan = *MakePlan(std::move(graph));
  model.plan.model_name = "mlp";
  for (const PlanTask& task : model.plan.tasks) model.workloads.push_back(Canonicalize(task.func));
  return model;
}

class CompileRecords : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "/compile_records_", ::getpid());
    std::filesystem::create_directories(folder_);
    records_.db = folder_ + "/tuning.db";
    settings_.target = HostTarget();
    settings_.threads = 1;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The trace of the default schedule, and what this program makes of it.
  Trace DefaultOf(size_t task) const { return *DefaultTrace(model_.workloads[task].func, settings_.space()); }
  CompiledKernel Built(size_t task) const {
    const Schedule schedule = *Replay(DefaultOf(task), model_.workloads[task].func);
    CompileOptions options;
    options.symbol = KernelSymbol(model_.workloads[task].hash);
    options.numeric = settings_.numeric;
    options.threads = settings_.threads;
    return *CompileKernel(schedule.Program(), settings_.target, options);
  }

  // The best record of every task, with its default trace; `change` gives it what another machine may have written.
  void Store(const std::function<void(size_t, v1::Record&)>& change) {
    const std::unique_ptr<TuningStore> store = *OpenSqliteStore(records_.db, StoreMode::kWrite);
    DeviceClassRow device{.name = DeviceClass(settings_.target), .profile = {}};
    device.profile.set_device_class(device.name);
    std::vector<Write> writes = {PutDeviceClass{device}};
    for (size_t i = 0; i < model_.workloads.size(); ++i) {
      v1::Workload workload;
      workload.set_name(model_.plan.tasks[i].name);
      workload.set_text(model_.workloads[i].text);
      workload.set_hash(model_.workloads[i].hash);
      writes.push_back(PutWorkload{workload});
      const CompiledKernel built = Built(i);
      RecordRow row;
      row.key = {.workload_hash = workload.hash(),
                 .device_class = device.name,
                 .threads = settings_.threads,
                 .numeric = settings_.wire_numeric()};
      row.origin = "tuned";
      row.record.set_trace(ToText(DefaultOf(i)));
      row.record.set_id(RecordId(row.key, row.record.trace()));
      row.record.set_median_us(12.5);
      row.record.set_generator(GeneratorFingerprint());
      row.record.set_object_digest(Sha256(built.object));
      change(i, row.record);
      writes.push_back(PutRecord{row});
      writes.push_back(SetBest{row.key, row.record.id(), 12.5});
    }
    const uint64_t epoch = *store->BeginEpoch();
    const absl::Status status = store->Commit(epoch, writes);
    ASSERT_TRUE(status.ok()) << status;
  }

  // Compiles, runs the bundle and holds its output against the interpreter's.
  CompileSummary CompileAndRun() {
    const std::string bundle = folder_ + "/mlp.hone";
    const absl::StatusOr<CompileSummary> summary = CompileModel(model_, settings_, &records_, bundle);
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (!summary.ok()) return {};
    absl::StatusOr<BundleSession> session = BundleSession::Load(bundle, 1);
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return {};
    manifest_ = nlohmann::json::parse(session->manifest());
    const NdArray x = Randoms({12, 50}, 9);
    const absl::StatusOr<std::vector<NdArray>> expected = InterpretPlan(model_.plan, {&x, 1});
    EXPECT_TRUE(session->SetInput("x", x).ok());
    EXPECT_TRUE(session->Run().ok());
    const absl::StatusOr<NdArray> y = session->Output("y");
    EXPECT_TRUE(y.ok() && expected.ok());
    for (int64_t i = 0; y.ok() && expected.ok() && i < y->NumElements(); ++i) {
      EXPECT_NEAR(y->As<float>()[i], (*expected)[0].As<float>()[i], 1e-4) << i;
    }
    return *summary;
  }

  // Says of every record that the default schedule, whose object has the digest, was faster inside the model.
  void Choose(const std::function<std::string(size_t)>& digest) {
    const std::unique_ptr<TuningStore> store = *OpenSqliteStore(records_.db, StoreMode::kWrite);
    std::vector<Write> writes;
    const RecordPage page = *store->Records(kLocalTenant, {});
    for (size_t i = 0; i < page.rows.size(); ++i) {
      writes.push_back(PutChoice{kLocalTenant, model_.hash, page.rows[i].record.id(), digest(i)});
    }
    EXPECT_TRUE(store->Commit(*store->BeginEpoch(), writes).ok());
  }

  Model model_ = Mlp();
  std::string folder_;
  ServiceOptions records_;
  ResolvedSettings settings_;
  nlohmann::json manifest_;
};

TEST_F(CompileRecords, SameCodeAsMeasuredKeepsItsTime) {
  Store([](size_t, v1::Record&) {});
  const CompileSummary summary = CompileAndRun();
  EXPECT_EQ(summary.from_records, 2);
  for (const auto& kernel : manifest_["kernels"]) {
    EXPECT_EQ(kernel["source"], "record");
    EXPECT_EQ(kernel["measured_us"], 12.5);
  }
}

TEST_F(CompileRecords, AStricterUserIsNeverHandedALooserRecord) {
  settings_.numeric = NumericLevel::kBf16;
  Store([](size_t, v1::Record&) {});
  EXPECT_EQ(CompileAndRun().from_records, 2);
  EXPECT_EQ(manifest_["numeric"], "bf16");
  for (const NumericLevel stricter : {NumericLevel::kStrict, NumericLevel::kDefault}) {
    settings_.numeric = stricter;
    EXPECT_EQ(CompileAndRun().from_defaults, 2) << ToText(stricter);
  }
}

TEST_F(CompileRecords, ADefaultThatIsFasterInTheModelIsTakenWhileItIsTheSameCode) {
  Store([](size_t, v1::Record& record) { record.set_trace(""); });
  EXPECT_EQ(CompileAndRun().from_stale_records, 2) << "another schedule than the digest is of";
  Choose([&](size_t i) { return Sha256(Built(i).object); });
  EXPECT_EQ(CompileAndRun().from_faster_defaults, 2);
  for (const auto& kernel : manifest_["kernels"]) EXPECT_EQ(kernel["source"], "faster default");
  Choose([&](size_t) { return Sha256("what the default schedule became elsewhere"); });
  EXPECT_EQ(CompileAndRun().from_faster_defaults, 0);
  model_.hash = "another model";
  Choose([&](size_t) { return ""; });
  EXPECT_EQ(CompileAndRun().from_faster_defaults, 0);
}

// Records claim to be fast; their programs are the unscheduled ones. Inside the model that shows, and the defaults
// stay.
TEST_F(CompileRecords, ATunedModelIsNotSlowerThanAnUntunedOne) {
  Store([](size_t, v1::Record& record) { record.set_trace(""); });
  GainOptions options;
  options.folder = folder_;
  options.phase = [](const std::string&) { return absl::OkStatus(); };
  options.keep = [&](const v1::KeepChoicesRequest& request) {
    EXPECT_EQ(request.model_hash(), model_.hash);
    const std::unique_ptr<TuningStore> store = *OpenSqliteStore(records_.db, StoreMode::kWrite);
    std::vector<Write> writes;
    for (const v1::KernelChoice& choice : request.choices()) {
      writes.push_back(PutChoice{kLocalTenant, model_.hash, choice.record(), choice.faster_default()});
    }
    return store->Commit(*store->BeginEpoch(), writes);
  };
  const absl::StatusOr<ModelGain> gain = MeasureGain(model_, settings_, records_, options);
  ASSERT_TRUE(gain.ok()) << gain.status();
  EXPECT_EQ(gain->faster_defaults, 2);
  EXPECT_EQ(CompileAndRun().from_faster_defaults, 2);
}

// An object whose every function ends the process that calls it, stated as this very generator's, digest and all.
TEST_F(CompileRecords, OthersMachineCodeIsNeitherRunNorLinked) {
  std::vector<std::string> objects;
  Store([&](size_t i, v1::Record& record) {
    const CompiledKernel built = Built(i);
    std::vector<std::pair<std::string, std::string>> functions = {{built.set.symbol, CrashKernel()}};
    for (const PreparedConstant& prepared : built.set.prepared) functions.emplace_back(prepared.symbol, CrashKernel());
    record.set_object(HandObject(functions));
    record.set_kernel_set(Serialize(built.set));
    record.set_object_digest(Sha256(record.object()));
  });
  const CompileSummary summary = CompileAndRun();
  EXPECT_EQ(summary.from_records, 0);
  EXPECT_EQ(summary.from_stale_records, 2);
  for (const auto& kernel : manifest_["kernels"]) {
    EXPECT_EQ(kernel["source"], "stale record");
    EXPECT_FALSE(kernel.contains("measured_us")) << "the time is of other code";
  }
}

TEST_F(CompileRecords, AGeneratorOfAnotherReleaseIsStaleOnlyWhereItsCodeDiffers) {
  Store([](size_t i, v1::Record& record) {
    record.set_generator("hone-cpu-of-last-year");
    if (i == 0) record.set_object_digest(Sha256("what last year's generator made"));
  });
  const CompileSummary summary = CompileAndRun();
  EXPECT_EQ(summary.from_records, 1);
  EXPECT_EQ(summary.from_stale_records, 1);
}

TEST_F(CompileRecords, ATraceThatDoesNotReplayIsPassedOver) {
  Store([](size_t i, v1::Record& record) {
    if (i == 0) record.set_trace("[v1] unheard_of()");
  });
  const CompileSummary summary = CompileAndRun();
  EXPECT_EQ(summary.from_records, 1);
  EXPECT_EQ(summary.from_defaults, 1);
}

// ---- lock files ----

class Locked : public CompileRecords {
 protected:
  void SetUp() override {
    CompileRecords::SetUp();
    model_.hash = Sha256("the model's file");
    Store([](size_t i, v1::Record& record) {
      if (i == 0) record.set_object_digest(Sha256("what another generator made"));
    });
    const absl::StatusOr<CompileSummary> summary =
        CompileModel(model_, settings_, &records_, folder_ + "/first.hone", &lock_);
    ASSERT_TRUE(summary.ok()) << summary.status();
    std::filesystem::remove(records_.db);
  }
  std::string Refused(const LockFile& lock) {
    const absl::Status status = CompileLocked(model_, lock, *ResolveLocked(lock), folder_ + "/second.hone").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/second.hone")) << "all or nothing";
    return std::string(status.message());
  }
  LockFile lock_;
};

TEST_F(Locked, TheSameBundleComesOutWithoutTheDatabase) {
  const absl::StatusOr<LockFile> read = ParseLockFile(ToJson(lock_));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), ToJson(lock_));
  model_.plan.model_name = "renamed";
  const absl::StatusOr<CompileSummary> summary =
      CompileLocked(model_, *read, *ResolveLocked(*read), folder_ + "/second.hone");
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->from_records, 1);
  EXPECT_EQ(summary->from_stale_records, 1);
  EXPECT_TRUE(*ReadFile(folder_ + "/first.hone") == *ReadFile(folder_ + "/second.hone"));
}

TEST_F(Locked, SaysWhatIsMissing) {
  LockFile lock = lock_;
  lock.kernels[1].object_digest = Sha256("what the release of then made");
  lock.generator = "hone-cpu-of-then";
  const std::string other_code = Refused(lock);
  EXPECT_THAT(other_code, HasSubstr("1 of 2 kernels are not those of the lock file"));
  EXPECT_THAT(other_code, HasSubstr(lock.kernels[1].name + ": this Hone makes other code of its schedule"));
  EXPECT_THAT(other_code, HasSubstr("written with generator hone-cpu-of-then"));
  lock = lock_;
  lock.kernels.pop_back();
  EXPECT_THAT(Refused(lock), HasSubstr(lock_.kernels[1].name + ": it is not in the lock file"));
  lock = lock_;
  lock.kernels[0].trace = "[v1] unheard_of()";
  EXPECT_THAT(Refused(lock), HasSubstr("1 of 2 kernels"));
  lock = lock_;
  lock.kernels[1].measured_us = 1;  // stated in the manifest
  EXPECT_THAT(Refused(lock), HasSubstr("but the bundle around them is not"));
  lock = lock_;
  lock.model_hash = Sha256("another file");
  EXPECT_THAT(Refused(lock), HasSubstr("the lock file is of another model"));
}

TEST_F(Locked, DamagedFilesAreRefusedWithTheField) {
  EXPECT_EQ(ParseLockFile("hello").status().code(), absl::StatusCode::kDataLoss);
  nlohmann::json whole = nlohmann::json::parse(ToJson(lock_));
  for (const auto& [field, value] : whole.items()) {
    nlohmann::json damaged = whole;
    damaged.erase(field);
    const absl::Status status = ParseLockFile(damaged.dump()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << field;
    if (field != "hone_lock") { EXPECT_THAT(std::string(status.message()), HasSubstr(field)); }
  }
  for (const auto& [field, value] : whole["kernels"][1].items()) {
    nlohmann::json damaged = whole;
    damaged["kernels"][1][field] = nlohmann::json::array();
    EXPECT_THAT(std::string(ParseLockFile(damaged.dump()).status().message()),
                HasSubstr("kernel 1, \"" + field + "\""));
  }
  for (const double threads : {0.0, 1025.0, 1e300}) {
    nlohmann::json damaged = whole;
    damaged["threads"] = threads;
    EXPECT_THAT(std::string(ParseLockFile(damaged.dump()).status().message()), HasSubstr("out of range")) << threads;
  }
}

// ---- prepare kernels ----

absl::StatusOr<std::unique_ptr<ConstantPacker>> PackerOf(const std::string& image) {
  const KernelTensor tensor{"int32", {16}, 64};
  return StartSandboxedPacker({image, {.param = 1, .symbol = "prepare", .packed = tensor}, tensor, 2});
}

TEST(SandboxedPacker, GivesOfEachValueWhatTheKernelWroteAndZerosElsewhere) {
  const std::string image = ImageOf({{"prepare", CopyKernel(0, 1, 40)}});
  const auto packer = PackerOf(image);
  ASSERT_TRUE(packer.ok()) << packer.status();
  for (const char letter : {'a', 'b'}) {
    const absl::StatusOr<std::string_view> packed = (*packer)->Pack(std::string(64, letter));
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(*packed, std::string(40, letter) + std::string(24, '\0'));
  }
  EXPECT_THAT((*packer)->Pack(std::string(65, 'c')).status().message(), HasSubstr("its value 65"));
}

TEST(SandboxedPacker, AHostileKernelEndsItsOwnProcessAlone) {
  const std::string value(64, 'a');
  // kill(getppid(), SIGKILL), which needs two system calls that no candidate has.
  const std::string killer = Bytes({0xB8, 110,  0,    0, 0, 0x0F, 0x05,  // getppid
                                    0x89, 0xC7, 0xBE, 9, 0, 0,    0,    0xB8, 62, 0, 0, 0, 0x0F, 0x05, 0xC3});  // kill
  const struct {
    std::string code;
    const char* error;
  } cases[] = {{killer, "made a system call that candidates must not make"},
               {CrashKernel(), "prepare kernel `prepare`: the runner killed by signal 11"},
               {CopyKernel(1, 0, 64), "within input 0"},
               {CopyKernel(0, 1, 8192), "past the end of"},
               {ReturnKernel(3), "the kernel returned 3"}};
  for (const auto& [code, error] : cases) {
    const std::string image = ImageOf({{"prepare", code}});
    const auto packer = PackerOf(image);
    ASSERT_TRUE(packer.ok()) << packer.status();
    EXPECT_THAT((*packer)->Pack(value).status().message(), HasSubstr(error));
  }
}

}  // namespace
}  // namespace hone
