#include "compiler/frontend/onnx_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/mman.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <string>
#include <utility>

namespace hone {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;

constexpr uint32_t Tag(int field) { return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED); }
constexpr uint32_t kGraphOfModel = Tag(onnx::ModelProto::kGraphFieldNumber),
                   kInitializerOfGraph = Tag(onnx::GraphProto::kInitializerFieldNumber),
                   kRawOfTensor = Tag(onnx::TensorProto::kRawDataFieldNumber);

class Reader {
 public:
  // `bounded`: no message can say that it is larger than the file.
  Reader(CodedInputStream& file, bool bounded, const std::function<void(OnnxTensor)>& take)
      : file_(file), bounded_(bounded), take_(take) {}

  bool Model(onnx::ModelProto& rest) {
    return Fields([&](uint32_t tag) {
      if (tag != kGraphOfModel) return Merge(tag, rest);
      return Nested([&] { return Graph(*rest.mutable_graph()); });
    });
  }

 private:
  // `field` reads one, whose tag it is given. Until the message ends.
  template <class Field>
  bool Fields(const Field& field) {
    while (const uint32_t tag = file_.ReadTag()) {
      if (!field(tag)) return false;
    }
    return file_.ConsumedEntireMessage();
  }

  // A message inside another, all of whose bytes `message` reads.
  template <class Message>
  bool Nested(const Message& message) {
    int size;
    if (!file_.ReadVarintSizeAsInt(&size) || size > file_.BytesUntilLimit()) return false;
    const CodedInputStream::Limit limit = file_.PushLimit(size);
    const bool whole = message() && file_.BytesUntilLimit() == 0;  // not the end of the file before
    file_.PopLimit(limit);
    return whole;
  }

  // Reads a field into a message that may have others already.
  template <class Message>
  bool Merge(uint32_t tag, Message& message) {
    std::string field;
    return Copy(tag, field) && message.MergeFromString(field);
  }
  bool Copy(uint32_t tag, std::string& to) {
    StringOutputStream stream(&to);
    CodedOutputStream field(&stream);
    return WireFormatLite::SkipField(&file_, tag, &field);
  }

  bool Graph(onnx::GraphProto& rest) {
    return Fields([&](uint32_t tag) {
      if (tag != kInitializerOfGraph) return Merge(tag, rest);
      return Nested([&] { return Initializer(); });
    });
  }

  bool Initializer() {
    OnnxTensor tensor;
    std::string others;
    const bool read =
        Fields([&](uint32_t tag) { return tag == kRawOfTensor ? Raw(tensor.raw.emplace()) : Copy(tag, others); });
    if (!read || !tensor.message.ParseFromString(others)) return false;
    take_(std::move(tensor));
    return true;
  }

  // The bytes of a field, from the buffers of the stream right into the array.
  bool Raw(AlignedBytes& raw) {
    int size;
    if (!file_.ReadVarintSizeAsInt(&size) || size > file_.BytesUntilLimit()) return false;
    if (bounded_) raw = RoomFor(static_cast<size_t>(size));
    for (int left = size; left > 0;) {
      const void* piece;
      int piece_bytes;
      if (!file_.GetDirectBufferPointer(&piece, &piece_bytes)) return false;
      const int taken = std::min(left, piece_bytes);
      raw.insert(raw.end(), static_cast<const char*>(piece), static_cast<const char*>(piece) + taken);
      if (!file_.Skip(taken)) return false;
      left -= taken;
    }
    return true;
  }

  CodedInputStream& file_;
  const bool bounded_;
  const std::function<void(OnnxTensor)>& take_;
};

}  // namespace

AlignedBytes RoomFor(size_t bytes) {
  constexpr size_t kPage = 4096, kHugeFrom = size_t{2} << 20;
  AlignedBytes room;
  room.reserve(bytes);
  if (bytes < kHugeFrom) return room;
  // To fault in the pages of a large array takes longer than to fill them. Advice: small pages work as well.
  const size_t before = (kPage - reinterpret_cast<uintptr_t>(room.data()) % kPage) % kPage;
  ::madvise(room.data() + before, (bytes - before) / kPage * kPage, MADV_HUGEPAGE);
  return room;
}

OnnxTensor TakeTensor(onnx::TensorProto& message) {
  OnnxTensor tensor;
  tensor.message.Swap(&message);
  if (!tensor.message.has_raw_data()) return tensor;
  const std::unique_ptr<std::string> bytes(tensor.message.release_raw_data());
  tensor.raw.emplace(bytes->begin(), bytes->end());
  return tensor;
}

bool ReadOnnxFile(google::protobuf::io::ZeroCopyInputStream& file, int64_t bytes,
                  const std::function<void(OnnxTensor)>& take, onnx::ModelProto& rest) {
  CodedInputStream coded(&file);
  coded.SetTotalBytesLimit(INT_MAX);
  coded.PushLimit(bytes > 0 ? static_cast<int>(std::min<int64_t>(bytes, INT_MAX)) : INT_MAX);
  return Reader(coded, bytes > 0, take).Model(rest);
}

}  // namespace hone
