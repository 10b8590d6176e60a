// The loop that the passes share: the graph's nodes are visited in order and put back, or replaced.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone {

// What a rewrite sees while the nodes in front of its own are final.
class Rewriting {
 public:
  explicit Rewriting(Graph& g);
  Graph& graph() { return graph_; }
  // The node that makes the value, already rewritten; nullptr for inputs and constants. Valid until a node is added.
  const Node* Producer(int value);
  const Node* Producer(int value, std::string_view op);  // nullptr as well when it is another operator's
  // Reads of the value: as counted before the pass, a value made in place of another having its count. An output is
  // one.
  int uses(int value) const { return value < static_cast<int>(uses_.size()) ? uses_[value] : 1; }
  const TensorType& type(int value) const { return graph_.values[value].type; }
  const std::vector<int64_t>& shape(int value) const { return graph_.values[value].type.shape; }
  bool IsConstant(int value) const { return graph_.values[value].is_constant(); }
  // The number all elements of a floating constant are; nullopt otherwise.
  std::optional<double> Splat(int value) const;

  // Appends a node (evaluated at once where its inputs are known).
  absl::StatusOr<int> Add(std::string_view op, const Node& origin, std::vector<int> inputs, Attrs attrs = {});
  absl::StatusOr<int> Reshape(const Node& origin, int value,
                              std::vector<int64_t> shape);  // the value itself where it has it
  absl::StatusOr<int> Transpose(const Node& origin, int value, std::vector<int64_t> perm);

 private:
  friend absl::StatusOr<bool> RewriteNodes(
      Graph&, const std::function<absl::StatusOr<std::optional<int>>(Rewriting&, const Node&)>&);
  Graph& graph_;
  std::vector<int> uses_;
  std::vector<int> producer_;  // of the nodes put back so far
  size_t synced_ = 0;
};

// For each node of one output: the value to use in place of its output, or nullopt to keep it. Gives whether anything
// was replaced; the graph is compact afterwards.
using NodeRewrite = std::function<absl::StatusOr<std::optional<int>>(Rewriting&, const Node&)>;
absl::StatusOr<bool> RewriteNodes(Graph& graph, const NodeRewrite& rewrite);

}  // namespace hone
