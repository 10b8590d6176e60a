#include "deploy/runtime/image/image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "deploy/runtime/hash.h"
#include "deploy/runtime/image/cpu_features.h"

namespace hone {
namespace {

static_assert(std::endian::native == std::endian::little, "the stored forms are read in place");

constexpr uint64_t kMaxImageBytes = uint64_t{1} << 31;  // references between code and data span 32 bits
constexpr uint32_t kMaxSymbols = 1 << 20;

uint64_t RoundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

RuntimeError Corrupt(const std::string& what) {
  return {RuntimeCode::kCorrupt, "kernel image: " + what + "; build it again"};
}

uint64_t Checksum(std::string_view image, ImageHeader header) {
  header.checksum = 0;
  return Hash64(image.substr(sizeof(header)), Hash64(&header, sizeof(header)));
}

bool Fits(uint64_t offset, uint64_t bytes, uint64_t limit) { return offset <= limit && bytes <= limit - offset; }

// An image whose every number has been checked, as views into its bytes.
struct ImageView {
  ImageHeader header;
  std::string_view features, code, data;
  std::vector<ImageParts::Symbol> symbols;
};

RuntimeResult<ImageView> ViewImage(std::string_view bytes) {
  ImageView view;
  ImageHeader& h = view.header;
  if (bytes.size() < sizeof(h)) return Corrupt("has " + std::to_string(bytes.size()) + " bytes, too few for a header");
  std::memcpy(&h, bytes.data(), sizeof(h));
  if (std::memcmp(h.magic, kImageMagic, sizeof(kImageMagic)) != 0) return Corrupt("does not start as an image does");
  if (h.version != kImageVersion) {
    return RuntimeError(RuntimeCode::kUnsupported, "kernel image: version " + std::to_string(h.version) +
                                                       ", this runtime reads version " + std::to_string(kImageVersion));
  }
  if (h.total_bytes != bytes.size()) {
    return Corrupt("states " + std::to_string(h.total_bytes) + " bytes, has " + std::to_string(bytes.size()));
  }
  if (h.total_bytes > kMaxImageBytes) return Corrupt("is larger than 2 GiB");
  if (h.checksum != Checksum(bytes, h)) return Corrupt("its checksum does not match its bytes");
  if (h.page_bytes < 4096 || h.page_bytes > (1 << 20) || !std::has_single_bit(h.page_bytes)) {
    return Corrupt("alignment of " + std::to_string(h.page_bytes) + " bytes");
  }
  if (h.symbol_count > kMaxSymbols) return Corrupt(std::to_string(h.symbol_count) + " symbols");
  const uint64_t strings_at = sizeof(h) + uint64_t{h.symbol_count} * sizeof(ImageSymbol);
  if (!Fits(strings_at, h.strings_bytes, bytes.size())) return Corrupt("symbol table runs past the end");
  const std::string_view strings = bytes.substr(strings_at, h.strings_bytes);
  if (!Fits(h.features_at, h.features_bytes, strings.size())) return Corrupt("feature text runs past the strings");
  if (h.payload_at % h.page_bytes != 0 || h.payload_at < strings_at + h.strings_bytes || h.payload_at > bytes.size()) {
    return Corrupt("payload at " + std::to_string(h.payload_at));
  }
  const std::string_view payload = bytes.substr(h.payload_at);
  if (h.code_bytes == 0 || h.code_bytes > payload.size()) return Corrupt("code runs past the end");
  if (h.data_at != RoundUp(h.code_bytes, h.page_bytes)) return Corrupt("data at " + std::to_string(h.data_at));
  const bool has_data = h.data_bytes > 0;
  if (has_data && !Fits(h.data_at, h.data_bytes, payload.size())) return Corrupt("data runs past the end");
  view.features = strings.substr(h.features_at, h.features_bytes);
  view.code = payload.substr(0, h.code_bytes);
  if (has_data) view.data = payload.substr(h.data_at, h.data_bytes);
  for (uint32_t i = 0; i < h.symbol_count; ++i) {
    ImageSymbol symbol;
    std::memcpy(&symbol, bytes.data() + sizeof(h) + i * sizeof(symbol), sizeof(symbol));
    if (!Fits(symbol.name_at, symbol.name_bytes, strings.size()))
      return Corrupt("a symbol's name runs past the strings");
    if (symbol.code_offset >= h.code_bytes) return Corrupt("a symbol lies outside the code");
    view.symbols.push_back({std::string(strings.substr(symbol.name_at, symbol.name_bytes)), symbol.code_offset});
  }
  return view;
}

// Whether this machine can run the image's code.
RuntimeError CheckHost(const ImageView& view) {
  const ImageHeader& header = view.header;
  if (static_cast<ImageArch>(header.arch) != HostArch()) {
    return {RuntimeCode::kUnsupported,
            "kernel image: its code is for " + std::string(ToText(static_cast<ImageArch>(header.arch))) +
                ", this machine is " + std::string(ToText(HostArch())) + "; compile it for this target"};
  }
  if (RuntimeError missing = CheckCpuFeatures(view.features)) return missing.Annotate("kernel image");
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (header.page_bytes % page != 0) {
    return {RuntimeCode::kUnsupported, "kernel image: laid out for pages of " + std::to_string(header.page_bytes) +
                                           " bytes, this system has " + std::to_string(page)};
  }
  return {};
}

}  // namespace

uint32_t ImagePageBytes(ImageArch arch) { return arch == ImageArch::kAArch64 ? 65536 : 4096; }

uint64_t DataOffset(ImageArch arch, uint64_t code_bytes) { return RoundUp(code_bytes, ImagePageBytes(arch)); }

std::string WriteImage(const ImageParts& parts) {
  ImageHeader header{};
  std::memcpy(header.magic, kImageMagic, sizeof(kImageMagic));
  header.version = kImageVersion;
  header.arch = static_cast<uint32_t>(parts.arch);
  header.page_bytes = ImagePageBytes(parts.arch);
  header.symbol_count = static_cast<uint32_t>(parts.symbols.size());
  std::string strings = parts.features, table;
  header.features_bytes = static_cast<uint32_t>(strings.size());
  for (const ImageParts::Symbol& symbol : parts.symbols) {
    const ImageSymbol entry{static_cast<uint32_t>(strings.size()), static_cast<uint32_t>(symbol.name.size()),
                            symbol.code_offset};
    table.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    strings += symbol.name;
  }
  header.strings_bytes = strings.size();
  header.payload_at = RoundUp(sizeof(header) + table.size() + strings.size(), header.page_bytes);
  header.code_bytes = parts.code.size();
  header.data_at = DataOffset(parts.arch, parts.code.size());
  header.data_bytes = parts.data.size();
  std::string image(sizeof(header), '\0');
  image += table + strings;
  image.resize(header.payload_at);
  image += parts.code;
  if (!parts.data.empty()) {
    image.resize(header.payload_at + header.data_at);
    image += parts.data;
  }
  header.total_bytes = image.size();
  header.checksum = Checksum(image, header);
  std::memcpy(image.data(), &header, sizeof(header));
  return image;
}

RuntimeResult<ImageParts> ReadImage(std::string_view bytes) {
  RuntimeResult<ImageView> view = ViewImage(bytes);
  if (!view.ok()) return view.error();
  ImageParts parts;
  parts.arch = static_cast<ImageArch>(view->header.arch);
  parts.features = view->features;
  parts.symbols = std::move(view->symbols);
  parts.code = view->code;
  parts.data = view->data;
  return parts;
}

RuntimeError CheckImage(std::string_view bytes) {
  const RuntimeResult<ImageView> view = ViewImage(bytes);
  return view.ok() ? CheckHost(*view) : view.error();
}

void Image::Unmap::operator()(char* base) const { munmap(base, bytes); }

RuntimeResult<Image> Image::Load(std::string_view bytes) {
  RuntimeResult<ImageView> view = ViewImage(bytes);
  if (!view.ok()) return view.error();
  if (RuntimeError refused = CheckHost(*view)) return refused;
  const ImageHeader& header = view->header;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // Both parts in one mapping, so that they keep their distance.
  const size_t total = RoundUp(view->data.empty() ? header.code_bytes : header.data_at + header.data_bytes, page);
  void* base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return RuntimeError(RuntimeCode::kOutOfMemory,
                        "kernel image: no memory for " + std::to_string(total) + " bytes of code");
  }
  Image image;
  image.base_ = std::unique_ptr<char, Unmap>(static_cast<char*>(base), Unmap{total});
  std::memcpy(image.base_.get(), view->code.data(), view->code.size());
  if (!view->data.empty()) std::memcpy(image.base_.get() + header.data_at, view->data.data(), view->data.size());
  const size_t code_mapped = RoundUp(header.code_bytes, page);
  if (mprotect(base, total, PROT_READ) != 0 || mprotect(base, code_mapped, PROT_READ | PROT_EXEC) != 0) {
    return RuntimeError(RuntimeCode::kUnsupported,
                        "kernel image: the system does not let this process make memory executable (mprotect refused)");
  }
  __builtin___clear_cache(image.base_.get(), image.base_.get() + header.code_bytes);
  image.features_ = view->features;
  image.symbols_ = std::move(view->symbols);
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(image.symbols_.begin(), image.symbols_.end(), by_name);
  return image;
}

HoneKernelFn Image::Find(std::string_view symbol) const {
  const auto at = std::lower_bound(symbols_.begin(), symbols_.end(), symbol,
                                   [](const ImageParts::Symbol& s, std::string_view name) { return s.name < name; });
  if (at == symbols_.end() || at->name != symbol) return nullptr;
  return reinterpret_cast<HoneKernelFn>(base_.get() + at->code_offset);
}

}  // namespace hone
