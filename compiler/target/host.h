// Facts of the machine this process runs on.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace hone {

struct HostFacts {
  std::string cpu;                  // a name of cpu_table.h, the nearest that this machine can run
  std::set<std::string> features;   // of KnownFeatures, those the CPU has and the system lets us use
  int64_t l1d = 0, l2 = 0, l3 = 0;  // bytes; 0 when /sys does not say
  int cores = 1;                    // this process may run on
};
HostFacts ProbeHost();

}  // namespace hone
