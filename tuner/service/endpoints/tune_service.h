// The clients' side of the daemon.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "grpcpp/grpcpp.h"
#include "hone/v1/tune.grpc.pb.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/service/access/call_meter.h"

namespace hone {

class Core;
class Gate;

// Both must outlive the service. Of `limits` the gate keeps those that are not kept here: memory and silence.
// `last_call` is set to the time of each call (Core::Now), by which a private daemon ends when it is no longer called.
std::unique_ptr<grpc::Service> MakeTuneService(Core& core, Gate& gate, const CallLimits& limits,
                                               std::atomic<Micros>& last_call);

}  // namespace hone
