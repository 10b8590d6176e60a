// The operators a graph is made of: what an operator's outputs are, how it is computed (as tensor expressions), and how
// it may be fused. They stand in the files of operators/ (operators/operator.h).
//
// Conventions: image tensors are NHWC (those of a convolution or pool with "channels_first" NCHW), convolution weights
// [KH][KW][IC/groups][OC], depthwise weights [KH][KW][C], dense weights [K][N]. "pads" are {top, left, bottom, right};
// axes are not negative.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/te/te.h"

namespace hone {

// How an operator takes part in fusion.
//   kElementwise  output element i needs input element i (inputs are broadcast): may follow any anchor, or chain up
//   kInjective    each output element comes from one place of the inputs, moved: transpose, slice, gather, pad, concat
//   kAnchor       convolution, matrix product, pooling, reduction, softmax: one a group, elementwise epilogue
//   kView         the same elements in the same order under another shape: costs nothing
//   kOpaque       never fused
enum class OpKind : uint8_t { kElementwise, kInjective, kAnchor, kView, kOpaque };

// The dimensions that a reduction or normalisation goes over: an element of its result depends on all elements of the
// input along them.
enum class Reduces : uint8_t {
  kNothing,
  kAxes,      // those of the attribute "axes"
  kAxis,      // that of "axis"
  kFromAxis,  // that of "axis" and those behind it
};

// How a result of constants is worked out at the speed of memory, in place of interpreting the operator's expressions.
struct DirectEvaluation {
  using Arrays = std::span<const std::shared_ptr<const NdArray>>;
  // Whether it is for operands of these types, which have passed `infer`. Absent: for all.
  std::function<bool(std::span<const TensorType> inputs, const TensorType& output)> takes;
  std::function<NdArray(Arrays inputs, const Attrs&, const TensorType& output)> run;  // absent: there is none

  bool AppliesTo(std::span<const TensorType> inputs, const TensorType& output) const {
    return run != nullptr && (takes == nullptr || takes(inputs, output));
  }
};

struct OpInfo {
  std::string_view name;
  OpKind kind = OpKind::kElementwise;
  // The output types, or InvalidArgument with what is wrong ("3 channels, the weight has 4").
  std::function<absl::StatusOr<std::vector<TensorType>>(std::span<const TensorType> inputs, const Attrs&)> infer;
  // The outputs as tensor expressions. Inputs have passed `infer`.
  std::function<std::vector<te::Tensor>(std::span<const te::Tensor> inputs, const Attrs&,
                                        std::span<const TensorType> outputs)>
      lower;
  // Floating-point operations of one run, a multiply-add being 2; absent: one for each output element.
  std::function<double(std::span<const TensorType> inputs, const Attrs&, std::span<const TensorType> outputs)> flop;
  DirectEvaluation evaluation;
  bool folds = true;  // a node of constants is replaced by its result; false: a pass, or run time, is to see the node

  // ---- Traits: what passes rely on in place of names.
  bool commutative = false;                     // the two operands may change places
  std::optional<double> neutral = {};           // the second operand with which the result is the first
  bool rearranges = false;                      // the result has the elements of the one input, each once
  bool concatenates = false;                    // the inputs are parts of the result along "axis"
  Reduces reduces = Reduces::kNothing;          // a reduction or normalisation, of its first input
  std::vector<std::string_view> per_dimension;  // attributes with an entry a dimension, along which all is done alike
  bool takes_channels_first = false;            // with "channels_first" image and result have channels first
  bool calls_function = false;       // is a call of the tensor function of Graph::functions that "function" names
  bool is_matrix_product = false;    // rows of input 0 times columns of input 1, as tile instructions have it
  bool multiplies_integers = false;  // is a product of integers as well (integer_product.h)
  // Linear in input 1, whose last dimension is the result's: a factor for each channel may be multiplied into either.
  bool weight_has_channels = false;
  // y[o] = sum of x[o * stride + k * dilation - before] * w[k]: k are the leading dimensions of input 1, one for each
  // between the first and the last of the image's. Attributes of window and padding: operators/images/image_shapes.h.
  bool slides_weight = false;
  // Whether a node with so many inputs and these attributes is its first input where the types are the same. Absent: it
  // is not.
  std::function<bool(size_t inputs, const Attrs&)> is_no_op;
};

// Of every operator there is (operators/op_table.cc).
const OpInfo* FindOp(std::string_view name);  // nullptr when there is none
std::vector<std::string_view> OpNames();

}  // namespace hone
