#include "worker/probe/gpu_probe.h"

#include <algorithm>
#include <memory>

#include "compiler/support/status_macros.h"
#include "deploy/runtime/clock.h"

namespace hone {
namespace {

constexpr int64_t kCopied = int64_t{64} << 20;  // bytes: more than caches hold
constexpr int kCopies = 6;
// Of a processor in a cycle: two multiply-adds of the widest vectors that CPUs have, or those of 256 lanes.
constexpr double kMostOfCore = 64, kMostOfProcessor = 512;
constexpr int64_t kLanesOfGpus = 32;
constexpr int64_t kMostBandwidth = 1000000;

absl::Status FromRuntime(const RuntimeError& error) {
  const bool absent = error.code() == RuntimeCode::kUnsupported || error.code() == RuntimeCode::kNotFound;
  return absent ? absl::FailedPreconditionError(error.message()) : absl::InternalError(error.message());
}

absl::StatusOr<std::unique_ptr<Device>> Open(const GpuTarget& kind) {
  RuntimeResult<std::unique_ptr<Device>> device = OpenDevice(kind.text);
  if (!device.ok()) return FromRuntime(device.error());
  return *std::move(device);
}

// The best of several copies, in 10^9 bytes read and written a second.
absl::StatusOr<double> Bandwidth(Device& device) {
  const int64_t bytes[] = {kCopied, kCopied};
  if (RuntimeError error = device.Allocate(bytes)) return FromRuntime(error);
  double best = 0;
  for (int i = 0; i < kCopies; ++i) {
    const double start = NowUs();
    RuntimeError error = device.Copy(0, 1, kCopied);
    if (error.ok()) error = device.Finish();
    if (error) return FromRuntime(error);
    best = std::max(best, 2e-3 * static_cast<double>(kCopied) / (NowUs() - start));
  }
  return best;
}

}  // namespace

GpuTarget WithFacts(GpuTarget kind, const DeviceFacts& facts) {
  kind.device = ToDeviceName(facts.name);
  if (!facts.is_cpu) kind.lanes = facts.lanes > 0 ? facts.lanes : std::max(kind.lanes, kLanesOfGpus);
  if (facts.compute_units > 0) kind.processors = facts.compute_units;
  if (facts.most_threads > 0) kind.threads = std::min<int64_t>(facts.most_threads, 1 << 16);
  if (facts.resident_threads > 0) kind.resident_threads = facts.resident_threads;
  kind.resident_threads = std::max(kind.resident_threads, kind.threads);
  if (facts.registers > 0) kind.registers = facts.registers;
  if (facts.local_bytes > 0) kind.shared = facts.local_bytes;
  if (facts.resident_local_bytes > 0) kind.resident_shared = facts.resident_local_bytes;
  kind.resident_shared = std::max(kind.resident_shared, kind.shared);
  if (facts.cache_bytes > 0) kind.l2 = facts.cache_bytes;
  if (facts.clock_mhz > 0) kind.mhz = facts.clock_mhz;
  return kind;
}

absl::StatusOr<GpuTarget> DeviceHere(const GpuTarget& kind) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Open(kind));
  return WithText(WithFacts(kind, device->facts()));
}

absl::StatusOr<GpuProbe> ProbeGpu(const GpuTarget& kind) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Open(kind));
  const DeviceFacts& facts = device->facts();
  GpuProbe probe{.target = WithFacts(kind, facts)};
  HONE_ASSIGN_OR_RETURN(const double gbps, Bandwidth(*device));
  probe.target.bandwidth = std::clamp<int64_t>(static_cast<int64_t>(gbps), 1, kMostBandwidth);
  probe.target = WithText(std::move(probe.target));
  probe.version = facts.version;
  probe.vendor = facts.vendor;
  probe.cache_bytes = facts.cache_bytes;
  probe.most_gflops = static_cast<double>(probe.target.processors) * static_cast<double>(probe.target.mhz) * 1e-3 *
                      (facts.is_cpu ? kMostOfCore : kMostOfProcessor);
  return probe;
}

}  // namespace hone
