#include "deploy/runtime/run/invoke.h"

#include <algorithm>
#include <string>

namespace hone {

int32_t CallKernel(const KernelCall& call, ThreadPool& pool) {
  HoneCall abi{};
  abi.tensors = call.tensors.data();
  abi.dims = call.dims.data();
  abi.scratch = call.scratch;
  abi.thread_scratch = call.thread_scratch;
  abi.thread_scratch_stride = call.thread_scratch_stride;
  abi.num_threads = pool.threads();
  const bool by_pool = call.parallel_for.run == nullptr;
  abi.parallel_for = by_pool ? &ThreadPool::ParallelFor : call.parallel_for.run;
  abi.pool = by_pool ? &pool : call.parallel_for.pool;
  return call.fn(&abi);
}

namespace {

RuntimeError Invalid(const std::string& what) { return {RuntimeCode::kInvalidArgument, "kernel set: " + what}; }

// What one area of scratch may take at most: larger numbers are nonsense, and sums of them must not overflow.
constexpr int64_t kMaxScratch = int64_t{1} << 40;

RuntimeError CheckSet(const KernelSet& set) {
  const int params = static_cast<int>(set.params.size());
  if (set.num_outputs < 0 || set.num_outputs > params) return Invalid(std::to_string(set.num_outputs) + " outputs");
  for (const PreparedConstant& prepared : set.prepared) {
    if (prepared.param < 0 || prepared.param >= params)
      return Invalid("no parameter " + std::to_string(prepared.param));
    if (prepared.packed.bytes < 0 || prepared.packed.bytes > kMaxScratch) return Invalid("packed size out of range");
  }
  const auto fits = [](int64_t bytes) { return bytes >= 0 && bytes <= kMaxScratch; };
  bool scratch_fits = fits(set.scratch_bytes) && fits(set.thread_scratch_bytes);
  for (const PreparedConstant& p : set.prepared) scratch_fits &= fits(p.scratch_bytes) && fits(p.thread_scratch_bytes);
  return scratch_fits ? RuntimeError() : Invalid("scratch size out of range");
}

}  // namespace

RuntimeResult<Invocation> Invocation::Create(const Image& image, const KernelSet& set, ThreadPool& pool) {
  if (RuntimeError error = CheckSet(set)) return error;
  Invocation result;
  result.set_ = set;
  result.pool_ = &pool;
  result.main_ = image.Find(set.symbol);
  if (result.main_ == nullptr) return Invalid("the image has no symbol `" + set.symbol + "`");
  int64_t scratch = set.scratch_bytes, thread_scratch = set.thread_scratch_bytes;
  for (const PreparedConstant& prepared : set.prepared) {
    result.prepare_.push_back(image.Find(prepared.symbol));
    if (result.prepare_.back() == nullptr) return Invalid("the image has no symbol `" + prepared.symbol + "`");
    result.packed_.emplace_back(prepared.packed.bytes);
    scratch = std::max(scratch, prepared.scratch_bytes);
    thread_scratch = std::max(thread_scratch, prepared.thread_scratch_bytes);
  }
  result.thread_scratch_stride_ = static_cast<int64_t>(AlignUp(thread_scratch));
  result.scratch_ = AlignedBuffer(scratch);
  result.thread_scratch_ = AlignedBuffer(result.thread_scratch_stride_ * pool.threads());
  bool allocated = result.scratch_.data() != nullptr && result.thread_scratch_.data() != nullptr;
  for (const AlignedBuffer& packed : result.packed_) allocated &= packed.data() != nullptr;
  if (!allocated) return RuntimeError(RuntimeCode::kOutOfMemory, "no memory for the scratch of `" + set.symbol + "`");
  result.tensors_.resize(set.params.size());
  return result;
}

RuntimeError Invocation::Prepare(std::span<void* const> tensors) {
  for (size_t i = 0; i < prepare_.size(); ++i) {
    void* const args[] = {tensors[set_.prepared[i].param], packed_[i].data()};
    const int32_t code =
        CallKernel({prepare_[i], args, scratch_.data(), thread_scratch_.data(), thread_scratch_stride_}, *pool_);
    if (code != 0) {
      return {RuntimeCode::kKernelFailed, "kernel `" + set_.prepared[i].symbol + "` returned " + std::to_string(code)};
    }
  }
  return {};
}

void Invocation::Bind(std::span<void* const> tensors) {
  std::copy(tensors.begin(), tensors.end(), tensors_.begin());
  for (size_t i = 0; i < packed_.size(); ++i) tensors_[set_.prepared[i].param] = packed_[i].data();
}

std::span<const char> Invocation::operand(int param) const {
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (set_.prepared[i].param == param) return {packed_[i].data(), packed_[i].size()};
  }
  return {static_cast<const char*>(tensors_[param]), static_cast<size_t>(set_.params[param].bytes)};
}

int32_t Invocation::Run() {
  return CallKernel({main_, tensors_, scratch_.data(), thread_scratch_.data(), thread_scratch_stride_, sizes_}, *pool_);
}

}  // namespace hone
