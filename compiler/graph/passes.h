// The passes over graphs, in the order in which Optimize runs them. Each is one file in passes/, leaves a graph that
// computes the same (up to rounding where it says so), and may be run alone.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace hone {

// Products of dequantised integers become products of integers (integer_product.h), with scales after them; every other
// "dequantize" becomes arithmetic.
absl::Status QuantisedProducts(Graph& graph);
// Values that depend on constants alone become constants. What takes long (evaluate.h) is left to run time.
absl::Status FoldConstants(Graph& graph);
// Identity, dropout, trivial reshape, transpose, cast, slice, expand, pad, concat; x + 0, x * 1; equal nodes become
// one.
absl::Status RemoveNoOps(Graph& graph);
// A per-channel scale or shift by constants after a convolution or dense product goes into its weights and bias
// (reorders roundings).
absl::Status FoldScales(Graph& graph);
// Taps of convolutions that read padding alone are cut off the weight.
absl::Status CropWindows(Graph& graph);
// Chains that are one operator: gelu from erf, layer norm from its parts, silu, hard swish, shuffles of channels.
absl::Status RecognisePatterns(Graph& graph);
// Moves transposes and reshapes towards the outputs, through everything that allows it, until they cancel: image
// networks run in NHWC with one layout change at each end, and products of many axes become products of matrices.
absl::Status SinkLayout(Graph& graph);

// Slices, reshapes and factors in front of products of batches change places, so that transposes and slices stand next
// to the products (reorders roundings).
absl::Status ExposeOperands(Graph& graph);
// Transposes around products of batches go into the way these read their operands and write their results; what a
// product of constant weights reads stays as it is, since its kernel wants rows.
absl::Status FoldTransposes(Graph& graph);
// Products and convolutions between a transpose and its inverse are computed where they are, without either, if they
// can be as fast there.
absl::Status KeepChannelsFirst(Graph& graph);
// A reshape in front of a product rises above what computes the operand, so that nothing stands between the two.
absl::Status RaiseReshapes(Graph& graph);

// Products of a float32 operand and a constant of float32 round both to bfloat16, where a target with these
// features has an instruction for them that is faster than float32's; sums stay float32. An operand is rounded as close
// to where it is made as transposes and reshapes allow. Not one of Optimize's: it is what numeric level bf16 allows
// (compiler/ir/numeric.h).
absl::Status Bfloat16Products(Graph& graph, const std::set<std::string>& features);
// Whether there is such an instruction at all.
bool MultipliesBfloat16(const std::set<std::string>& features);

// Products of uint8 by int8 become products of int8 by int8, where an instruction of a target with these features
// multiplies those and none multiplies uint8 by int8: what varies is computed less 128, and the sums of the weight make
// up for it. Exact.
absl::Status Int8Products(Graph& graph, const std::set<std::string>& features);

// Products of bytes become products of int16, where an instruction of a target with these features multiplies those and
// none multiplies bytes: widened once, where an operand is made, not for each product. Exact.
absl::Status Int16Products(Graph& graph, const std::set<std::string>& features);

// All of them but the last three, once through one list (passes/optimize.cc). A second time merges equal nodes that the
// last of them leave, which gives no network of tests/models/exported fewer kernels.
absl::Status Optimize(Graph& graph);

// Each by name, "fold_constants": the list of Optimize, "optimize" itself, then the last three. For `hone opt --pass`
// and tests. `features`: of the target, for the last three.
struct GraphPass {
  const char* name;
  std::function<absl::Status(Graph& graph, const std::set<std::string>& features)> run;
};
std::span<const GraphPass> GraphPasses();

}  // namespace hone
