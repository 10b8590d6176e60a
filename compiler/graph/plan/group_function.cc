#include "compiler/graph/plan/group_function.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/op.h"
#include "compiler/graph/plan/param_domains.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

// The formula of a tensor without dimensions, in terms of the given values of the placeholders it is made of.
Expr Formula(const te::Tensor& t, const std::map<Buffer, Expr>& values) {
  const te::Stage& stage = t.stage();
  return RewriteBottomUp(stage.body->values()[t.output()], [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr) return std::nullopt;
    if (const auto found = values.find(load->buffer); found != values.end()) return found->second;
    for (const te::Tensor& input : stage.inputs) {
      if (input.buffer() == load->buffer) return Formula(input, values);
    }
    return std::nullopt;  // a load of an operand put in already, where the operation around it vanished
  });
}

class Lowering {
 public:
  Lowering(const Graph& graph, const Group& group)
      : graph_(graph), group_(group), members_(group.nodes.begin(), group.nodes.end()) {
    for (const int n : group.nodes) {
      for (const int output : graph.nodes[n].outputs) producer_[output] = n;
      for (const int input : graph.nodes[n].inputs) ++reads_[input];
    }
  }

  // The results of the last node; every value from outside becomes a placeholder, in the order of first use.
  std::vector<te::Tensor> Run() {
    const Node& last = graph_.nodes[group_.nodes.back()];
    if (group_.anchor >= 0) Materialise(graph_.nodes[group_.anchor].outputs[0]);  // its operands are the first params
    std::vector<te::Tensor> results;
    for (const int output : last.outputs) results.push_back(Materialise(output));
    return results;
  }

  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<te::Tensor>& placeholders() const { return placeholders_; }

 private:
  bool IsElementwise(int value) const {
    const auto producer = producer_.find(value);
    return producer != producer_.end() && FindOp(graph_.nodes[producer->second].op)->kind == OpKind::kElementwise;
  }

  // A value as a tensor of its own: a block, or a param.
  te::Tensor Materialise(int value) {
    if (const auto found = tensors_.find(value); found != tensors_.end()) return found->second;
    const auto producer = producer_.find(value);
    if (producer == producer_.end()) return Placeholder(value);
    const Node& node = graph_.nodes[producer->second];
    if (IsElementwise(value)) {
      const te::Shape shape(graph_.type(value).shape);
      const Expression expression = Compose(value, /*root=*/true, shape);
      const auto element = [&](const te::Indices& at) { return expression.at(at); };
      std::vector<std::string> names;
      for (const std::string& name : expression.names) {
        if (names.size() < 4) names.push_back(name);
      }
      return tensors_[value] = te::Compute(shape, element, absl::StrJoin(names, "_"));
    }
    std::vector<te::Tensor> inputs;
    std::vector<TensorType> outputs;
    for (const int input : node.inputs) inputs.push_back(Materialise(input));
    for (const int output : node.outputs) outputs.push_back(graph_.type(output));
    const std::vector<te::Tensor> results = FindOp(node.op)->lower(inputs, node.attrs, outputs);
    for (size_t i = 0; i < results.size(); ++i) tensors_[node.outputs[i]] = results[i];
    return tensors_.at(value);
  }

  // One block's element as a function of its index; `names` says of which operators.
  struct Expression {
    std::function<Expr(const te::Indices&)> at;
    std::vector<std::string> names;
  };

