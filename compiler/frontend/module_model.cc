#include "compiler/frontend/module_model.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/frontend/module_literals.h"
#include "compiler/graph/calls.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr char kFunctionDomain[] = "cls";  // graph functions of the module
constexpr int64_t kOperatorSet = 22;       // of ONNX: what operators of the dialect that are said with its own mean

// The names of a value's tensors: one, or those of a tuple.
struct Tensors {
  std::vector<std::string> names;
  bool is_tuple = false;
};

// One graph function as a graph of nodes.
class FunctionReader {
 public:
  FunctionReader(const GraphFunc& func, const ImportOptions& options, OnnxModel& model,
                 std::vector<std::string>& problems)
      : func_(func), options_(options), model_(model), problems_(problems) {
    for (const Var& dim : func.dims) {
      const auto chosen = options.dims.find(dim.name());
      sizes_[dim] = chosen == options.dims.end() ? 1 : chosen->second;
    }
  }

  // The function as the model: its parameters are inputs, or constants where the options have a value.
  absl::Status ReadModel() {
    model_.graph.name = func_.name;
    graph_ = &model_.graph;
    for (const GraphVar& param : func_.params) {
      HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const NdArray> bound, Stored(param.name()));
      const std::string name = Define(param).names[0];
      const absl::Status added = bound != nullptr ? Bind(param, name, bound) : AddInput(param, name);
      if (!added.ok()) Problem(absl::StrCat("parameter \"", param.name(), "\""), added);
    }
    HONE_RETURN_IF_ERROR(ReadBody());
    ReadAttributes();
    return absl::OkStatus();
  }

  // The function as one that nodes call.
  absl::Status ReadFunction(OnnxFunction& function) {
    graph_ = &function.body;
    for (const Var& dim : func_.dims) {
      if (!options_.dims.contains(dim.name()))
        Problem(absl::StrCat("function \"", func_.name, "\""),
                Unclear("its size ", dim.name(), " is not given; --dim ", dim.name(), "=SIZE gives it"));
    }
    function.opsets = model_.opsets;
    for (const GraphVar& param : func_.params) function.inputs.push_back(Define(param).names[0]);
    return ReadBody();
  }

 private:
  void Problem(const std::string& where, const absl::Status& status) {
    problems_.push_back(absl::StrCat(where, ": ", status.message()));
  }

  std::string Unique(const std::string& name) {
    std::string unique = name;
    for (int i = 1; !names_.insert(unique).second; ++i) unique = absl::StrCat(name, "_", i);
    return unique;
  }
  const Tensors& Define(const GraphVar& var) { return values_[var.id()] = Tensors{{Unique(var.name())}}; }

  absl::StatusOr<std::shared_ptr<const NdArray>> Stored(const std::string& name) const {
    if (options_.constants == nullptr) return nullptr;
    return options_.constants(name);
  }

  absl::StatusOr<int64_t> SizeOf(const Expr& extent) const {
    const std::optional<int64_t> size = EvaluateSize(extent, sizes_);
    if (!size.has_value()) return Unclear("a size that does not follow from symbolic ones");
    return *size;
  }

  absl::StatusOr<TensorType> TensorTypeOf(const GraphType& type) const {
    if (type.kind != GraphType::Kind::kTensor || !type.dtype.has_value() || !type.shape.has_value())
      return Unclear("it needs a type such as R.Tensor((1, 128), dtype=\"float32\")");
    TensorType result{*type.dtype, {}};
    for (const Expr& extent : *type.shape) { HONE_ASSIGN_OR_RETURN(result.shape.emplace_back(), SizeOf(extent)); }
    return result;
  }

  absl::Status AddInput(const GraphVar& param, const std::string& name) {
    if (!param.type().has_value()) return Unclear("it has no type");
    HONE_ASSIGN_OR_RETURN(const TensorType type, TensorTypeOf(*param.type()));
    OnnxInput input{.name = name, .dtype = type.dtype, .has_shape = true};
    for (size_t d = 0; d < type.shape.size(); ++d) {
      const VarRef* symbol = (*param.type()->shape)[d].As<VarRef>();
      input.dims.push_back(symbol == nullptr ? OnnxDim{type.shape[d], ""} : OnnxDim{-1, symbol->var.name()});
    }
    graph_->inputs.push_back(std::move(input));
    return absl::OkStatus();
  }

  absl::Status Bind(const GraphVar& param, const std::string& name, const std::shared_ptr<const NdArray>& bound) {
    if (param.type().has_value()) {
      HONE_ASSIGN_OR_RETURN(const TensorType type, TensorTypeOf(*param.type()));
      const TensorType given{bound->dtype, bound->shape};
      if (!(given == type)) return Unclear("it is bound to ", ToText(given), ", but is ", ToText(type));
    }
    graph_->initializers[name] = bound;
    return absl::OkStatus();
  }

  // A list of texts among the function's attributes, so many; empty when there is none.
  std::vector<std::string> TextsOf(const std::string& attribute, size_t count) {
    const auto found = func_.attrs.find(attribute);
    if (found == func_.attrs.end()) return {};
    const auto* texts = std::get_if<std::vector<std::string>>(&found->second);
    if (texts != nullptr && texts->size() == count) return *texts;
    Problem(absl::StrCat("attribute \"", attribute, "\""), Unclear("it has not ", count, " texts"));
    return {};
  }

  // Of each parameter the values it takes, and of parameters and outputs the narrow types of their elements
  // (module_of_graph.h); "" where there is nothing to say.
  void ReadAttributes() {
    const std::vector<std::string> domains = TextsOf("domains", func_.params.size());
    for (size_t p = 0; p < domains.size(); ++p) {
      if (!domains[p].empty()) model_.metadata["domain." + func_.params[p].name()] = domains[p];
    }
    const std::vector<std::string> elements = TextsOf("elements", func_.params.size());
    for (size_t p = 0; p < elements.size(); ++p) {
      for (OnnxInput& input : graph_->inputs) {
        if (input.name == func_.params[p].name()) input.element = elements[p];
      }
    }
    model_.output_elements = TextsOf("output_elements", graph_->outputs.size());
  }

  absl::Status ReadBody() {
    for (const BindingBlock& block : func_.blocks) {
      for (const GraphBinding& binding : block.bindings) {
        absl::StatusOr<Tensors> value = Read(binding.value, binding.var.name(), binding.var.type());
        if (!value.ok()) {
          Problem(absl::StrCat("\"", binding.var.name(), "\""), value.status());
          continue;
        }
        values_[binding.var.id()] = *std::move(value);
      }
    }
    absl::StatusOr<Tensors> result = Read(func_.result, "result", func_.returns);
    if (!result.ok()) {
      Problem("what the function returns", result.status());
      return absl::OkStatus();
    }
    graph_->outputs = std::move(result->names);
    NameOutputs();
    return absl::OkStatus();
  }

  // Outputs have the names of the variables that are returned, also where these are other names of a value.
  void NameOutputs() {
    const auto* tuple = func_.result.As<GraphTuple>();
    const std::vector<GraphExpr> returned = tuple == nullptr ? std::vector{func_.result} : tuple->items;
    for (size_t i = 0; i < graph_->outputs.size() && graph_->outputs.size() == returned.size(); ++i) {
      const auto* var = returned[i].As<GraphVarRef>();
      std::string& output = graph_->outputs[i];
      if (var == nullptr || var->var.name() == output || !names_.insert(var->var.name()).second) continue;
      graph_->nodes.push_back(
          {.name = var->var.name(), .op = "Identity", .inputs = {output}, .outputs = {var->var.name()}});
      output = var->var.name();
    }
  }

  // The tensors of an expression. `name`: of what is made for it.
  absl::StatusOr<Tensors> Read(const GraphExpr& e, const std::string& name, const std::optional<GraphType>& type) {
    if (const auto* var = e.As<GraphVarRef>()) {
      if (const auto found = values_.find(var->var.id()); found != values_.end()) return found->second;
      return Unclear("it reads \"", var->var.name(), "\", which could not be made");
    }
    if (const auto* tuple = e.As<GraphTuple>()) return ReadTuple(*tuple, name);
    if (const auto* item = e.As<TupleItem>()) {
      HONE_ASSIGN_OR_RETURN(Tensors tuple, Read(item->tuple, name, std::nullopt));
      if (!tuple.is_tuple || item->index < 0 || item->index >= static_cast<int64_t>(tuple.names.size()))
        return Unclear("it takes item ", item->index, " of what has ", tuple.names.size());
      return Tensors{{tuple.names[static_cast<size_t>(item->index)]}};
    }
    if (const auto* constant = e.As<TensorConstant>()) return ReadConstant(*constant, name);
    if (const auto* stored = e.As<StoredConstant>()) {
      HONE_ASSIGN_OR_RETURN(std::shared_ptr<const NdArray> data, Stored(absl::StrCat(stored->index)));
      if (data == nullptr) return Unclear("constant ", stored->index, ", which is outside of the text, is not given");
      return AddConstant(name, std::move(data));
    }
    if (const auto* call = e.As<CallTir>()) return ReadCallTir(*call, name);
    if (const auto* call = e.As<GraphCall>()) return ReadCall(*call, name, type);
    return Unclear("a value that is no tensor");
  }

  absl::StatusOr<Tensors> ReadTuple(const GraphTuple& tuple, const std::string& name) {
    Tensors value{.is_tuple = true};
    for (const GraphExpr& item : tuple.items) {
      HONE_ASSIGN_OR_RETURN(const Tensors part, Read(item, name, std::nullopt));
      if (part.is_tuple) return Unclear("a tuple in a tuple");
      value.names.push_back(part.names[0]);
    }
    return value;
  }

  Tensors AddConstant(const std::string& name, std::shared_ptr<const NdArray> data) {
    const std::string unique = Unique(name);
    graph_->initializers[unique] = std::move(data);
    return Tensors{{unique}};
  }

  absl::StatusOr<Tensors> ReadConstant(const TensorConstant& constant, const std::string& name) {
    HONE_ASSIGN_OR_RETURN(NdArray array, ArrayOf(constant));
    return AddConstant(name, std::make_shared<const NdArray>(std::move(array)));
  }

  // A node with so many outputs.
  Tensors AddNode(OnnxNode node, const std::string& name, size_t outputs, bool is_tuple) {
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(Unique(i == 0 ? name : absl::StrCat(name, "_", i)));
    node.name = node.outputs[0];
    Tensors value{node.outputs, is_tuple};
    graph_->nodes.push_back(std::move(node));
    return value;
  }

  absl::StatusOr<Tensors> ReadCallTir(const CallTir& call, const std::string& name) {
    if (!call.sizes.empty()) return Unclear("sizes handed over beside the tensors are not supported");
    OnnxNode node{.op = call.packed ? "call_packed" : "call_tir", .domain = std::string(kModuleDomain)};
    for (const GraphExpr& arg : call.args) {
      HONE_ASSIGN_OR_RETURN(const Tensors value, Read(arg, absl::StrCat(name, "_arg"), std::nullopt));
      node.inputs.insert(node.inputs.end(), value.names.begin(), value.names.end());
    }
    std::vector<TensorType> outputs;
    for (const GraphType& type : call.outputs) { HONE_ASSIGN_OR_RETURN(outputs.emplace_back(), TensorTypeOf(type)); }
    for (const auto& [attribute, value] : CallAttrs(call.function, outputs))
      std::visit([&, to = &node.attributes[attribute]](const auto& v) { *to = v; }, value);
    return AddNode(std::move(node), name, outputs.size(), outputs.size() > 1);
  }

  // An argument by its place: tensors, or numbers that are known now.
  absl::Status AddArgument(const GraphExpr& arg, const std::string& name, OnnxNode& node) {
    if (std::optional<NdArray> numbers = NumbersIn(arg, sizes_); numbers.has_value()) {
      node.inputs.push_back(AddConstant(name, std::make_shared<const NdArray>(*std::move(numbers))).names[0]);
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const Tensors value, Read(arg, name, std::nullopt));
    node.inputs.insert(node.inputs.end(), value.names.begin(), value.names.end());
    return absl::OkStatus();
  }

  absl::StatusOr<Tensors> ReadCall(const GraphCall& call, const std::string& name,
                                   const std::optional<GraphType>& type) {
    OnnxNode node{.op = call.op, .domain = std::string(kModuleDomain)};
    if (call.callee) {
      const auto* function = call.callee.As<FunctionRef>();
      if (function == nullptr) return Unclear("it calls what is no function of the module");
      node.op = function->name;
      node.domain = kFunctionDomain;
    }
    if (absl::StartsWith(node.op, "hone.")) {
      node.op = std::string(absl::StripPrefix(node.op, "hone."));
      node.domain = std::string(kGraphDomain);
    }
    for (const GraphExpr& arg : call.args) HONE_RETURN_IF_ERROR(AddArgument(arg, absl::StrCat(name, "_arg"), node));
    for (const auto& [attribute, e] : call.named) {
      HONE_ASSIGN_OR_RETURN(std::optional<OnnxAttribute> value, AttributeOf(e, sizes_));
      if (value.has_value()) node.attributes[attribute] = *std::move(value);
    }
    const std::optional<size_t> outputs = OutputsInTuple(node, type);
    return AddNode(std::move(node), name, outputs.value_or(1), outputs.has_value());
  }

  // How many values a call gives back as a tuple; nullopt when it gives one back as it is.
  static std::optional<size_t> OutputsInTuple(const OnnxNode& node, const std::optional<GraphType>& type) {
    if (type.has_value() && type->kind == GraphType::Kind::kTuple) return type->fields.size();
    if (node.op == "nn.batch_norm") return 3;
    const auto parts = node.attributes.find("indices_or_sections");
    if (node.op != "split" || parts == node.attributes.end()) return std::nullopt;
    if (const auto* sections = std::get_if<int64_t>(&parts->second)) return std::clamp<int64_t>(*sections, 0, 1 << 16);
    if (const auto* indices = std::get_if<std::vector<int64_t>>(&parts->second)) return indices->size() + 1;
    return std::nullopt;
  }

  const GraphFunc& func_;
  const ImportOptions& options_;
  OnnxModel& model_;
  std::vector<std::string>& problems_;
  OnnxGraph* graph_ = nullptr;
  SizeValues sizes_;
  std::map<uint64_t, Tensors> values_;  // by the variable's id
  std::set<std::string> names_;
};

