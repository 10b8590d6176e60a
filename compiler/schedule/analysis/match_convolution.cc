#include "compiler/schedule/analysis/match_convolution.h"

#include <optional>
#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/ir/filter_transforms.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

int IterOf(const std::vector<IterVar>& iters, const Expr& e) {
  const VarRef* ref = e.As<VarRef>();
  for (size_t i = 0; ref != nullptr && i < iters.size(); ++i) {
    if (iters[i].var == ref->var) return static_cast<int>(i);
  }
  return -1;
}

absl::Status NotOne(const std::string& why) {
  return Refused("it is not a 3x3 convolution of stride 1 with constant weights: ", why);
}

// Which dimension of w is which, but for kh against kw: that only x tells.
absl::Status MatchWeights(const Load& load, WindowConvolution* conv) {
  if (load.indices.size() != 4) return NotOne(Message("the weights have ", load.indices.size(), " dimensions, not 4"));
  for (size_t d = 0; d < 4; ++d) {
    const int iter = IterOf(conv->iters, load.indices[d]);
    if (iter < 0) return NotOne(Message("index ", load.indices[d], " of the weights is not one variable"));
    if (conv->iters[static_cast<size_t>(iter)].kind == IterKind::kSpatial) {
      if (conv->f >= 0) return NotOne("the weights move with two spatial variables");
      conv->f = iter;
      conv->w_f = static_cast<int>(d);
    }
  }
  return conv->f >= 0 ? absl::OkStatus() : NotOne("the weights move with no spatial variable");
}

absl::Status MatchInput(const Load& load, WindowConvolution* conv) {
  std::vector<Var> vars;
  for (const IterVar& iter : conv->iters) vars.push_back(iter.var);
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const std::optional<LinearForm> form = DetectLinear(load.indices[d], vars);
    if (!form.has_value()) return NotOne(Message("index ", load.indices[d], " of the input is not affine"));
    int spatial = -1, reduce = -1, used = 0;
    int64_t dilation = 1;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (form->coefficients[i] == 0) continue;
      const bool reduces = conv->iters[i].kind == IterKind::kReduce;
      if (form->coefficients[i] < 1 || (!reduces && form->coefficients[i] != 1)) {
        return NotOne(Message("index ", load.indices[d], " of the input has a stride"));
      }
      (reduces ? reduce : spatial) = static_cast<int>(i);
      if (reduces) dilation = form->coefficients[i];
      ++used;
    }
    const int dim = static_cast<int>(d);
    if (used == 2 && spatial >= 0 && reduce >= 0 && conv->extent(reduce) == filtering::kTaps && conv->h < 0) {
      conv->h = spatial, conv->kh = reduce, conv->x_h = dim, conv->base_h = form->base;
      conv->dilation_h = dilation;
    } else if (used == 2 && spatial >= 0 && reduce >= 0 && conv->extent(reduce) == filtering::kTaps &&
               conv->w_out < 0) {
      conv->w_out = spatial, conv->kw = reduce, conv->x_w = dim, conv->base_w = form->base;
      conv->dilation_w = dilation;
    } else if (used == 1 && reduce >= 0 && dilation == 1 && conv->c < 0 && IsConst(form->base, 0)) {
      conv->c = reduce, conv->x_c = dim;
    } else if (used == 1 && spatial >= 0 && conv->batch < 0 && IsConst(form->base, 0)) {
      conv->batch = spatial, conv->x_batch = dim;
    } else if (used != 0 || !IsConst(form->base, 0)) {
      return NotOne(Message("index ", load.indices[d], " of the input is of another form"));
    }
  }
  if (conv->h < 0 || conv->w_out < 0 || conv->c < 0) return NotOne("the input has no window of 3 by 3");
  return absl::OkStatus();
}

