#include "compiler/graph/evaluate.h"

#include <algorithm>
#include <cstring>

#include "compiler/graph/op.h"
#include "compiler/interp/interpreter.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Copies elements of `bytes` bytes; `strides` are x's, in elements, in the order of y's dimensions.
template <int kBytes>
void CopyPermuted(const char* x, char* y, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  const int rank = static_cast<int>(shape.size());
  const int64_t inner = shape[rank - 1], inner_stride = strides[rank - 1];
  // The dimension of y along which x is contiguous: a block of it is moved at a time, so that lines of x are used
  // whole.
  int across = rank - 1;
  for (int d = 0; d < rank; ++d) {
    if (strides[d] == 1 && shape[d] > 1) across = d;
  }
  std::vector<int64_t> y_strides(rank, 1);
  for (int d = rank - 2; d >= 0; --d) y_strides[d] = y_strides[d + 1] * shape[d + 1];
  constexpr int64_t kBlock = 16;
  const int64_t block = across == rank - 1 ? 1 : kBlock;
  std::vector<int64_t> at(rank, 0);
  while (true) {
    int64_t from = 0, to = 0;
    for (int d = 0; d < rank - 1; ++d) {
      from += at[d] * strides[d];
      to += at[d] * y_strides[d];
    }
    const int64_t lines = across == rank - 1 ? 1 : std::min(block, shape[across] - at[across]);
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t line = 0; line < lines; ++line) {
        std::memcpy(y + (to + line * y_strides[across] + i) * kBytes, x + (from + line + i * inner_stride) * kBytes,
                    kBytes);
      }
      if (across == rank - 1 && inner_stride == 1) {
        std::memcpy(y + to * kBytes, x + from * kBytes, inner * kBytes);
        break;
      }
    }
    int d = rank - 2;
    for (; d >= 0; --d) {
      at[d] += d == across ? block : 1;
      if (at[d] < shape[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

NdArray CastArray(const NdArray& x, DType to) {
  NdArray y(to, x.shape);
  const int64_t n = x.NumElements();
  const bool from_int = !x.dtype.is_float();
  for (int64_t i = 0; i < n; ++i) {
    if (to.is_bool()) {
      y.SetInt(i, from_int ? x.GetInt(i) != 0 : x.Get(i) != 0);
    } else if (from_int && !to.is_float()) {
      y.SetInt(i, x.GetInt(i));
    } else if (!to.is_float()) {
      const double value = x.Get(i);  // out of range: the nearest there is; NaN: 0
      y.SetInt(i, value != value     ? 0
                  : value >= 0x1p63  ? INT64_MAX
                  : value <= -0x1p63 ? INT64_MIN
                                     : static_cast<int64_t>(value));
    } else {
      y.Set(i, from_int ? static_cast<double>(x.GetInt(i)) : x.Get(i));
    }
  }
  return y;
}

NdArray ConcatArrays(std::span<const std::shared_ptr<const NdArray>> parts, const TensorType& type, int64_t axis) {
  NdArray joined(type.dtype, type.shape);
  size_t rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= static_cast<size_t>(type.shape[d]);
  char* to = joined.data.data();
  for (size_t row = 0; row < rows; ++row) {
    for (const auto& part : parts) {
      const size_t bytes = part->data.size() / rows;
      if (bytes > 0) std::memcpy(to, part->data.data() + row * bytes, bytes);
      to += bytes;
    }
  }
  return joined;
}

// Sum, difference, product or quotient of float32 arrays, the second's shape being that of the first's last dimensions
// or ones: what the folding of scales into weights needs. nullopt for anything else.
std::optional<NdArray> FloatArithmetic(std::string_view op, const NdArray& a, const NdArray& b, const TensorType& out) {
  if (a.dtype != kFloat32 || b.dtype != kFloat32 || a.shape != out.shape || a.data.empty()) return std::nullopt;
  std::vector<int64_t> suffix = b.shape;
  while (!suffix.empty() && suffix[0] == 1) suffix.erase(suffix.begin());
  if (suffix.size() > a.shape.size() || !std::equal(suffix.rbegin(), suffix.rend(), a.shape.rbegin()))
    return std::nullopt;
  NdArray y(kFloat32, out.shape);
  const float *x = a.As<float>(), *z = b.As<float>();
  float* to = y.As<float>();
  const int64_t n = a.NumElements(), period = b.NumElements();
  const auto apply = [&](auto f) {
    for (int64_t i = 0; i < n; i += period) {
      for (int64_t j = 0; j < period; ++j) to[i + j] = f(x[i + j], z[j]);
    }
  };
  if (op == "add") apply([](float p, float q) { return p + q; });
  else if (op == "subtract") apply([](float p, float q) { return p - q; });
  else if (op == "multiply") apply([](float p, float q) { return p * q; });
  else if (op == "divide") apply([](float p, float q) { return p / q; });
  else return std::nullopt;
  return y;
}

bool IsArithmetic(std::string_view op) { return op == "add" || op == "subtract" || op == "multiply" || op == "divide"; }

}  // namespace

NdArray TransposeArray(const NdArray& x, std::span<const int64_t> perm) {
  const size_t rank = x.shape.size();
  std::vector<int64_t> x_strides(rank, 1), shape, strides;
  for (int d = static_cast<int>(rank) - 2; d >= 0; --d) x_strides[d] = x_strides[d + 1] * x.shape[d + 1];
  for (const int64_t axis : perm) {
    shape.push_back(x.shape[axis]);
    strides.push_back(x_strides[axis]);
  }
  NdArray y(x.dtype, shape);
  if (y.data.empty()) return y;
  if (rank == 0) {
    y.data = x.data;
    return y;
  }
  switch (x.dtype.bytes()) {
    case 1: CopyPermuted<1>(x.data.data(), y.data.data(), shape, strides); break;
    case 2: CopyPermuted<2>(x.data.data(), y.data.data(), shape, strides); break;
    case 4: CopyPermuted<4>(x.data.data(), y.data.data(), shape, strides); break;
    case 8: CopyPermuted<8>(x.data.data(), y.data.data(), shape, strides); break;
    default: HONE_UNREACHABLE() << "elements of " << x.dtype.bytes() << " bytes";
  }
  return y;
}

PrimFunc OpFunction(std::string_view op, const Attrs& attrs, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs) {
  const OpInfo* info = FindOp(op);
  HONE_CHECK(info != nullptr) << "no operator is called " << op;
  std::vector<te::Tensor> params;
  for (size_t i = 0; i < inputs.size(); ++i) {
    params.push_back(te::Placeholder(te::Shape(inputs[i].shape), inputs[i].dtype, absl::StrCat("x", i)));
  }
  const std::vector<te::Tensor> results = info->lower(params, attrs, outputs);
  return te::CreatePrimFunc(params, results, std::string(op));
}

absl::StatusOr<std::vector<NdArray>> EvaluateOp(std::string_view op, const Attrs& attrs,
                                                std::span<const std::shared_ptr<const NdArray>> inputs) {
  std::vector<TensorType> types;
  for (const auto& input : inputs) types.push_back({input->dtype, input->shape});
  const OpInfo* info = FindOp(op);
  HONE_CHECK(info != nullptr) << "no operator is called " << op;
  HONE_ASSIGN_OR_RETURN(const std::vector<TensorType> outputs, info->infer(types, attrs));
  std::vector<NdArray> results;
  if (op == "transpose") {
    results.push_back(TransposeArray(*inputs[0], IntsAttr(attrs, "perm")));
    return results;
  }
  if (info->kind == OpKind::kView || op == "identity") {
    results.push_back(*inputs[0]);
    results[0].shape = outputs[0].shape;
    results[0].dtype = outputs[0].dtype;
    return results;
  }
  if (op == "cast") {
    results.push_back(CastArray(*inputs[0], outputs[0].dtype));
    return results;
  }
  if (op == "concat") {
    results.push_back(ConcatArrays(inputs, outputs[0], IntAttr(attrs, "axis")));
    return results;
  }
  if (IsArithmetic(op)) {
    if (std::optional<NdArray> result = FloatArithmetic(op, *inputs[0], *inputs[1], outputs[0]); result.has_value()) {
      results.push_back(*std::move(result));
      return results;
    }
  }
  std::vector<NdArray> args;
  bool empty = true;
  for (const TensorType& type : outputs) {
    results.emplace_back(type.dtype, type.shape);
    empty = empty && results.back().data.empty();
  }
  if (empty) return results;
  for (const auto& input : inputs) {
    if (input->data.empty())
      return absl::UnimplementedError(absl::StrCat("an input of ", std::string(op), " has no elements"));
    args.push_back(*input);
  }
  for (NdArray& result : results) args.push_back(std::move(result));
  const PrimFunc function = OpFunction(op, attrs, types, outputs);
  HONE_RETURN_IF_ERROR(Annotate(Interpret(function, args), absl::StrCat("evaluating ", std::string(op))));
  return std::vector<NdArray>(std::make_move_iterator(args.begin() + static_cast<int64_t>(inputs.size())),
                              std::make_move_iterator(args.end()));
}

std::optional<int64_t> EvaluationCost(std::string_view op, const Attrs& attrs, std::span<const TensorType> inputs,
                                      std::span<const TensorType> outputs) {
  constexpr int64_t kMovedElements = int64_t{1} << 27, kInterpretedElements = int64_t{1} << 22, kMovedForOne = 4;
  if (op == "dequantize") return std::nullopt;  // until a pass has seen it (passes/quantised_products.cc)
  if (op == "range") return std::nullopt;       // it is one where it is to be left to run time (operators/range.cc)
  const bool arithmetic = IsArithmetic(op) && inputs[0].dtype == kFloat32 && inputs[0].shape == outputs[0].shape;
  const bool direct =
      op == "transpose" || op == "reshape" || op == "identity" || op == "cast" || op == "concat" || arithmetic;
  int64_t cost = 1;
  for (const TensorType& type : outputs) {
    const int64_t elements = *NumElements(type.shape);
    if (elements > (direct ? kMovedElements : kInterpretedElements)) return std::nullopt;
    cost += direct ? elements / kMovedForOne : elements;
  }
  const OpInfo* info = FindOp(op);
  if (info->flop == nullptr) return cost;
  const double flop = info->flop(inputs, attrs, outputs);
  if (flop > static_cast<double>(kInterpretedElements)) return std::nullopt;
  return cost + static_cast<int64_t>(flop);
}

// What folding may cost in a graph that is imported at hundreds of sizes, most of which are no more than looked at
// (graph_at_sizes.h): the transpose of a table of words is left to FoldConstants, for those that are planned.
constexpr int64_t kMostAtEachSize = int64_t{1} << 21;

absl::StatusOr<std::vector<int>> AddFolded(Graph& graph, std::string_view op, std::string name, std::vector<int> inputs,
                                           Attrs attrs) {
  const std::vector<int> arguments = inputs;
  HONE_ASSIGN_OR_RETURN(std::vector<int> outputs, graph.AddNode(op, std::move(name), std::move(inputs), attrs));
  const bool follows = std::ranges::any_of(arguments, [&](int value) { return graph.values[value].follows_sizes; });
  for (const int output : outputs) graph.values[output].follows_sizes = follows;
  const bool nothing = std::all_of(outputs.begin(), outputs.end(),
                                   [&](int output) { return NumElements(graph.type(output).shape) == 0; });
  if (nothing) {  // results without elements need not be computed
    graph.nodes.pop_back();
    for (const int output : outputs)
      graph.values[output].data = std::make_shared<const NdArray>(graph.type(output).dtype, graph.type(output).shape);
    return outputs;
  }
  std::vector<TensorType> input_types, output_types;
  std::vector<std::shared_ptr<const NdArray>> data;
  for (const int argument : arguments) {
    const GraphValue& value = graph.values[argument];
    if (!value.is_constant()) return outputs;
    input_types.push_back(value.type);
    data.push_back(value.data);
  }
  for (const int output : outputs) output_types.push_back(graph.type(output));
  const std::optional<int64_t> cost = EvaluationCost(op, attrs, input_types, output_types);
  if (!cost.has_value() || *cost > graph.fold_budget) return outputs;
  if (graph.sizes_are_open && *cost > kMostAtEachSize) return outputs;
  graph.fold_budget -= *cost;
  absl::StatusOr<std::vector<NdArray>> results = EvaluateOp(op, attrs, data);
  if (absl::IsUnimplemented(results.status())) return outputs;
  if (!results.ok()) return results.status();
  graph.nodes.pop_back();
  for (size_t i = 0; i < outputs.size(); ++i) {
    graph.values[outputs[i]].data = std::make_shared<const NdArray>(std::move((*results)[i]));
  }
  return outputs;
}

}  // namespace hone