// "main", or the only one.
absl::StatusOr<const GraphFunc*> MainOf(const IrModule& module) {
  std::vector<const GraphFunc*> found;
  for (const auto& function : module.functions) {
    const GraphFunc* graph = std::get_if<GraphFunc>(&function);
    if (graph == nullptr) continue;
    if (graph->name == "main") return graph;
    if (!graph->is_private) found.push_back(graph);
  }
  if (found.size() == 1) return found[0];
  return Unclear(found.empty() ? "the module has no graph function (@R.function)"
                               : "the module has several graph functions, of which none is called main");
}

}  // namespace

absl::StatusOr<OnnxModel> ModelOfModule(const IrModule& module, const ImportOptions& options,
                                        std::vector<std::string>& problems) {
  HONE_ASSIGN_OR_RETURN(const GraphFunc* const main, MainOf(module));
  OnnxModel model;
  for (const std::string_view domain :
       {std::string_view(), kModuleDomain, kGraphDomain, std::string_view(kFunctionDomain)})
    model.opsets[std::string(domain)] = kOperatorSet;
  for (const auto& function : module.functions) {
    if (const PrimFunc* tensor_function = std::get_if<PrimFunc>(&function))
      model.tensor_functions[tensor_function->name] = *tensor_function;
    const GraphFunc* graph = std::get_if<GraphFunc>(&function);
    if (graph == nullptr || graph == main) continue;
    HONE_RETURN_IF_ERROR(FunctionReader(*graph, options, model, problems)
                             .ReadFunction(model.functions[{kFunctionDomain, graph->name, ""}]));
  }
  HONE_RETURN_IF_ERROR(FunctionReader(*main, options, model, problems).ReadModel());
  return model;
}

}  // namespace hone
