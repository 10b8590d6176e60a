// Whether block iteration variables are an independent, complete numbering of what the loops around them do.
//
// Splitting, fusing and reordering loops writes a block's bindings as affine combinations of pieces of loop variables.
// DetectIterMap finds the pieces again: every value becomes base + sum of scale * piece, a piece being
// floormod(floordiv(source, lower), extent) of a loop (or of a fusion of loops), scales such that the sum is a
// mixed-radix number. All pieces together must be disjoint parts of the loops, so that different iterations give
// different values of the bindings; then every instance of the block runs exactly once.
//
//   i in [0, 4), j in [0, 32):  (i*32 + j)             one value of extent 128
//   f in [0, 128):              (f // 32, f % 32)      two independent values of extents 4 and 32
//   i in [0, 4), j in [0, 32):  (i*32 + j), predicate i*32 + j < 100: one value of extent 100
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace hone {

// scale * floormod(floordiv(source, lower_factor), extent)
struct IterPiece {
  int source = 0;  // index into IterMap::sources
  int64_t lower_factor = 1;
  Expr extent;
  int64_t scale = 1;
};
// What pieces are cut from: a loop variable minus its min, or a fusion of loops (a predicate makes its extent smaller
// than the product).
struct IterSource {
  std::vector<Var> loops;  // outermost first
};
struct IterValue {
  std::vector<IterPiece> pieces;  // largest scale first
  Expr base;                      // mentions no loop
  Expr extent;                    // values lie in [base, base + extent)
};
struct IterMap {
  std::vector<IterSource> sources;
  std::vector<IterValue> values;
};

// `loops` gives the loops' ranges, `predicate` what guards the block (absent:
// none). InvalidArgument says which value is not of the form and why. A loop that no value uses is reported when
// `require_all_loops`: the block would run once for each of its iterations.
absl::StatusOr<IterMap> DetectIterMap(std::span<const Expr> values, const VarRanges& loops, const Expr& predicate,
                                      bool require_all_loops = true);

// The bindings of a block's realization number its domain: DetectIterMap holds, and each value's range is its iteration
// variable's domain. Reduction and spatial variables are checked alike; opaque ones only have to stay within their
// domain.
absl::Status CheckBindings(const BlockRealize& realize, const VarRanges& loops, Analyzer& known);

}  // namespace hone
