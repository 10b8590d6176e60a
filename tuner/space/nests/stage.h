// One nest of a program whose shape needs no plan: its knobs, its draft and how it is scheduled; and what drafts share.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/machine.h"
#include "compiler/target/target.h"
#include "tuner/space/generator.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

class StageTemplate {
 public:
  virtual ~StageTemplate() = default;
  virtual const std::vector<Knob>& knobs() const = 0;
  // `choice` has one index for each knob of this stage. Microseconds; nullopt: not legal.
  virtual std::optional<double> Draft(std::span<const int> choice) const = 0;
  virtual absl::Status Apply(Schedule& schedule, std::span<const int> choice) const = 0;
};

// What every stage is made for.
struct StageContext {
  const WorkloadInfo* info = nullptr;  // outlives the stage
  Target target;
  Machine machine;
  int threads = 1;
};

// A reduction along memory: a row to a value.
std::unique_ptr<StageTemplate> MakeRowStage(const StageContext& context, int block);
// A block without reduction: elementwise, moving, padding.
std::unique_ptr<StageTemplate> MakeMapStage(const StageContext& context, int block);

// ---- Shared pieces of the model ----
// Time of `work_us` spread over `tasks` equal pieces on `threads` threads.
double ParallelTime(const Machine& machine, double work_us, int64_t tasks, int threads);
// Of the rate that nothing but loads reach, what a loop with other work does.
inline constexpr double kWithOtherWork = 0.75;
// Bytes that such a loop moves in a cycle, on one core, from where `footprint` bytes live.
double BytesPerCycle(const Target& target, const Machine& machine, double footprint);
// Cycles of one core to write so many bytes once, in a nest that touches `footprint` in all. Through the caches, a line
// that the second one does not hold is fetched and written back; past them (compiler/schedule/primitives/stream.h) it
// goes to memory, and the kernel that reads it next gets it from there.
double StoreCycles(const StageContext& context, double bytes, double footprint, bool past_caches);
// Whether what a block writes may go past the caches, and is more than the second one holds.
bool CanStream(const StageContext& context, int block);
// Divisors of n that are at most `limit`, ascending.
std::vector<int64_t> DivisorsUpTo(int64_t n, int64_t limit);
// How many blocks a reduction may be cut into along one of its variables, 1 among them: none shorter than is worth it.
std::vector<int64_t> BlocksOfK(const BlockInfo& block, int along);

}  // namespace hone
