#include "deploy/runtime/image/kernel_set.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

namespace hone {
namespace {

// "HKS" and the version of the form, then the fields in the order of the header: numbers as 8 bytes little-endian,
// strings and lists preceded by their length. What follows the fields that all have is the version's: nothing, the
// areas and launches of a device, the symbolic sizes of the host, areas and launches that give shared memory.
constexpr std::string_view kMagic = "HKS";
enum Version : char { kPlain = 1, kOfDevice = 2, kSymbolic = 3, kOfDeviceWithShared = 4 };
constexpr uint64_t kMaxCount = 1 << 16;
constexpr int64_t kMaxExtent = int64_t{1} << 31;

class Writer {
 public:
  void Number(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Text(std::string_view text) {
    Number(static_cast<int64_t>(text.size()));
    bytes_ += text;
  }
  void Tensor(const KernelTensor& tensor) {
    Text(tensor.dtype);
    Number(static_cast<int64_t>(tensor.shape.size()));
    for (const int64_t extent : tensor.shape) Number(extent);
    Number(tensor.bytes);
  }
  void Extents(const std::array<int64_t, 3>& extents) {
    for (const int64_t extent : extents) Number(extent);
  }
  std::string bytes_;
};

// Reads what Writer wrote. After the first failure every read gives zero and `error` stays.
class Reader {
 public:
  Reader(std::string_view bytes, std::string* error) : bytes_(bytes), error_(error) {}

