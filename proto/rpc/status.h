// gRPC's statuses and ours: the two libraries number their codes alike, and a message goes over as it is.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hone {

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

// Trailing metadata of a stream of records: how many rows were left out because their checksums do not match.
inline constexpr char kCorruptRows[] = "hone-corrupt-rows";

}  // namespace hone
