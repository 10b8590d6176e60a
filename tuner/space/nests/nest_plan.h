// How one block that accumulates into registers is computed: a shape, which rules and templates decide, and a plan, the
// sizes that the search varies. Whoever fills them in, there is one legality check and one draft cost (nest_model.h),
// and one builder to a schedule (nest_builder.h).
//
//   parallel (pieces of every spatial variable):     a piece is also the cache block: what is read again in it is near
//     [for blocks of k:]                             partial results are added to memory after each
//       [panels = operand]                           what the block reads of it, copied (panels.h)
//       for tiles in the piece:                      the loop over panels of n outside or inside those over rows
//         for k..:                                   serial; the last one unrolled in part
//           unrolled rows x vectors of n:            accumulators in registers; products are added to a vector of
//                                                    them by a tile operation, of narrow types by one instruction
//         [C[tile] = sums in tile registers]
//         [C[tile] += accumulators]
//         epilogue of the tile                       with blocks of k: of the piece, after the last
//
// Tile sizes are what registers like, whatever the extents: the last tile is cut off in lowering (split_tails.cc).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/tile/tile_intrinsic.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// A block with more iteration variables is not tiled.
inline constexpr int kMostIters = 12;
// Further operands are neither packed nor counted.
inline constexpr size_t kMostReads = 8;

// Which way the reduction is cut.
enum class ReductionCut {
  kNone,
  kBlocks,  // blocks of one reduce variable, one after the other: NestPlan::k_parts of them; 1: the same as kNone
  kLanes,   // vectors run along a reduce variable and are summed at the end: NestPlan::k_parts lanes
};

// When an operand that varies from call to call is copied into panels.
enum class Packing : uint8_t {
  kNone,    // never: tiles read it where it is
  kBefore,  // in front of the nest, whole
  kBlock,   // in every cache block (a piece, or a block of k in it), as much as is read there
};

// What is decided before any size.
struct NestShape {
  ReductionCut cut = ReductionCut::kNone;
  int along = -1;     // with a cut: the reduce variable
  int epilogue = -1;  // the elementwise block that takes the results tile by tile
  // The block whose outer loops are the loops over pieces, and take a piece each (rule_blocks.cc, rule_inside.cc); -1:
  // the block's own.
  int pieces_of = -1;
  // Reads that are stored in panels as wide as the tile, as indices into BlockInfo::reads: constants when the kernel is
  // deployed, others as NestPlan::packing says.
  std::vector<int> panels;
  // Products that one instruction adds up, iterations of the last reduce variable; the panels of `dot_operand`, one of
  // `panels`, have them side by side.
  std::optional<DotProduct> dot;
  int dot_operand = -1;
  // With an instruction that multiplies matrices: the variable along their rows. Along it and the columns all tiles are
  // whole ones. Sums in tile registers go to memory before the epilogue or anybody reads them.
  int tile_rows = -1;

  bool in_matrices() const { return tile_rows >= 0; }
  bool in_tiles() const { return in_matrices() && dot->in_tiles(); }
  int64_t group() const { return dot.has_value() ? dot->group : 1; }
  int64_t depth() const { return dot.has_value() ? dot->depth : 1; }  // iterations in one instruction
};

struct NestPlan {
  // By iteration variable of the block, from outside to inside; 1 for reduce variables.
  std::array<int64_t, kMostIters> pieces;     // parallel
  std::array<int64_t, kMostIters> steps;      // tiles in a piece
  std::array<int64_t, kMostIters> inner;      // iterations in the register tile
  std::array<int64_t, kMostIters> piece{};    // of a piece; 0: as many as its tiles have
  int64_t k_parts = 1;                        // see ReductionCut
  int64_t unroll = 1;                         // iterations of the innermost reduce loop
  bool window = false;                        // the other reduce loops are unrolled too
  bool panels_outside = false;                // the loop over panels of n outside the loops over rows
  bool prefetch = false;                      // cold constants are asked for before their time (OneSetOfRows)
  int64_t streams = 1;                        // panels of cold constants side by side in a tile, each read as a stream
  int lanes = 1;                              // of a vector along n
  uint32_t near = 0;                          // bit r: what read r reads is computed in the piece, by its producer
  uint32_t in_tile = 0;                       // bit r: .. is computed in the tile, wherever it is read
  std::array<Packing, kMostReads> packing{};  // of each variable read in NestShape::panels
  NestPlan() {
    inner.fill(1);
    pieces.fill(1);
    steps.fill(1);
  }
  int64_t Pieces() const {
    int64_t n = 1;
    for (const int64_t p : pieces) n *= p;
    return n;
  }
  // Iterations of a variable of `extent` in a piece.
  int64_t InPiece(size_t iter, int64_t extent) const {
    return std::min(extent, piece[iter] > 0 ? piece[iter] : steps[iter] * inner[iter]);
  }
};

// Elements of a panel of an operand along n.
inline int64_t WidthOfPanels(const BlockInfo& block, size_t read, const NestPlan& plan) {
  const int64_t in_tile = plan.inner[static_cast<size_t>(block.last_iter())];
  return block.reads[read].cold ? in_tile / plan.streams : in_tile;
}

// Whether every iteration of that variable has panels of its own (a batch, a frequency of Winograd's). Their loops over
// tiles stand around all others.
inline bool HasOwnPanels(const BlockInfo& block, const NestShape& shape, int iter) {
  return iter != block.last_iter() && !shape.panels.empty() &&
         block.reads[static_cast<size_t>(shape.panels[0])].strides[static_cast<size_t>(iter)] != 0;
}

// Whether all iterations of that variable read the same panels.
inline bool SharesPanels(const BlockInfo& block, const NestShape& shape, int iter) {
  return block.spatial(iter) && iter != block.last_iter() && !HasOwnPanels(block, shape, iter);
}

// Tiles of rows that pass over a panel in a piece.
inline int64_t TilesOfRows(const BlockInfo& block, const NestShape& shape, const NestPlan& plan) {
  int64_t tiles = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (SharesPanels(block, shape, i)) tiles *= plan.steps[static_cast<size_t>(i)];
  }
  return tiles;
}

// Whether a panel is read once, as a stream: what is asked for before its time is then a little further on in it. Else
// it is the next panel, while rows pass over this one.
inline bool OneSetOfRows(const BlockInfo& block, const NestShape& shape, const NestPlan& plan) {
  return TilesOfRows(block, shape, plan) == 1;
}

}  // namespace hone
