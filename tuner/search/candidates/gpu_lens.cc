#include "tuner/search/candidates/gpu_lens.h"

#include <algorithm>
#include <array>
#include <vector>

#include "compiler/lower/threads/device_program.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr double kOperations = 128, kLatency = 4;   // multiply-adds of a processor in a cycle, cycles until one is done
constexpr double kNearBytes = 128, kFarBytes = 64;  // in a cycle, from shared memory and from the second cache
constexpr double kLaunchUs = 3;

Stmt Around(Stmt body, const std::array<Var, 3>& index, const Extents& extents, ForKind kind) {
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (extents[axis] == 1) continue;
    For loop;
    loop.var = index[axis];
    loop.min = IntConst(0, loop.var.type());
    loop.extent = IntConst(extents[axis], loop.var.type());
    loop.kind = kind;
    loop.body = std::move(body);
    body = Stmt::Make(std::move(loop));
  }
  return body;
}

}  // namespace

absl::StatusOr<LoweredFunc> LowerToLoops(const PrimFunc& scheduled, const GpuTarget& target) {
  HONE_ASSIGN_OR_RETURN(const DeviceProgram program, LowerToDevice(scheduled, {.vector_bits = target.vector_bits,
                                                                               .shared_apart = target.shared_apart}));
  std::vector<Stmt> nests;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    const DeviceKernel& kernel = program.kernels[i];
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    HONE_RETURN_IF_ERROR(CheckBlock(target, launch.kernel, threads, launch.shared_bytes));
    Stmt body = kernel.body;
    for (const DeviceKernel::Shared& shared : kernel.shared) body = Stmt::Make(Alloc{shared.buffer, std::move(body)});
    body = Around(std::move(body), kernel.thread_index, launch.block, ForKind::kSerial);
    nests.push_back(Around(std::move(body), kernel.block_index, launch.grid, ForKind::kParallel));
  }
  LoweredFunc lowered;
  lowered.func = scheduled;
  lowered.func.body = MakeSeq(std::move(nests));
  return lowered;
}

std::pair<Target, Machine> AsCpu(const GpuTarget& target) {
  Target cpu;
  cpu.text = target.text;
  cpu.vector_bits = 32;
  cpu.vector_registers = 255;
  cpu.l1d = target.resident_shared;
  cpu.l2 = std::max<int64_t>(1, target.l2 / target.processors);
  cpu.l3 = target.l2;
  cpu.cores = static_cast<int>(target.processors);
  Machine machine;
  machine.ghz = static_cast<double>(target.mhz) * 1e-3;
  machine.fma128 = machine.fma256 = machine.fma512 = kOperations;
  machine.fma_latency = kLatency;
  machine.l1 = kNearBytes;
  machine.l2 = machine.l3 = kFarBytes;
  machine.memory_all = static_cast<double>(target.bandwidth) / machine.ghz;
  machine.memory = machine.memory_all / static_cast<double>(target.processors);
  machine.l3_all = kFarBytes * static_cast<double>(target.processors);
  machine.fork_us = kLaunchUs;
  return {cpu, machine};
}

}  // namespace hone
