// What the processes of a worker read of its agent, which passes on what tenants and builders wrote: any workload is
// interpreted or refused, any build request gives a program or one message, any kernel set is loaded and run or
// refused.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "compiler/support/check.h"
#include "tests/deploy/runtime/machine_code.h"
#include "tests/fuzz/messages.h"
#include "worker/builder/read_request.h"
#include "worker/oracle/workload_reader.h"
#include "worker/runner/candidate.h"
#include "worker/runner/memory_file.h"

namespace {

constexpr int64_t kMostSteps = 1 << 12;     // that the interpreter may take for a request
constexpr int64_t kMostInput = 64 << 10;    // bytes of an input that is drawn: a sandbox bounds them all
constexpr uint64_t kMostTensors = 1 << 20;  // bytes of all that a candidate is loaded with

// ---- the oracle ----

hone::v1::OracleRequest AnyOracleRequest(FuzzedDataProvider& bytes, int next_param) {
  hone::v1::OracleRequest request;
  if (bytes.ConsumeBool()) {  // as the agent asks, mostly
    request.mutable_input()->set_set(0);
    request.mutable_input()->set_param(bytes.ConsumeBool() ? next_param : bytes.ConsumeIntegral<int8_t>());
    request.mutable_input()->set_seed(bytes.ConsumeIntegral<uint8_t>());
    request.mutable_input()->set_kind(bytes.ConsumeIntegralInRange(-1, 300));
    return request;
  }
  request.mutable_elements()->set_set(bytes.ConsumeIntegralInRange(-1, 1));
  request.mutable_elements()->set_output(bytes.ConsumeIntegralInRange(-1, 2));
  for (int i = bytes.ConsumeIntegralInRange(0, 3); i > 0; --i) {
    request.mutable_elements()->add_elements(bytes.ConsumeBool() ? bytes.ConsumeIntegral<int8_t>()
                                                                 : bytes.ConsumeIntegral<int64_t>());
  }
  return request;
}

bool InputsAreSmall(const hone::v1::WorkloadFacts& facts) {
  for (const hone::v1::WorkloadFacts::Param& param : facts.params()) {
    int64_t elements = 1;
    for (const int64_t extent : param.shape()) {
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > kMostInput / 8) return false;
    }
  }
  return true;
}

void OracleIsAsked(FuzzedDataProvider& bytes) {
  std::vector<hone::v1::OracleRequest> requests;
  for (int i = bytes.ConsumeIntegralInRange(0, 8); i > 0; --i) {
    requests.push_back(AnyOracleRequest(bytes, static_cast<int>(requests.size())));
  }
  hone::v1::OracleRequest first;
  first.set_workload(bytes.ConsumeRemainingBytesAsString());
  if (!first.ParseFromString(first.SerializeAsString())) return;  // it never gets there
  hone::WorkloadReader reader(kMostSteps);
  std::string answer;
  HONE_CHECK(reader.Answer(first, &answer));
  hone::v1::WorkloadFacts facts;
  HONE_CHECK(facts.ParseFromString(answer)) << "the agent cannot read it";
  if (!InputsAreSmall(facts)) return;
  for (const hone::v1::OracleRequest& request : requests) {
    if (!reader.Answer(request, &answer)) return;  // the process ends
    if (request.has_elements()) HONE_CHECK(hone::v1::ElementsReply().ParseFromString(answer));
  }
}

// ---- the builder ----

