#include "deploy/runtime/bundle/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/bundle/signature.h"
#include "deploy/runtime/image/cpu_features.h"

namespace hone {
namespace {

const ArchiveMember* FindMember(const std::vector<ArchiveMember>& members, std::string_view name) {
  for (const ArchiveMember& member : members) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

// NAME, NAME1, NAME2 and so on.
std::vector<std::string_view> NumberedMembers(const std::vector<ArchiveMember>& members, const std::string& name) {
  std::vector<std::string_view> found;
  for (;;) {
    const ArchiveMember* member = FindMember(members, found.empty() ? name : name + std::to_string(found.size()));
    if (member == nullptr) return found;
    found.push_back(member->bytes);
  }
}

PortSizes SizesOf(const BundlePort& port, const std::vector<BundleSize>& sizes) {
  PortSizes result{.least = port.shape, .texts = std::vector<std::string>(port.shape.size())};
  std::vector<int64_t> least;
  for (const BundleSize& size : sizes) least.push_back(size.min);
  for (size_t d = 0; d < port.extents.size(); ++d) {
    const BundleExtent& extent = port.extents[d];
    result.least[d] = extent.At(least);
    const bool symbolic = std::ranges::any_of(extent.terms, [](const auto& term) { return !term.sizes.empty(); });
    if (symbolic) result.texts[d] = ToText(extent, sizes);
  }
  for (const std::string& text : result.texts) result.names.push_back(text.c_str());
  return result;
}

}  // namespace

RuntimeResult<std::shared_ptr<const Bundle>> Bundle::Open(const std::string& path, std::string_view public_key,
                                                          const Allocator& allocator) {
  const std::string name = "bundle `" + path + "`";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const RuntimeCode code = errno == ENOENT || errno == ENOTDIR ? RuntimeCode::kNotFound : RuntimeCode::kCorrupt;
    return RuntimeError(code, name + " cannot be opened: " + std::strerror(errno));
  }
  struct stat info;
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular || info.st_size == 0) {
    close(fd);
    return RuntimeError(RuntimeCode::kCorrupt, name + (regular ? " is empty" : " is not a file"));
  }
  const size_t bytes = static_cast<size_t>(info.st_size);
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (mapping == MAP_FAILED) return RuntimeError(RuntimeCode::kOutOfMemory, name + " cannot be mapped");
  std::shared_ptr<Bundle> bundle(new Bundle);
  RuntimeError error = bundle->Init({static_cast<const char*>(mapping), bytes}, public_key, allocator);
  munmap(mapping, bytes);
  if (error) return error.Annotate(name);
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

RuntimeResult<std::shared_ptr<const Bundle>> Bundle::FromMemory(std::string_view bytes, std::string_view public_key,
                                                                const Allocator& allocator) {
  if (bytes.empty()) return RuntimeError(RuntimeCode::kCorrupt, "bundle in memory: is empty");
  std::shared_ptr<Bundle> bundle(new Bundle);
  if (RuntimeError error = bundle->Init(bytes, public_key, allocator)) return error.Annotate("bundle in memory");
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

RuntimeError Bundle::Init(std::string_view file, std::string_view public_key, const Allocator& allocator) {
  const RuntimeResult<std::vector<ArchiveMember>> members = ReadArchive(file);
  if (!members.ok()) return members.error();
  if (!public_key.empty()) {
    if (RuntimeError error = CheckSignature(*members, public_key)) return error;
  }
  const ArchiveMember* manifest = FindMember(*members, "manifest.json");
  const ArchiveMember* graph = FindMember(*members, "graph.json");
  const ArchiveMember* params = FindMember(*members, "params");
  if (manifest == nullptr || graph == nullptr) {
    return {RuntimeCode::kCorrupt,
            std::string("has no member `") + (graph == nullptr ? "graph.json`" : "manifest.json`")};
  }
  manifest_ = manifest->bytes;
  if (params != nullptr) {
    if (RuntimeError error = Allocate(params->bytes.size(), "constants", allocator, &params_)) return error;
    std::memcpy(params_.data(), params->bytes.data(), params->bytes.size());
  }
  for (const std::string_view image : NumberedMembers(*members, "image")) {
    RuntimeResult<Image> loaded = Image::Load(image);
    if (!loaded.ok()) return loaded.error();
    images_.push_back(*std::move(loaded));
  }
  for (const std::string_view source : NumberedMembers(*members, "source")) sources_.emplace_back(source);
  const bool of_device = !sources_.empty();
  RuntimeResult<BundleGraph> parsed = ParseGraph(graph->bytes, static_cast<int64_t>(params_.size()),
                                                 static_cast<int>(of_device ? sources_.size() : images_.size()));
  if (!parsed.ok()) return parsed.error();
  graph_ = *std::move(parsed);
  for (const auto* ports : {&graph_.inputs, &graph_.outputs}) {
    for (const BundlePort& port : *ports)
      port_sizes_.emplace(&port, PortSizes()).first->second = SizesOf(port, graph_.sizes);
  }
  if (of_device == graph_.device.empty() && !graph_.kernels.empty()) {
    return {RuntimeCode::kCorrupt, of_device ? "has sources of kernels, but names no device in graph.json"
                                             : "names a device in graph.json, but has no sources of kernels"};
  }
  if (of_device) return {};
  if (RuntimeError missing = CheckCpuFeatures(graph_.features)) return missing.Annotate("made for " + graph_.target);
  for (const BundleKernel& kernel : graph_.kernels) {
    functions_.push_back(images_[kernel.image].Find(kernel.symbol));
    if (functions_.back() == nullptr) {
      return {RuntimeCode::kCorrupt,
              "its image has no symbol `" + kernel.symbol + "`, which `" + kernel.name + "` needs"};
    }
  }
  return {};
}

}  // namespace hone
