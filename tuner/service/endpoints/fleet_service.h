// The workers' side of the daemon: decode, hand to the core, encode. Sync is a long poll and holds no thread.
#pragma once

#include <memory>

#include "grpcpp/grpcpp.h"
#include "hone/v1/fleet.grpc.pb.h"

namespace hone {

class Core;
class Gate;
struct CallLimits;

// Core and gate must outlive the service.
std::unique_ptr<grpc::Service> MakeFleetService(Core& core, Gate& gate, const CallLimits& limits);

}  // namespace hone
