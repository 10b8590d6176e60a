#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/evaluate.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {

Outputs One(absl::StatusOr<int> value) {
  if (!value.ok()) return value.status();
  return std::vector<int>{*value};
}

absl::Status Unsupported(const std::string& message) { return absl::InvalidArgumentError(message); }

NodeContext::NodeContext(const OnnxNode& node, std::vector<int> inputs, int64_t opset, Graph& graph, ModelScope& scope)
    : node_(node), inputs_(std::move(inputs)), opset_(opset), graph_(graph), scope_(scope) {
  while (!inputs_.empty() && inputs_.back() == -1) inputs_.pop_back();
}

absl::StatusOr<std::vector<int>> NodeContext::Elements(int i) const {
  if (!IsSequence(i)) return Unsupported(absl::StrCat("input ", i, " is not a sequence"));
  return scope_.sequences().Elements(input(i));
}

std::optional<std::vector<int64_t>> NodeContext::DeclaredShape(int output) const {
  if (output >= num_outputs()) return std::nullopt;
  return scope_.DeclaredShape(node_.outputs[static_cast<size_t>(output)]);
}

absl::StatusOr<std::vector<int64_t>> NodeContext::ShapeInsteadOf(int i, std::string_view what, int output) {
  std::optional<std::vector<int64_t>> shape = DeclaredShape(output);
  const std::string& input = graph_.values[inputs_[i]].name;
  if (!shape.has_value()) {
    return Unsupported(absl::StrCat(std::string(what), " (\"", input,
                                    "\") is computed at run time; it must be known when the model is imported (--value "
                                    "fixes an input), or the model must declare the shape of the output"));
  }
  const std::string note =
      absl::StrCat("Node \"", name(), "\": \"", input,
                   "\" comes at run time; the bundle assumes that it gives the shape the model declares.");
  if (std::find(graph_.notes.begin(), graph_.notes.end(), note) == graph_.notes.end()) graph_.notes.push_back(note);
  return *std::move(shape);
}

absl::StatusOr<std::vector<int64_t>> NodeContext::ShapeFrom(int i, std::string_view what) {
  return IsConstant(i) ? Ints(i, what) : ShapeInsteadOf(i, what);
}

absl::Status NodeContext::NeedInputs(int least, int most) const {
  if (num_inputs() < least || num_inputs() > most) {
    return Unsupported(absl::StrCat("it has ", num_inputs(), " inputs instead of ", least,
                                    most == least ? "" : absl::StrCat(" to ", most)));
  }
  for (int i = 0; i < least; ++i) {
    if (inputs_[i] < 0) return Unsupported(absl::StrCat("input ", i, " is left out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const NdArray>> NodeContext::Constant(int i, std::string_view what) const {
  if (!HasInput(i)) return Unsupported(absl::StrCat("the input for ", std::string(what), " is left out"));
  const GraphValue& value = graph_.values[inputs_[i]];
  if (!value.is_constant()) {
    return Unsupported(absl::StrCat(std::string(what), " (\"", value.name,
                                    "\") is computed at run time; it must be known when the model is imported (--value "
                                    "fixes an input)"));
  }
  return value.data;
}

absl::StatusOr<std::vector<int64_t>> NodeContext::Ints(int i, std::string_view what) const {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const NdArray> array, Constant(i, what));
  if (!array->dtype.is_int() || array->shape.size() > 1) {
    return Unsupported(absl::StrCat(std::string(what), " is ", ToText(TensorType{array->dtype, array->shape}),
                                    " instead of a list of integers"));
  }
  std::vector<int64_t> values;
  for (int64_t e = 0; e < array->NumElements(); ++e) values.push_back(array->GetInt(e));
  return values;
}

absl::StatusOr<int64_t> NodeContext::Int(int i, std::string_view what) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, Ints(i, what));
  if (values.size() != 1)
    return Unsupported(absl::StrCat(std::string(what), " has ", values.size(), " elements instead of 1"));
  return values[0];
}

absl::StatusOr<double> NodeContext::Number(int i, std::string_view what) const {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const NdArray> array, Constant(i, what));
  if (array->NumElements() != 1)
    return Unsupported(absl::StrCat(std::string(what), " has ", array->NumElements(), " elements instead of 1"));
  return array->Get(0);
}

const OnnxAttribute* NodeContext::Find(std::string_view attr) const {
  read_.emplace(attr);
  const auto found = node_.attributes.find(std::string(attr));
  return found == node_.attributes.end() ? nullptr : &found->second;
}

template <class T>
const T* NodeContext::Typed(std::string_view attr, std::string_view kind) {
  const OnnxAttribute* found = Find(attr);
  if (found == nullptr) return nullptr;
  const T* typed = std::get_if<T>(found);
  if (typed == nullptr && status_.ok()) {
    status_ = Unsupported(absl::StrCat("attribute \"", std::string(attr), "\" is not ", std::string(kind)));
  }
  return typed;
}

