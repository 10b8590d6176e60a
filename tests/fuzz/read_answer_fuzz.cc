// What a worker's agent reads of the processes that it starts: whatever a runner, an oracle or a builder answers with
// gives numbers within their bounds or one message, and what the daemon is told of it is a message that it can read.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "compiler/support/check.h"
#include "tests/fuzz/messages.h"
#include "worker/agent/builds/build_reply.h"
#include "worker/oracle/read_answers.h"
#include "worker/runner/read_reply.h"

namespace {

constexpr size_t kMostTold = 4 << 10;  // bytes of an outcome without its object

void CheckTold(const hone::v1::Outcome& outcome) {
  const std::string told = outcome.SerializeAsString();
  HONE_CHECK(told.size() <= kMostTold && hone::v1::Outcome().ParseFromString(told)) << outcome.detail();
}
void CheckFailure(const std::string& detail) {
  hone::v1::Outcome outcome;
  hone::SetFailure(&outcome, hone::v1::OUTCOME_CRASH, detail);
  CheckTold(outcome);
}

// ---- a message each ----

void RunnerAnswers(FuzzedDataProvider& bytes) {
  hone::TimeRequest request;
  request.samples = bytes.ConsumeIntegralInRange(0, 4);
  request.inner = bytes.ConsumeIntegralInRange(1, 3);
  request.renewal = static_cast<hone::Renewal>(bytes.ConsumeIntegralInRange(0, 2));
  const hone::TimePassed passed = {.elapsed_us = 1e12, .processor_us = 0, .device = bytes.ConsumeBool()};
  const bool right_size = bytes.ConsumeBool(), right_outcome = bytes.ConsumeBool();
  const std::string message = bytes.ConsumeRemainingBytesAsString();
  hone::RunnerReply reply;
  size_t got = std::min(message.size(), sizeof(reply));
  std::memcpy(static_cast<void*>(&reply), message.data(), got);
  if (right_outcome) reply.outcome = hone::RunnerOutcome::kDone;
  if (right_size) {
    reply.num_samples = request.samples;
    got = ReplyBytes(reply);
  }
  const hone::RunnerVerdict verdict =
      hone::WithSamples(hone::ReadReply(reply, static_cast<ssize_t>(got)), reply, request, passed);
  CheckFailure(verdict.message);
  if (!verdict.ok()) return;
  HONE_CHECK(verdict.samples.size() == static_cast<size_t>(request.samples)) << verdict.samples.size();
  for (const hone::TimedSample& sample : verdict.samples) HONE_CHECK(sample.us > 0 && sample.us < 1e12) << sample.us;
}

void OracleTellsFacts(FuzzedDataProvider& bytes) {
  const absl::StatusOr<hone::OracleFacts> facts = hone::ReadFacts(bytes.ConsumeRemainingBytesAsString());
  if (!facts.ok()) {
    HONE_CHECK(absl::IsInvalidArgument(facts.status())) << facts.status();
    return CheckFailure(std::string(facts.status().message()));
  }
  HONE_CHECK(!facts->params.outputs.empty());
  for (const auto& params : {facts->params.inputs, facts->params.outputs}) {
    for (const hone::TaskParam& param : params) {
      HONE_CHECK(param.bytes() >= 0 && param.bytes() < int64_t{1} << 32) << param.bytes();
      if (param.bytes() > 4096) continue;
      const auto value = hone::ReadInput(std::string(static_cast<size_t>(param.bytes()), 'x'), param);
      HONE_CHECK(value.ok() && value->NumElements() == param.elements) << value.status();
      HONE_CHECK(!hone::ReadInput(std::string(static_cast<size_t>(param.bytes()) + 1, 'x'), param).ok());
    }
  }
  HONE_CHECK(facts->plan.least >= 1 && facts->plan.least <= static_cast<int>(facts->plan.kinds.size()));
}

void OracleTellsElements(FuzzedDataProvider& bytes) {
  const size_t elements = bytes.ConsumeIntegralInRange<size_t>(0, 8);
  const auto values = hone::ReadElements(bytes.ConsumeRemainingBytesAsString(), elements);
  HONE_CHECK(values.ok() ? values->size() == elements : absl::IsInvalidArgument(values.status())) << values.status();
  if (!values.ok()) CheckFailure(std::string(values.status().message()));
}

void BuilderAnswers(FuzzedDataProvider& bytes) {
  const uint64_t id = bytes.ConsumeIntegralInRange<uint64_t>(0, 1);
  hone::v1::BuildOutcome built;
  built.set_timed_out(bytes.ConsumeBool());
  const absl::Status status = hone::ReadBuildReply(bytes.ConsumeRemainingBytesAsString(), id, built.mutable_reply());
  HONE_CHECK(status.ok() ? built.reply().id() == id : absl::IsDataLoss(status)) << status;
  if (status.ok()) CheckTold(hone::OutcomeOfBuild(built));
}

// As the daemon hands it on.
void OtherWorkersBuilderAnswers(FuzzedDataProvider& bytes) {
  hone::v1::BuildOutcome built;
  if (!built.ParseFromString(bytes.ConsumeRemainingBytesAsString()) || !hone::IsBuildReply(built.reply())) return;
  CheckTold(hone::OutcomeOfBuild(built));
}

constexpr hone::ReadMessage kMessages[] = {RunnerAnswers, OracleTellsFacts, OracleTellsElements, BuilderAnswers,
                                           OtherWorkersBuilderAnswers};

}  // namespace

std::span<const hone::ReadMessage> hone::Messages() { return kMessages; }
