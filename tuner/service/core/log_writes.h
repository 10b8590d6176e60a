// A lease that ended without a result, as a line of the log. What was written is Core::LogWrites's.
#pragma once

#include "tuner/dispatch/events/events.h"

namespace hone {

void LogTakenBack(const LeaseTakenBack& lease);

}  // namespace hone