constexpr char kProduct[] = R"(
@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 12), "float32"), C: T.Buffer((16, 12), "float32")):
    for i, j, k in T.grid(16, 12, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

void BuilderIsAsked(FuzzedDataProvider& bytes) {
  hone::v1::BuildRequest request;
  request.set_numeric(static_cast<hone::v1::NumericLevel>(bytes.ConsumeIntegralInRange(0, 5)));
  request.set_workload(kProduct);
  const bool of_workload = bytes.ConsumeBool();
  (of_workload ? *request.mutable_workload() : *request.mutable_trace()) = bytes.ConsumeRemainingBytesAsString();
  if (!request.ParseFromString(request.SerializeAsString())) return;
  const absl::StatusOr<hone::PrimFunc> workload = hone::ReadWorkload(request);
  HONE_CHECK(workload.ok() || !workload.status().message().empty());
  if (!workload.ok() || of_workload) return;
  const absl::StatusOr<hone::ScheduledProgram> program = hone::ReadCandidate(request, *workload);
  HONE_CHECK(program.ok() || !program.status().message().empty());
}

// ---- the runner ----

// Sizes as they are, and sizes that no memory has.
int64_t AnySize(FuzzedDataProvider& bytes) {
  constexpr int64_t kHuge[] = {int64_t{1} << 45, int64_t{1} << 62, INT64_MAX - 63, INT64_MAX};
  return bytes.ConsumeBool() ? bytes.ConsumeIntegralInRange<int64_t>(0, 4096) : bytes.PickValueInArray(kHuge);
}

hone::KernelTensor AnyTensor(FuzzedDataProvider& bytes) {
  hone::KernelTensor tensor{"float32", {}, 4};
  for (int d = bytes.ConsumeIntegralInRange(0, 3); d > 0; --d) {
    tensor.shape.push_back(bytes.ConsumeBool()   ? bytes.ConsumeIntegralInRange(0, 9)
                           : bytes.ConsumeBool() ? int64_t{1} << 32
                                                 : AnySize(bytes));
    if (tensor.shape.back() < 10) tensor.bytes *= tensor.shape.back();
  }
  if (bytes.ConsumeBool()) tensor.bytes = AnySize(bytes);
  return tensor;
}

hone::KernelSet AnyKernelSet(FuzzedDataProvider& bytes) {
  hone::KernelSet set;
  set.symbol = "k";
  for (int i = bytes.ConsumeIntegralInRange(1, 4); i > 0; --i) set.params.push_back(AnyTensor(bytes));
  set.num_outputs = bytes.ConsumeIntegralInRange(0, 2);
  for (int i = bytes.ConsumeIntegralInRange(0, 2); i > 0; --i) {
    set.prepared.push_back({bytes.ConsumeIntegralInRange(0, 3), "p", AnyTensor(bytes), AnySize(bytes), AnySize(bytes)});
  }
  if (bytes.ConsumeBool()) set.scratch_bytes = AnySize(bytes);
  if (bytes.ConsumeBool()) set.thread_scratch_bytes = AnySize(bytes);
  return set;
}

// Of as many sets as are asked for; more than kMostTensors where they are not small.
uint64_t FileBytes(std::span<const hone::KernelTensor> tensors, int sets) {
  for (const hone::KernelTensor& tensor : tensors) {
    if (static_cast<uint64_t>(tensor.bytes) > kMostTensors) return kMostTensors + 1;
  }
  return hone::LayOutTensors(tensors, false).total_bytes * static_cast<uint64_t>(sets);
}

void AskCandidate(FuzzedDataProvider& bytes, hone::ServedCandidate& candidate) {
  hone::RunnerReply reply;
  const int set = bytes.ConsumeIntegralInRange(-1, 3);
  if (bytes.ConsumeBool()) {
    candidate.Verify({.set = set, .iterations = static_cast<hone::Iterations>(bytes.ConsumeIntegralInRange(0, 2))},
                     &reply);
  } else {
    candidate.Time({.warm_up = bytes.ConsumeIntegralInRange(-1, 2),
                    .samples = bytes.ConsumeIntegralInRange(-1, 3),
                    .inner = bytes.ConsumeIntegralInRange(-1, 3),
                    .set = set,
                    .renewal = static_cast<hone::Renewal>(bytes.ConsumeIntegralInRange(0, 3)),
                    .copy_outputs = bytes.ConsumeIntegral<uint8_t>(),
                    .turn = bytes.ConsumeIntegral<uint64_t>(),
                    .flushed = bytes.ConsumeIntegral<uint64_t>()},
                   &reply);
  }
  HONE_CHECK(reply.num_samples >= 0 && reply.num_samples <= hone::kRunnerMaxSamples);
  HONE_CHECK(std::memchr(reply.message, '\0', sizeof(reply.message)) != nullptr);
}

void RunnerIsAsked(FuzzedDataProvider& bytes) {
  static const std::string kImage =
      hone::ImageOf({{"k", hone::ReturnKernel(0)}, {"p", hone::ReturnKernel(0)}});  // they touch nothing
  hone::LoadRequest load;
  load.sets = bytes.ConsumeIntegralInRange(1, 3);
  load.threads = bytes.ConsumeIntegralInRange(1, 2);
  load.pin = 0;
  load.untimed = bytes.ConsumeBool();
  hone::KernelSet set = AnyKernelSet(bytes);
  std::string text = hone::Serialize(set), error;
  if (!hone::Parse(text, &set, &error)) return;
  // A file is as large as the agent makes it, or too small.
  const auto file_of = [&](std::span<const hone::KernelTensor> tensors) {
    const uint64_t size = FileBytes(tensors, load.sets);
    return hone::MemoryFile::Create("tensors", size > kMostTensors ? 4096 : size);
  };
  auto image = hone::MemoryFile::CreateSealed("image", kImage), kernels = hone::MemoryFile::CreateSealed("set", text);
  auto inputs = file_of(hone::InputsOf(set)), outputs = file_of(hone::OutputsOf(set));
  HONE_CHECK(image.ok() && kernels.ok() && inputs.ok() && outputs.ok());
  const int files[] = {image->fd(), kernels->fd(), inputs->fd(), outputs->fd()};
  auto candidate = hone::Candidate::Load(load, files);
  HONE_CHECK(candidate.ok() || !candidate.error().message().empty());
  if (!candidate.ok()) return;
  for (int i = bytes.ConsumeIntegralInRange(0, 4); i > 0; --i) AskCandidate(bytes, **candidate);
}

constexpr hone::ReadMessage kMessages[] = {RunnerIsAsked, OracleIsAsked, BuilderIsAsked};

}  // namespace

std::span<const hone::ReadMessage> hone::Messages() { return kMessages; }
