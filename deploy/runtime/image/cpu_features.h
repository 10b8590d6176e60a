// Which instruction set extensions this machine can run: what the CPU has (cpuid) and the operating system saves on a
// context switch (xgetbv). Asking for one that needs the system's permission (AMX on Linux) requests it, once a
// process, so that code for which CheckCpuFeatures has found nothing missing may run. On RISC-V an instruction of each
// is tried, once a process, which for that moment takes over SIGILL. Names are LLVM's: "avx2", "fma", "avx512f",
// "bmi2", "amx-tile", on AArch64 "neon", "dotprod", on RISC-V "v", "zvl256b".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/error.h"
#include "deploy/runtime/image/image.h"

namespace hone {

// The architecture this program was built for.
ImageArch HostArch();
std::string_view ToText(ImageArch arch);

// True for a name this runtime can check; others (tuning flags, say) must not be listed as requirements.
bool IsKnownCpuFeature(std::string_view name);
bool HostHasCpuFeature(std::string_view name);
// All known features of this machine, in a fixed order.
std::vector<std::string> HostCpuFeatures();

// `features` is "avx2,fma" (a leading "+" of a name is accepted). An error names every feature that is missing, or the
// names this runtime does not know.
RuntimeError CheckCpuFeatures(std::string_view features);

}  // namespace hone
