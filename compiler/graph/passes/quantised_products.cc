// Products of dequantised integers are products of integers:
//
//   product(dequantize(x, s, z), dequantize(w, t, 0))  =>  cast(product(x, w) - z * sum(w), float32) * (s * t)
//
// Transposes and reshapes in between are done on the integers. The scale and zero point of x are one number each, those
// of w one number or one an output channel. Exact but for the roundings of the floating-point sum, which are gone.
//
// Other nodes "dequantize" become the arithmetic that they are, of which constants are folded: until here they stay, so
// that they can be told.
#include "compiler/graph/integer_product.h"
#include "compiler/graph/op.h"
#include "compiler/graph/passes.h"
#include "compiler/graph/passes/rewrite.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

bool IsOne(Rewriting& r, int value) { return *NumElements(r.shape(value)) == 1; }

// (integer - zero) * scale
struct Dequantised {
  int integer = -1, scale = -1, zero = -1;  // zero: -1 where there is none
  bool by_column = false;  // scale and zero have one number an index of the last dimension; else one in all
};

// A scale or zero point that is one number, as a scalar; or one an index of the last dimension, as a vector. nullopt:
// neither.
absl::StatusOr<std::optional<int>> AsColumn(Rewriting& r, const Node& origin, int param, int64_t columns) {
  const Ints& shape = r.shape(param);
  if (IsOne(r, param)) return r.Reshape(origin, param, {});
  if (shape.empty() || shape.back() != columns || *NumElements(shape) != columns) return std::nullopt;
  return r.Reshape(origin, param, {columns});
}

// The parameter of what is transposed next: its dimensions are counted from the last.
absl::StatusOr<int> TransposeParam(Rewriting& r, const Node& origin, int param, const Ints& perm) {
  if (IsOne(r, param)) return param;
  Ints shape = r.shape(param);
  shape.insert(shape.begin(), perm.size() - shape.size(), 1);
  HONE_ASSIGN_OR_RETURN(const int full, r.Reshape(origin, param, shape));
  return r.Transpose(origin, full, perm);
}

// The parameter of what is reshaped next; nullopt where it is more than one number and the reshape does more than add
// and drop dimensions of 1.
absl::StatusOr<std::optional<int>> ReshapeParam(Rewriting& r, const Node& origin, int param, const Ints& from,
                                                const Ints& to) {
  if (IsOne(r, param)) return param;
  Ints full = r.shape(param), shape;
  full.insert(full.begin(), from.size() - full.size(), 1);
  size_t at = 0;
  const auto skip_ones = [&] {
    while (at < from.size() && from[at] == 1) ++at;
  };
  for (const int64_t extent : to) {
    if (extent != 1) skip_ones();
    if (extent != 1 && (at == from.size() || from[at] != extent)) return std::nullopt;
    shape.push_back(extent == 1 ? 1 : full[at++]);
  }
  skip_ones();
  if (at != from.size()) return std::nullopt;
  return r.Reshape(origin, param, shape);
}

// What `value` is a dequantised form of, through transposes and reshapes.
absl::StatusOr<std::optional<Dequantised>> FindDequantised(Rewriting& r, int value) {
  const Node* found = r.Producer(value);
  if (found == nullptr) return std::nullopt;
  const Node node = *found;  // a copy: nodes are added below
  if (node.op == "dequantize") {
    Dequantised d{node.inputs[0], node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : -1};
    const DType type = r.type(d.integer).dtype;
    if (!type.is_int() || type.bits != 8 || r.type(value).dtype != kFloat32) return std::nullopt;
    return d;
  }
  if (node.op != "transpose" && node.op != "reshape") return std::nullopt;
  HONE_ASSIGN_OR_RETURN(std::optional<Dequantised> d, FindDequantised(r, node.inputs[0]));
  if (!d.has_value()) return std::nullopt;
  if (node.op == "reshape") {
    const Ints from = r.shape(node.inputs[0]), to = r.shape(value);
    for (int* param : {&d->scale, &d->zero}) {
      if (*param < 0) continue;
      HONE_ASSIGN_OR_RETURN(const std::optional<int> reshaped, ReshapeParam(r, node, *param, from, to));
      if (!reshaped.has_value()) return std::nullopt;
      *param = *reshaped;
    }
    HONE_ASSIGN_OR_RETURN(d->integer, r.Reshape(node, d->integer, to));
    return d;
  }
  const Ints perm = IntsAttr(node.attrs, "perm");
  HONE_ASSIGN_OR_RETURN(d->integer, r.Transpose(node, d->integer, perm));
  HONE_ASSIGN_OR_RETURN(d->scale, TransposeParam(r, node, d->scale, perm));
  if (d->zero >= 0) { HONE_ASSIGN_OR_RETURN(d->zero, TransposeParam(r, node, d->zero, perm)); }
  return d;
}

