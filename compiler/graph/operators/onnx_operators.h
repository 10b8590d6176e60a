// Finding the operator that imports an ONNX node: in the files of HONE_OPERATORS (operator.h), and in the tables of the
// onnx_*.cc files, which hold the operators whose graph side is in compiler/graph/op_*.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/operators/operator.h"

namespace hone {

std::span<const OnnxOperator> ElementwiseOperators();
std::span<const OnnxOperator> MatrixOperators();
std::span<const OnnxOperator> ImageOperators();
std::span<const OnnxOperator> NormOperators();   // normalisations, softmax, reductions
std::span<const OnnxOperator> ShapeOperators();  // moving elements, shapes as data, constants

// Resize of an image's spatial dimensions to known sizes (resize.cc does the rest).
Outputs ResizeImage(NodeContext& c);
// MaxPool without indices, of floats (pool.cc does the rest).
Outputs MaxPoolImage(NodeContext& c);

// The row with the greatest `since` not beyond the version; nullptr when there is none.
const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view name, int64_t version);

}  // namespace hone
