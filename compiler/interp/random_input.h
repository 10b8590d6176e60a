// Seeded inputs for verification: the same numbers on every machine.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/ir/stmt.h"

namespace hone {

// kUniform    floats in [-1, 1), integers in a small range
// kInteger    small integers also in floating tensors: sums of products are exact, so every difference is a defect
// kPatterned  0, +-1, large and tiny powers of two, and alternating signs, so that structure shows
// kRising     the range of kUniform from its least to its largest along the elements in order: whatever runs over some
//             of them meets its largest last, so a maximum that ends too early is seen
// kFalling    from its largest to its least
// kLarge      floats of kUniform times 1000: exponentials run over unless a maximum is taken off before, and a variance
//             is lost in the squares of a mean that is not
// kPeaks      kUniform, but one element in kPeakSpacing is larger than all others and a condition true there alone: of
//             a maximum over some elements few are hidden behind others
// kTroughs    the same with smaller ones, and conditions false there alone
// Conditions and what has a domain of integers neither rise nor fall. Which elements are peaks is the seed modulo
// kPeakSpacing: of kPeakSpacing sets with consecutive seeds, every element is a peak in one.
enum class InputKind : uint8_t { kUniform, kInteger, kPatterned, kRising, kFalling, kLarge, kPeaks, kTroughs };
inline constexpr InputKind kLastInputKind = InputKind::kTroughs;
inline constexpr int kPeakSpacing = 17;  // a prime, since the strides of tensors seldom have it as a factor

// A domain of the function's "domains" attribute ("int[0,10)", "positive", "nonnegative", ""). Values drawn honour it.
struct Domain {
  enum class Kind : uint8_t { kAny, kInt, kPositive, kNonnegative } kind = Kind::kAny;
  int64_t low = 0, high = 0;  // kInt: half-open
};
absl::StatusOr<Domain> ParseDomain(std::string_view text);
// Of parameter `param`; any value where the function does not say, or says what does not parse.
Domain DomainOf(const PrimFunc& f, int param);

// A value for parameter `param` of `f`, whose shape must be constant (pass `shape` where it is symbolic). A domain that
// does not parse counts as any value.
NdArray RandomInput(const PrimFunc& f, int param, uint64_t seed, InputKind kind);
NdArray RandomArray(DType type, std::vector<int64_t> shape, const Domain& domain, uint64_t seed, InputKind kind);

// Arguments for a whole function: inputs by RandomInput with a stream of their own each, outputs full of
// kUnwrittenByte (interpreter.h).
std::vector<NdArray> RandomArguments(const PrimFunc& f, uint64_t seed, InputKind kind);

}  // namespace hone
