#include "compiler/package/link_kernels.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/link_image.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/image/image.h"

namespace hone {
namespace {

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
    if (!parts.ok()) return absl::InternalError(parts.error().message());  // we made it
    for (const absl::string_view feature : absl::StrSplit(parts->features, ',', absl::SkipEmpty())) {
      features.emplace(feature);
    }
    linked.images.push_back(std::move(image));
  }
  linked.features = absl::StrJoin(features, ",");
  return linked;
}

LinkedKernels SourcesOf(std::span<const PackagedKernel> kernels) {
  LinkedKernels linked;
  for (const PackagedKernel& kernel : kernels) {
    linked.image_of.push_back(static_cast<int>(linked.images.size()));
    linked.images.push_back(kernel.kernel.object);
  }
  return linked;
}

}  // namespace hone
