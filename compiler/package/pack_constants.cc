#include "compiler/package/pack_constants.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/link_image.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/image/image.h"

namespace hone {
namespace {

// Where a kernel's prepare functions are found, for this machine.
struct Source {
  std::string image;
  std::vector<PreparedConstant> prepared;
};

absl::StatusOr<Source> SourceOf(const PackagedKernel& kernel, const BundleOptions& options) {
  Source source;
  source.prepared = kernel.kernel.set.prepared;
  HONE_ASSIGN_OR_RETURN(source.image, LinkImage(std::span(&kernel.kernel.object, 1)));
  const RuntimeError refused = CheckImage(source.image);
  if (!refused) return source;
  const std::string& symbol = kernel.kernel.set.symbol;
  if (refused.code() != RuntimeCode::kUnsupported) {
    return absl::InternalError(absl::StrCat("`", symbol, "`: ", refused.message()));
  }
  if (!kernel.program.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the constants of `", symbol,
                     "` cannot be packed on this machine, and its program is not at hand: ", refused.message()));
  }
  HONE_ASSIGN_OR_RETURN(const CompiledKernel built,
                        CompileKernel(*kernel.program, HostTarget(), {.numeric = options.numeric, .threads = 1}));
  if (built.set.prepared.size() != source.prepared.size()) {
    return absl::InternalError(absl::StrCat("`", symbol, "` was not made from the program that came with it"));
  }
  source.prepared = built.set.prepared;
  HONE_ASSIGN_OR_RETURN(source.image, LinkImage(std::span(&built.object, 1)));
  return source;
}

// Lets threads in one after the other, in the order of their numbers, until one of them fails.
class InOrder {
 public:
  void Run(size_t index, const std::function<absl::Status()>& work) {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return next_ == index; });
    if (status_.ok()) status_ = work();
    ++next_;
    turn_.notify_all();
  }
  absl::Status status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  size_t next_ = 0;
  absl::Status status_;
};

// The packers of one prepare kernel that wait for a constant, each of the thread that started it: its process ends with
// that thread (child_process.h).
class IdlePackers {
 public:
  void Expect() { ++expected_; }  // a constant; all of them before the first is packed
  int expected() const { return expected_; }

  // For one of the constants that are expected; nullptr: none of this thread waits. After the last constant none is
  // kept.
  std::unique_ptr<ConstantPacker> Take() {
    Waiting ended;  // without the lock
    const std::lock_guard lock(mutex_);
    std::unique_ptr<ConstantPacker> taken;
    if (const auto own = waiting_.find(std::this_thread::get_id()); own != waiting_.end()) {
      taken = std::move(own->second);
      waiting_.erase(own);
    }
    if (++begun_ == expected_) ended.swap(waiting_);
    return taken;
  }

  void GiveBack(std::unique_ptr<ConstantPacker> packer) {
    const std::lock_guard lock(mutex_);
    if (begun_ < expected_) waiting_[std::this_thread::get_id()] = std::move(packer);
  }

 private:
  using Waiting = std::map<std::thread::id, std::unique_ptr<ConstantPacker>>;
  std::mutex mutex_;
  int expected_ = 0, begun_ = 0;
  Waiting waiting_;
};

}  // namespace

absl::Status PackConstants(std::span<const PackagedKernel> kernels, std::span<const ConstantToPack> constants,
                           const BundleOptions& options, const TakePacked& take) {
  std::map<int, Source> sources;
  std::map<std::pair<int, int>, IdlePackers> packers;
  for (const ConstantToPack& constant : constants) {
    packers[{constant.kernel, constant.prepared}].Expect();
    if (sources.count(constant.kernel) != 0) continue;
    HONE_ASSIGN_OR_RETURN(sources[constant.kernel], SourceOf(kernels[static_cast<size_t>(constant.kernel)], options));
  }
  if (!constants.empty() && options.start_packer == nullptr) {
    return absl::FailedPreconditionError("constants are to be packed, and nothing was given to run prepare kernels");
  }
  const auto start = [&](const ConstantToPack& constant, int count) {
    const Source& source = sources.at(constant.kernel);
    const PreparedConstant& prepared = source.prepared[static_cast<size_t>(constant.prepared)];
    const KernelSet& set = kernels[static_cast<size_t>(constant.kernel)].kernel.set;
    return options.start_packer({source.image, prepared, set.params[static_cast<size_t>(prepared.param)], count});
  };
  InOrder in_order;
  ParallelFor(constants.size(), options.pack_threads, [&](size_t i) {
    const ConstantToPack& constant = constants[i];
    IdlePackers& idle = packers.at({constant.kernel, constant.prepared});
    absl::StatusOr<std::unique_ptr<ConstantPacker>> packer = idle.Take();
    absl::StatusOr<std::string_view> packed = absl::UnknownError("not packed");
    if (in_order.status().ok()) {
      if (*packer == nullptr) packer = start(constant, idle.expected());
      packed = packer.ok() ? (*packer)->Pack(constant.original) : packer.status();
    }
    in_order.Run(i, [&] { return packed.ok() ? take(i, *packed) : packed.status(); });
    if (packed.ok()) idle.GiveBack(*std::move(packer));
  });
  return in_order.status();
}

}  // namespace hone
