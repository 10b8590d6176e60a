#include "compiler/target/gpu_target.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/target_text.h"

namespace hone {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;

// CUDA C++ Programming Guide 13, table "Technical Specifications per Compute Capability"; NVIDIA's data sheets of the
// A100 80 GB SXM and the H100 SXM5. Clocks are those under load, below what the sheets call boost.
const GpuTarget kGpus[] = {
    {.language = "cuda",
     .arch = "sm_80",
     .lanes = 32,
     .processors = 108,
     .threads = 1024,
     .resident_threads = 2048,
     .registers = 65536,
     .shared = 163 * kKiB,
     .resident_shared = 164 * kKiB,
     .l2 = 40 * kMiB,
     .mhz = 1410,
     .bandwidth = 2039},
    {.language = "cuda",
     .arch = "sm_90a",
     .lanes = 32,
     .processors = 132,
     .threads = 1024,
     .resident_threads = 2048,
     .registers = 65536,
     .shared = 227 * kKiB,
     .resident_shared = 228 * kKiB,
     .l2 = 50 * kMiB,
     .mhz = 1755,
     .bandwidth = 3352},
    {.language = "opencl", .arch = "generic"},
};

// The facts that a text may state, in the order in which it does.
struct Fact {
  std::string_view name;
  int64_t GpuTarget::*value;
  bool bytes = false;  // 48K, 2M
  int64_t most = int64_t{1} << 40;
};
constexpr Fact kFacts[] = {
    {"lanes", &GpuTarget::lanes, false, 1024},
    {"processors", &GpuTarget::processors, false, 1 << 16},
    {"threads", &GpuTarget::threads, false, 1 << 16},
    {"resident_threads", &GpuTarget::resident_threads, false, 1 << 20},
    {"registers", &GpuTarget::registers, false, 1 << 24},
    {"shared", &GpuTarget::shared, true},
    {"resident_shared", &GpuTarget::resident_shared, true},
    {"l2", &GpuTarget::l2, true},
    {"mhz", &GpuTarget::mhz, false, 100000},
    {"bandwidth", &GpuTarget::bandwidth, false, 1000000},
};

constexpr std::string_view kDeviceFact = "device";
constexpr size_t kLongestName = 40;

std::string FactText(const Fact& fact, int64_t value) { return fact.bytes ? SizeText(value) : absl::StrCat(value); }

std::optional<int64_t> ParseFact(const Fact& fact, std::string text) {
  int64_t unit = 1, number = 0;
  if (fact.bytes && absl::EndsWith(text, "K")) unit = kKiB;
  if (fact.bytes && absl::EndsWith(text, "M")) unit = kMiB;
  if (unit != 1) text.pop_back();
  if (!absl::SimpleAtoi(text, &number) || number < 1 || number > fact.most / unit) return std::nullopt;
  return number * unit;
}

template <class Row, class Name>
std::string NamesOf(const Row& rows, const Name& name) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(name(row));
  return absl::StrJoin(names, ", ");
}

absl::Status SetFact(const std::string& text, const std::string& word, GpuTarget& target) {
  const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  if (parts[0] == kDeviceFact && parts.size() == 2 && !parts[1].empty() && parts[1] == ToDeviceName(parts[1])) {
    target.device = parts[1];
    return absl::OkStatus();
  }
  const auto* fact = std::ranges::find_if(kFacts, [&](const Fact& f) { return f.name == parts[0]; });
  const std::optional<int64_t> value =
      fact == std::end(kFacts) || parts.size() != 2 ? std::nullopt : ParseFact(*fact, parts[1]);
  if (!value.has_value()) {
    return UnknownInTarget(text, absl::StrCat("\"", word, "\" is not a fact"),
                           absl::StrCat("write NAME=NUMBER, from 1 on, with one of ",
                                        NamesOf(kFacts, [](const Fact& f) { return std::string(f.name); })));
  }
  target.*(fact->value) = *value;
  return absl::OkStatus();
}

// PTX ISA 8.5, sections 9.7.14.5 (mma.sync, of all types that tile intrinsics have), 9.7.14.5.15 and 9.7.8.24.
struct GpuFeature {
  std::string_view name;
  int64_t first;  // compute capability, times 10
  bool of_warps;  // of 32 lanes
};
constexpr GpuFeature kFeatures[] = {{"mma.sync", 80, true}, {"ldmatrix", 75, true}, {"cp.async", 80, false}};

// "sm_90a": 90; 0 for other languages.
int64_t Capability(const GpuTarget& target) {
  int64_t number = 0;
  const std::string digits = target.arch.substr(0, target.arch.find_last_of("0123456789") + 1);
  return target.language == "cuda" && absl::SimpleAtoi(absl::StripPrefix(digits, "sm_"), &number) ? number : 0;
}

std::string NameOf(const GpuTarget& target) { return absl::StrCat(target.language, ":", target.arch); }

}  // namespace

std::span<const GpuTarget> GpuTable() { return kGpus; }

bool NamesGpu(std::string_view text) {
  return std::ranges::any_of(kGpus, [&](const GpuTarget& gpu) { return text.starts_with(gpu.language + ":"); });
}

std::set<std::string> FeaturesOf(const GpuTarget& target) {
  std::set<std::string> features;
  const int64_t capability = Capability(target);
  for (const GpuFeature& feature : kFeatures) {
    if (capability >= feature.first && (!feature.of_warps || target.lanes == 32)) features.emplace(feature.name);
  }
  return features;
}

GpuTarget WithText(GpuTarget target) {
  target.text = NameOf(target);
  if (!target.device.empty()) absl::StrAppend(&target.text, ",", std::string(kDeviceFact), "=", target.device);
  for (const Fact& fact : kFacts)
    absl::StrAppend(&target.text, ",", std::string(fact.name), "=", FactText(fact, target.*(fact.value)));
  return target;
}

std::string ToDeviceName(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (text.size() >= kLongestName) break;
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      text += absl::ascii_tolower(static_cast<unsigned char>(c));
    } else if (!text.empty() && text.back() != '-') {
      text += '-';
    }
  }
  while (!text.empty() && text.back() == '-') text.pop_back();
  return text;
}

std::string DeviceClass(const GpuTarget& target) {
  return absl::StrCat(target.language, "-", target.arch, target.device.empty() ? "" : "-", target.device, "-p",
                      target.processors, "-t", target.threads, "-s", SizeText(target.shared));
}

absl::Status CheckBlock(const GpuTarget& target, std::string_view kernel, int64_t threads, int64_t shared_bytes) {
  if (threads <= target.threads && shared_bytes <= target.shared) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(std::string(kernel), " takes ", threads, " threads and ",
                                                    shared_bytes, " bytes of shared memory a block; ", target.text,
                                                    " has ", target.threads, " and ", target.shared));
}

absl::StatusOr<GpuTarget> ParseGpuTarget(std::string_view target_text) {
  const std::string text(target_text);
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  const auto* row = std::ranges::find_if(kGpus, [&](const GpuTarget& gpu) { return NameOf(gpu) == words[0]; });
  if (row == std::end(kGpus)) {
    return UnknownInTarget(text, absl::StrCat("\"", words[0], "\" names no known architecture of a GPU"),
                           absl::StrCat("known are ", NamesOf(kGpus, NameOf)));
  }
  GpuTarget target = *row;
  for (size_t i = 1; i < words.size(); ++i) HONE_RETURN_IF_ERROR(SetFact(text, words[i], target));
  return WithText(std::move(target));
}

}  // namespace hone
