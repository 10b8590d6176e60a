#include "worker/builder/build.h"

#include <optional>
#include <string>
#include <utility>

#include "compiler/codegen/compile.h"
#include "compiler/codegen/device/device_kernel.h"
#include "compiler/codegen/link_image.h"
#include "compiler/ir/wire_numeric.h"
#include "compiler/oracle/oracle.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/target.h"
#include "deploy/runtime/image/kernel_set.h"
#include "worker/builder/read_request.h"

namespace hone {
namespace {

std::string BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, value >>= 8) bytes[static_cast<size_t>(i)] = static_cast<char>(value);
  return bytes;
}

absl::StatusOr<CompiledKernel> CompileForHost(const v1::BuildRequest& request) {
  HONE_ASSIGN_OR_RETURN(const PrimFunc workload, ReadWorkload(request));
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.target()));
  CompileOptions options;
  options.symbol = request.symbol();
  options.numeric = FromWire(request.numeric());
  options.threads = request.threads();
  if (request.what_case() == v1::BuildRequest::kOracle) {
    HONE_ASSIGN_OR_RETURN(const PrimFunc oracle, MakeOracle(workload));
    return CompilePlain(oracle, target, options);
  }
  HONE_ASSIGN_OR_RETURN(const ScheduledProgram program, ReadCandidate(request, workload));
  return CompileKernel(program, target, options);
}

absl::StatusOr<CompiledKernel> CompileForDevice(const v1::BuildRequest& request, const GpuTarget& target) {
  HONE_ASSIGN_OR_RETURN(const PrimFunc workload, ReadWorkload(request));
  HONE_ASSIGN_OR_RETURN(const ScheduledProgram program, ReadCandidate(request, workload));
  return CompileDeviceKernel(program, target, request.symbol());
}

absl::Status Fill(const v1::BuildRequest& request, v1::BuildReply* reply) {
  // What a device runs; the oracle of its tasks is the host's.
  std::optional<GpuTarget> gpu;
  if (request.what_case() != v1::BuildRequest::kOracle && NamesGpu(request.target())) {
    HONE_ASSIGN_OR_RETURN(gpu, ParseGpuTarget(request.target()));
  }
  reply->set_generator(gpu ? DeviceGeneratorFingerprint(*gpu) : GeneratorFingerprint());
  if (request.what_case() == v1::BuildRequest::kGenerator) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(CompiledKernel kernel, gpu ? CompileForDevice(request, *gpu) : CompileForHost(request));
  if (gpu) {
    reply->set_image(kernel.object);  // as the device's driver takes it
  } else {
    HONE_ASSIGN_OR_RETURN(std::string image, LinkImage(std::span<const std::string>(&kernel.object, 1)));
    reply->set_image(std::move(image));
  }
  reply->set_kernel_set(Serialize(kernel.set));
  reply->set_object_digest(Sha256(kernel.object));
  if (!request.image_only()) reply->set_object(std::move(kernel.object));
  reply->set_program_hash(BigEndian(kernel.program_hash));
  for (std::string& loop : kernel.serial_loops) reply->add_serial_loops(std::move(loop));
  return absl::OkStatus();
}

}  // namespace

v1::BuildReply Build(const v1::BuildRequest& request) {
  const Clock::time_point start = Clock::now();
  v1::BuildReply reply;
  reply.set_id(request.id());
  if (const absl::Status status = Fill(request, &reply); !status.ok()) reply.set_error(std::string(status.message()));
  reply.set_seconds(SecondsSince(start));
  return reply;
}

}  // namespace hone
