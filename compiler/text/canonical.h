// The canonical form of a workload: what the database keys, what travels to workers, and what traces replay on.
//
// Names of the function, of variables and of buffers are replaced by fixed ones in order of appearance; names of blocks
// stay, since traces find blocks by them. Functions that are equal but for such names have one text and one hash.
#pragma once

#include <string>

#include "compiler/ir/stmt.h"

namespace hone {

struct CanonicalWorkload {
  PrimFunc func;     // named "main"
  std::string text;  // ToText(func)
  std::string hash;  // SHA-256 of the text, 32 bytes
};

CanonicalWorkload Canonicalize(const PrimFunc& func);

// The symbol under which the workload's kernel is compiled, the same in every program: objects of several workloads can
// be linked into one image.
std::string KernelSymbol(const std::string& workload_hash);

}  // namespace hone
