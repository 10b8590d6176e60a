#include "worker/agent/builds/build_reply.h"

#include <cmath>
#include <cstddef>

#include "absl/strings/str_join.h"
#include "compiler/support/printable.h"
#include "compiler/support/sha256.h"

namespace hone {
namespace {

constexpr size_t kHashBytes = 8, kMostGeneratorBytes = 1 << 10;
constexpr size_t kMostDetailBytes = 400;

void SetDetail(v1::Outcome* outcome, const std::string& detail) {
  outcome->set_detail(std::string(Utf8Prefix(detail, kMostDetailBytes)));
}

bool IsEmptyOr(const std::string& bytes, size_t size) { return bytes.empty() || bytes.size() == size; }

}  // namespace

bool IsBuildReply(const v1::BuildReply& reply) {
  return IsEmptyOr(reply.object_digest(), kSha256Bytes) && IsEmptyOr(reply.program_hash(), kHashBytes) &&
         reply.generator().size() <= kMostGeneratorBytes && std::isfinite(reply.seconds()) && reply.seconds() >= 0;
}

absl::Status ReadBuildReply(const std::string& bytes, uint64_t id, v1::BuildReply* reply) {
  if (reply->ParseFromString(bytes) && reply->id() == id && IsBuildReply(*reply)) return absl::OkStatus();
  return absl::DataLossError("the answer is not a BuildReply");
}

v1::Outcome OutcomeOfBuild(const v1::BuildOutcome& built) {
  const v1::BuildReply& reply = built.reply();
  v1::Outcome outcome;
  outcome.set_build_seconds(reply.seconds());
  outcome.set_program_hash(reply.program_hash());
  outcome.set_object_digest(reply.object_digest());
  outcome.set_generator(reply.generator());
  if (reply.error().empty()) {
    SetDetail(&outcome, absl::StrJoin(reply.serial_loops(), "; "));
    return outcome;
  }
  SetFailure(&outcome,
             built.infrastructure() ? v1::OUTCOME_INFRA
             : built.timed_out()    ? v1::OUTCOME_TIMEOUT
                                    : v1::OUTCOME_BUILD_ERROR,
             reply.error());
  return outcome;
}

v1::Outcome OutcomeOfUnprepared(const absl::Status& status) {
  const bool workload = absl::IsInvalidArgument(status) || absl::IsInternal(status);  // its program, or its oracle
  v1::Outcome outcome;
  SetFailure(&outcome, workload ? v1::OUTCOME_BUILD_ERROR : v1::OUTCOME_INFRA, std::string(status.message()));
  return outcome;
}

void SetFailure(v1::Outcome* outcome, v1::OutcomeKind kind, const std::string& detail) {
  outcome->set_kind(kind);
  SetDetail(outcome, detail);
}

}  // namespace hone
