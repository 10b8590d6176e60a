// Symbolic sizes: dimensions that are known when a function is called.
//
// A function states its sizes as `dims`: integer variables, each with a SizeRange, both ends included. Shapes, loops
// and indices are expressions over them; the range is a promise of the caller that every proof may use. A dimension
// that is always a multiple of 16 is written as `m * 16` with a size m of its own: what divides then shows in the
// expressions.
//
//   @T.prim_func
//   def main(n: T.int32(1, 512), A: T.Buffer((n, 768), "float32"), B: T.Buffer((n, 768), "float32")): ...
//
// A compiled kernel takes the values in HoneCall::dims, in the order of `dims`. Those who call it, and the interpreter,
// find them in the shapes of the arguments.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// Mentions no variable but symbolic sizes, and reads no memory.
bool IsOverSizes(const Expr& e);
bool MentionsSize(const Expr& e);

using SizeValues = std::map<Var, int64_t>;

// The value of an expression over sizes; nullopt when it mentions one without a value, or anything else.
std::optional<int64_t> EvaluateSize(const Expr& e, const SizeValues& values);

// The values of func.dims for arguments of these shapes, one for each param. A size follows from a dimension that is
// the size times a number plus a number. InvalidArgument names the argument whose shape does not fit, the size that
// follows from no shape, or the one that is outside of its range.
absl::StatusOr<std::vector<int64_t>> SizesFromShapes(const PrimFunc& func,
                                                     std::span<const std::vector<int64_t>> shapes);

// The function with numbers in place of its sizes, one for each of func.dims: it has none afterwards.
PrimFunc WithSizes(const PrimFunc& func, std::span<const int64_t> sizes);

// The function for the part of its sizes that these ranges leave, each within that of func.dims, in their order: what
// is proven of it may use as much. A size of one value is a number everywhere, and still one of its dims.
PrimFunc WithRanges(const PrimFunc& func, std::span<const SizeRange> ranges);

}  // namespace hone
