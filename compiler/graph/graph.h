// The graph of a model: values with static types, and nodes in an order in which they can run.
//
// A node's operator is one of Hone's own, described in op.h: fewer and simpler than ONNX's, image operators always
// NHWC. Values are addressed by index and written once: by one node, or they are inputs or constants. Passes (passes.h)
// rewrite a graph in place: they append nodes and values, redirect uses with ReplaceUses, and Compact() drops what
// nothing reaches and puts the nodes in order again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/ir/stmt.h"

namespace hone {

struct TensorType {
  DType dtype;
  std::vector<int64_t> shape;  // empty for a scalar; extents may be 0
  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string ToText(const TensorType& type);  // "float32[1, 224, 224, 3]"

// The product of the extents; nullopt when it does not fit in int64 or an extent is negative.
std::optional<int64_t> NumElements(const std::vector<int64_t>& shape);

// Values of a graph are at most this large, so that arithmetic on their shapes does not overflow.
inline constexpr int64_t kMostElements = int64_t{1} << 40;
inline constexpr int kMostDimensions = 32;
absl::Status CheckSize(const TensorType& type);  // InvalidArgument says which is exceeded

struct GraphValue {
  std::string name;  // for people and for the model's inputs and outputs
  TensorType type;
  std::shared_ptr<const NdArray> data;  // of a constant
  std::string element;                  // of a narrow type, held in bytes: its name (operators/narrow_types.h), else ""
  std::string domain;                   // of an input of integers: "int[0,30522)" where the model says so, else ""
  bool follows_sizes = false;           // a constant that was computed from the shape of a value: Graph::sizes_are_open
  bool is_constant() const { return data != nullptr; }
};

struct Node {
  std::string op;           // a name in op.h's table
  std::string name;         // the model's name for it: for messages
  std::vector<int> inputs;  // values
  std::vector<int> outputs;
  Attrs attrs;
};

struct Graph {
  std::string name;
  std::vector<GraphValue> values;
  std::vector<Node> nodes;                    // in topological order
  std::vector<int> inputs, outputs;           // in the model's order; a value may be an output twice
  std::vector<std::string> output_names;      // one for each output: two outputs may be one value
  std::vector<std::string> output_elements;   // GraphValue::element of each, or no entries at all
  std::map<std::string, PrimFunc> functions;  // tensor functions that "call_tir" nodes call, by name
  std::vector<std::string> notes;             // what was assumed at import, in whole sentences
  std::string file_digest;                    // SHA-256 of the file that it was imported from, "" when it was not
  // What constant folding may still spend, in interpreted elements: a small file must not cost minutes or gigabytes.
  // Beyond it, operators on constants are left to run time.
  int64_t fold_budget = int64_t{1} << 27;
  // Whether the sizes are some of many that the model is imported at: a range that begins where a size says is then
  // left to run time, where it is no table of numbers.
  bool sizes_are_open = false;

  int AddValue(std::string name, TensorType type);
  int AddConstant(std::string name, NdArray data);
  int AddConstant(std::string name, std::shared_ptr<const NdArray> data);
  // Appends a node and its outputs, whose types the operator infers. InvalidArgument when the operator refuses.
  absl::StatusOr<std::vector<int>> AddNode(std::string_view op, std::string name, std::vector<int> inputs,
                                           Attrs attrs = {});
  absl::StatusOr<int> Add(std::string_view op, std::string name, std::vector<int> inputs,
                          Attrs attrs = {});  // of one output

  const TensorType& type(int value) const { return values[value].type; }
  // Every use of `from`, also as an output of the graph, becomes one of `to`. Types are equal.
  void ReplaceUses(int from, int to);
  // Drops nodes and values that no output needs (inputs stay) and sorts the nodes topologically, stably.
  // Values are renumbered. InvalidArgument names the nodes of a cycle.
  absl::Status Compact();
};

// For each value: the node that writes it (-1: none) and the nodes that read it (each once), outputs of the graph
// apart.
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<int> producer;
  std::vector<std::vector<int>> consumers;
  std::vector<bool> is_output;
};

// Attributes: present and of that type, or the fallback.
int64_t IntAttr(const Attrs& attrs, std::string_view name, int64_t fallback = 0);
double FloatAttr(const Attrs& attrs, std::string_view name, double fallback = 0);
std::string StringAttr(const Attrs& attrs, std::string_view name, std::string_view fallback = "");
std::vector<int64_t> IntsAttr(const Attrs& attrs, std::string_view name, std::vector<int64_t> fallback = {});

// The graph as text, a line a node: for people and tests.
std::string ToText(const Graph& graph);

}  // namespace hone
