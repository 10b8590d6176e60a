#include "compiler/graph/plan/planner.h"

#include <map>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/plan/group.h"
#include "compiler/graph/plan/group_function.h"
#include "compiler/ir/structural.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph), tensor_of_(graph.values.size(), -1) {}

  absl::StatusOr<Plan> Run(const PlanOptions& options) {
    plan_.model_name = graph_.name;
    FindViews();
    for (const int input : graph_.inputs) plan_.inputs.push_back(Tensor(input));
    for (const int output : graph_.outputs) plan_.outputs.push_back(Output(output));
    for (const Group& group : FormGroups(graph_, options)) {
      const Node& first = graph_.nodes[group.nodes.front()];
      if (first.op == "call_packed") {  // opaque, so the only one of its group
        HONE_RETURN_IF_ERROR(AddCall(first));
        continue;
      }
      HONE_ASSIGN_OR_RETURN(GroupFunction function, MakeGroupFunction(graph_, group));
      std::vector<int> tensors;
      for (const int value : function.params) tensors.push_back(Tensor(value));
      Step(std::move(function), std::move(tensors));
    }
    for (const Copy& copy : copies_) { HONE_RETURN_IF_ERROR(AddCopy(copy)); }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      PlanTensor& output = plan_.tensors[plan_.outputs[i]];
      output.name = graph_.output_names[i];
      if (!graph_.output_elements.empty()) output.element = graph_.output_elements[i];
    }
    return std::move(plan_);
  }

 private:
  struct Copy {
    int value;  // of the graph
    int to;     // tensor
  };

  // The value whose elements a value has, through all views.
  void FindViews() {
    source_.resize(graph_.values.size());
    for (size_t v = 0; v < source_.size(); ++v) source_[v] = static_cast<int>(v);
    for (const Node& node : graph_.nodes) {
      made_.insert(node.outputs.begin(), node.outputs.end());
      if (FindOp(node.op)->kind == OpKind::kView) source_[node.outputs[0]] = source_[node.inputs[0]];
    }
  }

  int AddTensor(const GraphValue& value, PlanTensor::Kind kind) {
    plan_.tensors.push_back({value.name, value.type.dtype, value.type.shape, kind, value.data,
                             kind == PlanTensor::kInput ? value.element : "", -1});
    return static_cast<int>(plan_.tensors.size()) - 1;
  }

  // An output is written where it is made: what it is a view of becomes the view. What is no step's result (an input, a
  // constant, another output already) is copied at the end.
  int Output(int value) {
    const int source = source_[value];
    GraphValue described = graph_.values[value];
    described.data = nullptr;
    const int tensor = AddTensor(described, PlanTensor::kOutput);
    if (made_.count(source) == 0 || storage_.count(source) > 0) {
      copies_.push_back({value, tensor});
      return tensor;
    }
    storage_[source] = tensor;
    tensor_of_[value] = tensor;
    return tensor;
  }

  int Tensor(int value) {
    if (tensor_of_[value] >= 0) return tensor_of_[value];
    const int source = source_[value];
    const bool is_input = std::find(graph_.inputs.begin(), graph_.inputs.end(), value) != graph_.inputs.end();
    const auto storage = storage_.find(source);
    const int root = storage != storage_.end() ? storage->second : source == value ? -1 : Tensor(source);
    const int tensor =
        AddTensor(graph_.values[value], is_input                             ? PlanTensor::kInput
                                        : graph_.values[value].is_constant() ? PlanTensor::kConstant
                                                                             : PlanTensor::kIntermediate);
    plan_.tensors[tensor].alias_of = root;
    return tensor_of_[value] = tensor;
  }

  void Step(GroupFunction function, std::vector<int> tensors) {
    const uint64_t hash = StructuralHash(function.func);
    int task = -1;
    for (const int candidate : by_hash_[hash]) {
      if (StructuralEqual(plan_.tasks[candidate].func, function.func)) task = candidate;
    }
    if (task < 0) {
      task = static_cast<int>(plan_.tasks.size());
      by_hash_[hash].push_back(task);
      std::string name = function.name;
      for (int i = 2; !names_.insert(name).second; ++i) name = absl::StrCat(function.name, "_v", i);
      plan_.tasks.push_back({std::move(function.func), std::move(name), 0, function.flop, function.bytes});
    }
    plan_.tasks[task].weight += 1;
    plan_.steps.push_back({task, std::move(tensors)});
  }

  absl::Status AddCall(const Node& node) {
    PlanStep step{.task = -1,
                  .tensors = {},
                  .packed = StringAttr(node.attrs, "function"),
                  .outputs = static_cast<int>(node.outputs.size())};
    if (step.packed.empty())
      return absl::InvalidArgumentError(absl::StrCat("node \"", node.name, "\" calls a function without a name"));
    for (const std::vector<int>* values : {&node.inputs, &node.outputs}) {
      for (const int value : *values) step.tensors.push_back(Tensor(value));
    }
    plan_.steps.push_back(std::move(step));
    return absl::OkStatus();
  }

  absl::Status AddCopy(const Copy& copy) {
    const TensorType& type = graph_.type(copy.value);
    GroupFunction function;
    function.func = OpFunction("identity", {}, std::span(&type, 1), std::span(&type, 1));
    function.name = absl::StrCat("copy_", absl::StrJoin(type.shape, "x"));
    function.bytes = 2.0 * static_cast<double>(*NumElements(type.shape)) * type.dtype.bytes();
    Step(std::move(function), {Tensor(copy.value), copy.to});
    return absl::OkStatus();
  }

  const Graph& graph_;
  Plan plan_;
  std::vector<int> tensor_of_;  // value -> tensor, -1: none yet
  std::vector<int> source_;     // value -> the value it is a view of, itself
  std::set<int> made_;          // values that a node makes
  std::map<int, int> storage_;  // value -> the output tensor that holds its elements
  std::vector<Copy> copies_;
  std::unordered_map<uint64_t, std::vector<int>> by_hash_;
  std::set<std::string> names_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(Graph graph, const PlanOptions& options) {
  if (options.optimize) { HONE_RETURN_IF_ERROR(Annotate(Optimize(graph), "optimising the graph")); }
  if (options.numeric >= NumericLevel::kBf16) {
    HONE_RETURN_IF_ERROR(Annotate(Bfloat16Products(graph, options.features), "products of bfloat16"));
  }
  HONE_RETURN_IF_ERROR(Annotate(Int8Products(graph, options.features), "products of int8"));
  HONE_RETURN_IF_ERROR(Annotate(Int16Products(graph, options.features), "products of int16"));
  return Planner(graph).Run(options);
}

std::string ToText(const Plan& plan) {
  const auto tensor_text = [&](int t) {
    const PlanTensor& tensor = plan.tensors[t];
    const char* kind = tensor.kind == PlanTensor::kInput      ? "in"
                       : tensor.kind == PlanTensor::kOutput   ? "out"
                       : tensor.kind == PlanTensor::kConstant ? "c"
                                                              : "t";
    return absl::StrCat(kind, t, tensor.alias_of >= 0 ? absl::StrCat("=view of ", tensor.alias_of) : "", "[",
                        absl::StrJoin(tensor.shape, ","), "]");
  };
  std::string text =
      absl::StrCat("plan ", plan.model_name, ": ", plan.steps.size(), " steps, ", plan.tasks.size(), " tasks\n");
  for (const PlanStep& step : plan.steps) {
    absl::StrAppend(
        &text, "  ", NameOf(plan, step), "(",
        absl::StrJoin(step.tensors, ", ", [&](std::string* out, int t) { absl::StrAppend(out, tensor_text(t)); }),
        ")\n");
  }
  return text;
}

}  // namespace hone
