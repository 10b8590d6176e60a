// Tiles, as the passes see them that write several versions of one: conditions inside, by what decides them, the loops
// around the tile or those within; how much code a version is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace hone {

// outer + inner <= 0: `outer` is known once a tile, `inner` takes values between `least` and `most` in it.
struct TileCondition {
  Expr outer;
  int64_t least = 0, most = 0;
};
bool SameOuter(const TileCondition& a, const TileCondition& b);

// The loops of a tile that a walk is inside of.
struct TileLoops {
  std::map<Var, std::pair<int64_t, int64_t>> ranges;  // least value and extent
  std::set<Var> hidden;                               // what changes inside the tile in another way
};

// nullopt when the condition has another form, reads memory, or nothing outside the tile decides it.
std::optional<TileCondition> ReadTileCondition(const Expr& condition, const TileLoops& loops, Analyzer& known);

// How many stores the tile has once it is unrolled.
int64_t StoresOfTile(const Stmt& stmt);

}  // namespace hone
