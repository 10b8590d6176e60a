// clang-format off
// The verifier: what every pass and primitive may rely on.
//
// Checks, by the name of the rule:
//   variable-scope  defined-twice   variables (and buffers) are used inside their scope and defined once
//   loop-in-block                   a block sees the loops around it through its bindings alone
//   buffer-scope                    params, then allocations, define every buffer used
//   input-written                   inputs are only read
//   binding-count                   a block has a value for every iteration variable
//   binding-domain                  which is not known to leave its domain (outside_domain.h)
//   store-rank  load-rank  region-rank
//                                   as many indices (ranges) as the buffer has dimensions
//   index-range                     constant indices lie inside the shape, except under a condition
//   types  integer  condition  shape-type
//                                   operands, indices, conditions, extents have the types they need
//   intrinsic  tile-op              calls name a function of intrinsics.h, with its number of arguments
//   loop-thread  loop-extent        thread names go with thread bindings; vectorized and unrolled loops have constant
//                                   extents
//   region-cover                    what a block below the root reads and writes is proven to lie in the regions that
//                                   it declares (undeclared_access.h)
//   attributes                      "outputs", "constants" and "domains" fit the params
//   absent-part                     nothing that must be there is an absent handle
// It names the first rule broken and the place: "store-rank: block Y: Y[vi] has 1 index, the buffer has 2 dimensions".
// clang-format on
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone {

struct IrModule;  // compiler/ir/module.h

absl::Status Verify(const PrimFunc& f);

// Every tensor function keeps these rules, and every R.call_tir names a tensor function of the module, with
// as many arguments and outputs as that has parameters, of the same types and, where constants, the same shapes.
// InvalidArgument names the function and the value.
absl::Status Verify(const IrModule& module);

}  // namespace hone
