// Products that are computed of operands of another type:
//
//   product(x, w)             =>  product(cast(x, type), cast(w, type))
//   product(reshape(x), w)    =>  product(reshape(cast(x, type)), w')       and so through transposes
//
// The cast of a constant is made now. That of x is elementwise: where the product alone reads x, it is the end of the
// kernel that makes x.
#pragma once

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// A product as it stands.
struct ProductNode {
  ProductShape shape;  // as instructions see it
  bool right_is_constant = false;
  bool has_minimal_filter = false;  // a convolution of 3x3 and stride 1 (compiler/schedule/primitives/winograd.h)
};
// nullopt for other nodes, and convolutions of several groups.
std::optional<ProductNode> MatchProduct(const Graph& graph, const Node& node);
// Whether it gains by the other type.
using GainsByCast = std::function<bool(const ProductNode& product)>;

// Dense products, those of batches, and convolutions of one group, where `gains` says so. Readers of one value share
// its cast.
absl::Status CastProducts(Graph& graph, DType type, const GainsByCast& gains);

}  // namespace hone
