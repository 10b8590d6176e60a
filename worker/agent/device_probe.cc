#include "worker/agent/device_probe.h"

#include <sys/utsname.h>

#include "worker/probe/machine_probe.h"

namespace hone {

v1::DeviceProfile ProbeDevice(const Target& target, int threads) {
  ProbeOptions options = kThoroughProbe;
  options.threads = threads;
  const MachineProbe probe = ProbeMachine(target, options);
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
  utsname system{};
  if (::uname(&system) == 0) (*profile.mutable_facts())["kernel"] = system.release;
  return profile;
}

}  // namespace hone
