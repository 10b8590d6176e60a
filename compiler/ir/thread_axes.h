// The axes that loops of a GPU are bound to. Of each kind the first changes fastest: neighbouring threads differ in
// threadIdx.x.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hone {

inline constexpr std::array<std::string_view, 3> kBlockAxes = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
inline constexpr std::array<std::string_view, 3> kThreadAxes = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
// Iterations of a thread that are written as if they were threads.
inline constexpr std::array<std::string_view, 3> kVirtualThreadAxes = {"vthread.x", "vthread.y", "vthread.z"};

// A warp is 32 threads of a block whose numbers follow one another from a multiple of 32 on; the number of a thread is
// x + extent_x * (y + extent_y * z).
inline constexpr int64_t kWarpThreads = 32;

// Along x, y and z; 1 where no loop is bound to the axis.
using ThreadExtents = std::array<int64_t, 3>;

// The product, from 0 to 2^30: programs that nobody has checked have any extents.
constexpr int64_t TimesThreads(int64_t count, int64_t threads) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (threads <= 0) return 0;
  return count > kMost / threads ? kMost : count * threads;
}
constexpr int64_t NumWarps(const ThreadExtents& threads) {
  int64_t count = 1;
  for (const int64_t extent : threads) count = TimesThreads(count, extent);
  return count <= kWarpThreads ? 1 : (count + kWarpThreads - 1) / kWarpThreads;
}

// What threads that differ in their place on one axis alone are to each other.
//   kLanes  lanes of one warp
//   kWarps  threads of several warps
//   kBoth   some the one, some the other
enum class WarpAxis : uint8_t { kLanes, kWarps, kBoth };
constexpr WarpAxis WarpAxisOf(const ThreadExtents& threads, size_t axis) {
  int64_t inside = 1;  // threads that differ on the axes before it
  for (size_t i = 0; i < axis; ++i) inside = TimesThreads(inside, threads[i]);
  const bool one_warp = NumWarps(threads) == 1 || kWarpThreads % TimesThreads(inside, threads[axis]) == 0;
  if (one_warp || threads[axis] == 1) return WarpAxis::kLanes;
  return inside % kWarpThreads == 0 ? WarpAxis::kWarps : WarpAxis::kBoth;
}

// The number in kThreadAxes; their size for what is none of them.
constexpr size_t ThreadAxisNumber(std::string_view name) {
  size_t axis = 0;
  while (axis < kThreadAxes.size() && kThreadAxes[axis] != name) ++axis;
  return axis;
}

}  // namespace hone
