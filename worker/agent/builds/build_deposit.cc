#include "worker/agent/builds/build_deposit.h"

#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/status.h"
#include "worker/agent/session/build_queue.h"

namespace hone {
namespace {

// How long a daemon without room is tried again: less than it waits for a build beyond the limit of that.
constexpr absl::Duration kWaitForRoom = absl::Seconds(20), kTryAgain = absl::Milliseconds(200);
constexpr absl::Duration kPutTimeout = absl::Seconds(60);

absl::Status Put(Session& session, const std::string& digest, std::string_view bytes) {
  const std::unique_ptr<grpc::ClientContext> context = session.Context(kPutTimeout);
  v1::PutBuiltReply reply;
  const std::unique_ptr<grpc::ClientWriter<v1::BuiltChunk>> writer = session.stub().PutBuilt(context.get(), &reply);
  v1::BuiltChunk chunk;
  chunk.set_digest(digest);
  chunk.set_total_bytes(bytes.size());
  while (!bytes.empty()) {
    chunk.set_data(std::string(bytes.substr(0, kChunkBytes)));
    if (!writer->Write(chunk)) break;  // it has an answer already
    bytes.remove_prefix(chunk.data().size());
    chunk.clear_digest();
    chunk.clear_total_bytes();
  }
  writer->WritesDone();
  return FromGrpc(writer->Finish());
}

}  // namespace

void DepositIfLarge(Session& session, v1::BuildOutcome* outcome) {
  if (outcome->ByteSizeLong() <= kMostSyncBytes) return;
  const std::string bytes = outcome->reply().SerializeAsString(), digest = Sha256(bytes);
  const absl::Time give_up = MonotonicNow() + kWaitForRoom;
  absl::Status status = Put(session, digest, bytes);
  while (absl::IsUnavailable(status) && MonotonicNow() < give_up && !session.ends()) {
    absl::SleepFor(kTryAgain);
    status = Put(session, digest, bytes);
  }
  outcome->clear_reply();
  if (status.ok()) {
    outcome->set_deposit(digest);
    return;
  }
  outcome->set_infrastructure(!absl::IsInvalidArgument(status));
  outcome->mutable_reply()->set_error(std::string(status.message()));
}

absl::Status TakeDeposit(Session& session, absl::Duration timeout, v1::BuildOutcome* outcome) {
  const std::unique_ptr<grpc::ClientContext> context = session.Context(timeout);
  v1::TakeBuiltRequest request;
  request.set_digest(outcome->deposit());
  const std::unique_ptr<grpc::ClientReader<v1::BuiltChunk>> reader = session.stub().TakeBuilt(context.get(), request);
  std::string bytes;
  for (v1::BuiltChunk chunk; reader->Read(&chunk);) bytes += chunk.data();
  HONE_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
  if (Sha256(bytes) != outcome->deposit() || !outcome->mutable_reply()->ParseFromString(bytes)) {
    return absl::DataLossError("what the daemon carried is not what its digest says");
  }
  outcome->clear_deposit();
  return absl::OkStatus();
}

}  // namespace hone
