#include "compiler/graph/operators/expressions.h"

#include <algorithm>

#include "compiler/graph/operators/emit_matmul.h"

namespace hone {
namespace {

Value Wrap(NodeContext& c, const absl::StatusOr<int>& value) {
  return value.ok() ? Value(c, *value) : Fail(c, value.status());
}

// The context of the inputs, all of which are there; otherwise nullptr, and the failure is kept already.
NodeContext* ContextOf(std::initializer_list<Value> inputs) {
  for (const Value& input : inputs) {
    if (!input) return nullptr;
  }
  return &inputs.begin()->context();
}

}  // namespace

Value Input(NodeContext& c, int i) { return c.HasInput(i) ? Value(c, c.input(i)) : Value(); }

Outputs Results(std::initializer_list<Value> values) {
  std::vector<int> ids;
  for (const Value& value : values) ids.push_back(value ? value.id() : -1);
  return ids;
}

Value Fail(NodeContext& c, absl::Status status) {
  c.Fail(std::move(status));
  return {};
}

Value Apply(std::string_view op, std::initializer_list<Value> inputs, Attrs attrs) {
  NodeContext* c = ContextOf(inputs);
  if (c == nullptr) return {};
  std::vector<int> ids;
  for (const Value& input : inputs) ids.push_back(input.id());
  return Wrap(*c, c->Emit(op, std::move(ids), std::move(attrs)));
}

Value Number(const Value& like, double number) {
  return like ? Value(like.context(), like.context().Scalar(like.dtype(), number)) : Value();
}
Value Constant(NodeContext& c, DType dtype, double number) { return {c, c.Scalar(dtype, number)}; }
Value Constant(NodeContext& c, NdArray array) { return {c, c.AddConstant(std::move(array))}; }
Value Iota(NodeContext& c, DType dtype, int64_t count, double start, double step) {
  constexpr int64_t kMost = int64_t{1} << 28;
  if (count > kMost) return Fail(c, Unsupported(std::to_string(count) + " places along a dimension"));
  NdArray array(dtype, {count});
  for (int64_t i = 0; i < count; ++i) {
    const double value = start + step * static_cast<double>(i);
    if (dtype.is_float()) array.Set(i, value);
    else array.SetInt(i, static_cast<int64_t>(value));
  }
  return Constant(c, std::move(array));
}

Value operator+(const Value& a, const Value& b) { return Apply("add", {a, b}); }
Value operator-(const Value& a, const Value& b) { return Apply("subtract", {a, b}); }
Value operator*(const Value& a, const Value& b) { return Apply("multiply", {a, b}); }
Value operator/(const Value& a, const Value& b) { return Apply("divide", {a, b}); }
Value operator+(const Value& a, double b) { return a + Number(a, b); }
Value operator-(const Value& a, double b) { return a - Number(a, b); }
Value operator-(double a, const Value& b) { return Number(b, a) - b; }
Value operator*(const Value& a, double b) { return a * Number(a, b); }
Value operator/(const Value& a, double b) { return a / Number(a, b); }
Value operator/(double a, const Value& b) { return Number(b, a) / b; }
Value operator-(const Value& a) { return Apply("negative", {a}); }
Value operator<(const Value& a, const Value& b) { return Apply("less", {a, b}); }
Value operator<=(const Value& a, const Value& b) { return Apply("less_equal", {a, b}); }
Value operator>(const Value& a, const Value& b) { return Apply("greater", {a, b}); }
Value operator>=(const Value& a, const Value& b) { return Apply("greater_equal", {a, b}); }
Value operator==(const Value& a, const Value& b) { return Apply("equal", {a, b}); }
Value And(const Value& a, const Value& b) { return Apply("and", {a, b}); }
Value Or(const Value& a, const Value& b) { return Apply("or", {a, b}); }
Value Not(const Value& a) { return Apply("not", {a}); }

Value Min(const Value& a, const Value& b) { return Apply("minimum", {a, b}); }
Value Max(const Value& a, const Value& b) { return Apply("maximum", {a, b}); }
Value Where(const Value& condition, const Value& yes, const Value& no) { return Apply("where", {condition, yes, no}); }
Value Exp(const Value& x) { return Apply("exp", {x}); }
Value Log(const Value& x) { return Apply("log", {x}); }
Value Sqrt(const Value& x) { return Apply("sqrt", {x}); }
Value Abs(const Value& x) { return Apply("abs", {x}); }
Value Tanh(const Value& x) { return Apply("tanh", {x}); }
Value Sigmoid(const Value& x) { return Apply("sigmoid", {x}); }
Value Floor(const Value& x) { return Apply("floor", {x}); }
Value Round(const Value& x) { return Apply("round", {x}); }
Value Clip(const Value& x, double low, double high) { return Apply("clip", {x}, {{"min", low}, {"max", high}}); }
Value Cast(const Value& x, DType to) { return x && x.dtype() == to ? x : Apply("cast", {x}, {{"to", ToText(to)}}); }
Value Reshape(const Value& x, std::vector<int64_t> shape) {
  return x ? Wrap(x.context(), x.context().Reshape(x.id(), std::move(shape))) : Value();
}
Value Transpose(const Value& x, std::vector<int64_t> perm) {
  return x ? Wrap(x.context(), x.context().Transpose(x.id(), std::move(perm))) : Value();
}
Value Expand(const Value& x, std::vector<int64_t> shape) {
  if (!x || x.shape() == shape) return x;
  return Apply("expand", {x}, {{"shape", std::move(shape)}});
}
Value Concat(const std::vector<Value>& parts, int64_t axis) {
  std::vector<int> ids;
  for (const Value& part : parts) {
    if (!part) return {};
    if (part.dim(static_cast<int>(axis)) > 0) ids.push_back(part.id());
  }
  if (ids.empty()) return parts[0];
  NodeContext& c = parts[0].context();
  return ids.size() == 1 ? Value(c, ids[0]) : Wrap(c, c.Emit("concat", ids, {{"axis", axis}}));
}
Value Slice(const Value& x, int64_t axis, int64_t begin, int64_t size, int64_t step) {
  if (!x) return {};
  std::vector<int64_t> starts(x.shape().size(), 0), sizes = x.shape(), steps(x.shape().size(), 1);
  starts[static_cast<size_t>(axis)] = begin;
  sizes[static_cast<size_t>(axis)] = size;
  steps[static_cast<size_t>(axis)] = step;
  if (sizes == x.shape() && step == 1) return x;
  return Apply("slice", {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}
Value Gather(const Value& x, const Value& indices, int64_t axis) {
  return Apply("gather", {x, indices}, {{"axis", axis}});
}
Value MatMul(const Value& a, const Value& b) {
  return a && b ? Wrap(a.context(), EmitMatmul(a.context(), a.id(), b.id())) : Value();
}
Value Softmax(const Value& x, int64_t axis) { return Apply("softmax", {x}, {{"axis", axis}}); }
Value Reduce(std::string_view op, const Value& x, std::vector<int64_t> axes, bool keepdims) {
  std::sort(axes.begin(), axes.end());
  return Apply(op, {x}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}});
}

}  // namespace hone
