// Structural equality and hash: the same program up to the names of variables and buffers.
//
// A definition met in one program is matched with the definition at the same place in the other; from there on uses
// must agree. Free variables and buffers are equal only to themselves (StructuralEqual of functions has none: params
// are matched in order). The hash agrees with equality, and is the same in every process and on every machine.
#pragma once

#include <cstdint>

#include "compiler/ir/stmt.h"

namespace hone {

bool StructuralEqual(const Expr& a, const Expr& b);
bool StructuralEqual(const Stmt& a, const Stmt& b);
// Names of functions do not count; attributes do.
bool StructuralEqual(const PrimFunc& a, const PrimFunc& b);

uint64_t StructuralHash(const Expr& e);
uint64_t StructuralHash(const Stmt& s);
uint64_t StructuralHash(const PrimFunc& f);

}  // namespace hone
