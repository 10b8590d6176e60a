// The steps of a bundle on a device (bundle.h): constants and the arena are in the device's memory, of the host's only
// inputs and outputs are seen.
#pragma once

#include <memory>
#include <vector>

#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/devices/device.h"

namespace hone {

class DeviceSteps {
 public:
  // Opens the device (OpenDevice), compiles the kernels, allocates all memory and copies the constants. kUnsupported
  // where there is no such device, or it refuses a kernel. `bundle` outlives the result.
  static RuntimeResult<std::unique_ptr<DeviceSteps>> Create(const Bundle& bundle);

  // `data`: where in the host's memory each tensor is that is an input or output. With `step_us` what
  // every step took by the device's clock is written there, in microseconds. kKernelFailed names the step; the device
  // may be lost then.
  RuntimeError Run(const std::vector<char*>& data, std::vector<double>* step_us);

 private:
  explicit DeviceSteps(const Bundle& bundle) : bundle_(bundle) {}
  RuntimeError Allocate();
  RuntimeError StartStep(size_t step);
  RuntimeError StartSteps(bool with_laps);
  RuntimeError StartCopies();
  RuntimeError StartAll();
  RuntimeError StartTimed(std::vector<double>* step_us);

  const Bundle& bundle_;
  std::unique_ptr<Device> device_;
  std::vector<size_t> buffer_of_tensor_;               // the device's numbers
  std::vector<std::vector<Device::Launch>> launches_;  // of each step
  // Steps and copies are handed over one by one in the first run, which loads the kernels. The second one has the
  // device keep them as one sequence where it can.
  enum class Handed { kFirst, kSecond, kOneByOne, kAtOnce } handed_ = Handed::kFirst;
};

}  // namespace hone
