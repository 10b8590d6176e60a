// The rule region-cover of the verifier: what a block declares to read and write covers what it does.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/stmt.h"

namespace hone {

// What is wrong with the first access of the block's init or body that is not proven to lie in a region that the block
// declares; nullopt when all are. The proof is for every instance: the block's variables run through their domains and
// the loops of the body through their ranges, where the conditions around the access hold and it lies inside its
// buffer. A block with an init need not declare that it reads what it writes. For a block that keeps the other rules of
// the verifier.
std::optional<std::string> UndeclaredAccess(const Block& block);

}  // namespace hone