  // `shape` is that of the block: an input's own element there is its broadcast one.
  Expression Compose(int value, bool root, const te::Shape& shape) {
    const GraphValue& v = graph_.values[value];
    if (v.is_constant() && v.data->NumElements() == 1) {
      const Expr literal = v.type.dtype.is_float() ? FloatConst(v.data->Get(0), v.type.dtype)
                                                   : IntConst(v.data->GetInt(0), v.type.dtype);
      return {[literal](const te::Indices&) { return literal; }, {}};
    }
    // A value that is read twice is computed once, in a block of its own.
    const bool joins = root || (IsElementwise(value) && reads_.at(value) == 1 && tensors_.count(value) == 0);
    if (!joins) return Access(Materialise(value), shape);
    const Node& node = graph_.nodes[producer_.at(value)];
    std::vector<int> inputs = node.inputs;
    const bool commutes = node.op == "add" || node.op == "multiply" || node.op == "minimum" || node.op == "maximum";
    // What the group makes comes first, so that conv + x and x + conv are one task.
    if (commutes && producer_.count(inputs[0]) == 0 && producer_.count(inputs[1]) > 0) std::swap(inputs[0], inputs[1]);
    std::vector<Expression> operands;
    std::vector<te::Tensor> symbols;
    std::vector<std::string> names;
    for (const int input : inputs) {
      // An operand that is broadcast would be computed again for every element: it gets a block of its own.
      const bool same_shape = graph_.type(input).shape == v.type.shape;
      operands.push_back(same_shape || !IsElementwise(input) ? Compose(input, false, shape)
                                                             : Access(Materialise(input), shape));
      names.insert(names.end(), operands.back().names.begin(), operands.back().names.end());
      symbols.push_back(te::Placeholder(te::Shape(), graph_.type(input).dtype, absl::StrCat("x", symbols.size())));
    }
    names.push_back(node.op);
    const TensorType scalar{v.type.dtype, {}};
    const te::Tensor formula = FindOp(node.op)->lower(symbols, node.attrs, std::span(&scalar, 1))[0];
    const auto at = [formula, symbols, operands](const te::Indices& indices) {
      std::map<Buffer, Expr> values;
      for (size_t i = 0; i < symbols.size(); ++i) values[symbols[i].buffer()] = operands[i].at(indices);
      return Formula(formula, values);
    };
    return {at, names};
  }

  static Expression Access(const te::Tensor& t, const te::Shape& shape) {
    return {[t, shape](const te::Indices& at) { return topi::BroadcastAccess(t, at, shape); }, {}};
  }

  te::Tensor Placeholder(int value) {
    const GraphValue& v = graph_.values[value];
    const std::string name = absl::StrCat(v.is_constant() ? "w" : "x", inputs_.size());
    const te::Tensor t = te::Placeholder(te::Shape(v.type.shape), v.type.dtype, name);
    inputs_.push_back(value);
    placeholders_.push_back(t);
    return tensors_[value] = t;
  }

  const Graph& graph_;
  const Group& group_;
  std::set<int> members_;
  std::map<int, int> producer_;  // value -> node of the group
  std::map<int, int> reads_;     // value -> reads inside the group
  std::map<int, te::Tensor> tensors_;
  std::vector<int> inputs_;
  std::vector<te::Tensor> placeholders_;
};

// Of each single operator, where its kind does not say more than its output: "softmax_128x768".
std::string ShapeText(const std::vector<int64_t>& shape) {
  const size_t skip = shape.size() > 1 && shape[0] == 1 ? 1 : 0;  // the batch
  return absl::StrJoin(shape.begin() + static_cast<int64_t>(skip), shape.end(), "x");
}

// "2" for 2, 2; "2x1" for 2, 1.
std::string SameText(const std::vector<int64_t>& v) {
  const bool same = std::all_of(v.begin(), v.end(), [&](int64_t x) { return x == v[0]; });
  return same ? absl::StrCat(v[0]) : absl::StrJoin(v, "x");
}

