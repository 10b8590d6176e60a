// What importing a node of an ONNX model works with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/operators/onnx_node.h"
#include "compiler/graph/operators/sequences.h"

namespace hone {

// What a node may ask of the model around it.
class ModelScope {
 public:
  virtual ~ModelScope() = default;
  // The shape the model declares a value to have.
  virtual std::optional<std::vector<int64_t>> DeclaredShape(const std::string& name) const = 0;
  // A value that is made already.
  virtual std::optional<int> Find(const std::string& name) const = 0;
  // Computes a graph, an attribute of the node by name, of these inputs.
  virtual absl::StatusOr<std::vector<int>> Inline(const std::string& attr, const std::vector<int>& inputs) = 0;
  virtual Sequences& sequences() = 0;
};

// What an import function works with: the node, and the graph it grows.
class NodeContext {
 public:
  NodeContext(const OnnxNode& node, std::vector<int> inputs, int64_t opset, Graph& graph, ModelScope& scope);

  const std::string& name() const { return node_.name; }
  const std::string& op() const { return node_.op; }
  int64_t opset() const { return opset_; }
  Graph& graph() { return graph_; }

  // ---- Inputs. An absent one (left out, or beyond the list) is -1; a sequence is below that, and no input that
  // HasInput knows.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool HasInput(int i) const { return i < num_inputs() && inputs_[i] >= 0; }
  int input(int i) const { return i < num_inputs() ? inputs_[i] : -1; }
  const std::vector<int>& inputs() const { return inputs_; }
  bool IsSequence(int i) const { return Sequences::IsSequence(input(i)); }
  // Input `i`, which is a sequence; InvalidArgument when it is none.
  absl::StatusOr<std::vector<int>> Elements(int i) const;
  Sequences& sequences() { return scope_.sequences(); }
  std::optional<int> ValueNamed(const std::string& value) const { return scope_.Find(value); }
  // The shape the model declares an output to have; nullopt when it does not. Where an operator's shape would follow
  // from values that come at run time, this is what it is compiled for.
  std::optional<std::vector<int64_t>> DeclaredShape(int output) const;
  // That shape where input `i`, which would decide it, comes at run time: it is assumed to say the same, and the
  // graph's notes tell so. InvalidArgument when the model does not declare it.
  absl::StatusOr<std::vector<int64_t>> ShapeInsteadOf(int i, std::string_view what, int output = 0);
  // The shape of output 0 that input `i` holds, or where that comes at run time the declared one.
  absl::StatusOr<std::vector<int64_t>> ShapeFrom(int i, std::string_view what);
  bool IsConstant(int i) const { return HasInput(i) && graph_.values[inputs_[i]].is_constant(); }
  absl::Status NeedInputs(int least, int most) const;  // so many, the first `least` of them present
  const TensorType& type(int value) const { return graph_.values[value].type; }
  const std::vector<int64_t>& shape(int value) const { return graph_.values[value].type.shape; }
  // The narrow type of a value's elements (narrow_types.h), or "".
  const std::string& element(int value) const { return graph_.values[value].element; }
  void SetElement(int value, std::string_view element) { graph_.values[value].element = std::string(element); }
  int rank(int value) const { return graph_.values[value].type.rank(); }
  // The value of an input that must be known now; InvalidArgument says that it is computed at run time.
  absl::StatusOr<std::shared_ptr<const NdArray>> Constant(int i, std::string_view what) const;
  absl::StatusOr<std::vector<int64_t>> Ints(int i, std::string_view what) const;  // of integers
  absl::StatusOr<int64_t> Int(int i, std::string_view what) const;                // one integer
  absl::StatusOr<double> Number(int i, std::string_view what) const;              // one number of any type

  // ---- Attributes. One of another type than asked for makes status() fail and gives the fallback.
  bool HasAttr(std::string_view attr) const { return Find(attr) != nullptr; }
  const OnnxAttribute* Attribute(std::string_view attr) const {
    return Find(attr);
  }  // of any type; nullptr when absent
  int64_t IntAttr(std::string_view attr, int64_t fallback);
  double FloatAttr(std::string_view attr, double fallback);
  std::string StringAttr(std::string_view attr, std::string_view fallback);
  std::vector<int64_t> IntsAttr(std::string_view attr, std::vector<int64_t> fallback = {});
  std::vector<double> FloatsAttr(std::string_view attr);
  std::vector<std::string> StringsAttr(std::string_view attr);
  const std::map<std::string, OnnxAttribute>& AllAttributes();  // all of them are asked for then
  // Those the node has that were never asked for: what an operator does not know may change what it means.
  std::vector<std::string> UnreadAttributes() const;
  // Computes a graph that is an attribute in this place, its inputs being these values; the values of its outputs.
  absl::StatusOr<std::vector<int>> Inline(std::string_view attr, const std::vector<int>& inputs);
  std::shared_ptr<const NdArray> TensorAttr(std::string_view attr);  // nullptr when absent
  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status) {  // the first failure is kept
    if (status_.ok()) status_ = std::move(status);
  }

  // What another operator of ONNX's makes of these inputs, with this node's attributes.
  absl::StatusOr<std::vector<int>> As(std::string_view op, std::vector<int> inputs);
  // The same with other attributes.
  absl::StatusOr<std::vector<int>> As(std::string_view op, std::vector<int> inputs,
                                      std::map<std::string, OnnxAttribute> attributes);

  // An axis that may be negative, made to lie in [0, rank).
  absl::StatusOr<int64_t> Axis(int64_t axis, int rank) const;
  absl::StatusOr<std::vector<int64_t>> Axes(std::vector<int64_t> axes, int rank) const;

  // ---- Growing the graph. A node whose inputs are all constants, and cheap, is evaluated at once.
  absl::StatusOr<int> Emit(std::string_view op, std::vector<int> inputs, Attrs attrs = {});
  absl::StatusOr<std::vector<int>> EmitAll(std::string_view op, std::vector<int> inputs, Attrs attrs = {});
  absl::StatusOr<int> Reshape(int value, std::vector<int64_t> shape);  // the value itself where that is its shape
  absl::StatusOr<int> Transpose(int value, std::vector<int64_t> perm);
  int AddConstant(NdArray data);
  int Scalar(DType dtype, double value);
  int IntVector(const std::vector<int64_t>& values);

 private:
  const OnnxAttribute* Find(std::string_view attr) const;
  template <class T>
  const T* Typed(std::string_view attr, std::string_view kind);

  const OnnxNode& node_;
  std::vector<int> inputs_;
  int64_t opset_;
  Graph& graph_;
  ModelScope& scope_;
  mutable std::set<std::string, std::less<>> read_;
  absl::Status status_;
};

}  // namespace hone
