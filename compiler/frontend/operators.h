// The ONNX operators that can be imported: one row each in the table of the operators_*.cc file of its group. Adding
// one is an import function and its row; what it cannot be made of is added to compiler/graph first.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_model.h"
#include "compiler/graph/graph.h"

namespace hone {

class NodeContext;

// Appends what computes the node and gives its outputs' values (those beyond the list are not supported).
// InvalidArgument with the reason when the node is malformed or asks for what is not supported.
using ImportFn = absl::StatusOr<std::vector<int>> (*)(NodeContext&);

struct OnnxOperator {
  std::string_view name;
  int since;  // the operator set this row is for, up to that of the next row
  ImportFn import;
  std::string_view domain = "";
};

std::span<const OnnxOperator> ElementwiseOperators();
std::span<const OnnxOperator> MatrixOperators();
std::span<const OnnxOperator> ImageOperators();
std::span<const OnnxOperator> NormOperators();   // normalisations, softmax, reductions
std::span<const OnnxOperator> ShapeOperators();  // moving elements, shapes as data, constants
std::span<const OnnxOperator> IndexOperators();

// The row with the greatest `since` not beyond the version; nullptr when there is none.
const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view name, int64_t version);

// What an import function works with: the node, and the graph it grows.
class NodeContext {
 public:
  NodeContext(const OnnxNode& node, std::vector<int> inputs, int64_t opset, Graph& graph);

  const std::string& name() const { return node_.name; }
  int64_t opset() const { return opset_; }
  Graph& graph() { return graph_; }

  // ---- Inputs. An absent one (left out, or beyond the list) is -1.
  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool HasInput(int i) const { return i < num_inputs() && inputs_[i] >= 0; }
  int input(int i) const { return i < num_inputs() ? inputs_[i] : -1; }
  const std::vector<int>& inputs() const { return inputs_; }
  absl::Status NeedInputs(int least, int most) const;  // so many, the first `least` of them present
  const TensorType& type(int value) const { return graph_.values[value].type; }
  const std::vector<int64_t>& shape(int value) const { return graph_.values[value].type.shape; }
  int rank(int value) const { return graph_.values[value].type.rank(); }
  // The value of an input that must be known now; InvalidArgument says that it is computed at run time.
  absl::StatusOr<std::shared_ptr<const NdArray>> Constant(int i, std::string_view what) const;
  absl::StatusOr<std::vector<int64_t>> Ints(int i, std::string_view what) const;  // of integers
  absl::StatusOr<int64_t> Int(int i, std::string_view what) const;                // one integer
  absl::StatusOr<double> Number(int i, std::string_view what) const;              // one number of any type

  // ---- Attributes. One of another type than asked for makes status() fail and gives the fallback.
  bool HasAttr(std::string_view attr) const { return node_.attributes.count(std::string(attr)) > 0; }
  int64_t IntAttr(std::string_view attr, int64_t fallback);
  double FloatAttr(std::string_view attr, double fallback);
  std::string StringAttr(std::string_view attr, std::string_view fallback);
  std::vector<int64_t> IntsAttr(std::string_view attr, std::vector<int64_t> fallback = {});
  std::vector<double> FloatsAttr(std::string_view attr);
  std::shared_ptr<const NdArray> TensorAttr(std::string_view attr);  // nullptr when absent
  const absl::Status& status() const { return status_; }

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
  absl::Status status_;
};

// InvalidArgument in the importer's words.
absl::Status Unsupported(const std::string& message);

}  // namespace hone
