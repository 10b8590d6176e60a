// Small helpers for axes and sizes, for operators and for graph passes that look at their attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// -1 is the last axis of `rank`.
int64_t NormalizeAxis(int64_t axis, int64_t rank);
// Normalised, ascending, no duplicates.
std::vector<int64_t> NormalizeAxes(const std::vector<int64_t>& axes, int64_t rank);
// `values`, or `count` times `fallback` when empty.
std::vector<int64_t> OrDefault(const std::vector<int64_t>& values, size_t count, int64_t fallback);
bool AllAre(const std::vector<int64_t>& values, int64_t value);
// Indices as expressions, to be changed and used for an access.
inline std::vector<Expr> ToExprs(const te::Indices& at) { return std::vector<Expr>(at.begin(), at.end()); }

}  // namespace hone::topi
