#include "worker/runner/runner_client.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "compiler/sandbox/layers.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/support/descriptor_limit.h"
#include "tests/deploy/runtime/machine_code.h"
#include "worker/runner/poison.h"

namespace hone {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kElements = 1000;  // 4000 bytes: no multiple of 64
const KernelTensor kTensor{"int32", {kElements}, 4 * kElements};

// out = a + w, where w may be packed by `k_prepare0`.
KernelSet AddSet(bool packed) {
  KernelSet set;
  set.symbol = "k";
  set.params = {kTensor, kTensor, kTensor};
  if (packed) set.prepared = {{1, "k_prepare0", kTensor, 128, 64}};
  set.scratch_bytes = 200;
  set.thread_scratch_bytes = 70;
  return set;
}

std::string Numbers(int factor) {
  std::string bytes;
  for (int i = 0; i < kElements; ++i) bytes += Int32(factor * i);
  return bytes;
}

struct Fixture {
  explicit Fixture(const std::string& code, bool packed = false, bool two_sets = false) : set(AddSet(packed)) {
    std::vector<std::pair<std::string, std::string>> kernels = {{"k", code}};
    if (packed) kernels.emplace_back("k_prepare0", CopyKernel(0, 1, kTensor.bytes));
    image = ImageOf(kernels);
    const std::string a0 = Numbers(3), w0 = Numbers(100), a1 = Numbers(7), w1 = Numbers(1000);
    std::vector<std::vector<std::string_view>> values = {{a0, w0}};
    if (two_sets) values.push_back({a1, w1});
    inputs = *InputSets::Create(set, values);
  }
  RunnerJob Job() const {
    RunnerJob job{.image = image, .set = set, .threads = 2, .program = std::string(HONE_BIN) + "/hone-runner"};
    job.inputs = &inputs;
    job.allowed_missing_layers = LayersSomeSystemsLack();
    return job;
  }
  RunnerClient Start() const {
    absl::StatusOr<RunnerClient> runner = RunnerClient::Start(Job());
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  KernelSet set;
  std::string image;
  InputSets inputs;
};

constexpr absl::Duration kLong = absl::Seconds(20);

// Assembles `mov rax, [rdi]; mov rsi, [rax + 8 * tensor]` and then an access relative to rsi.
std::string At(int tensor, std::initializer_list<int> access) {
  return Bytes({0x48, 0x8B, 0x07, 0x48, 0x8B, 0x70, 8 * tensor}) + Bytes(access) + Bytes({0x31, 0xC0, 0xC3});
}
std::string StoreAt(int tensor, int32_t offset) {
  return At(tensor, {0xC6, 0x86}).substr(0, 9) + Int32(offset) + Bytes({0x01, 0x31, 0xC0, 0xC3});
}
std::string LoadAt(int tensor, int32_t offset) {
  return At(tensor, {0x8A, 0x86}).substr(0, 9) + Int32(offset) + Bytes({0x31, 0xC0, 0xC3});
}
// mov eax, number; mov edi, argument; xor esi, esi; syscall; ret
std::string SystemCall(int number, int argument) {
  return Bytes({0xB8}) + Int32(number) + Bytes({0xBF}) + Int32(argument) + Bytes({0x31, 0xF6, 0x0F, 0x05, 0xC3});
}

TEST(Runner, VerifiesOnEverySet) {
  for (const bool packed : {false, true}) {
    const Fixture fixture(AddKernel(kElements), packed, true);
    RunnerClient runner = fixture.Start();
    ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
    for (int round = 0; round < 3; ++round) {
      for (int s = 0; s < 2; ++s) {
        const RunnerVerdict verdict = runner.Verify(s, kLong);
        ASSERT_TRUE(verdict.ok()) << verdict.message;
        EXPECT_EQ(runner.output(s, 0), Numbers(s == 0 ? 103 : 1007));
        EXPECT_TRUE(runner.OutputEdgesIntact(s));
      }
    }
  }
}

TEST(Runner, TimesAndCopiesOutputs) {
  const Fixture fixture(AddKernel(kElements), true);
  RunnerClient runner = fixture.Start();
  RunnerVerdict verdict = runner.Time({.samples = 5, .inner = 100, .copy_outputs = 1}, kLong);
  ASSERT_TRUE(verdict.ok()) << verdict.message;
  ASSERT_EQ(verdict.samples.size(), 5u);
  for (const TimedSample& sample : verdict.samples) {
    EXPECT_GT(sample.us, 0.01);
    EXPECT_LT(sample.us, 10000);
  }
  EXPECT_EQ(runner.output(0, 0), Numbers(103));
  EXPECT_EQ(runner.Time({.samples = kRunnerMaxSamples + 1}, kLong).kind, RunnerVerdict::kRefused);
  EXPECT_EQ(runner.Verify(0, kLong).kind, RunnerVerdict::kOk);
}

TEST(Runner, HoldsTensorsOnceWhereNothingIsTimed) {
  const Fixture fixture(AddKernel(kElements), true);
  RunnerJob job = fixture.Job();
  job.timed = false;
  absl::StatusOr<RunnerClient> runner = RunnerClient::Start(job);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const RunnerVerdict verdict = runner->Verify(0, kLong);
  ASSERT_TRUE(verdict.ok()) << verdict.message;
  EXPECT_EQ(runner->output(0, 0), Numbers(103));
  const RunnerVerdict timing = runner->Time({}, kLong);
  EXPECT_EQ(timing.kind, RunnerVerdict::kRefused);
  EXPECT_THAT(timing.message, HasSubstr("no timing"));
  EXPECT_TRUE(runner->RunOnZeros(0, kLong).ok());
}

// Parameter 1 is a constant, which the kernel reads as it is or packed.
TEST(Runner, CallsFindWhatWasFlushedInMemory) {
  for (const bool packed : {false, true}) {
    const Fixture fixture(AddKernel(kElements), packed);
    RunnerClient runner = fixture.Start();
    const RunnerVerdict verdict = runner.Time({.samples = 3, .inner = 20, .copy_outputs = 1, .flushed = 2}, kLong);
    ASSERT_TRUE(verdict.ok()) << verdict.message;
    EXPECT_EQ(verdict.samples.size(), 3u);
    EXPECT_EQ(runner.output(0, 0), Numbers(103));
    // What there is no parameter for is not there to be flushed.
    EXPECT_TRUE(runner.Time({.flushed = ~uint64_t{0}}, kLong).ok());
  }
}

TEST(Runner, RenewsItsInputsBeforeEveryCall) {
  const Fixture fixture(AddKernel(kElements), true, true);
  RunnerClient runner = fixture.Start();
  const auto output_after = [&](const TimeRequest& request) {
    const RunnerVerdict verdict = runner.Time(request, kLong);
    EXPECT_TRUE(verdict.ok()) << verdict.message;
    EXPECT_EQ(verdict.samples.size(), 1u);
    return std::string(runner.output(request.set, 0));
  };
  // Input 0 holds 3 i and 7 i; the prepared constant, 100 i and 1000 i, is not turned.
  const auto sums = [](int a, int w, int turn) {
    std::string bytes;
    for (int i = 0; i < kElements; ++i) bytes += Int32(a * ((i + turn) % kElements) + w * i);
    return bytes;
  };
  EXPECT_EQ(output_after({.renewal = Renewal::kUnseen, .copy_outputs = 1, .turn = 5}), sums(3, 100, 5));
  EXPECT_EQ(output_after({.inner = 3, .renewal = Renewal::kUnseen, .copy_outputs = 1, .turn = 5}), sums(3, 100, 15));
  EXPECT_EQ(output_after({.warm_up = 0, .renewal = Renewal::kUnseen, .copy_outputs = 1}), sums(3, 100, 0));
  EXPECT_EQ(output_after({.set = 1, .renewal = Renewal::kUnseen, .copy_outputs = 1, .turn = 999}), sums(7, 1000, 999));
  EXPECT_EQ(output_after({.warm_up = 0, .set = 1, .renewal = Renewal::kSame, .copy_outputs = 1}), sums(7, 1000, 999))
      << "kept by what renews nothing";
  EXPECT_EQ(output_after({.copy_outputs = 1}), sums(3, 100, 0));
  EXPECT_EQ(runner.Time({.set = 2}, kLong).kind, RunnerVerdict::kRefused);
}

// Of many calls in a row the last finds a patch of the outputs poisoned, where the request says.
TEST(Runner, ACallThatWritesNothingLeavesThePatch) {
  const Fixture fixture(ReturnKernel(0));
  RunnerClient runner = fixture.Start();
  ASSERT_TRUE(runner.Time({.inner = 10, .copy_outputs = 1, .turn = 1000}, kLong).ok());
  const std::string_view output = runner.output(0, 0);
  EXPECT_TRUE(IsPoisoned(output.data() + 960, 0, 64, 0));
  EXPECT_FALSE(IsPoisoned(output.data() + 896, 0, 64, 0));
  EXPECT_FALSE(IsPoisoned(output.data() + 1024, 0, 64, 0));
}

TEST(Runner, SeveralTakeTurns) {
  const Fixture fixture(AddKernel(kElements));
  std::vector<RunnerClient> runners;
  for (int i = 0; i < 4; ++i) runners.push_back(fixture.Start());
  for (int round = 0; round < 10; ++round) {
    for (RunnerClient& runner : runners) {
      const RunnerVerdict verdict = runner.Time({.samples = 1, .inner = 10}, kLong);
      EXPECT_TRUE(verdict.ok()) << verdict.message;
    }
  }
}

// A sanitizer needs system calls and address space of its own: limits of these are off in programs that have one.
#define SKIP_WHERE_SANITIZED() \
  if (kSanitized) GTEST_SKIP() << "this layer of the sandbox is off in programs with a sanitizer"

TEST(Runner, EveryLayerHoldsThatAnySystemGives) {
  const Fixture fixture(AddKernel(kElements));
  const RunnerClient runner = fixture.Start();
  EXPECT_EQ(LayerNames(MissingLayers(runner.layers()) & ~LayersSomeSystemsLack()), "");
  if (const uint32_t missing = MissingLayers(runner.layers()); missing != 0) {
    std::fprintf(stderr, "this machine does not give: %s\n", LayerNames(missing).c_str());
  }
}

TEST(Runner, SaysItsLayersWithoutACandidate) {
  const Fixture fixture(AddKernel(kElements));
  const absl::StatusOr<uint32_t> layers = LayersOfRunner(fixture.Job().program);
  ASSERT_TRUE(layers.ok()) << layers.status();
  EXPECT_EQ(LayerNames(*layers), LayerNames(fixture.Start().layers()));
  const absl::Status none = LayersOfRunner("/bin/true").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(none.message()),
              HasSubstr("/bin/true does not say how it is locked in: the runner ended with 0"));
}

// ---- candidates that are wrong or evil ----

struct EvilCase {
  const char* name;
  std::string code;
  RunnerVerdict::Kind kind;
  const char* message;
  bool by_system_call = false;
};
class EvilCandidate : public testing::TestWithParam<EvilCase> {};

TEST_P(EvilCandidate, IsFoundOutAndLeavesTheAgentWell) {
  if (GetParam().by_system_call) SKIP_WHERE_SANITIZED();
  const Fixture fixture(GetParam().code);
  RunnerClient runner = fixture.Start();
  ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
  const RunnerVerdict verdict =
      runner.Verify(0, GetParam().kind == RunnerVerdict::kTimedOut ? absl::Milliseconds(300) : kLong);
  EXPECT_EQ(verdict.kind, GetParam().kind) << verdict.message;
  EXPECT_THAT(verdict.message, HasSubstr(GetParam().message));
  if (verdict.kind != RunnerVerdict::kKernelFailed) {
    EXPECT_FALSE(runner.alive());
    EXPECT_FALSE(runner.Verify(0, kLong).ok());
  }
}
const EvilCase kEvil[] = {
    {"WritesPastTheEnd", StoreAt(2, 4032), RunnerVerdict::kCrashed, "past the end of output 0"},
    {"WritesFarPastTheEnd", StoreAt(2, 4032 + 40000), RunnerVerdict::kCrashed, "past the end of output 0"},
    {"ReadsPastTheEnd", LoadAt(0, 4032), RunnerVerdict::kCrashed, "past the end of input 0"},
    {"WritesBefore", StoreAt(2, -4096), RunnerVerdict::kCrashed, "before output 0"},
    {"WritesAnInput", StoreAt(1, 0), RunnerVerdict::kCrashed, "within input 1"},
    {"WritesNull", CrashKernel(), RunnerVerdict::kCrashed, "signal 11"},
    {"EndlessLoop", LoopKernel(), RunnerVerdict::kTimedOut, "no answer within"},
    {"UndefinedInstruction", Bytes({0x0F, 0x0B}), RunnerVerdict::kCrashed, "signal 4"},
    {"DividesByZero", Bytes({0x31, 0xC9, 0x31, 0xD2, 0xF7, 0xF1, 0xC3}), RunnerVerdict::kCrashed, "signal 8"},
    {"RecursesForEver", Bytes({0xE8, 0xFB, 0xFF, 0xFF, 0xFF}), RunnerVerdict::kCrashed, "signal 11"},
    {"ReturnsFailure", ReturnKernel(-3), RunnerVerdict::kKernelFailed, "returned -3"},
    {"Exits", SystemCall(231, 0), RunnerVerdict::kCrashed, "ended with 0"},
    {"Forks", SystemCall(57, 0), RunnerVerdict::kCrashed, "system call", true},
    {"StartsAThread", SystemCall(56, 0x10F00), RunnerVerdict::kCrashed, "system call", true},  // clone, one process
    {"OpensAFile", SystemCall(2, 0), RunnerVerdict::kCrashed, "system call", true},
    {"OpensASocket", SystemCall(41, 2), RunnerVerdict::kCrashed, "system call", true},
    {"Kills", SystemCall(62, -1), RunnerVerdict::kCrashed, "system call", true},
    {"Executes", SystemCall(59, 0), RunnerVerdict::kCrashed, "system call", true},
    {"ChangesSignals", SystemCall(13, 11), RunnerVerdict::kCrashed, "system call", true},
    {"Traces", SystemCall(101, 0), RunnerVerdict::kCrashed, "system call", true},
    {"MapsMemory", SystemCall(9, 0), RunnerVerdict::kKernelFailed, "returned -12", true},
    {"OldCallsOf32Bits", Bytes({0xB8, 1, 0, 0, 0, 0xCD, 0x80, 0xC3}), RunnerVerdict::kCrashed, "system call", true},
};
INSTANTIATE_TEST_SUITE_P(Cases, EvilCandidate, testing::ValuesIn(kEvil),
                         [](const auto& info) { return info.param.name; });

TEST(Runner, FewBytesPastTheEndAreSeenAtTheEdges) {
  const Fixture fixture(StoreAt(2, 4001));
  RunnerClient runner = fixture.Start();
  ASSERT_TRUE(runner.Verify(0, kLong).ok());
  EXPECT_FALSE(runner.OutputEdgesIntact(0));
}

TEST(Runner, StepsInFrontFaultWhenStartAligned) {
  Fixture fixture(LoadAt(0, -1), false, true);
  RunnerClient runner = fixture.Start();
  EXPECT_TRUE(runner.Verify(0, kLong).ok());  // end-aligned: there is room in front
  EXPECT_THAT(runner.Verify(1, kLong).message, HasSubstr("before input 0"));
}

TEST(Runner, UnwrittenOutputsStayPoisoned) {
  const Fixture fixture(ReturnKernel(0));
  RunnerClient runner = fixture.Start();
  ASSERT_TRUE(runner.Verify(0, kLong).ok());
  EXPECT_TRUE(IsPoisoned(runner.output(0, 0).data(), 0, runner.output(0, 0).size(), 0));
}

TEST(Runner, HangWhileTimingIsEnded) {
  const Fixture fixture(LoopKernel());
  RunnerClient runner = fixture.Start();
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(runner.Time({.samples = 1}, absl::Milliseconds(200)).kind, RunnerVerdict::kTimedOut);
  EXPECT_FALSE(runner.alive());
  EXPECT_LT(SecondsSince(start), 2) << "it is killed at its limit, and has ended a moment later";
}

TEST(Runner, CpuTimeIsLimited) {
  const Fixture fixture(LoopKernel());
  RunnerJob job = fixture.Job();
  job.cpu_seconds = 1;
  RunnerClient runner = *RunnerClient::Start(job);
  const RunnerVerdict verdict = runner.Verify(0, absl::Minutes(2));  // a busy machine gives it a second late
  EXPECT_EQ(verdict.kind, RunnerVerdict::kCrashed);
  EXPECT_THAT(verdict.message, HasSubstr("signal"));
}

TEST(Runner, MemoryBombIsRefused) {
  SKIP_WHERE_SANITIZED();
  for (const int64_t bytes : {int64_t{1} << 33, int64_t{1} << 39, int64_t{1} << 45, int64_t{1} << 62}) {
    Fixture fixture(ReturnKernel(0));
    fixture.set.scratch_bytes = bytes;
    const RunnerClient runner = fixture.Start();
    EXPECT_THAT(runner.load_verdict().kind, AnyOf(RunnerVerdict::kOutOfMemory, RunnerVerdict::kRefused)) << bytes;
    EXPECT_FALSE(runner.alive());
  }
}

TEST(Runner, WhatCannotBeLoadedIsRefused) {
  Fixture damaged(ReturnKernel(0));
  damaged.image[damaged.image.size() - 1] ^= 1;
  EXPECT_EQ(damaged.Start().load_verdict().kind, RunnerVerdict::kRefused);
  EXPECT_THAT(damaged.Start().load_verdict().message, HasSubstr("checksum"));

  Fixture missing(ReturnKernel(0));
  missing.set.symbol = "elsewhere";
  EXPECT_THAT(missing.Start().load_verdict().message, HasSubstr("no symbol `elsewhere`"));

  Fixture uncountable(ReturnKernel(0));  // 2^64 elements, which are none to a number of 64 bits
  uncountable.set.params[0].shape = {int64_t{1} << 32, int64_t{1} << 32};
  EXPECT_THAT(uncountable.Start().load_verdict().message, HasSubstr("sizes out of range"));

  Fixture empty(ReturnKernel(0));
  empty.image.clear();
  EXPECT_EQ(empty.Start().load_verdict().kind, RunnerVerdict::kRefused);
}

TEST(Runner, OurOwnMistakesAreStatuses) {
  const Fixture fixture(ReturnKernel(0));
  RunnerJob job = fixture.Job();
  job.program = "/no/such/program";
  EXPECT_FALSE(RunnerClient::Start(job).ok());
  job = fixture.Job();
  job.inputs = nullptr;
  EXPECT_FALSE(RunnerClient::Start(job).ok());
  EXPECT_FALSE(InputSets::Create(fixture.set, {{"abc"}}).ok());
  EXPECT_FALSE(InputSets::Create(fixture.set, {}).ok());
}

// Whichever descriptor is the one too many: the attempt is made again elsewhere, nothing stays open, and later runners
// are locked in as before.
TEST(Runner, WithoutDescriptorsIsNobodysFaultAndLeaksNone) {
  const Fixture fixture(ReturnKernel(0));
  const uint32_t layers = fixture.Start().layers();
  const std::set<int> open = Descriptors();
  int refused = 0;
  for (int more = 0;; ++more) {
    ASSERT_LT(more, 64);
    const absl::StatusOr<RunnerClient> runner = [&] {
      const DescriptorLimit limit(more);
      return RunnerClient::Start(fixture.Job());
    }();
    if (runner.ok()) break;
    ++refused;
    EXPECT_EQ(runner.status().code(), absl::StatusCode::kResourceExhausted) << runner.status();
    EXPECT_EQ(Descriptors(), open) << more << " more";
  }
  EXPECT_GE(refused, 4);
  EXPECT_EQ(fixture.Start().layers(), layers);
}

TEST(Runner, RunsOnValuesThatAreRewritten) {
  Fixture fixture(AddKernel(kElements));
  fixture.inputs = *InputSets::CreateRewritable(fixture.set);
  RunnerClient runner = fixture.Start();
  ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
  for (const int factor : {5, 9}) {
    const std::string a = Numbers(factor), w = Numbers(100);
    const std::string_view values[] = {a, w};
    ASSERT_TRUE(fixture.inputs.Rewrite(values).ok());
    ASSERT_TRUE(runner.RunOnZeros(0, absl::Seconds(10)).ok());
    EXPECT_EQ(runner.output(0, 0), Numbers(factor + 100));
  }
  EXPECT_FALSE(fixture.inputs.Rewrite({}).ok());
}

// Sends a "done" of its own before it has done anything: sendto(fd, stack, 8).
TEST(Runner, ForgedShortReplyIsNoReply) {
  // mov eax, 44; mov edi, fd...; the socket is the lowest descriptor above the standard ones that is a socket: try
  // some.
  std::string code;
  for (int fd = 3; fd < 16; ++fd) {
    code +=
        Bytes({0xB8, 44, 0, 0, 0, 0xBF}) + Int32(fd) +
        Bytes({0x48, 0x89, 0xE6, 0xBA, 8, 0, 0, 0, 0x45, 0x31, 0xD2, 0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9, 0x0F, 0x05});
  }
  const Fixture fixture(code + LoopKernel());
  RunnerClient runner = fixture.Start();
  const RunnerVerdict verdict = runner.Verify(0, kLong);
  EXPECT_EQ(verdict.kind, RunnerVerdict::kCrashed);
  EXPECT_THAT(verdict.message, HasSubstr("no reply"));
}

// "Done, and a call took 100 us", as long as such a reply is, on every descriptor below 64, before anything is done.
TEST(Runner, OutputsOfAForgedReplyArePoisoned) {
  const std::string forge = Bytes({
      0x48, 0x81, 0xEC, 0x00, 0x02, 0x00, 0x00,                          // sub rsp, 512
      0x48, 0x89, 0xE7, 0x31, 0xC0, 0xB9, 0x40, 0,    0,    0,           // mov rdi, rsp; xor eax, eax; mov ecx, 64
      0xF3, 0x48, 0xAB, 0xC6, 0x04, 0x24, 0x01,                          // rep stosq; mov byte [rsp], 1
      0xC6, 0x44, 0x24, 0x0C, 0x01,                                      // mov byte [rsp + 12], 1
      0xC7, 0x84, 0x24, 0x1C, 0x01, 0x00, 0x00, 0x00, 0x00, 0x59, 0x40,  // mov dword [rsp + 284], the half of 100.0
      0xBB, 0x40, 0,    0,    0,                                         // mov ebx, 64
      0x89, 0xDF, 0x48, 0x89, 0xE6, 0xBA, 0x28, 0x01, 0,    0,           // 1: mov edi, ebx; mov rsi, rsp; mov edx, 296
      0x41, 0xBA, 0x00, 0x40, 0,    0,    0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9,  // r10d: MSG_NOSIGNAL; r8d and r9d: 0
      0xB8, 0x2C, 0,    0,    0,    0x0F, 0x05, 0xFF, 0xCB, 0x75, 0xDF,        // mov eax, 44; syscall; dec ebx; jnz 1b
  });
  const Fixture fixture(forge + LoopKernel());
  RunnerClient runner = fixture.Start();
  const RunnerVerdict verdict = runner.Time({.warm_up = 0, .copy_outputs = 1}, kLong);
  EXPECT_THAT(verdict.kind, AnyOf(RunnerVerdict::kOk, RunnerVerdict::kImpossibleTime)) << verdict.message;
  EXPECT_TRUE(IsPoisoned(runner.output(0, 0).data(), 0, runner.output(0, 0).size(), 0));
}

TEST(LayOutTensors, PagesOfTheirOwnAlignedAtEitherEnd) {
  const std::vector<KernelTensor> tensors = {
      {"int8", {100}, 100}, {"int8", {4096}, 4096}, {"int8", {0}, 0}, {"int8", {5000}, 5000}};
  for (const bool start : {false, true}) {
    const TensorFile file = LayOutTensors(tensors, start);
    uint64_t end = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorPlace& place = file.places[i];
      EXPECT_EQ(place.region_at, end);
      EXPECT_EQ(place.region_at % 4096, 0u);
      EXPECT_EQ(place.at % 64, 0u);
      EXPECT_LE(place.at + place.bytes, place.region_at + place.region_bytes);
      if (start) {
        EXPECT_EQ(place.at, place.region_at);
      } else {
        EXPECT_LT(place.region_at + place.region_bytes - place.at - place.bytes, 64u);
      }
      end = place.region_at + place.region_bytes;
    }
    EXPECT_EQ(file.total_bytes, end);
  }
}

}  // namespace
}  // namespace hone
