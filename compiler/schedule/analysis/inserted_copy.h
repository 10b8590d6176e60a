// What primitives share that put a buffer between a block and what it reads or writes (cache_read, cache_write,
// reindex, pad_einsum, pack): where the block's nest begins, which part of a buffer it touches, and nests around new
// blocks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/analysis/program_index.h"

namespace hone {

// The statement of the enclosing block's body that holds the node: its outermost loop, or itself.
int Outermost(const ProgramIndex& index, int node);

// What the instances of the block that run touch of a buffer, clipped to it; whole dimensions where that is not known.
std::vector<Range> TouchedRegion(const ProgramIndex& index, int node, const Buffer& buffer, bool writes);

// Returns whether the inner part of the buffer is certain to lie in the outer one.
bool Holds(const std::vector<Range>& outer, const std::vector<Range>& inner, const Buffer& buffer);

// OK when the region of the buffer is there, with its final values, before the nest of the block begins. A param is,
// unless a block in or after the nest writes it; what is made outside the enclosing block, before that block's nest.
// The region must mention no variable. Refused says "WHERE: ..." otherwise.
absl::Status CheckThereBefore(const ProgramIndex& index, int node, const Buffer& buffer,
                              const std::vector<Range>& region, const std::string& where);

// OK when one run of the block of tiles around it runs the whole domain of the block that node is, so that its loops
// may be made anew from the domain. At the root every block does, as far as what it writes is read. Refused says
// "WHERE: ..." otherwise.
absl::Status CheckRunsWhole(const ProgramIndex& index, int node, const std::string& where);

// A nest around a block of iteration variables and a body: a loop for each variable, which runs over its domain. What
// it reads and writes is found in the body.
//   for ax0, ax1, ..: with block: v0 = spatial(min0 + ax0) ..
Stmt NestAround(Block block);

// A spatial iteration variable over [0, extent) of the extent's type.
IterVar SpatialIter(const std::string& name, const Expr& extent);

// The body with the region added to what the block of that name ("" or the root's: nothing to do) and those around it
// declare to read of the buffer: what a new block in it reads. The region must mention no variable.
Stmt WithReads(const Stmt& body, const std::string& block_name, const Buffer& buffer, const std::vector<Range>& region);

// The body with the buffer among the allocations of the block of that name ("" or the root's: the root).
Stmt WithAlloc(const Stmt& body, const std::string& block_name, const Buffer& buffer);

}  // namespace hone
