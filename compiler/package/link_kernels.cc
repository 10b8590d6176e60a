#include "compiler/package/link_kernels.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/link_image.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/aligned_buffer.h"
#include "deploy/runtime/invoke.h"

namespace hone {
namespace {

absl::Status ToStatus(const RuntimeError& error) {
  switch (error.code()) {
    case RuntimeCode::kOk: return absl::OkStatus();
    case RuntimeCode::kInvalidArgument: return absl::InvalidArgumentError(error.message());
    case RuntimeCode::kNotFound: return absl::NotFoundError(error.message());
    case RuntimeCode::kCorrupt: return absl::DataLossError(error.message());
    case RuntimeCode::kUnsupported: return absl::FailedPreconditionError(error.message());
    case RuntimeCode::kOutOfMemory: return absl::ResourceExhaustedError(error.message());
    case RuntimeCode::kKernelFailed:
    case RuntimeCode::kInternal: return absl::InternalError(error.message());
  }
  return absl::InternalError(error.message());
}

std::vector<std::string> SymbolsOf(const KernelSet& set) {
  std::vector<std::string> symbols = {set.symbol};
  for (const PreparedConstant& prepared : set.prepared) symbols.push_back(prepared.symbol);
  return symbols;
}

}  // namespace

absl::StatusOr<LinkedKernels> LinkKernels(std::span<const PackagedKernel> kernels) {
  struct Group {
    std::vector<std::string> objects;
    std::set<std::string> symbols;
  };
  std::vector<Group> groups;
  LinkedKernels linked;
  for (const PackagedKernel& kernel : kernels) {
    const std::vector<std::string> symbols = SymbolsOf(kernel.kernel.set);
    const auto taken = [&](const Group& group) {
      return std::any_of(symbols.begin(), symbols.end(),
                         [&](const std::string& s) { return group.symbols.count(s) != 0; });
    };
    size_t at = 0;
    while (at < groups.size() && taken(groups[at])) ++at;
    if (at == groups.size()) groups.emplace_back();
    groups[at].objects.push_back(kernel.kernel.object);
    groups[at].symbols.insert(symbols.begin(), symbols.end());
    linked.image_of.push_back(static_cast<int>(at));
  }
  std::set<std::string> features;
  for (const Group& group : groups) {
    HONE_ASSIGN_OR_RETURN(std::string image, LinkImage(group.objects));
    const RuntimeResult<ImageParts> parts = ReadImage(image);
    if (!parts.ok()) return ToStatus(parts.error());
    for (const absl::string_view feature : absl::StrSplit(parts->features, ',', absl::SkipEmpty())) {
      features.emplace(feature);
    }
    linked.images.push_back(std::move(image));
  }
  linked.features = absl::StrJoin(features, ",");
  return linked;
}

absl::StatusOr<ConstantPacker> ConstantPacker::Create(std::span<const PackagedKernel> kernels,
                                                      const LinkedKernels& linked, const BundleOptions& options) {
  ConstantPacker packer;
  RuntimeResult<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(options.pack_threads);
  if (!pool.ok()) return ToStatus(pool.error());
  packer.pool_ = *std::move(pool);

  RuntimeError refused;
  for (const std::string& bytes : linked.images) {
    RuntimeResult<Image> image = Image::Load(bytes);
    if (!image.ok()) {
      refused = image.error();
      break;
    }
    packer.images_.push_back(*std::move(image));
  }
  if (refused && refused.code() != RuntimeCode::kUnsupported) return ToStatus(refused);
  if (!refused) {
    for (size_t i = 0; i < kernels.size(); ++i)
      packer.sources_.push_back({linked.image_of[i], kernels[i].kernel.set.prepared});
    return packer;
  }

  // Another machine's code: its prepare functions, compiled for this one.
  packer.images_.clear();
  const Target host = HostTarget();
  for (const PackagedKernel& kernel : kernels) {
    Source source{static_cast<int>(packer.images_.size()), kernel.kernel.set.prepared};
    if (!source.prepared.empty()) {
      if (!kernel.program.has_value()) {
        return absl::FailedPreconditionError(
            absl::StrCat("the constants of `", kernel.kernel.set.symbol,
                         "` cannot be packed on this machine, and its program is not at hand: ", refused.message()));
      }
      HONE_ASSIGN_OR_RETURN(const CompiledKernel built,
                            CompileKernel(*kernel.program, host, {.numeric = options.numeric, .threads = 1}));
      if (built.set.prepared.size() != source.prepared.size()) {
        return absl::InternalError(
            absl::StrCat("`", kernel.kernel.set.symbol, "` was not made from the program that came with it"));
      }
      source.prepared = built.set.prepared;
      HONE_ASSIGN_OR_RETURN(const std::string bytes, LinkImage(std::span(&built.object, 1)));
      RuntimeResult<Image> image = Image::Load(bytes);
      if (!image.ok()) return ToStatus(image.error());
      packer.images_.push_back(*std::move(image));
    }
    packer.sources_.push_back(std::move(source));
  }
  return packer;
}

absl::StatusOr<std::string> ConstantPacker::Pack(int kernel, int prepared, std::span<const char> original) {
  const Source& source = sources_[kernel];
  const PreparedConstant& constant = source.prepared[prepared];
  const HoneKernelFn fn = images_[source.image].Find(constant.symbol);
  if (fn == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("the object has no symbol `", constant.symbol, "`"));
  const size_t stride = AlignUp(static_cast<size_t>(constant.thread_scratch_bytes));
  const AlignedBuffer packed(constant.packed.bytes), scratch(constant.scratch_bytes),
      thread_scratch(stride * pool_->threads());
  AlignedBuffer copy;  // kernels want 64-byte alignment
  const char* data = original.data();
  if (reinterpret_cast<uintptr_t>(data) % kTensorAlignment != 0) {
    copy = AlignedBuffer(original.size());
    if (copy.data() != nullptr) std::memcpy(copy.data(), data, original.size());
    data = copy.data();
  }
  if (data == nullptr || packed.data() == nullptr || scratch.data() == nullptr || thread_scratch.data() == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory to pack a constant of ", original.size(), " bytes"));
  }
  std::memset(packed.data(), 0, packed.size());  // what lies between is the same in every bundle
  void* const tensors[] = {const_cast<char*>(data), packed.data()};
  const int32_t code =
      CallKernel({fn, tensors, scratch.data(), thread_scratch.data(), static_cast<int64_t>(stride)}, *pool_);
  if (code != 0) return absl::InternalError(absl::StrCat("prepare kernel `", constant.symbol, "` returned ", code));
  return std::string(packed.data(), packed.size());
}

}  // namespace hone
