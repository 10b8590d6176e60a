// An affine map from the indices of a tensor to the indices of its new layout:
// lambda k, n: (n // 32, k, n % 32).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"

namespace hone {

struct IndexMap {
  std::vector<Var> inputs;
  std::vector<Expr> outputs;  // over `inputs`, made of + - * // % ^ and integer constants

  // The new indices of the element at `indices`. HONE_CHECK: as many indices as inputs.
  std::vector<Expr> Map(std::span<const Expr> indices) const;
};

// "lambda k, n: (n // 32, k, n % 32)", and back. Parsing fails with InvalidArgument naming what was found where.
std::string ToText(const IndexMap& map);
absl::StatusOr<IndexMap> ParseIndexMap(std::string_view text);

// The map's shape and its inverse over a tensor of `shape`. Only maps in which every output is one digit of one input,
// such as (k // 4) % 16, or such a digit ^ others (a swizzle), or 0 can be inverted; all else is refused with the
// output at fault. Where a factor does not divide, the new shape is larger: the places outside are padding.
struct InverseMap {
  std::vector<Expr> shape;     // of the new layout
  std::vector<Var> indices;    // one for each new dimension
  std::vector<Expr> original;  // the old indices, over `indices`
  Expr inside;                 // bool over `indices`: not padding; True() when there is none
};
// Extents may be symbolic: the digit that has no end of its own is then as long as they ask for. Of such one as an
// index has several digits of, the places beyond it are told from padding by `inside`.
absl::StatusOr<InverseMap> Invert(const IndexMap& map, std::span<const Expr> shape);
// The same for maps that may also put several indices into one, such as lambda i, j: (i * 4 + j,) over (3, 4), but only
// where every element has one place and every place one element: no padding.
absl::StatusOr<InverseMap> InvertOneToOne(const IndexMap& map, std::span<const int64_t> shape);

}  // namespace hone
