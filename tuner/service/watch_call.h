// A client that watches a job: a snapshot first, then news, at most one message on its way. A client that reads slowly
// gets fewer snapshots, never a queue of them.
#pragma once

#include <memory>

#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.pb.h"

namespace hone {

class Core;

// Owns itself; starts at once. NOT_FOUND when the tenant has no such job.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(Core& core, uint64_t tenant, const v1::WatchRequest& request);

}  // namespace hone
