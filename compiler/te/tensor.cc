#include <algorithm>

#include "compiler/support/check.h"
#include "compiler/te/te.h"

namespace hone::te {

struct TensorMaker {
  static Tensor Make(std::shared_ptr<const Stage> stage, int output) {
    Tensor t;
    t.stage_ = std::move(stage);
    t.output_ = output;
    return t;
  }
};

namespace {

// Tensors read by the formula that Compute is evaluating on this thread; absent outside Compute.
thread_local std::vector<Tensor>* reads_of_current_stage = nullptr;

class RecordReads {
 public:
  explicit RecordReads(std::vector<Tensor>* reads) : outer_(reads_of_current_stage) { reads_of_current_stage = reads; }
  ~RecordReads() { reads_of_current_stage = outer_; }

 private:
  std::vector<Tensor>* outer_;
};

// int32, unless the elements of the result cannot be numbered with it.
DType IndexType(const Shape& shape) {
  int64_t elements = 1;
  for (const Expr& extent : shape) {
    if (extent.type() == kInt64) return kInt64;
    if (const std::optional<int64_t> n = ConstantValue(extent)) {
      if (*n != 0 && elements > INT32_MAX / *n) return kInt64;
      elements *= *n;
    }
  }
  return kInt32;
}

}  // namespace

const Shape& Tensor::shape() const { return stage_->shape; }
DType Tensor::dtype() const { return buffer().type(); }
const std::string& Tensor::name() const { return buffer().name(); }
bool Tensor::IsPlaceholder() const { return stage_->body == nullptr; }
const Buffer& Tensor::buffer() const { return stage_->outputs[output_]; }

int64_t Tensor::dim(int d) const {
  const int at = d < 0 ? d + rank() : d;
  HONE_CHECK(at >= 0 && at < rank()) << name() << " has no dimension " << d << ", its rank is " << rank();
  const std::optional<int64_t> size = ConstantValue(shape()[at]);
  HONE_CHECK(size.has_value()) << "dimension " << d << " of " << name() << " is symbolic";
  return *size;
}

std::vector<int64_t> Tensor::StaticShape() const {
  std::vector<int64_t> sizes;
  for (int d = 0; d < rank(); ++d) sizes.push_back(dim(d));
  return sizes;
}

Expr Tensor::operator()(const std::vector<Expr>& indices) const {
  HONE_CHECK(static_cast<int>(indices.size()) == rank())
      << name() << " is read with " << indices.size() << " indices, its rank is " << rank();
  HONE_CHECK(reads_of_current_stage != nullptr) << name() << " is read outside Compute's function";
  std::vector<Tensor>& reads = *reads_of_current_stage;
  if (std::find(reads.begin(), reads.end(), *this) == reads.end()) reads.push_back(*this);
  return MakeLoad(buffer(), indices);
}

Expr Tensor::operator()(const Indices& indices) const {
  return (*this)(std::vector<Expr>(indices.begin(), indices.end()));
}

ReduceAxis::ReduceAxis(Expr extent, std::string name) : ReduceAxis(Range{IntConst(0, extent.type()), extent}, name) {}
ReduceAxis::ReduceAxis(Range range, std::string name)
    : var(std::move(name), range.extent.type()), domain(std::move(range)) {}

Tensor Placeholder(Shape shape, DType dtype, std::string name) {
  Stage stage;
  stage.outputs.push_back(Buffer(std::move(name), dtype, shape));
  stage.shape = std::move(shape);
  return TensorMaker::Make(std::make_shared<const Stage>(std::move(stage)), 0);
}

std::vector<Tensor> ComputeTuple(Shape shape, const ElementFn& element, const std::vector<std::string>& names,
                                 ComputeOptions options) {
  HONE_CHECK(options.axes.empty() || options.axes.size() == shape.size())
      << names[0] << ": " << options.axes.size() << " axis names for " << shape.size() << " dimensions";
  Stage stage;
  const DType index_type = IndexType(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    stage.axes.push_back(Var(options.axes.empty() ? "i" + std::to_string(d) : options.axes[d], index_type));
  }
  {
    const RecordReads record(&stage.inputs);
    stage.body = std::make_shared<const Body>(element(stage.axes));
  }
  const std::vector<Expr>& values = stage.body->values();
  HONE_CHECK(values.size() == names.size())
      << names[0] << ": " << values.size() << " values for " << names.size() << " outputs";
  if (stage.body->reduction() != nullptr) stage.reduce_axes = stage.body->reduction()->axes;
  for (size_t i = 0; i < names.size(); ++i) stage.outputs.push_back(Buffer(names[i], values[i].type(), shape));
  stage.shape = std::move(shape);
  stage.attrs = std::move(options.attrs);
  const auto shared = std::make_shared<const Stage>(std::move(stage));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < names.size(); ++i) tensors.push_back(TensorMaker::Make(shared, static_cast<int>(i)));
  return tensors;
}

Tensor Compute(Shape shape, const ElementFn& element, std::string name, ComputeOptions options) {
  return ComputeTuple(std::move(shape), element, {std::move(name)}, std::move(options))[0];
}

}  // namespace hone::te
