// The clients' side of the daemon.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.grpc.pb.h"
#include "tuner/dispatch/events.h"
#include "tuner/service/call_meter.h"

namespace hone {

class Core;
class Gate;

// Both must outlive the service. Of `limits` the gate keeps those that are not here: memory and
// silence. `last_call` is set to the time of each call
// (Core::Now), so that a private daemon knows when nobody needs it any more.
std::unique_ptr<grpc::Service> MakeTuneService(Core& core, Gate& gate, const CallLimits& limits,
                                               std::atomic<Micros>& last_call);

}  // namespace hone
