#include "compiler/oracle/filter_window.h"

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/ir/filter_transforms.h"
#include "compiler/ir/visit.h"

namespace hone::error_analysis {
namespace {

using filtering::kTaps;

bool Mentions(std::span<const Expr> indices, const Var& var) {
  return std::ranges::any_of(indices, [&](const Expr& index) { return UsesVar(index, var); });
}

// An index that moves by one with an output and by some elements with one of three taps.
std::optional<WindowAxis> MatchAxis(const FilterWindow& window, const Expr& index) {
  std::optional<size_t> output, tap;
  WindowAxis axis;
  for (size_t i = 0; i < window.iters.size(); ++i) {
    if (!UsesVar(index, window.var(i))) continue;
    const std::optional<int64_t> stride = StrideOf(index, window.var(i));
    const bool is_tap = window.iters[i].kind == IterKind::kReduce;
    std::optional<size_t>& place = is_tap ? tap : output;
    if (place.has_value() || !stride.has_value() || *stride < 1) return std::nullopt;
    if (is_tap ? window.extent(i) != kTaps : *stride != 1) return std::nullopt;
    place = i;
    if (is_tap) axis.dilation = *stride;
  }
  if (!output.has_value() || !tap.has_value()) return std::nullopt;
  axis.output = *output;
  axis.tap = *tap;
  return axis;
}

// Whether the variables move what they do in a convolution: the window's own x and y, or x and the weights; others the
// outputs and one factor, or both factors and no output.
bool HasConvolutionVariables(const FilterWindow& window) {
  for (size_t i = 0; i < window.iters.size(); ++i) {
    const bool reduces = window.iters[i].kind == IterKind::kReduce;
    const bool in_x = Mentions(window.x_indices, window.var(i)), in_y = Mentions(window.y_indices, window.var(i)),
               in_weights = Mentions(window.weights_indices, window.var(i));
    if (reduces == in_y) return false;
    if (reduces ? !(in_x && in_weights) && window.extent(i) != 1 : in_x && in_weights) return false;
    const bool is_output = i == window.rows.output || i == window.columns.output;
    if (is_output && in_weights) return false;
  }
  return true;
}

bool MatchAxes(FilterWindow* window) {
  std::vector<WindowAxis> axes;
  std::vector<Expr> others;
  for (const Expr& index : window->x_indices) {
    if (const std::optional<WindowAxis> axis = MatchAxis(*window, index)) {
      axes.push_back(*axis);
    } else {
      others.push_back(index);
    }
  }
  if (axes.size() != 2) return false;
  window->rows = axes[0];
  window->columns = axes[1];
  for (const WindowAxis& axis : axes) {
    if (Mentions(others, window->var(axis.output)) || Mentions(others, window->var(axis.tap))) return false;
  }
  return window->rows.output != window->columns.output && window->rows.tap != window->columns.tap &&
         HasConvolutionVariables(*window);
}

bool IsConstantParam(const PrimFunc& func, const Buffer& buffer) {
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (func.params[i] == buffer) return func.IsConstant(static_cast<int>(i));
  }
  return false;
}

bool HasConstantShape(const Buffer& buffer) {
  return std::ranges::all_of(buffer.shape(), [](const Expr& extent) { return ConstantValue(extent).has_value(); });
}

// Every instance of the block runs once, and its domain is all there is of it.
bool RunsOverDomain(const BlockRealize& realize) {
  return IsConst(realize.predicate, 1) && std::ranges::all_of(realize.block.iters, [](const IterVar& iter) {
           return IsConst(iter.domain.min, 0) && ConstantValue(iter.domain.extent).has_value();
         });
}

}  // namespace

size_t FilterWindow::PlaceOf(const Var& var) const {
  return static_cast<size_t>(std::ranges::find(iters, var, &IterVar::var) - iters.begin());
}

std::optional<FilterWindow> MatchFilterWindow(const PrimFunc& func, const BlockRealize& realize) {
  const Store* store = realize.block.body.As<Store>();
  const Binary* sum = store == nullptr ? nullptr : store->value.As<Binary>();
  if (sum == nullptr || sum->op != BinaryOp::kAdd || store->buffer.type() != kFloat32) return std::nullopt;
  const bool self_first = sum->a.As<Load>() != nullptr;
  const Load* self = (self_first ? sum->a : sum->b).As<Load>();
  const Binary* product = (self_first ? sum->b : sum->a).As<Binary>();
  if (self == nullptr || self->buffer != store->buffer || product == nullptr || product->op != BinaryOp::kMul ||
      !realize.block.init || !RunsOverDomain(realize)) {
    return std::nullopt;
  }
  const Load* x = product->a.As<Load>();
  const Load* weights = product->b.As<Load>();
  if (x == nullptr || weights == nullptr) return std::nullopt;
  if (!IsConstantParam(func, weights->buffer)) std::swap(x, weights);
  FilterWindow window{.iters = realize.block.iters,
                      .x = x->buffer,
                      .weights = weights->buffer,
                      .y = store->buffer,
                      .x_indices = x->indices,
                      .weights_indices = weights->indices,
                      .y_indices = store->indices};
  const bool plain = IsConstantParam(func, window.weights) && x->buffer != store->buffer &&
                     HasConstantShape(x->buffer) && x->buffer.type() == kFloat32 &&
                     weights->buffer.type() == kFloat32 &&
                     std::ranges::all_of(window.weights_indices, [&](const Expr& index) {
                       const VarRef* ref = index.As<VarRef>();
                       return ref != nullptr && window.PlaceOf(ref->var) < window.iters.size();
                     });
  return plain && MatchAxes(&window) ? std::optional(std::move(window)) : std::nullopt;
}

}  // namespace hone::error_analysis
