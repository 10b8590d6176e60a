// What is believed of a device class: nothing that one of its workers alone says, as soon as two of them agree; where
// the workers are several principals', as soon as two of these agree, since one may have workers of any number. The
// limits of kernels follow from it, and by these what times are plausible.
#pragma once

#include <string>

#include "hone/v1/common.pb.h"

namespace hone {

// Two of them agree on a rate when the lesser claim is at most this share below the greater.
inline constexpr double kProbeTolerance = 0.25;
// Of one class that are kept. Beyond them goes the oldest that changes nothing.
inline constexpr int kMostProbes = 16;

// What is known of a class, of which `facts` was known (a default profile: nothing), after a worker told another probe;
// `probe.worker` is a Reporter as a text. A witness is a principal, or where all probes are one principal's a worker.
// Of what one worker told, each rate counts at its best: a probe of a busy machine reads low, and no limit may be below
// what the machine can do. Of what several told, the highest rate counts that a second witness bears out. Where nobody
// bears another out, what was believed stands as long as one bears that out; else the claim of whoever told one first
// counts. So what one worker claims changes nothing beside others. Rates of all cores are compared among the probes
// with the most threads; where a lone one has more than the first, so many times the rate of one core stands for them,
// which is more than they reach. Caches, target and the text for drafts come together from one probe: caches and target
// are those that most witnesses told.
v1::DeviceProfile AfterProbe(const v1::DeviceProfile& facts, v1::DeviceProbe probe);

// How a worker's probe stands to what is believed of its class, as WorkerInfo.probe has it: "agreed", "alone",
// "differs".
std::string ProbeStanding(const v1::DeviceProfile& facts, const v1::DeviceProfile& probe);

}  // namespace hone
