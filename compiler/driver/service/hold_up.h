// What a job waits for, as its user reads it: the daemon's words, and what can be done about it from here.
#pragma once

#include <string>

#include "compiler/driver/models/hints.h"
#include "hone/v1/tune.pb.h"

namespace hone {

// What to do about it: a whole command where there is one. Empty where the private daemon's owner is doing it already.
std::string RemedyFor(v1::HoldUp hold_up, const ServiceOptions& service, int threads);

// "none of the 2 workers fits: ...; REMEDY"; empty when nothing holds the job up.
std::string HoldUpText(const v1::JobSnapshot& job, const ServiceOptions& service);

}  // namespace hone
