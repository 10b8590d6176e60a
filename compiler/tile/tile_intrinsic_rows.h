// What the files that hold rows of the table of intrinsics share (tile_intrinsic.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// A row whose meaning is this text: one block with one store. Its variables are the axes: `vm` is the axis m.
TileIntrinsic MakeTileIntrinsic(std::string name, const std::string& text, std::vector<TileLoop> loops,
                                std::vector<TileInstruction> instructions = {});

// What one thread does by itself.
std::vector<TileIntrinsic> ThreadOperations();
// The warp-wide matrix products of NVIDIA's tensor cores.
std::vector<TileIntrinsic> WarpProducts();
// The loads of their operands from shared memory.
std::vector<TileIntrinsic> WarpLoads();
// The asynchronous copies of one thread from global to shared memory.
std::vector<TileIntrinsic> AsyncCopies();

}  // namespace hone
