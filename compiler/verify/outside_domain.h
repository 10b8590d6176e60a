// The rule binding-domain of the verifier: where a block runs, its iteration variables lie in their domains.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compiler/ir/stmt.h"

namespace hone {

// What is wrong with the first value that leaves the domain of its iteration variable at one of two places: the first
// and the last iterations that the predicate leaves of the loops, where it holds there. nullopt: none is found, which
// proves nothing, as where a domain or a loop's range is no constant.
// `loops`: those between the enclosing block and this one, which no condition guards.
std::optional<std::string> ValueOutsideDomain(const BlockRealize& realize, std::span<const For* const> loops);

}  // namespace hone
