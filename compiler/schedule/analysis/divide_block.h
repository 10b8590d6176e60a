// A block and the loops right around it, from one of them inwards, seen as one block of tiles: what blockize, tensorize
// and register_tile have in common.
//
//   for i0: for i1 in [0, 6): B(vi = i0*6 + i1)   is   for i0: tile(vt = i0),   vi from vt*6 on, 6 of them or fewer
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/program_index.h"

namespace hone {

// One iteration variable of the block.
struct DividedIter {
  Var tile;              // the tile's variable, of the same kind
  Range tile_domain;     // of that variable
  Expr tile_value;       // what it is bound to, over the loops outside
  int64_t factor = 1;    // values in a tile that is not cut off
  Expr first;            // of them, over `tile`
  Expr count;            // how many there are: `factor`, or less in a tile at the edge
  Expr value;            // the block's own binding, over `tile` and the loops inside
  bool cut_off = false;  // some tile has fewer than `factor`
};

struct DividedBlock {
  int loop = -1, block = -1;      // nodes
  std::vector<const For*> loops;  // inside, outermost first
  std::vector<DividedIter> iters;
  Expr tile_predicate;    // of the tile, over the loops outside
  Expr inside_predicate;  // of an instance, over the tiles' variables and the loops inside
};

// Refused, in the words after `where`: several blocks (or other statements) below the loop; a loop inside that is not
// serial from 0 to a number; a binding that is not tile * factor + position; a condition that cuts tiles other than at
// the end of a domain.
absl::StatusOr<DividedBlock> DivideBlock(const ProgramIndex& index, int loop, const std::string& where);

// The tile block itself, without a body: bindings, domains, predicate, and what one tile reads and writes. Its init, if
// the block has one, is that of every element the tile writes.
BlockRealize MakeTileBlock(const ProgramIndex& index, const DividedBlock& divided, std::string name);

// What one tile makes of an index over the block's variables: the elements from `first` on. B[v // 16, k, v % 16],
// tiled by 16 along v, is at one place in its first dimension and takes 16 neighbours in its last.
struct TileRange {
  Expr first, extent;          // over the tiles' variables
  std::vector<int64_t> steps;  // by how much the index moves with each of the block's variables inside the tile
};
// nullopt where the index is no sum of the positions inside the tile.
std::optional<TileRange> RangeInTile(const DividedBlock& divided, const Block& block, const Range& index);

}  // namespace hone
