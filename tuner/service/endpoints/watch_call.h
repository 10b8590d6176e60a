// A client that watches a job: a snapshot first, then what changes, at most one message on its way. A client that reads
// slowly gets fewer snapshots, never a queue of them. One whose certificate is revoked gets no more.
#pragma once

#include <memory>

#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.pb.h"

namespace hone {

class Core;
class Gate;
struct Caller;

// Owns itself; starts at once. NOT_FOUND when the caller's tenant has no such job.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(Core& core, const Gate& gate, const Caller& caller,
                                                   const v1::WatchRequest& request);

}  // namespace hone
