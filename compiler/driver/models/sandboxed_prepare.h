// Prepare kernels run where candidates run: in a process of their own that is locked in (worker/runner/sandbox.h). A
// kernel is made from a trace, and a trace may come from an untrusted source.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "compiler/package/bundle_writer.h"

namespace hone {

// A StartPacker of BundleOptions. NotFound when there is no hone-runner beside this program; Internal when the kernel
// crashes, hangs or does not return 0, and the message says which; ResourceExhausted.
absl::StatusOr<std::unique_ptr<ConstantPacker>> StartSandboxedPacker(const PrepareKernel& kernel);

}  // namespace hone
