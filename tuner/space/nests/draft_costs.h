// What drafts of nests share: how fast data moves, what threads gain, and sizes to choose from.
#pragma once

#include <cstdint>
#include <vector>

#include "tuner/space/nests/nest_context.h"

namespace hone {

// Time of `work_us` spread over `tasks` equal pieces on `threads` threads.
double ParallelTime(const Machine& machine, double work_us, int64_t tasks, int threads);
// Of the rate that nothing but loads reach, what a loop with other work does.
inline constexpr double kWithOtherWork = 0.75;
// Bytes that such a loop moves in a cycle, on one core, from where `footprint` bytes live.
double BytesPerCycle(const Target& target, const Machine& machine, double footprint);
// Bytes between a write and a read of them in a nest of which each thread has a buffer of so many: past the second
// cache the buffers of all of them lie in one.
double FootprintOfThreads(const Target& target, int threads, double bytes);
struct Written {
  double bytes = 0;
  bool cold = false;  // no cache has it, and it goes to memory in the end (kColdOutputs)
};
// Cycles of one core to write an output once, in a nest that touches `footprint` bytes in all. Through the caches, a
// line that the second one does not hold is fetched and written back; past them (compiler/schedule/primitives/stream.h)
// it goes to memory, and the kernel that reads it next gets it from there.
double StoreCycles(const NestContext& context, const Written& written, double footprint, bool past_caches);
// Whether what a block writes may go past the caches, and is more than the second one holds.
bool CanStream(const NestContext& context, int block);
// Divisors of n that are at most `limit`, ascending.
std::vector<int64_t> DivisorsUpTo(int64_t n, int64_t limit);
// How many blocks a reduction may be cut into along one of its variables, 1 among them: none shorter than is worth it.
std::vector<int64_t> BlocksOfK(const BlockInfo& block, int along);

}  // namespace hone
