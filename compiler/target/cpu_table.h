// The cores that a target may name, and what they have. One table: adding a core is adding a row, and its generators,
// usual machine facts and recognition follow.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hone {

struct CpuInfo {
  std::string_view name;  // LLVM's
  std::string_view arch;
  std::string_view features;  // "avx2 fma ...", those of kKnownFeatures
  int vector_bits;
  int fma_per_cycle;    // of vector_bits
  int64_t l1d, l2, l3;  // usual sizes, bytes
  // Usual rates, where none were measured: see Machine (machine.h).
  double ghz, fma_latency;
  double l1_rate, l2_rate, l3_rate, memory_rate;  // bytes read in a cycle by one core
  // By which a host knows it in /proc/cpuinfo: "CPU part" of AArch64, "uarch" of RISC-V.
  std::string_view part = "";
};

std::span<const CpuInfo> CpuTable();
const CpuInfo* FindCpu(std::string_view name);  // nullptr when unknown
// Features that a target text may add or take away, and that an image states as required.
std::span<const std::string_view> KnownFeatures(std::string_view arch);

}  // namespace hone
