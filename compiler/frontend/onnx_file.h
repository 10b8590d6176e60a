// A model file's message, taken apart as it is read. Most of a file are the bytes of its tensors: they go from the file
// into the arrays that are used, one tensor after another, and no second copy of them is held.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

#include "compiler/graph/graph.h"

namespace hone {

// A tensor whose raw data, where it has some, stands beside its message.
struct OnnxTensor {
  onnx::TensorProto message;
  std::optional<AlignedBytes> raw;
};
OnnxTensor TakeTensor(onnx::TensorProto& message);  // which is empty afterwards
// An empty array with room for so many bytes, in huge pages where that pays.
AlignedBytes RoomFor(size_t bytes);

// Hands `take` each initializer of the model's graph as soon as it is read, in the file's order; `rest` gets all others
// of the message's parts. `bytes`: of the file, 0 where that is not known. False when the bytes are no such message, or
// end before it does.
bool ReadOnnxFile(google::protobuf::io::ZeroCopyInputStream& file, int64_t bytes,
                  const std::function<void(OnnxTensor)>& take, onnx::ModelProto& rest);

}  // namespace hone
