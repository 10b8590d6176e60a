// Every access of a block's init and body: what its regions are inferred from (block_regions.h) and held against
// (compiler/verify/undeclared_access.h).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

// The region is in terms of the block's iteration variables, of what is in scope outside the block, and of the loops of
// the body around the access: variables of lets are replaced by their values, matched buffers by the part they name,
// vector indices by the range they cover (the whole dimension where it is not a range of known length).
struct BlockAccess {
  BufferRegion region;
  bool write = false;
  const std::vector<std::pair<Var, Range>>& loops;  // of the body around the access, outermost first
  const std::vector<Expr>& conditions;              // of the body under which it is made, outermost first
  const BlockRealize* nested = nullptr;             // the nested block that declares it; nullptr: it is the block's own
  // Of a nested block's access: the region in terms of those of that block's variables whose values change with the
  // loops, and all of its variables with their domains, in which they stay whatever values the loops would give them.
  std::vector<Range> in_nested = {};
  std::vector<std::pair<Var, Range>> domains = {};

  // What `in_nested` is in terms of, outermost first.
  std::vector<std::pair<Var, Range>> LoopsAndDomains() const {
    std::vector<std::pair<Var, Range>> all = loops;
    all.insert(all.end(), domains.begin(), domains.end());
    return all;
  }
};

// Calls `visit` on every access of the body, then of the init, in program order. Buffers that the block or its body
// allocates are left out. A nested block counts by the regions it declares, under the conditions that its predicate
// holds and that its variables lie in their domains: it runs nowhere else. Of a tile operation the first operand is
// written, and read where it accumulates; the others are read. An atomic update reads and writes its element.
void ForEachAccess(const Block& block, const std::function<void(const BlockAccess&)>& visit);

}  // namespace hone