// Of what is multiplied: a float32, or a byte as an int32.
const Load* MatchFactor(const Expr& e) {
  const Cast* cast = e.As<Cast>();
  const Load* load = (cast == nullptr ? e : cast->a).As<Load>();
  if (load == nullptr) return nullptr;
  const DType type = load->buffer.type();
  const bool byte = cast != nullptr && e.type() == kInt32 && type.bits == 8 && type.is_int();
  return byte || (cast == nullptr && type == kFloat32) ? load : nullptr;
}

// a * b of two loads, whichever comes first.
std::optional<std::pair<const Load*, const Load*>> MatchProduct(const PrimFunc& func, const Expr& e) {
  const Binary* product = e.As<Binary>();
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  const Load* a = MatchFactor(product->a);
  const Load* b = MatchFactor(product->b);
  if (a == nullptr || b == nullptr) return std::nullopt;
  const auto constant = [&func](const Buffer& buffer) {
    for (size_t i = 0; i < func.params.size(); ++i) {
      if (func.params[i] == buffer) return func.IsConstant(static_cast<int>(i));
    }
    return false;
  };
  if (constant(b->buffer)) return std::pair(a, b);
  if (constant(a->buffer)) return std::pair(b, a);
  return std::nullopt;
}

}  // namespace

absl::StatusOr<WindowConvolution> MatchConvolution(const PrimFunc& func, const Block& block) {
  WindowConvolution conv;
  conv.iters = block.iters;
  for (const IterVar& iter : block.iters) {
    if (!ConstantValue(iter.domain.extent).has_value() || !IsConst(iter.domain.min, 0)) {
      return NotOne(Message("the domain of ", iter.var, " is not from 0 to a number"));
    }
  }
  const Store* store = block.body.As<Store>();
  const Store* init = block.init.As<Store>();
  const Binary* sum = store == nullptr ? nullptr : store->value.As<Binary>();
  if (store == nullptr || init == nullptr || sum == nullptr || sum->op != BinaryOp::kAdd ||
      (store->value.type() != kFloat32 && store->value.type() != kInt32) ||
      !StructuralEqual(init->value, Const(0, store->value.type()))) {
    return NotOne("the update is not y = y + a * b in float32 or int32 from 0");
  }
  const bool self_first = sum->a.As<Load>() != nullptr;
  const Load* self = (self_first ? sum->a : sum->b).As<Load>();
  const auto product = MatchProduct(func, self_first ? sum->b : sum->a);
  if (self == nullptr || !(self->buffer == store->buffer) || !product.has_value()) {
    return NotOne("the update is not y = y + a * b with a constant b");
  }
  conv.x = product->first->buffer;
  conv.w = product->second->buffer;
  conv.y = store->buffer;
  conv.y_indices = store->indices;
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (func.params[i] == conv.w) conv.param = static_cast<int>(i);
  }
  HONE_RETURN_IF_ERROR(MatchWeights(*product->second, &conv));
  HONE_RETURN_IF_ERROR(MatchInput(*product->first, &conv));
  for (size_t d = 0; d < 4; ++d) {
    const int iter = IterOf(conv.iters, product->second->indices[d]);
    if (iter == conv.kh) conv.w_kh = static_cast<int>(d);
    if (iter == conv.kw) conv.w_kw = static_cast<int>(d);
    if (iter == conv.c) conv.w_c = static_cast<int>(d);
  }
  if (conv.w_kh < 0 || conv.w_kw < 0 || conv.w_c < 0) return NotOne("input and weights share other variables");
  for (int i = 0; i < static_cast<int>(conv.iters.size()); ++i) {
    const bool known =
        i == conv.batch || i == conv.h || i == conv.w_out || i == conv.f || i == conv.kh || i == conv.kw || i == conv.c;
    if (!known && conv.extent(i) != 1) return NotOne(Message("variable ", conv.var(i), " has no place in it"));
  }
  for (const Expr& extent : conv.x.shape()) {
    if (!ConstantValue(extent).has_value()) return NotOne("the input's shape is symbolic");
  }
  return conv;
}

}  // namespace hone