int64_t NodeContext::IntAttr(std::string_view attr, int64_t fallback) {
  const int64_t* value = Typed<int64_t>(attr, "an integer");
  return value == nullptr ? fallback : *value;
}
double NodeContext::FloatAttr(std::string_view attr, double fallback) {
  const double* value = Typed<double>(attr, "a number");
  return value == nullptr ? fallback : *value;
}
std::string NodeContext::StringAttr(std::string_view attr, std::string_view fallback) {
  const std::string* value = Typed<std::string>(attr, "a text");
  return value == nullptr ? std::string(fallback) : *value;
}
std::vector<int64_t> NodeContext::IntsAttr(std::string_view attr, std::vector<int64_t> fallback) {
  const std::vector<int64_t>* value = Typed<std::vector<int64_t>>(attr, "a list of integers");
  return value == nullptr ? std::move(fallback) : *value;
}
std::vector<double> NodeContext::FloatsAttr(std::string_view attr) {
  const std::vector<double>* value = Typed<std::vector<double>>(attr, "a list of numbers");
  return value == nullptr ? std::vector<double>() : *value;
}
std::vector<std::string> NodeContext::StringsAttr(std::string_view attr) {
  const std::vector<std::string>* value = Typed<std::vector<std::string>>(attr, "a list of texts");
  return value == nullptr ? std::vector<std::string>() : *value;
}
const std::map<std::string, OnnxAttribute>& NodeContext::AllAttributes() {
  for (const auto& [name, value] : node_.attributes) read_.insert(name);
  return node_.attributes;
}
std::vector<std::string> NodeContext::UnreadAttributes() const {
  std::vector<std::string> unread;
  for (const auto& [name, value] : node_.attributes) {
    if (read_.count(name) == 0) unread.push_back(name);
  }
  return unread;
}
absl::StatusOr<std::vector<int>> NodeContext::Inline(std::string_view attr, const std::vector<int>& inputs) {
  const auto* graph = Typed<std::shared_ptr<const OnnxGraph>>(attr, "a graph");
  if (graph == nullptr) return Unsupported(absl::StrCat("the graph \"", std::string(attr), "\" is missing"));
  return scope_.Inline(std::string(attr), inputs);
}
absl::StatusOr<std::vector<int>> NodeContext::As(std::string_view op, std::vector<int> inputs) {
  const OnnxOperator* other = FindOnnxOperator("", op, opset_);
  if (other == nullptr)
    return Unsupported(absl::StrCat("it needs ", std::string(op), ", which this operator set does not have"));
  while (!inputs.empty() && inputs.back() == -1) inputs.pop_back();
  std::swap(inputs_, inputs);
  absl::StatusOr<std::vector<int>> outputs = other->import(*this);
  std::swap(inputs_, inputs);
  return outputs;
}
absl::StatusOr<std::vector<int>> NodeContext::As(std::string_view op, std::vector<int> inputs,
                                                 std::map<std::string, OnnxAttribute> attributes) {
  OnnxNode node = node_;
  node.attributes = std::move(attributes);
  NodeContext context(node, {}, opset_, graph_, scope_);
  absl::StatusOr<std::vector<int>> outputs = context.As(op, std::move(inputs));
  HONE_RETURN_IF_ERROR(context.status());
  return outputs;
}
std::shared_ptr<const NdArray> NodeContext::TensorAttr(std::string_view attr) {
  const std::shared_ptr<const NdArray>* value = Typed<std::shared_ptr<const NdArray>>(attr, "a tensor");
  return value == nullptr ? nullptr : *value;
}

absl::StatusOr<int64_t> NodeContext::Axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) return Unsupported(absl::StrCat("axis ", axis, " is outside the rank ", rank));
  return axis < 0 ? axis + rank : axis;
}

absl::StatusOr<std::vector<int64_t>> NodeContext::Axes(std::vector<int64_t> axes, int rank) const {
  for (int64_t& axis : axes) { HONE_ASSIGN_OR_RETURN(axis, Axis(axis, rank)); }
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return Unsupported("an axis is named twice");
  return axes;
}

absl::StatusOr<std::vector<int>> NodeContext::EmitAll(std::string_view op, std::vector<int> inputs, Attrs attrs) {
  return AddFolded(graph_, op, name(), std::move(inputs), std::move(attrs));
}

absl::StatusOr<int> NodeContext::Emit(std::string_view op, std::vector<int> inputs, Attrs attrs) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs, EmitAll(op, std::move(inputs), std::move(attrs)));
  return outputs[0];
}

absl::StatusOr<int> NodeContext::Reshape(int value, std::vector<int64_t> new_shape) {
  if (shape(value) == new_shape) return value;
  return Emit("reshape", {value}, {{"shape", std::move(new_shape)}});
}

absl::StatusOr<int> NodeContext::Transpose(int value, std::vector<int64_t> perm) {
  std::vector<int64_t> identity(perm.size());
  std::iota(identity.begin(), identity.end(), 0);
  if (perm == identity) return value;
  return Emit("transpose", {value}, {{"perm", std::move(perm)}});
}

int NodeContext::AddConstant(NdArray data) { return graph_.AddConstant(name(), std::move(data)); }

int NodeContext::Scalar(DType dtype, double value) {
  NdArray array(dtype, {});
  array.Set(0, value);
  return AddConstant(std::move(array));
}

int NodeContext::IntVector(const std::vector<int64_t>& values) {
  return AddConstant(NdArray::Of<int64_t>(kInt64, {static_cast<int64_t>(values.size())}, values));
}

}  // namespace hone
