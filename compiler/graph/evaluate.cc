#include "compiler/graph/evaluate.h"

#include <algorithm>

#include "compiler/graph/op.h"
#include "compiler/interp/interpreter.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {

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
  if (info->kind == OpKind::kView) {
    results.push_back(*inputs[0]);
    results[0].shape = outputs[0].shape;
    results[0].dtype = outputs[0].dtype;
    return results;
  }
  if (info->evaluation.AppliesTo(types, outputs[0])) {
    results.push_back(info->evaluation.run(inputs, attrs, outputs[0]));
    return results;
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
  constexpr int64_t kMovedElements = int64_t{1} << 27, kInterpretedElements = int64_t{1} << 24, kMovedForOne = 4;
  const OpInfo* info = FindOp(op);
  if (!info->folds) return std::nullopt;
  const bool direct = info->kind == OpKind::kView || info->evaluation.AppliesTo(inputs, outputs[0]);
  int64_t cost = 1;
  for (const TensorType& type : outputs) {
    const int64_t elements = *NumElements(type.shape);
    if (elements > (direct ? kMovedElements : kInterpretedElements)) return std::nullopt;
    cost += direct ? elements / kMovedForOne : elements;
  }
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