  bool failed() const { return failed_; }
  void Fail(const std::string& why) {
    if (!failed_) *error_ = "kernel set: " + why;
    failed_ = true;
  }
  int64_t Number(const char* what, int64_t min = 0, int64_t max = std::numeric_limits<int64_t>::max()) {
    int64_t value = 0;
    if (failed_) return 0;
    if (bytes_.size() < sizeof(value)) {
      Fail(std::string("ends within ") + what);
      return 0;
    }
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
    if (value < min || value > max) {
      Fail(std::string(what) + " is " + std::to_string(value));
      return 0;
    }
    return value;
  }
  std::string Text(const char* what) {
    const int64_t size = Number(what, 0, kMaxCount);
    if (!failed_ && bytes_.size() < static_cast<size_t>(size)) Fail(std::string("ends within ") + what);
    if (failed_) return "";
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  KernelTensor Tensor() {
    KernelTensor tensor;
    tensor.dtype = Text("a tensor's type");
    const int64_t rank = Number("a tensor's rank", 0, 64);
    for (int64_t i = 0; i < rank && !failed_; ++i) tensor.shape.push_back(Number("a tensor's shape"));
    tensor.bytes = Number("a tensor's size");
    return tensor;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  std::string* error_;
  bool failed_ = false;
};

void WriteLaunches(const KernelSet& set, bool with_shared, Writer& writer) {
  writer.Number(static_cast<int64_t>(set.areas.size()));
  for (const ScratchArea& area : set.areas) {
    writer.Number(area.offset);
    writer.Number(area.bytes);
  }
  writer.Number(static_cast<int64_t>(set.launches.size()));
  for (const KernelLaunch& launch : set.launches) {
    writer.Text(launch.kernel);
    writer.Extents(launch.grid);
    writer.Extents(launch.block);
    writer.Number(static_cast<int64_t>(launch.arguments.size()));
    for (const int argument : launch.arguments) writer.Number(argument);
    if (with_shared) writer.Number(launch.shared_bytes);
  }
}

void ReadLaunches(Reader& reader, bool with_shared, KernelSet* set) {
  const int64_t areas = reader.Number("the number of areas", 0, kMaxCount);
  for (int64_t i = 0; i < areas && !reader.failed(); ++i) {
    const int64_t offset = reader.Number("an area's offset", 0, set->scratch_bytes);
    set->areas.push_back({offset, reader.Number("an area's size", 0, set->scratch_bytes - offset)});
  }
  const int64_t launches = reader.Number("the number of launches", 1, kMaxCount);
  const int64_t buffers = static_cast<int64_t>(set->params.size()) + areas;
  for (int64_t i = 0; i < launches && !reader.failed(); ++i) {
    KernelLaunch& launch = set->launches.emplace_back();
    launch.kernel = reader.Text("a kernel's name");
    for (int64_t& extent : launch.grid) extent = reader.Number("a grid", 1, kMaxExtent);
    for (int64_t& extent : launch.block) extent = reader.Number("a block", 1, kMaxExtent);
    const int64_t arguments = reader.Number("the number of arguments", 0, kMaxCount);
    for (int64_t a = 0; a < arguments && !reader.failed(); ++a)
      launch.arguments.push_back(static_cast<int>(reader.Number("an argument", 0, buffers - 1)));
    if (with_shared) launch.shared_bytes = reader.Number("shared memory", 0, kMaxExtent);
  }
}

void WriteSizes(const KernelSet& set, Writer& writer) {
  writer.Number(static_cast<int64_t>(set.sizes.size()));
  for (const KernelSize& size : set.sizes) {
    writer.Text(size.name);
    writer.Number(size.min);
    writer.Number(size.max);
  }
}

void ReadSizes(Reader& reader, KernelSet* set) {
  const int64_t sizes = reader.Number("the number of sizes", 1, kMaxCount);
  for (int64_t i = 0; i < sizes && !reader.failed(); ++i) {
    KernelSize size;
    size.name = reader.Text("a size's name");
    size.min = reader.Number("the least of a size", 1);
    size.max = reader.Number("the greatest of a size", size.min);
    set->sizes.push_back(std::move(size));
  }
}

}  // namespace

std::string Serialize(const KernelSet& set) {
  Writer writer;
  // The lowest that says it all.
  const bool shared = std::ranges::any_of(set.launches, [](const KernelLaunch& l) { return l.shared_bytes > 0; });
  const Version version = shared                  ? kOfDeviceWithShared
                          : !set.launches.empty() ? kOfDevice
                          : set.sizes.empty()     ? kPlain
                                                  : kSymbolic;
  writer.bytes_ = std::string(kMagic) + static_cast<char>(version);
  writer.Text(set.symbol);
  writer.Number(static_cast<int64_t>(set.params.size()));
  for (const KernelTensor& param : set.params) writer.Tensor(param);
  writer.Number(set.num_outputs);
  writer.Number(static_cast<int64_t>(set.prepared.size()));
  for (const PreparedConstant& prepared : set.prepared) {
    writer.Number(prepared.param);
    writer.Text(prepared.symbol);
    writer.Tensor(prepared.packed);
    writer.Number(prepared.scratch_bytes);
    writer.Number(prepared.thread_scratch_bytes);
  }
  writer.Number(set.scratch_bytes);
  writer.Number(set.thread_scratch_bytes);
  if (!set.launches.empty()) WriteLaunches(set, shared, writer);
  if (version == kSymbolic) WriteSizes(set, writer);
  return std::move(writer.bytes_);
}

bool Parse(const std::string& bytes, KernelSet* set, std::string* error) {
  const char version = bytes.size() > kMagic.size() ? bytes[kMagic.size()] : '\0';
  if (bytes.compare(0, kMagic.size(), kMagic) != 0 || version < kPlain || version > kOfDeviceWithShared) {
    *error = "kernel set: does not start as one of version 1 to 4 does";
    return false;
  }
  Reader reader(std::string_view(bytes).substr(kMagic.size() + 1), error);
  KernelSet result;
  result.symbol = reader.Text("the symbol");
  const int64_t params = reader.Number("the number of parameters", 1, kMaxCount);
  for (int64_t i = 0; i < params && !reader.failed(); ++i) result.params.push_back(reader.Tensor());
  result.num_outputs = static_cast<int>(reader.Number("the number of outputs", 0, params));
  const int64_t prepared = reader.Number("the number of prepared constants", 0, params);
  for (int64_t i = 0; i < prepared && !reader.failed(); ++i) {
    PreparedConstant constant;
    constant.param = static_cast<int>(reader.Number("a prepared constant's parameter", 0, params - 1));
    constant.symbol = reader.Text("a prepare symbol");
    constant.packed = reader.Tensor();
    constant.scratch_bytes = reader.Number("scratch of a prepare kernel");
    constant.thread_scratch_bytes = reader.Number("thread scratch of a prepare kernel");
    result.prepared.push_back(std::move(constant));
  }
  result.scratch_bytes = reader.Number("scratch");
  result.thread_scratch_bytes = reader.Number("thread scratch");
  const bool shared = version == kOfDeviceWithShared;
  if ((version == kOfDevice || shared) && !reader.failed()) ReadLaunches(reader, shared, &result);
  if (version == kSymbolic && !reader.failed()) ReadSizes(reader, &result);
  if (!reader.failed() && !reader.at_end()) reader.Fail("goes on after its end");
  if (reader.failed()) return false;
  *set = std::move(result);
  return true;
}

}  // namespace hone
