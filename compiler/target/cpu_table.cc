#include "compiler/target/cpu_table.h"

#include <algorithm>

namespace hone {
namespace {

// x86-64 psABI levels (v3, v4), and what each core adds to them as LLVM 19's X86.td has it; of Arm's cores what its
// AArch64Processors.td has. Vectors are NEON's 128 bits on all of those: SVE adds predicates for tails. RISC-V is what
// profile RVA22 and the vector extension have; zvl256b: registers of 256 bits and more.
#define HONE_V3 "avx avx2 fma f16c bmi bmi2 lzcnt movbe popcnt"
#define HONE_V4 HONE_V3 " avx512f avx512bw avx512cd avx512dq avx512vl"
#define HONE_ICELAKE HONE_V4 " avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq"
#define HONE_ZEN4 HONE_ICELAKE " avx512bf16"
#define HONE_ARMV8_2 "neon dotprod fullfp16"
#define HONE_NEOVERSE_V1 HONE_ARMV8_2 " bf16 i8mm sve"
#define HONE_ARMV9 HONE_NEOVERSE_V1 " sve2"
#define HONE_RVA22V "v zba zbb zbs zfhmin"
#define HONE_SAPPHIRE HONE_ICELAKE " avx512bf16 avx512fp16 avxvnni amx-tile amx-int8 amx-bf16"

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr std::string_view kX86 = "x86_64", kArm = "aarch64", kRiscV = "riscv64";

// Rates of fused multiply-add: Zen 4 runs 512-bit operations on 256-bit pipes, one a cycle; Zen 5 and Intel's server
// cores start two. Clocks are those of all cores under vector load; read rates are what loops of loads reach
// (codegen.md 2.1; Intel's and AMD's optimisation manuals, Arm's software optimisation guides), lowered beyond the
// second cache to what one core of a loaded machine gets.
constexpr CpuInfo kCpus[] = {
    {"x86-64-v3", kX86, HONE_V3, 256, 2, 32 * kKiB, 512 * kKiB, 16 * kMiB, 3.5, 4, 64, 32, 16, 8},
    {"x86-64-v4", kX86, HONE_V4, 512, 1, 32 * kKiB, 1 * kMiB, 32 * kMiB, 3.5, 4, 128, 48, 19, 8},
    {"haswell", kX86, HONE_V3, 256, 2, 32 * kKiB, 256 * kKiB, 8 * kMiB, 3, 5, 64, 28, 16, 6},
    {"skylake", kX86, HONE_V3, 256, 2, 32 * kKiB, 256 * kKiB, 8 * kMiB, 3.5, 4, 64, 32, 16, 6},
    {"alderlake", kX86, HONE_V3 " avxvnni", 256, 2, 48 * kKiB, 1280 * kKiB, 24 * kMiB, 4.5, 4, 96, 40, 12, 6},
    {"skylake-avx512", kX86, HONE_V4, 512, 2, 32 * kKiB, 1 * kMiB, 24 * kMiB, 2.8, 4, 128, 48, 10, 5},
    {"cascadelake", kX86, HONE_V4 " avx512vnni", 512, 2, 32 * kKiB, 1 * kMiB, 32 * kMiB, 2.8, 4, 128, 48, 10, 5},
    {"icelake-server", kX86, HONE_ICELAKE, 512, 2, 48 * kKiB, 1280 * kKiB, 32 * kMiB, 2.9, 4, 128, 48, 10, 5},
    {"sapphirerapids", kX86, HONE_SAPPHIRE, 512, 2, 48 * kKiB, 2 * kMiB, 64 * kMiB, 3, 4, 128, 48, 6, 5},
    {"znver1", kX86, HONE_V3, 256, 1, 32 * kKiB, 512 * kKiB, 8 * kMiB, 3.2, 5, 32, 28, 16, 6},
    {"znver2", kX86, HONE_V3, 256, 2, 32 * kKiB, 512 * kKiB, 16 * kMiB, 3.3, 5, 64, 30, 20, 7},
    {"znver3", kX86, HONE_V3, 256, 2, 32 * kKiB, 512 * kKiB, 32 * kMiB, 3.5, 4, 64, 30, 22, 8},
    {"znver4", kX86, HONE_ZEN4, 512, 1, 32 * kKiB, 1 * kMiB, 32 * kMiB, 3.7, 4, 64, 40, 22, 8},
    {"znver5", kX86, HONE_ZEN4 " avxvnni", 512, 2, 48 * kKiB, 1 * kMiB, 32 * kMiB, 4, 4, 128, 56, 22, 9},
    {"generic", kArm, "neon", 128, 2, 32 * kKiB, 512 * kKiB, 0, 2, 4, 32, 16, 8, 4},
    {"cortex-a72", kArm, "neon", 128, 1, 32 * kKiB, 1 * kMiB, 0, 1.5, 7, 16, 8, 4, 3, "0xd08"},
    {"cortex-a76", kArm, HONE_ARMV8_2, 128, 2, 64 * kKiB, 512 * kKiB, 2 * kMiB, 2.4, 4, 32, 16, 8, 4, "0xd0b"},
    {"cortex-a78", kArm, HONE_ARMV8_2, 128, 2, 64 * kKiB, 512 * kKiB, 4 * kMiB, 2.4, 4, 48, 20, 9, 4, "0xd41"},
    {"neoverse-n1", kArm, HONE_ARMV8_2, 128, 2, 64 * kKiB, 1 * kMiB, 32 * kMiB, 2.6, 4, 32, 20, 9, 5, "0xd0c"},
    {"neoverse-n2", kArm, HONE_ARMV9, 128, 2, 64 * kKiB, 1 * kMiB, 32 * kMiB, 2.8, 4, 48, 28, 10, 6, "0xd49"},
    {"neoverse-v1", kArm, HONE_NEOVERSE_V1, 128, 4, 64 * kKiB, 1 * kMiB, 32 * kMiB, 2.6, 4, 48, 30, 11, 8, "0xd40"},
    {"neoverse-v2", kArm, HONE_ARMV9, 128, 4, 64 * kKiB, 2 * kMiB, 32 * kMiB, 3, 4, 48, 32, 12, 8, "0xd4f"},
    {"generic-rv64", kRiscV, HONE_RVA22V, 128, 1, 32 * kKiB, 512 * kKiB, 0, 1.5, 5, 16, 8, 4, 2},
    {"spacemit-x60", kRiscV, HONE_RVA22V " zvl256b zfh zvfhmin zvfh zicond", 256, 1, 32 * kKiB, 512 * kKiB, 0, 1.6, 5,
     16, 8, 4, 2, "spacemit,x60"},
};

constexpr std::string_view kX86Features[] = {
    "avx",        "avx2",        "fma",        "f16c",         "bmi",
    "bmi2",       "lzcnt",       "movbe",      "popcnt",       "avx512f",
    "avx512bw",   "avx512cd",    "avx512dq",   "avx512vl",     "avx512ifma",
    "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq",
    "avx512bf16", "avx512fp16",  "avxvnni",    "amx-tile",     "amx-int8",
    "amx-bf16",
};
constexpr std::string_view kArmFeatures[] = {"neon", "fullfp16", "dotprod", "bf16", "i8mm", "sve", "sve2"};
constexpr std::string_view kRiscVFeatures[] = {"v",      "zvl256b", "zba",     "zbb",  "zbs",
                                               "zfhmin", "zfh",     "zvfhmin", "zvfh", "zicond"};

}  // namespace

std::span<const CpuInfo> CpuTable() { return kCpus; }

const CpuInfo* FindCpu(std::string_view name) {
  const auto* found = std::ranges::find(kCpus, name, &CpuInfo::name);
  return found == std::end(kCpus) ? nullptr : found;
}

std::span<const std::string_view> KnownFeatures(std::string_view arch) {
  if (arch == kArm) return kArmFeatures;
  if (arch == kRiscV) return kRiscVFeatures;
  return kX86Features;
}

}  // namespace hone
