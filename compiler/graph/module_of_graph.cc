#include "compiler/graph/module_of_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "compiler/support/check.h"
#include "compiler/text/literals.h"
#include "compiler/text/names.h"

namespace hone {
namespace {

GraphType GraphTypeOf(const TensorType& type) {
  GraphType result{.kind = GraphType::Kind::kTensor, .dtype = type.dtype, .shape = std::vector<Expr>()};
  for (const int64_t extent : type.shape) result.shape->push_back(IntConst(extent, kInt64));
  return result;
}

// The literal that is read back as the same number: every NaN as the one that the text knows.
Literal FloatLiteral(double value) { return {std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value}; }

GraphExpr ArgumentOf(const Attr& attr) {
  const auto list_of = [](const auto& values) {
    GraphTuple list{.is_list = true};
    for (const auto& value : values) list.items.push_back(GraphExpr::Make(Literal{value}));
    return GraphExpr::Make(std::move(list));
  };
  if (const auto* number = std::get_if<double>(&attr)) return GraphExpr::Make(FloatLiteral(*number));
  if (const auto* integer = std::get_if<int64_t>(&attr)) return GraphExpr::Make(Literal{*integer});
  if (const auto* text = std::get_if<std::string>(&attr)) return GraphExpr::Make(Literal{*text});
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&attr)) return list_of(*integers);
  return list_of(std::get<std::vector<std::string>>(attr));
}

// Element i, in as few digits as the text writes such a number with.
Literal ElementLiteral(const NdArray& array, int64_t i) {
  if (array.dtype.is_bool()) return {array.GetInt(i) != 0};
  if (!array.dtype.is_float()) return {array.GetInt(i)};
  double value = array.Get(i);
  if (std::isfinite(value)) HONE_CHECK(absl::SimpleAtod(FloatDigits(value, array.dtype), &value));
  return FloatLiteral(value);
}

void SetElement(NdArray& array, int64_t i, const Literal& literal) {
  if (const double* number = std::get_if<double>(&literal.value)) {
    array.Set(i, *number);
  } else if (const bool* flag = std::get_if<bool>(&literal.value)) {
    array.SetInt(i, *flag);
  } else {
    array.SetInt(i, std::get<int64_t>(literal.value));
  }
}

// [[1, 2], [3, 4]]; the literal itself where the shape is a scalar's. `next`: the first element of this list.
GraphExpr NestedLists(const std::vector<int64_t>& shape, size_t dim, const std::vector<Literal>& elements,
                      size_t& next) {
  if (dim == shape.size()) return GraphExpr::Make(elements[next++]);
  GraphTuple list{.is_list = true};
  for (int64_t i = 0; i < shape[dim]; ++i) list.items.push_back(NestedLists(shape, dim + 1, elements, next));
  return GraphExpr::Make(std::move(list));
}

// R.const(...) with the bits of the array; nullopt where there is none: lists without elements do not say their shape,
// and a number may be a NaN with bits of its own, or beyond int64.
std::optional<GraphExpr> ConstantInText(const NdArray& array) {
  const int64_t count = array.NumElements();
  if (count == 0 || count > kMostElementsInText) return std::nullopt;
  std::vector<Literal> elements;
  NdArray read(array.dtype, array.shape);
  for (int64_t i = 0; i < count; ++i) {
    const Literal& literal = elements.emplace_back(ElementLiteral(array, i));
    const int64_t* integer = std::get_if<int64_t>(&literal.value);
    if (integer != nullptr && *integer < 0 && array.dtype.code == TypeCode::kUInt) return std::nullopt;
    SetElement(read, i, literal);
  }
  if (read.data != array.data) return std::nullopt;
  size_t next = 0;
  return GraphExpr::Make(TensorConstant{array.dtype, NestedLists(array.shape, 0, elements, next)});
}

class ModuleWriter {
 public:
  explicit ModuleWriter(const Graph& graph) : graph_(graph), uses_(graph), vars_(graph.values.size()) {}

  GraphModule Write() {
    result_.module.name = "Module";
    NameTable function_names;
    for (const auto& [name, function] : graph_.functions) {
      PrimFunc named = function;
      named.name = functions_[name] = function_names.Define(functions_.size(), name);
      result_.module.functions.emplace_back(std::move(named));
    }
    GraphFunc main = Main();
    main.name = function_names.Define(functions_.size(), "main");
    result_.module.functions.emplace_back(std::move(main));
    return std::move(result_);
  }

 private:
  GraphFunc Main() {
    DefineInputsAndOutputs();
    GraphFunc main;
    for (const int input : graph_.inputs) main.params.push_back(vars_[input]);
    BindingBlock block{.is_dataflow = true};
    for (const Node& node : graph_.nodes) Bind(node, block);
    Return(block, main);
    if (!block.bindings.empty()) main.blocks.push_back(std::move(block));
    SetAttributes(main);
    return main;
  }

