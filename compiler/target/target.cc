#include "compiler/target/target.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/cpu_table.h"
#include "compiler/target/host.h"
#include "compiler/target/target_text.h"

namespace hone {
namespace {

std::optional<int64_t> ParseSize(std::string text) {
  int64_t unit = 1;
  if (absl::EndsWithIgnoreCase(text, "k")) unit = 1 << 10;
  if (absl::EndsWithIgnoreCase(text, "m")) unit = 1 << 20;
  if (unit != 1) text.pop_back();
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 0 || number > (int64_t{1} << 40)) return std::nullopt;
  return number * unit;
}

std::set<std::string> FeaturesOf(const CpuInfo& cpu) {
  return absl::StrSplit(std::string(cpu.features), ' ', absl::SkipEmpty());
}

Target FromCpu(const CpuInfo& cpu) {
  Target target;
  target.arch = cpu.arch;
  target.cpu = cpu.name;
  target.features = FeaturesOf(cpu);
  target.l1d = cpu.l1d;
  target.l2 = cpu.l2;
  target.l3 = cpu.l3;
  return target;
}

// What follows from the features, and the canonical text.
void Complete(Target* target, const CpuInfo& cpu) {
  if (target->arch == "x86_64") {
    const bool wide =
        target->has("avx512f") && target->has("avx512vl") && target->has("avx512bw") && target->has("avx512dq");
    target->vector_bits = wide ? 512 : 256;
    target->vector_registers = wide ? 32 : 16;
  } else {
    target->vector_bits = target->has("zvl256b") ? 256 : 128;
    target->vector_registers = 32;
  }
  const std::set<std::string> usual = FeaturesOf(cpu);
  std::string text = absl::StrCat("cpu:", target->cpu);
  for (const std::string& feature : target->features) {
    if (usual.count(feature) == 0) absl::StrAppend(&text, "+", feature);
  }
  for (const std::string& feature : usual) {
    if (!target->has(feature)) absl::StrAppend(&text, "-", feature);
  }
  absl::StrAppend(&text, ",l1d=", SizeText(target->l1d), ",l2=", SizeText(target->l2), ",l3=", SizeText(target->l3),
                  ",cores=", target->cores);
  target->text = text;
}

Target FromHost(const HostFacts& facts) {
  const CpuInfo* cpu = FindCpu(facts.cpu);
  HONE_CHECK(cpu != nullptr) << facts.cpu << " is not in the table of cores";
  Target target = FromCpu(*cpu);
  target.features = facts.features;
  if (facts.l1d != 0) target.l1d = facts.l1d;
  if (facts.l2 != 0) target.l2 = facts.l2;
  target.l3 = facts.l3;
  target.cores = facts.cores;
  Complete(&target, *cpu);
  return target;
}

absl::Status SetFact(const std::string& text, const std::string& fact, Target* target) {
  const std::vector<std::string> parts = absl::StrSplit(fact, absl::MaxSplits('=', 1));
  const int64_t value = parts.size() == 2 ? ParseSize(parts[1]).value_or(-1) : -1;
  int64_t* field = parts[0] == "l1d"  ? &target->l1d
                   : parts[0] == "l2" ? &target->l2
                   : parts[0] == "l3" ? &target->l3
                                      : nullptr;
  if (parts[0] == "cores" && value >= 1 && value <= 4096) {
    target->cores = static_cast<int>(value);
  } else if (field != nullptr && value >= 0) {
    *field = value;
  } else {
    return UnknownInTarget(text, absl::StrCat("\"", fact, "\" is not a fact"),
                           "write l1d=48K, l2=1M, l3=32M or cores=2");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view target_text) {
  const std::string text(target_text);
  if (!absl::StartsWith(text, "cpu:")) {
    return UnknownInTarget(text, "it does not start with \"cpu:\"", "write cpu:native, or cpu: and the name of a core");
  }
  const std::vector<std::string> parts = absl::StrSplit(text.substr(4), ',');
  const std::string& core = parts[0];
  // A name ends where the text does, or at a '+' or '-'. Names have hyphens of their own: the longest one counts.
  std::string name;
  const auto try_name = [&](const std::string& candidate) {
    const bool ends = core.size() == candidate.size() || core[candidate.size()] == '+' || core[candidate.size()] == '-';
    if (absl::StartsWith(core, candidate) && ends && candidate.size() > name.size()) name = candidate;
  };
  std::vector<std::string> names = {"native"};
  for (const CpuInfo& row : CpuTable()) names.emplace_back(row.name);
  for (const std::string& candidate : names) try_name(candidate);
  if (name.empty()) {
    return UnknownInTarget(text, absl::StrCat("\"", core, "\" names no known core"),
                           absl::StrCat("known are ", absl::StrJoin(names, ", ")));
  }
  const CpuInfo* cpu = FindCpu(name == "native" ? HostTarget().cpu : name);
  Target target = name == "native" ? HostTarget() : FromCpu(*cpu);
  const std::vector<std::string> known(KnownFeatures(cpu->arch).begin(), KnownFeatures(cpu->arch).end());
  for (std::string changes = core.substr(name.size()); !changes.empty();) {
    const bool add = changes[0] == '+';
    // As names of cores do, those of features may have hyphens: the longest that is known, else up to the next sign.
    std::string feature = changes.substr(1, changes.find_first_of("+-", 1) - 1);
    for (const std::string& candidate : known) {
      const size_t end = candidate.size() + 1;
      const bool ends = changes.size() == end || (changes.size() > end && (changes[end] == '+' || changes[end] == '-'));
      if (ends && changes.compare(1, candidate.size(), candidate) == 0 && candidate.size() > feature.size())
        feature = candidate;
    }
    changes.erase(0, feature.size() + 1);
    if (std::ranges::find(known, feature) == known.end()) {
      return UnknownInTarget(text, absl::StrCat("\"", feature, "\" is not a feature of ", target.arch),
                             absl::StrCat("known are ", absl::StrJoin(known, ", ")));
    }
    if (add) {
      target.features.insert(feature);
    } else {
      target.features.erase(feature);
    }
  }
  if (target.arch == "x86_64" && !(target.has("avx2") && target.has("fma") && target.has("f16c"))) {
    return UnknownInTarget(text, "it lacks avx2, fma or f16c", "the oldest x86-64 supported is cpu:x86-64-v3");
  }
  if (target.arch == "aarch64" && !target.has("neon")) {
    return UnknownInTarget(text, "it lacks neon", "the oldest AArch64 supported is cpu:generic");
  }
  if (target.arch == "riscv64" && !(target.has("v") && target.has("zfhmin"))) {
    return UnknownInTarget(text, "it lacks v or zfhmin", "the oldest RISC-V supported is cpu:generic-rv64");
  }
  for (size_t i = 1; i < parts.size(); ++i) HONE_RETURN_IF_ERROR(SetFact(text, parts[i], &target));
  Complete(&target, *cpu);
  return target;
}

Target HostTarget() {
  static const Target target = FromHost(ProbeHost());
  return target;
}

std::string DeviceClass(const Target& target) {
  const char* const arm = target.has("sve2") ? "sve2" : target.has("sve") ? "sve" : "neon";
  const char* const riscv = target.has("zvl256b") ? "rvv256" : "rvv128";
  const char* const simd = target.arch == "aarch64"                           ? arm
                           : target.arch == "riscv64"                         ? riscv
                           : target.vector_bits < 512                         ? "avx2"
                           : target.has("amx-tile") && target.has("amx-int8") ? "amx"
                           : target.has("avx512bf16")                         ? "avx512bf16"
                           : target.has("avx512vnni")                         ? "avx512vnni"
                                                                              : "avx512";
  std::string key = absl::StrCat(target.arch, "-", target.cpu, "-", simd, "-c", target.cores, "-l1d",
                                 SizeText(target.l1d), "-l2.", SizeText(target.l2));
  if (target.l3 != 0) absl::StrAppend(&key, "-l3.", SizeText(target.l3));
  return key;
}

int Target::masked_bits() const {
  if (has("avx512bw") || has("sve") || has("v")) return 8;
  return has("avx2") ? 32 : 0;
}

std::string MissingFeatures(const Target& want, const Target& have) {
  if (want.arch != have.arch) return want.arch;
  std::vector<std::string> missing;
  std::ranges::set_difference(want.features, have.features, std::back_inserter(missing));
  return absl::StrJoin(missing, ", ");
}

}  // namespace hone
