// The axes that loops of a GPU are bound to. Of each kind the first changes fastest: neighbouring threads differ in
// threadIdx.x.
#pragma once

#include <array>
#include <string_view>

namespace hone {

inline constexpr std::array<std::string_view, 3> kBlockAxes = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
inline constexpr std::array<std::string_view, 3> kThreadAxes = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};
// Iterations of a thread that are written as if they were threads.
inline constexpr std::array<std::string_view, 3> kVirtualThreadAxes = {"vthread.x", "vthread.y", "vthread.z"};

}  // namespace hone
