// Products of uint8 by int8 become products of int8 by int8, exactly (modulo 2^32):
//
//   product(x, w)  =>  product(x - 128, w) + 128 * sum(w)            the sum over the terms of an output element
//
// Graphs multiply uint8 by int8 (integer_product.h), for which AArch64's cores have an instruction with i8mm alone
// (usdot); with dotprod they have one for bytes of one sign (sdot, udot). A convolution pads with its value less 128.
//
// The sums of a constant are constants, and what is added to a product after them is added to them now: operands that
// were int8 to begin with, and were made uint8 by adding 128, are multiplied as they were, with nothing added. Those of
// a weight that varies take a pass over it, which is about what a row of the product takes without the instruction:
// that is done where it is multiplied by several rows.
//
// Not for convolutions of several groups and depthwise ones, for which there is no instruction either way.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/graph/evaluate.h"
#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/cast_products.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8), kInt16 = DType::Int(16);
constexpr int64_t kShift = 128;
constexpr double kFewestRows = 4;  // of a product by a weight that varies

bool IsAll(const Graph& graph, int value, int64_t number) {
  const GraphValue& v = graph.values[value];
  if (!v.is_constant()) return false;
  for (int64_t i = 0; i < v.data->NumElements(); ++i) {
    if (v.data->GetInt(i) != number) return false;
  }
  return true;
}

