// Values of a graph under import with the usual operators, so that an operator made of others reads as its formula:
//
//   const Value x = Input(c, 0);
//   return Results({x * Sigmoid(x)});
//
// Shapes broadcast as numpy's do; numbers take the type of the other side. A step that fails is kept by the node's
// context: what follows is skipped, and Results gives the reason. Before a shape is looked at, c.status() is checked.
#pragma once

#include <initializer_list>
#include <vector>

#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"

namespace hone {

class Value {
 public:
  Value() = default;
  Value(NodeContext& c, int id) : c_(&c), id_(id) {}
  explicit operator bool() const { return c_ != nullptr && id_ >= 0; }
  int id() const { return id_; }
  NodeContext& context() const { return *c_; }
  const std::vector<int64_t>& shape() const { return c_->shape(id_); }
  int64_t dim(int d) const { return shape()[static_cast<size_t>(d < 0 ? d + rank() : d)]; }
  int rank() const { return c_->rank(id_); }
  DType dtype() const { return c_->type(id_).dtype; }
  bool is_constant() const { return c_->graph().values[static_cast<size_t>(id_)].is_constant(); }

 private:
  NodeContext* c_ = nullptr;
  int id_ = -1;
};

// An input; false where it is left out.
Value Input(NodeContext& c, int i);
Outputs Results(std::initializer_list<Value> values);  // a Value that is false stands for an output that is not there
Value Apply(std::string_view op, std::initializer_list<Value> inputs, Attrs attrs = {});
Value Number(const Value& like, double number);              // a scalar of that type
Value Constant(NodeContext& c, DType dtype, double number);  // a scalar
Value Constant(NodeContext& c, NdArray array);
Value Iota(NodeContext& c, DType dtype, int64_t count, double start = 0, double step = 1);
Value Fail(NodeContext& c, absl::Status status);  // false, and c.status() from now on

Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator+(const Value& a, double b);
Value operator-(const Value& a, double b);
Value operator-(double a, const Value& b);
Value operator*(const Value& a, double b);
Value operator/(const Value& a, double b);
Value operator/(double a, const Value& b);
Value operator-(const Value& a);
Value operator<(const Value& a, const Value& b);
Value operator<=(const Value& a, const Value& b);
Value operator>(const Value& a, const Value& b);
Value operator>=(const Value& a, const Value& b);
Value operator==(const Value& a, const Value& b);
Value And(const Value& a, const Value& b);
Value Or(const Value& a, const Value& b);
Value Not(const Value& a);

Value Min(const Value& a, const Value& b);
Value Max(const Value& a, const Value& b);
Value Where(const Value& condition, const Value& yes, const Value& no);
Value Exp(const Value& x);
Value Log(const Value& x);
Value Sqrt(const Value& x);
Value Abs(const Value& x);
Value Tanh(const Value& x);
Value Sigmoid(const Value& x);
Value Floor(const Value& x);
Value Round(const Value& x);  // halves to even
Value Clip(const Value& x, double low, double high);
Value Cast(const Value& x, DType to);
Value Reshape(const Value& x, std::vector<int64_t> shape);
Value Transpose(const Value& x, std::vector<int64_t> perm);
Value Expand(const Value& x, std::vector<int64_t> shape);
Value Concat(const std::vector<Value>& parts, int64_t axis);
Value Slice(const Value& x, int64_t axis, int64_t begin, int64_t size, int64_t step = 1);
Value Gather(const Value& x, const Value& indices, int64_t axis);
Value MatMul(const Value& a, const Value& b);
Value Softmax(const Value& x, int64_t axis);
// op: "reduce_sum", "reduce_mean", "reduce_max", ...
Value Reduce(std::string_view op, const Value& x, std::vector<int64_t> axes, bool keepdims);

}  // namespace hone
