// Who reads and writes what, among the blocks of one enclosing block.
//
// Everything here goes by the regions blocks declare. `scope` is the node of the enclosing block; the blocks directly
// below it stand for all that is inside them.
#pragma once

#include <vector>

#include "compiler/schedule/analysis/program_index.h"

namespace hone {

bool Reads(const Block& block, const Buffer& buffer);
bool Writes(const Block& block, const Buffer& buffer);

std::vector<int> WritersOf(const ProgramIndex& index, int scope, const Buffer& buffer);
std::vector<int> ReadersOf(const ProgramIndex& index, int scope, const Buffer& buffer);

// Blocks other than `block` that write what it reads, and that read what it writes; in program order.
std::vector<int> ProducersOf(const ProgramIndex& index, int block);
std::vector<int> ConsumersOf(const ProgramIndex& index, int block);

// A param of the function (or a buffer of an enclosing block): something outside the scope can see it.
bool IsIntermediate(const ProgramIndex& index, int scope, const Buffer& buffer);
// The node of the block that allocates the buffer; -1 for a param.
int AllocatingBlock(const ProgramIndex& index, const Buffer& buffer);
// Returns whether every block that touches the buffer is below the node.
bool IsPrivateTo(const ProgramIndex& index, int node, const Buffer& buffer);

bool HasReduction(const Block& block);  // a reduce iteration variable, or an init
// Reads an element it writes, other than by its init: running an instance twice is not the same as once.
bool UpdatesInPlace(const Block& block);

}  // namespace hone
