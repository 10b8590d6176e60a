// Templates: what the author of an operator knows of good schedules, as restrictions of the nest plan. A template keeps
// some candidates of the knobs of a sketch (sketch.h) and names the result; legality, draft and builder are the
// sketch's. Adding one is a row in templates.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tuner/space/generator.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

struct Template {
  const char* name;
  bool (*applies)(const BlockInfo& block);
  // Whether the knob may have this value; `knob` is its name behind the block's: "v_n.inner", "unroll".
  bool (*keeps)(std::string_view knob, int64_t value);
};

std::span<const Template> Templates();

// Whether it is for the heaviest block of a workload.
bool AppliesTo(const Template& restriction, const WorkloadInfo& info);

// The candidates that are kept; all of them where none would be, and of knobs of blocks that the template is not for.
std::vector<int64_t> Restricted(const Template& restriction, const WorkloadInfo& info, const Knob& knob);

}  // namespace hone
