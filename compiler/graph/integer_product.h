// Products of integers of 8 bits less their zero points, as the kernels want them: the left operand uint8, the right
// one int8, which is what machines multiply; where that is not possible both int16.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone {

struct IntegerOperand {
  int value = -1;  // int8 or uint8
  int zero = -1;   // what stands for 0, of the same type; -1: 0 does
};

// Appends what computes sum((a - a.zero) * (b - b.zero)) over the terms of a "dense", "batch_matmul", "conv" or
// "depthwise_conv2d" as int32, exactly (modulo 2^32):
//   sum(a * b) - a.zero * sum(b) - b.zero * sum(a) + terms * a.zero * b.zero
// Sums of constants are folded. Input channels of a convolution are made a multiple of four. Operands of the other sign
// are shifted by 128 with their zero points. A zero point of a is one number or one a row, of b one number or one a
// column. A convolution pads with what stands for 0 in a.
//
// A convolution whose weight has a zero point, or that pads and has a zero point of a that is not one constant,
// multiplies what is left of its operands, as int16.
absl::StatusOr<int> AddIntegerProduct(Graph& graph, const std::string& op, const std::string& name, IntegerOperand a,
                                      IntegerOperand b, Attrs attrs);

}  // namespace hone
