// One nest of a program whose shape needs no plan (nest_plan.h): its knobs, its draft and how it is scheduled.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "tuner/space/generator.h"
#include "tuner/space/nests/nest_context.h"

namespace hone {

class SimpleNest {
 public:
  virtual ~SimpleNest() = default;
  virtual const std::vector<Knob>& knobs() const = 0;
  // `choice` has one index for each knob of this nest. Microseconds; nullopt: not legal.
  virtual std::optional<double> Draft(std::span<const int> choice) const = 0;
  virtual absl::Status Apply(Schedule& schedule, std::span<const int> choice) const = 0;
};

// A reduction along memory: a row to a value.
std::unique_ptr<SimpleNest> MakeRowNest(const NestContext& context, int block);
// A block without reduction: elementwise, moving, padding.
std::unique_ptr<SimpleNest> MakeMapNest(const NestContext& context, int block);

}  // namespace hone