std::string AnchorName(const Graph& graph, const Node& node) {
  const std::vector<int64_t>& out = graph.type(node.outputs[0]).shape;
  const std::string shape = ShapeText(out);
  if (node.op == "conv" || node.op == "depthwise_conv2d" || node.op == "conv_transpose") {
    const std::vector<int64_t>& w = graph.type(node.inputs[1]).shape;
    const size_t spatial = out.size() - 2;
    const std::vector<int64_t> strides = IntsAttr(node.attrs, "strides", std::vector<int64_t>(spatial, 1));
    const std::vector<int64_t> dilations = IntsAttr(node.attrs, "dilations", std::vector<int64_t>(spatial, 1));
    const int64_t groups = IntAttr(node.attrs, "groups", 1);
    std::string name = node.op == "depthwise_conv2d" ? node.op : absl::StrCat(node.op, spatial, "d");
    absl::StrAppend(&name, "_", absl::StrJoin(w.begin(), w.begin() + static_cast<int64_t>(spatial), "x"), "_s",
                    SameText(strides));
    if (SameText(dilations) != "1") absl::StrAppend(&name, "_d", SameText(dilations));
    if (groups > 1) absl::StrAppend(&name, "_g", groups);
    return absl::StrCat(name, "_", shape);
  }
  if (node.op == "dense")
    return absl::StrCat("dense_", absl::StrJoin(out, "x"), "x", graph.type(node.inputs[1]).shape[0]);
  if (node.op == "batch_matmul") {
    const std::vector<int64_t>& a = graph.type(node.inputs[0]).shape;
    return absl::StrCat("batch_matmul_", absl::StrJoin(out, "x"), "x",
                        a[IntsAttr(node.attrs, "a_order", {static_cast<int64_t>(a.size()) - 1}).back()]);
  }
  if (node.op == "max_pool" || node.op == "avg_pool") {
    return absl::StrCat(node.op, "_", absl::StrJoin(IntsAttr(node.attrs, "kernel"), "x"), "_s",
                        SameText(IntsAttr(node.attrs, "strides", std::vector<int64_t>(out.size() - 2, 1))), "_", shape);
  }
  if (node.op.starts_with("reduce_")) {
    return absl::StrCat(node.op.substr(7), "_", ShapeText(graph.type(node.inputs[0]).shape),
                        shape.empty() ? "" : absl::StrCat("_to_", shape));
  }
  return shape.empty() ? node.op : absl::StrCat(node.op, "_", shape);
}

// The outermost blocks that have iteration variables, with how many instances each has: not the root, nor a scalar's.
void ForEachIterated(const PrimFunc& func, const std::function<void(const Block& block, double instances)>& f) {
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || realize->block.iters.empty()) return true;
    double instances = 1;
    for (const IterVar& iter : realize->block.iters)
      instances *= static_cast<double>(ConstantValue(iter.domain.extent).value_or(1));
    f(realize->block, instances);
    return false;
  });
}

// Elements of a param that a run reads or writes: all of them, or fewer where fewer instances touch it (a gather takes
// some rows of a table).
double Touched(const PrimFunc& func, const Buffer& param) {
  double touches = 0;
  ForEachIterated(func, [&](const Block& block, double instances) {
    double places = 0;
    ForEachExpr(block.body, [&](const Expr& e) {
      const Load* load = e.As<Load>();
      places += load != nullptr && load->buffer == param ? 1 : 0;
      return true;
    });
    for (const BufferRegion& write : block.writes) places += write.buffer == param ? 1 : 0;
    touches += instances * places;
  });
  const double elements = static_cast<double>(param.NumElements().value_or(0));
  return touches > 0 ? std::min(elements, touches) : elements;
}

// Operations on floating-point numbers of one run, as they stand in the blocks.
double OperationsOf(const PrimFunc& func) {
  double flop = 0;
  ForEachIterated(func, [&](const Block& block, double instances) {
    double operations = 0;
    ForEachExpr(block.body, [&](const Expr& e) {
      const bool is_operation = e.As<Binary>() != nullptr || e.As<Call>() != nullptr;
      operations += is_operation && e.type().is_float() ? 1 : 0;
      return true;
    });
    flop += instances * operations;
  });
  return flop;
}

