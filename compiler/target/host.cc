#include "compiler/target/host.h"

#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/target/cpu_table.h"
#include "deploy/runtime/image/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hone {
namespace {

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "48K" or "32M", as /sys writes sizes.
int64_t SizeOf(std::string text) {
  int64_t unit = 1;
  if (!text.empty() && (text.back() == 'K' || text.back() == 'M' || text.back() == 'G')) {
    unit = text.back() == 'K' ? 1 << 10 : text.back() == 'M' ? 1 << 20 : 1 << 30;
    text.pop_back();
  }
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number * unit : 0;
}

void ProbeCaches(HostFacts* facts) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    const std::string level = FirstLine(folder + "level");
    if (level.empty()) break;
    if (FirstLine(folder + "type") == "Instruction") continue;
    const int64_t bytes = SizeOf(FirstLine(folder + "size"));
    (level == "1" ? facts->l1d : level == "2" ? facts->l2 : facts->l3) = bytes;
  }
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(online) : 1;
}

// The words of a line of /proc/cpuinfo: of "flags" (x86-64) or "Features" (AArch64), what the CPU has and the kernel of
// the operating system enables.
std::set<std::string> SystemFlags(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    return absl::StrSplit(line.substr(colon + 1), ' ', absl::SkipEmpty());
  }
  return {};
}

#if defined(__x86_64__)

// LLVM's name of a feature where the kernel of the operating system spells it differently.
std::string SystemSpelling(const std::string& feature) {
  if (feature == "bmi") return "bmi1";
  if (feature == "lzcnt") return "abm";
  if (feature == "avxvnni") return "avx_vnni";
  if (feature.starts_with("amx-")) return absl::StrReplaceAll(feature, {{"-", "_"}});
  for (const char* rest : {"vbmi2", "vnni", "bitalg", "vpopcntdq", "bf16", "fp16"}) {
    if (feature == absl::StrCat("avx512", rest)) return absl::StrCat("avx512_", rest);
  }
  return feature;
}

// Vendor, family and model, as the manuals of AMD (APM volume 3, CPUID Fn0000_0001) and Intel number them.
std::string CpuName(const std::set<std::string>& features) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  std::string vendor;
  if (__get_cpuid(0, &a, &b, &c, &d)) {
    for (const uint32_t part : {b, d, c}) vendor.append(reinterpret_cast<const char*>(&part), 4);
  }
  __get_cpuid(1, &a, &b, &c, &d);
  const uint32_t base_family = a >> 8 & 0xF;
  const uint32_t family = base_family == 0xF ? base_family + (a >> 20 & 0xFF) : base_family;
  const uint32_t model = (a >> 4 & 0xF) | (a >> 12 & 0xF0);
  const auto has = [&](const char* f) { return features.count(f) != 0; };
  if (vendor == "AuthenticAMD") {
    if (family == 0x1A) return "znver5";
    if (family == 0x19) return has("avx512f") ? "znver4" : "znver3";
    if (family == 0x17) return model >= 0x30 ? "znver2" : "znver1";
  }
  if (vendor == "GenuineIntel") {
    if (has("avx512fp16")) return "sapphirerapids";
    if (has("avx512vbmi2")) return "icelake-server";
    if (has("avx512vnni")) return "cascadelake";
    if (has("avx512f")) return "skylake-avx512";
    if (has("avxvnni")) return "alderlake";
    if (has("avx2")) return model == 0x3C || model == 0x3F || model == 0x45 || model == 0x46 ? "haswell" : "skylake";
  }
  return has("avx512vl") ? "x86-64-v4" : "x86-64-v3";
}

HostFacts ProbeCpu() {
  HostFacts facts;
  const std::set<std::string> flags = SystemFlags("flags");
  for (std::string_view feature : KnownFeatures("x86_64")) {
    // Tile registers need the system's permission besides.
    const bool usable = !feature.starts_with("amx-") || HostHasCpuFeature(feature);
    if (usable && flags.count(SystemSpelling(std::string(feature))) != 0) facts.features.emplace(feature);
  }
  facts.cpu = CpuName(facts.features);
  return facts;
}

#else

std::string CpuName(std::string_view key, const char* unknown) {
  const std::set<std::string> part = SystemFlags(key);
  std::string name = unknown;
  for (const CpuInfo& cpu : CpuTable()) {
    if (!cpu.part.empty() && part.count(std::string(cpu.part)) != 0) name = cpu.name;
  }
  return name;
}

#if defined(__riscv)

HostFacts ProbeCpu() {
  HostFacts facts;
  for (const std::string_view feature : KnownFeatures("riscv64")) {
    if (HostHasCpuFeature(feature)) facts.features.emplace(feature);
  }
  facts.cpu = CpuName("uarch", "generic-rv64");
  return facts;
}

#else

HostFacts ProbeCpu() {
  HostFacts facts;
  const std::set<std::string> flags = SystemFlags("Features");
  const std::pair<const char*, const char*> spellings[] = {
      {"fullfp16", "asimdhp"}, {"neon", "asimd"}, {"dotprod", "asimddp"}};
  for (const std::string_view feature : KnownFeatures("aarch64")) {
    std::string flag(feature);
    for (const auto& [ours, system] : spellings) {
      if (feature == ours) flag = system;
    }
    if (flags.count(flag) != 0) facts.features.emplace(feature);
  }
  facts.cpu = CpuName("CPU part", "generic");
  return facts;
}

#endif
#endif

}  // namespace

HostFacts ProbeHost() {
  HostFacts facts = ProbeCpu();
  ProbeCaches(&facts);
  facts.cores = UsableCores();
  return facts;
}

}  // namespace hone