  void Define(int value, const std::string& name) {
    vars_[value] = GraphVar(names_.Define(next_name_++, name), GraphTypeOf(graph_.type(value)));
  }

  // Before all others, so that these have the names that the model gives them.
  void DefineInputsAndOutputs() {
    for (const int input : graph_.inputs) Define(input, graph_.values[input].name);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const int output = graph_.outputs[i];
      if (uses_.producer[output] >= 0 && !vars_[output]) Define(output, graph_.output_names[i]);
    }
  }

  void Bind(const Node& node, BindingBlock& block) {
    for (const int output : node.outputs) {
      if (!vars_[output]) Define(output, graph_.values[output].name);
    }
    if (node.outputs.size() == 1) {
      block.bindings.push_back({vars_[node.outputs[0]], Call(node)});
      return;
    }
    GraphType type{.kind = GraphType::Kind::kTuple, .fields = OutputTypes(node)};
    const GraphVar tuple(names_.Define(next_name_++, node.name), std::move(type));
    block.bindings.push_back({tuple, Call(node)});
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const GraphExpr all = GraphExpr::Make(GraphVarRef{tuple});
      block.bindings.push_back({vars_[node.outputs[i]], GraphExpr::Make(TupleItem{all, static_cast<int64_t>(i)})});
    }
  }

  std::vector<GraphType> OutputTypes(const Node& node) const {
    std::vector<GraphType> types;
    for (const int output : node.outputs) types.push_back(GraphTypeOf(graph_.type(output)));
    return types;
  }

  GraphExpr Call(const Node& node) {
    std::vector<GraphExpr> args;
    for (const int input : node.inputs) args.push_back(Value(input));
    const bool packed = node.op == "call_packed";
    if (packed || node.op == "call_tir") {
      const std::string name = StringAttr(node.attrs, "function");
      HONE_CHECK(packed || functions_.contains(name)) << node.name << " calls " << name << ", which the graph lacks";
      return GraphExpr::Make(CallTir{.packed = packed,
                                     .function = packed ? name : functions_[name],
                                     .args = std::move(args),
                                     .outputs = OutputTypes(node)});
    }
    GraphCall call{.op = "hone." + node.op, .args = std::move(args)};
    for (const auto& [name, attr] : node.attrs) call.named.emplace_back(name, ArgumentOf(attr));
    return GraphExpr::Make(std::move(call));
  }

  GraphExpr Value(int value) {
    const std::shared_ptr<const NdArray>& data = graph_.values[value].data;
    if (data == nullptr) return GraphExpr::Make(GraphVarRef{vars_[value]});
    if (std::optional<GraphExpr> in_text = ConstantInText(*data)) return *std::move(in_text);
    const auto [stored, is_new] = stored_.emplace(data.get(), static_cast<int64_t>(result_.constants.size()));
    if (is_new) result_.constants.push_back(data);
    return GraphExpr::Make(StoredConstant{stored->second});
  }

  void Return(BindingBlock& block, GraphFunc& main) {
    GraphTuple results;
    GraphType types{.kind = GraphType::Kind::kTuple};
    for (const int output : graph_.outputs) {
      results.items.push_back(Value(output));
      types.fields.push_back(GraphTypeOf(graph_.type(output)));
      if (uses_.producer[output] >= 0 && std::ranges::find(block.outputs, vars_[output]) == block.outputs.end())
        block.outputs.push_back(vars_[output]);
    }
    const bool is_one = graph_.outputs.size() == 1;
    main.result = is_one ? results.items[0] : GraphExpr::Make(std::move(results));
    main.returns = is_one ? types.fields[0] : std::move(types);
  }

  void SetAttributes(GraphFunc& main) const {
    std::vector<std::string> domains, elements;
    for (const int input : graph_.inputs) {
      domains.push_back(graph_.values[input].domain);
      elements.push_back(graph_.values[input].element);
    }
    const auto set = [&](const char* name, const std::vector<std::string>& texts) {
      if (!std::ranges::all_of(texts, &std::string::empty)) main.attrs[name] = texts;
    };
    set("domains", domains);
    set("elements", elements);
    set("output_elements", graph_.output_elements);
  }

  const Graph& graph_;
  const Uses uses_;
  GraphModule result_;
  std::map<std::string, std::string> functions_;  // the graph's name of a tensor function -> the module's
  NameTable names_;                               // of values
  uint64_t next_name_ = 0;                        // the key of the next
  std::vector<GraphVar> vars_;                    // of each value but constants
  std::map<const NdArray*, int64_t> stored_;
};

}  // namespace

GraphModule ModuleOf(const Graph& graph) { return ModuleWriter(graph).Write(); }

}  // namespace hone