absl::StatusOr<std::optional<int>> OfProduct(Rewriting& r, const Node& node) {
  HONE_ASSIGN_OR_RETURN(const std::optional<Dequantised> x, FindDequantised(r, node.inputs[0]));
  if (!x.has_value() || !IsOne(r, x->scale) || (x->zero >= 0 && !IsOne(r, x->zero))) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(std::optional<Dequantised> w, FindDequantised(r, node.inputs[1]));
  if (!w.has_value()) return std::nullopt;
  const int64_t columns = r.shape(node.outputs[0]).back();
  HONE_ASSIGN_OR_RETURN(const std::optional<int> w_scale, AsColumn(r, node, w->scale, columns));
  if (!w_scale.has_value()) return std::nullopt;
  IntegerOperand a{x->integer, x->zero}, b{w->integer, w->zero};
  if (a.zero >= 0) { HONE_ASSIGN_OR_RETURN(a.zero, r.Reshape(node, a.zero, {})); }
  if (b.zero >= 0) {
    HONE_ASSIGN_OR_RETURN(const std::optional<int> zero, AsColumn(r, node, b.zero, columns));
    if (!zero.has_value()) return std::nullopt;
    b.zero = *zero;
  }
  HONE_ASSIGN_OR_RETURN(const int sum, AddIntegerProduct(r.graph(), node.op, node.name, a, b, node.attrs));
  HONE_ASSIGN_OR_RETURN(const int x_scale, r.Reshape(node, x->scale, {}));
  HONE_ASSIGN_OR_RETURN(const int scale, r.Add("multiply", node, {x_scale, *w_scale}));
  HONE_ASSIGN_OR_RETURN(const int real, r.Add("cast", node, {sum}, {{"to", ToText(kFloat32)}}));
  return r.Add("multiply", node, {real, scale});
}

absl::StatusOr<std::optional<int>> Rewrite(Rewriting& r, const Node& node) {
  return FindOp(node.op)->multiplies_integers ? OfProduct(r, node) : std::nullopt;
}

absl::StatusOr<std::optional<int>> ExpandProduct(Rewriting& r, const Node& node) {
  if (node.op != "dequantize") return std::nullopt;
  const auto cast = [&](int value, DType to) { return r.Add("cast", node, {value}, {{"to", ToText(to)}}); };
  HONE_ASSIGN_OR_RETURN(int y, cast(node.inputs[0], kInt32));
  if (node.inputs.size() > 2) {
    HONE_ASSIGN_OR_RETURN(const int zero, cast(node.inputs[2], kInt32));
    HONE_ASSIGN_OR_RETURN(y, r.Add("subtract", node, {y, zero}));
  }
  HONE_ASSIGN_OR_RETURN(y, cast(y, r.type(node.inputs[1]).dtype));
  return r.Add("multiply", node, {y, node.inputs[1]});
}

}  // namespace

absl::Status QuantisedProducts(Graph& graph) {
  HONE_RETURN_IF_ERROR(RewriteNodes(graph, Rewrite).status());
  return RewriteNodes(graph, ExpandProduct).status();
}

}  // namespace hone
