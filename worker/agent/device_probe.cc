#include "worker/agent/device_probe.h"

#include <sys/utsname.h>

#include "compiler/support/status_macros.h"
#include "compiler/target/gpu_target.h"
#include "worker/probe/gpu_probe.h"
#include "worker/probe/machine_probe.h"

namespace hone {

namespace {

v1::DeviceProfile Profile(const Target& target, const MachineProbe& probe) {
  v1::DeviceProfile profile;
  profile.set_device_class(DeviceClass(target));
  profile.set_target(target.text);
  profile.set_cores(target.cores);
  profile.set_l1d_bytes(target.l1d);
  profile.set_l2_bytes(target.l2);
  profile.set_l3_bytes(target.l3);
  profile.set_vector_bits(target.vector_bits);
  profile.set_peak_gflops_1(probe.gflops_1);
  profile.set_peak_gflops_all(probe.gflops_all);
  for (const double gbps : probe.gbps_1) profile.add_moved_gbps_1(gbps);
  for (const double gbps : probe.gbps_all) profile.add_moved_gbps_all(gbps);
  profile.set_memory_gbps(probe.gbps_all[kMemory]);
  profile.set_machine(ToText(probe.machine));
  return profile;
}

}  // namespace

v1::DeviceProfile ProbeDevice(const Target& target, int threads) {
  ProbeOptions options = kThoroughProbe;
  options.threads = threads;
  v1::DeviceProfile profile = Profile(target, ProbeMachine(target, options));
  utsname system{};
  if (::uname(&system) == 0) (*profile.mutable_facts())["kernel"] = system.release;
  return profile;
}

absl::StatusOr<v1::DeviceProfile> ProbeGpuDevice(const std::string& target_text) {
  HONE_ASSIGN_OR_RETURN(const GpuTarget kind, ParseGpuTarget(target_text));
  HONE_ASSIGN_OR_RETURN(const GpuProbe probe, ProbeGpu(kind));
  v1::DeviceProfile profile;
  profile.set_device_class(DeviceClass(probe.target));
  profile.set_target(probe.target.text);
  profile.set_cores(1);  // tasks of it have one thread: that of the host
  profile.set_l3_bytes(probe.cache_bytes);
  profile.set_peak_gflops_1(probe.most_gflops);
  profile.set_peak_gflops_all(probe.most_gflops);
  const auto gbps = static_cast<double>(probe.target.bandwidth);
  for (const double rate : {0.0, 0.0, 0.0, gbps}) {  // of its caches nothing is known
    profile.add_moved_gbps_1(rate);
    profile.add_moved_gbps_all(rate);
  }
  profile.set_memory_gbps(gbps);
  (*profile.mutable_facts())["driver"] = probe.version;
  (*profile.mutable_facts())["vendor"] = probe.vendor;
  return profile;
}

v1::DeviceProfile UsualDevice(const Target& target, int threads) {
  MachineProbe usual;
  const Machine& m = usual.machine = UsualMachine(target);
  usual.gflops_1 = m.ghz * m.fma_per_cycle(target.vector_bits) * 2 * target.lanes();
  usual.gflops_all = usual.gflops_1 * threads;
  usual.gbps_1 = {m.ghz * m.l1, m.ghz * m.l2, m.ghz * m.l3, m.ghz * m.memory};
  usual.gbps_all = {usual.gbps_1[kL1] * threads, usual.gbps_1[kL2] * threads, m.ghz * m.l3_all, m.ghz * m.memory_all};
  return Profile(target, usual);
}

}  // namespace hone
