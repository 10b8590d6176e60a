// Giving a buffer another layout in a piece of program: shared by layout_constant, pack and transform_layout.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/analysis/index_map.h"

namespace hone {

// The inverse of a map that gives a buffer of `shape` another layout. Besides the maps that Invert takes, one that
// fuses dimensions, such as lambda i, j: (i * 16 + j // 4, j % 4), is taken where the shape is constant and the map is
// one to one (InvertOneToOne); there is no padding then.
absl::StatusOr<InverseMap> InvertLayout(const IndexMap& map, std::span<const Expr> shape);

// The places of a new layout as a block runs over them.
struct LayoutPlaces {
  std::vector<IterVar> iters;  // spatial, one for each new dimension
  std::vector<Expr> indices;   // of the place: the variables of `iters`
  std::vector<Expr> original;  // of the element that lies there
  Expr inside;                 // bool; false where the place is padding, True() where there is no padding
};
LayoutPlaces PlacesOf(const InverseMap& inverse);

// Every load, store and region of `from` under `root` goes to the mapped place in `to`. Regions become the least ranges
// that hold the mapped ones.
Stmt WithLayout(const Stmt& root, const Buffer& from, const Buffer& to, const IndexMap& map);

// Returns whether the region that a block writes becomes a box, all of whose elements are elements of it. It does not
// when the map cuts it elsewhere than at multiples of its factors, nor when the map pads it.
bool StaysBox(const BufferRegion& write, const Block& block, const IndexMap& map);

// Returns whether the buffer is used by a tile operation or as the source of a match_buffer, whose operands' shapes a
// new layout would change.
bool IsMatched(const Stmt& root, const Buffer& buffer);

}  // namespace hone