// What is known of the params of the group's function: which are constants, which values they take.
Attrs ParamAttrs(const Graph& graph, const Group& group, const std::vector<int>& inputs) {
  Attrs attrs;
  std::vector<int64_t> constants;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (graph.values[inputs[i]].is_constant()) constants.push_back(static_cast<int64_t>(i));
  }
  if (!constants.empty()) attrs["constants"] = constants;
  std::vector<std::string> domains = ParamDomains(graph, group, inputs);
  domains.resize(inputs.size() + graph.nodes[group.nodes.back()].outputs.size());
  if (std::any_of(domains.begin(), domains.end(), [](const std::string& d) { return !d.empty(); }))
    attrs["domains"] = domains;
  return attrs;
}

}  // namespace

std::string GroupName(const Graph& graph, const Group& group) {
  constexpr size_t kMostNames = 6;
  const Node& last = graph.nodes[group.nodes.back()];
  if (FindOp(last.op)->calls_function) return StringAttr(last.attrs, "function");
  std::string name;
  std::vector<std::string> before, after;
  for (const int n : group.nodes) {
    if (n == group.anchor) continue;
    const OpKind kind = FindOp(graph.nodes[n].op)->kind;
    if (group.anchor >= 0 && kind == OpKind::kView) continue;
    const bool of_its_own = kind == OpKind::kAnchor;  // in front of the anchor
    (group.anchor >= 0 && n < group.anchor ? before : after)
        .push_back(of_its_own ? AnchorName(graph, graph.nodes[n]) : graph.nodes[n].op);
  }
  const auto append = [&](const std::vector<std::string>& ops) {
    for (size_t i = 0; i < ops.size() && i < kMostNames; ++i) absl::StrAppend(&name, name.empty() ? "" : "_", ops[i]);
    if (ops.size() > kMostNames) absl::StrAppend(&name, "_and_", ops.size() - kMostNames);
  };
  if (group.anchor >= 0) {
    append(before);
    absl::StrAppend(&name, name.empty() ? "" : "_", AnchorName(graph, graph.nodes[group.anchor]));
    append(after);
    return name;
  }
  append(after);
  const std::string shape = ShapeText(graph.type(last.outputs[0]).shape);
  return shape.empty() ? name : absl::StrCat(name, "_", shape);
}

absl::StatusOr<GroupFunction> MakeGroupFunction(const Graph& graph, const Group& group) {
  GroupFunction result;
  result.name = GroupName(graph, group);
  const Node& last = graph.nodes[group.nodes.back()];
  if (FindOp(last.op)->calls_function) {
    result.func = graph.functions.at(StringAttr(last.attrs, "function"));
    result.func.name = "main";
    result.func.attrs = ParamAttrs(graph, group, last.inputs);
    result.func.attrs["outputs"] = static_cast<int64_t>(last.outputs.size());
    result.params = last.inputs;
  } else {
    Lowering lowering(graph, group);
    const std::vector<te::Tensor> outputs = lowering.Run();
    result.params = lowering.inputs();
    result.func = te::CreatePrimFunc(lowering.placeholders(), outputs, "main", ParamAttrs(graph, group, result.params));
  }
  result.params.insert(result.params.end(), last.outputs.begin(), last.outputs.end());
  HONE_RETURN_IF_ERROR(Annotate(Verify(result.func), absl::StrCat("the kernel ", result.name)));
  for (const int n : group.nodes) {
    const Node& node = graph.nodes[n];
    const OpInfo* info = FindOp(node.op);
    std::vector<TensorType> in, out;
    for (const int v : node.inputs) in.push_back(graph.type(v));
    for (const int v : node.outputs) out.push_back(graph.type(v));
    const double elements = static_cast<double>(*NumElements(out[0].shape));
    if (info->calls_function) result.flop += OperationsOf(result.func);
    else if (info->flop != nullptr) result.flop += info->flop(in, node.attrs, out);
    else if (info->kind == OpKind::kElementwise) result.flop += elements;
  }
  for (const Buffer& param : result.func.params) result.bytes += Touched(result.func, param) * param.type().bytes();
  return result;
}

}  // namespace hone
