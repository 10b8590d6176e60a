#include "compiler/package/pack_constants.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/link_image.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/image.h"

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

}  // namespace

absl::Status PackConstants(std::span<const PackagedKernel> kernels, std::span<const ConstantToPack> constants,
                           const BundleOptions& options, const TakePacked& take) {
  std::map<int, Source> sources;
  for (const ConstantToPack& constant : constants) {
    if (sources.count(constant.kernel) != 0) continue;
    HONE_ASSIGN_OR_RETURN(sources[constant.kernel], SourceOf(kernels[static_cast<size_t>(constant.kernel)], options));
  }
  if (!constants.empty() && options.run_prepare == nullptr) {
    return absl::FailedPreconditionError("constants are to be packed, and nothing was given to run prepare kernels");
  }
  InOrder in_order;
  ParallelFor(constants.size(), options.pack_threads, [&](size_t i) {
    absl::StatusOr<std::string> packed = absl::UnknownError("not packed");
    if (in_order.status().ok()) {
      const ConstantToPack& constant = constants[i];
      const Source& source = sources.at(constant.kernel);
      const PreparedConstant& prepared = source.prepared[static_cast<size_t>(constant.prepared)];
      const KernelSet& set = kernels[static_cast<size_t>(constant.kernel)].kernel.set;
      packed = options.run_prepare(
          {source.image, prepared, set.params[static_cast<size_t>(prepared.param)], constant.original});
    }
    in_order.Run(i, [&] { return packed.ok() ? take(i, *packed) : packed.status(); });
  });
  return in_order.status();
}

}  // namespace hone
