// Transposes become the order in which a product reads and writes.
//
//   batch_matmul(T(a), b)  =>  batch_matmul(a, b) with T's permutation as "a_order"
//   T(batch_matmul(a, b))  =>  batch_matmul(a, b) with T's inverse as "result_order", where rows of results stay rows
//
// Attention splits and moves heads before its products, and moves and joins them after. The kernel of a product touches
// every element of an operand many times and keeps what it needs close, so that elements found elsewhere cost it
// little; a transpose of its own is a pass over memory. Where the value in between has another reader it is there
// anyway, and is read as it is.
#include <map>
#include <optional>

#include "compiler/graph/passes.h"
#include "compiler/graph/passes/permutation.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Replacement = absl::StatusOr<std::optional<int>>;

Replacement FoldIntoReads(Rewriting& r, const Node& node) {
  if (node.op != "batch_matmul") return std::nullopt;
  std::vector<int> inputs = node.inputs;
  Attrs attrs = node.attrs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const char* order = i == 0 ? "a_order" : "b_order";
    const Node* transpose = r.Producer(inputs[i], "transpose");
    if (transpose == nullptr || r.uses(inputs[i]) > 1 || attrs.count(order) > 0) continue;
    attrs[order] = IntsAttr(transpose->attrs, "perm");
    inputs[i] = transpose->inputs[0];
  }
  if (inputs == node.inputs) return std::nullopt;
  return r.Add(node.op, node, inputs, attrs);
}

// The dimensions of more than one element.
Ints Extended(const Ints& shape) {
  Ints dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) dims.push_back(static_cast<int64_t>(d));
  }
  return dims;
}

// The order in which the product's dimensions come out of the transpose, those of one element first. Between the two
// may stand a reshape that adds or drops dimensions of one element. nullopt where it does more, or rows are torn apart.
std::optional<Ints> OrderAfter(const Ints& product, const Ints& reshaped, const Ints& perm) {
  const Ints from = Extended(product), to = Extended(reshaped);
  std::map<int64_t, int64_t> of_product;  // dimension of `reshaped` to one of `product`
  for (size_t k = 0; k < from.size() && from.size() == to.size(); ++k) {
    if (product[static_cast<size_t>(from[k])] != reshaped[static_cast<size_t>(to[k])]) return std::nullopt;
    of_product[to[k]] = from[k];
  }
  Ints order;
  for (size_t d = 0; d < product.size(); ++d) {
    if (product[d] == 1) order.push_back(static_cast<int64_t>(d));
  }
  for (const int64_t d : perm) {
    if (of_product.count(d) > 0) order.push_back(of_product.at(d));
  }
  const bool rows_stay = order.size() == product.size() && order.back() + 1 == static_cast<int64_t>(product.size());
  return rows_stay ? std::optional(order) : std::nullopt;
}

Replacement FoldIntoWrites(Rewriting& r, const Node& node) {
  if (node.op != "transpose") return std::nullopt;
  int value = node.inputs[0];
  if (const Node* reshape = r.uses(value) > 1 ? nullptr : r.Producer(value, "reshape")) value = reshape->inputs[0];
  const Node* product = r.uses(value) > 1 ? nullptr : r.Producer(value, "batch_matmul");
  if (product == nullptr || product->attrs.count("result_order") > 0) return std::nullopt;
  const std::optional<Ints> dims = OrderAfter(r.shape(value), r.shape(node.inputs[0]), IntsAttr(node.attrs, "perm"));
  if (!dims.has_value()) return std::nullopt;
  Attrs attrs = product->attrs;
  attrs["result_order"] = Inverse(*dims);
  HONE_ASSIGN_OR_RETURN(const int ordered, r.Add("batch_matmul", *product, product->inputs, attrs));
  return r.Reshape(node, ordered, r.shape(node.outputs[0]));
}

}  // namespace

// Reads come first: a transpose between two products goes into the second.
absl::Status FoldTransposes(Graph& graph) {
  HONE_RETURN_IF_ERROR(RewriteNodes(graph, FoldIntoReads).status());
  return RewriteNodes(graph, FoldIntoWrites).status();
}

}  // namespace hone
