// Tensor expressions: a tensor is said by the formula of one element, and a function of tensors is made from such
// formulas.
//
//   Tensor a = Placeholder({128, 64}, kFloat32, "A"), b = Placeholder({64, 32}, kFloat32, "B");
//   ReduceAxis k(64, "k");
//   Tensor c = Compute({128, 32}, [&](const Indices& i) { return Sum(a(i[0], k) * b(k, i[1]), {k}); }, "C");
//   PrimFunc f = CreatePrimFunc({a, b}, {c}, "matmul");
//
// Shapes may be symbolic (expressions over variables with a SizeRange, which become PrimFunc::dims). Misuse (a rank
// that does not match, an access outside Compute's function) is a broken promise of the caller's: HONE_CHECK.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone::te {

// The size of every dimension.
class Shape : public std::vector<Expr> {
 public:
  Shape() = default;
  Shape(std::initializer_list<Expr> dims) : std::vector<Expr>(dims) {}
  Shape(std::vector<Expr> dims) : std::vector<Expr>(std::move(dims)) {}  // NOLINT: a list of sizes is a shape
  Shape(const std::vector<int64_t>& dims) : std::vector<Expr>(dims.begin(), dims.end()) {}  // NOLINT
};

using Indices = std::vector<Var>;  // the index variables of one element, outermost first
struct Stage;

// A handle: cheap to copy, refers to an input (placeholder) or to a result of Compute; never changes.
class Tensor {
 public:
  Tensor() = default;
  const Shape& shape() const;
  DType dtype() const;
  const std::string& name() const;
  int rank() const { return static_cast<int>(shape().size()); }
  int64_t dim(int d) const;                  // a static size; d < 0 counts from the end
  std::vector<int64_t> StaticShape() const;  // all of them; HONE_CHECK when one is symbolic
  bool IsPlaceholder() const;
  explicit operator bool() const { return stage_ != nullptr; }
  friend bool operator==(const Tensor& a, const Tensor& b) { return a.stage_ == b.stage_ && a.output_ == b.output_; }

  // The element at these indices: only inside the function given to Compute.
  Expr operator()(const std::vector<Expr>& indices) const;
  Expr operator()(const Indices& indices) const;
  template <std::convertible_to<Expr>... Index>
  Expr operator()(const Index&... index) const {
    return (*this)(std::vector<Expr>{Expr(index)...});
  }

  const Stage& stage() const { return *stage_; }
  int output() const { return output_; }  // which output of the stage
  const Buffer& buffer() const;           // stands for this tensor in expressions

 private:
  friend struct TensorMaker;
  std::shared_ptr<const Stage> stage_;
  int output_ = 0;
};

// An axis that a reduction runs over: [0, extent) or [min, min + extent).
struct ReduceAxis {
  ReduceAxis(Expr extent, std::string name);
  ReduceAxis(Range domain, std::string name);
  Var var;
  Range domain;
  operator Expr() const { return var; }  // NOLINT: used in formulas as the variable it is
};

// How values are gathered into one. Both functions work on tuples: argmax carries (value, index).
struct Reducer {
  std::string name;
  std::function<std::vector<Expr>(const std::vector<DType>&)> identity;
  std::function<std::vector<Expr>(const std::vector<Expr>& so_far, const std::vector<Expr>& next)> combine;
};
struct Reduction {
  Reducer reducer;
  std::vector<Expr> sources;     // one for each part of the tuple
  std::vector<ReduceAxis> axes;  // outermost first
  std::vector<Expr> init;        // absent: the reducer's identity; else what it starts from
};
Reduction Sum(Expr source, std::vector<ReduceAxis> axes);
Reduction Prod(Expr source, std::vector<ReduceAxis> axes);
Reduction Max(Expr source, std::vector<ReduceAxis> axes);  // identity: -infinity, or the type's least value
Reduction Min(Expr source, std::vector<ReduceAxis> axes);
Reduction And(Expr source, std::vector<ReduceAxis> axes);  // of bools
Reduction Or(Expr source, std::vector<ReduceAxis> axes);
// The identities of Max and Min: -infinity and infinity, or the ends of an integer type; false and true.
Expr LeastValue(DType dtype);
Expr GreatestValue(DType dtype);
// (value, index) of the greatest (least) value; of equal ones the lowest index, or the highest with `last`.
Reduction ArgMax(Expr value, Expr index, std::vector<ReduceAxis> axes, bool last = false);
Reduction ArgMin(Expr value, Expr index, std::vector<ReduceAxis> axes, bool last = false);

// What Compute's function gives: an element, or a reduction to it.
class Body {
 public:
  Body(Expr value) : values_{std::move(value)} {}                 // NOLINT
  Body(std::vector<Expr> values) : values_(std::move(values)) {}  // NOLINT: one for each output of ComputeTuple
  Body(Reduction reduction) : reduction_(std::make_shared<Reduction>(std::move(reduction))) {}  // NOLINT
  const std::vector<Expr>& values() const { return reduction_ ? reduction_->sources : values_; }
  const Reduction* reduction() const { return reduction_.get(); }

 private:
  std::vector<Expr> values_;
  std::shared_ptr<const Reduction> reduction_;
};
using ElementFn = std::function<Body(const Indices&)>;

struct ComputeOptions {
  std::vector<std::string> axes;  // names of the index variables; i0, i1, ... when empty
  Attrs attrs;                    // become the block's annotations
};

Tensor Placeholder(Shape shape, DType dtype, std::string name);
// The element type follows from the formula.
Tensor Compute(Shape shape, const ElementFn& element, std::string name, ComputeOptions options = {});
// Several outputs of one shape made by one block, such as ArgMax's value and index; `names` one for each.
std::vector<Tensor> ComputeTuple(Shape shape, const ElementFn& element, const std::vector<std::string>& names,
                                 ComputeOptions options = {});

// What makes a tensor: public for those who look at it, such as the fusion of operators.
struct Stage {
  std::vector<Buffer> outputs;  // one, or several for ComputeTuple
  Shape shape;
  Indices axes;  // empty for a placeholder
  std::vector<ReduceAxis> reduce_axes;
  std::shared_ptr<const Body> body;  // absent for a placeholder
  std::vector<Tensor> inputs;        // tensors the body reads, in the order of first use
  Attrs attrs;
};

// One function of these stages. Params are the inputs, then the outputs; intermediates are allocated in the root block.
// Every computed stage is one block inside its own nest of plain loops, in topological order: its name is the tensor's
// (made unique with _1, _2, ...), its variables are named v_<axis>, spatial before reduce, its regions are exact where
// indices are affine and cover the dimension where they depend on data. `attrs` are kept; "outputs" is set here.
// Every placeholder that is reached must be among the inputs; an output must be computed and is listed once.
PrimFunc CreatePrimFunc(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, std::string name,
                        Attrs attrs = {});

}  // namespace hone::te