Ints AsItIs(int rank) {
  Ints order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// How many rows each element of the right operand is multiplied by.
double RowsOf(const Graph& graph, const Node& node) {
  const std::vector<TensorType> in{graph.type(node.inputs[0]), graph.type(node.inputs[1])},
      out{graph.type(node.outputs[0])};
  return FindOp(node.op)->flop(in, node.attrs, out) / 2 / static_cast<double>(*NumElements(in[1].shape));
}

// Whether neighbours along the terms of the sum are neighbours in the left operand, as instructions want them.
bool HasTermsLast(const Graph& graph, const Node& node) {
  const int rank = graph.type(node.inputs[0]).rank();
  return IntAttr(node.attrs, "channels_first", 0) == 0 &&
         IntsAttr(node.attrs, "a_order", AsItIs(rank)).back() == rank - 1;
}

bool Gains(const Graph& graph, const Node& node, const std::set<std::string>& features) {
  const std::optional<ProductNode> product = MatchProduct(graph, node);
  if (!product.has_value() || product->shape.left != kUInt8 || product->shape.right != kInt8) return false;
  if (!HasTermsLast(graph, node) || FindDotProduct(product->shape, features).has_value()) return false;
  ProductShape of_one_sign = product->shape;
  of_one_sign.left = kInt8;
  if (!FindDotProduct(of_one_sign, features).has_value()) return false;
  return product->right_is_constant || RowsOf(graph, node) >= kFewestRows;
}

// Appends nodes and redirects uses: values of the graph as it was keep their numbers until the end.
class Int8Rewrite {
 public:
  explicit Int8Rewrite(Graph& graph) : graph_(graph), uses_(graph), num_nodes_(graph.nodes.size()) {}

  absl::Status Run(const std::set<std::string>& features) {
    for (size_t n = 0; n < num_nodes_; ++n) {
      if (Gains(graph_, graph_.nodes[n], features)) HONE_RETURN_IF_ERROR(Replace(Node(graph_.nodes[n])));
    }
    if (sums_.empty()) return absl::OkStatus();
    for (const int value : shifted_) HONE_RETURN_IF_ERROR(ReadShifted(value));
    for (size_t n = 0; n < num_nodes_; ++n) HONE_RETURN_IF_ERROR(MergeConstants(Node(graph_.nodes[n])));
    HONE_RETURN_IF_ERROR(graph_.Compact());
    return RemoveNoOps(graph_);
  }

 private:
  // value + number, where the graph has its sum.
  struct Sum {
    int value = -1, number = -1;
  };

  absl::StatusOr<int> Add(const std::string& op, const Node& origin, std::vector<int> inputs, Attrs attrs = {}) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                          AddFolded(graph_, op, origin.name, std::move(inputs), std::move(attrs)));
    return outputs[0];
  }
  absl::StatusOr<int> Cast(const Node& origin, int value, DType to) {
    return Add("cast", origin, {value}, {{"to", ToText(to)}});
  }
  absl::StatusOr<int> Plus(const Node& origin, int value, int number) {
    HONE_ASSIGN_OR_RETURN(const int sum, Add("add", origin, {value, number}));
    sums_[sum] = {value, number};
    return sum;
  }
  int Number(DType type, int64_t number) {
    NdArray scalar(type, {});
    scalar.SetInt(0, number);
    return graph_.AddConstant("shift", std::move(scalar));
  }

  absl::Status Replace(const Node& node) {
    HONE_ASSIGN_OR_RETURN(const int x, Shifted(node, node.inputs[0]));
    Attrs attrs = node.attrs;
    if (std::ranges::any_of(IntsAttr(attrs, "pads"), [](int64_t pad) { return pad != 0; }))
      attrs["pad_value"] = IntAttr(attrs, "pad_value", 0) - kShift;
    HONE_ASSIGN_OR_RETURN(const int product, Add(node.op, node, {x, node.inputs[1]}, std::move(attrs)));
    HONE_ASSIGN_OR_RETURN(const int of_right, SumOfTerms(node));
    HONE_ASSIGN_OR_RETURN(const int term, Add("multiply", node, {of_right, Number(kInt32, kShift)}));
    HONE_ASSIGN_OR_RETURN(const int sum, Plus(node, product, term));
    graph_.ReplaceUses(node.outputs[0], sum);
    now_[node.outputs[0]] = sum;
    return absl::OkStatus();
  }

  // The operand less 128, as int8. The difference stands in front of transposes and reshapes that lead to the operand
  // alone, next to what makes it: there it is the end of a kernel.
  absl::StatusOr<int> Shifted(const Node& origin, int value) {
    if (const auto known = signed_.find(value); known != signed_.end()) return known->second;
    const int n = uses_.producer[value];
    int shifted = BeforeItWasShifted(value);
    if (shifted < 0 && n >= 0 && FindOp(graph_.nodes[n].op)->rearranges && IsReadOnce(value)) {
      const Node move = graph_.nodes[n];
      HONE_ASSIGN_OR_RETURN(shifted, Shifted(move, move.inputs[0]));
      HONE_ASSIGN_OR_RETURN(shifted, Add(move.op, move, {shifted}, move.attrs));
    } else if (shifted < 0) {
      HONE_ASSIGN_OR_RETURN(shifted, Cast(origin, value, kInt16));
      HONE_ASSIGN_OR_RETURN(shifted, Add("add", origin, {shifted, Number(kInt16, -kShift)}));
      HONE_ASSIGN_OR_RETURN(shifted, Cast(origin, shifted, kInt8));
      shifted_.push_back(value);
    }
    signed_[value] = shifted;
    return shifted;
  }
  bool IsReadOnce(int value) const { return !uses_.is_output[value] && uses_.consumers[value].size() == 1; }
  const Node* Producer(int value, std::string_view op) const {
    const int n = value < static_cast<int>(uses_.producer.size()) ? uses_.producer[value] : -1;
    return n >= 0 && graph_.nodes[n].op == op ? &graph_.nodes[n] : nullptr;
  }
  // x where the value is cast(cast(x, int32) + 128, uint8) and x is int8; -1 where it is something else.
  int BeforeItWasShifted(int value) const {
    const Node* narrow = Producer(value, "cast");
    const Node* sum = narrow == nullptr ? nullptr : Producer(narrow->inputs[0], "add");
    if (sum == nullptr || !IsAll(graph_, sum->inputs[1], kShift)) return -1;
    const Node* wide = Producer(sum->inputs[0], "cast");
    if (wide == nullptr || graph_.type(wide->inputs[0]) != TensorType{kInt8, graph_.type(value).shape}) return -1;
    return wide->inputs[0];
  }

  // Over all terms of an output element, in a shape that broadcasts to the product's.
  absl::StatusOr<int> SumOfTerms(const Node& node) {
    const int right = node.inputs[1], rank = graph_.type(right).rank();
    HONE_ASSIGN_OR_RETURN(const int wide, Cast(node, right, kInt32));
    if (node.op != "batch_matmul")
      return Add("reduce_sum", node, {wide}, {{"axes", AsItIs(rank - 1)}, {"keepdims", int64_t{0}}});
    const Ints order = IntsAttr(node.attrs, "b_order", AsItIs(rank));
    HONE_ASSIGN_OR_RETURN(int sum,
                          Add("reduce_sum", node, {wide}, {{"axes", Ints{order.end()[-2]}}, {"keepdims", int64_t{1}}}));
    HONE_ASSIGN_OR_RETURN(sum, Add("transpose", node, {sum}, {{"perm", order}}));
    const int result_rank = graph_.type(node.outputs[0]).rank();
    Ints shape = graph_.type(sum).shape, to_result(static_cast<size_t>(result_rank));
    shape.insert(shape.begin(), static_cast<size_t>(result_rank - rank), 1);
    HONE_ASSIGN_OR_RETURN(sum, Add("reshape", node, {sum}, {{"shape", std::move(shape)}}));
    const Ints result_order = IntsAttr(node.attrs, "result_order", AsItIs(result_rank));
    for (size_t d = 0; d < to_result.size(); ++d)
      to_result[static_cast<size_t>(result_order[d])] = static_cast<int64_t>(d);
    return Add("transpose", node, {sum}, {{"perm", std::move(to_result)}});
  }

  // A value that is made to be multiplied need not be stored twice: those who read it as int32 add 128 again. Where
  // others read it as well, or the caller has it, it is stored anyway.
  absl::Status ReadShifted(int value) {
    if (uses_.is_output[value] || uses_.producer[value] < 0) return absl::OkStatus();
    std::vector<int> widened;
    for (const int n : uses_.consumers[value]) {
      const Node& reader = graph_.nodes[n];
      const int result = reader.outputs[0];
      if (reader.op == "cast" && graph_.type(result).dtype == kInt32) widened.push_back(n);
      else if (now_.count(result) == 0 && signed_.count(result) == 0) return absl::OkStatus();
    }
    for (const int n : widened) {
      const Node reader = graph_.nodes[n];
      HONE_ASSIGN_OR_RETURN(const int wide, Cast(reader, signed_.at(value), kInt32));
      HONE_ASSIGN_OR_RETURN(const int sum, Plus(reader, wide, Number(kInt32, kShift)));
      graph_.ReplaceUses(reader.outputs[0], sum);
      now_[reader.outputs[0]] = sum;
    }
    return absl::OkStatus();
  }

  //   (x + c) - d  =>  x + (c - d)      c, d constants
  absl::Status MergeConstants(const Node& node) {
    if (node.op != "add" && node.op != "subtract") return absl::OkStatus();
    const auto found = sums_.find(node.inputs[0]);
    const int result = node.outputs[0];
    if (found == sums_.end() || !graph_.values[found->second.number].is_constant() ||
        !graph_.values[node.inputs[1]].is_constant() || graph_.type(found->second.value) != graph_.type(result))
      return absl::OkStatus();
    const Sum inner = found->second;
    HONE_ASSIGN_OR_RETURN(const int number, Add(node.op, node, {inner.number, node.inputs[1]}));
    int sum = inner.value;
    if (!IsAll(graph_, number, 0)) { HONE_ASSIGN_OR_RETURN(sum, Plus(node, inner.value, number)); }
    graph_.ReplaceUses(result, sum);
    return absl::OkStatus();
  }

  Graph& graph_;
  const Uses uses_;
  const size_t num_nodes_;
  std::map<int, int> signed_;  // a left operand -> the same less 128
  std::vector<int> shifted_;   // of these, those that were computed, not found or moved
  std::map<int, int> now_;     // results that were replaced -> what took their place
  std::map<int, Sum> sums_;
};

}  // namespace

absl::Status Int8Products(Graph& graph, const std::set<std::string>& features) {
  return Int8Rewrite(graph).Run(features);
}

}  // namespace hone
