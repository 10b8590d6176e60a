// A block with a nest of its own, as operators are written: nothing else in the loops, and every iteration variable is
// one of them. Primitives that change what a block iterates over (pad_einsum, transform_block_layout) start from it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/program_index.h"

namespace hone {

struct PlainNest {
  std::vector<int64_t> extents;  // of the iteration variables' domains, which start at 0
  std::vector<int> loops;        // the node of each variable's loop; -1: its domain is
                                 // one value and it has none
};

// Refused, with the words "WHERE: ...", unless the loops around the block (up to the enclosing block) are serial, run
// from 0, hold nothing but the block, and each is one of its iteration variables over the whole domain; no predicate.
absl::StatusOr<PlainNest> FindPlainNest(const ProgramIndex& index, int node, const std::string& where);

}  // namespace hone
