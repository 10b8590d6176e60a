#include "compiler/ir/intrinsics.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Power(double x, double y) { return std::pow(x, y); }

constexpr IntrinsicInfo OfOne(std::string_view name, double (*function)(double)) {
  return {.name = name, .arity = 1, .of_one = function};
}

constexpr IntrinsicInfo kIntrinsics[] = {
    OfOne("exp", std::exp),
    OfOne("exp2", std::exp2),
    OfOne("log", std::log),
    OfOne("log2", std::log2),
    OfOne("sqrt", std::sqrt),
    OfOne("rsqrt", Rsqrt),
    OfOne("tanh", std::tanh),
    OfOne("erf", std::erf),
    OfOne("sigmoid", Sigmoid),
    OfOne("sin", std::sin),
    OfOne("cos", std::cos),
    OfOne("tan", std::tan),
    {.name = "pow", .arity = 2, .of_two = Power},
    OfOne("floor", std::floor),
    OfOne("ceil", std::ceil),
    OfOne("round", std::nearbyint),  // halves to even
    OfOne("trunc", std::trunc),
    OfOne("abs", std::fabs),
    {"fma", 3},
    {"isnan", 1, true},
    {"isinf", 1, true},
    {"popcount", 1},
    {.name = "prefetch", .arity = 1, .stands_alone = true},
    {.name = "tvm_storage_sync", .arity = 1, .stands_alone = true},  // effects.h
    {.name = "atomic_add", .arity = 2, .stands_alone = true},
    {.name = "atomic_min", .arity = 2, .stands_alone = true},
    {.name = "atomic_max", .arity = 2, .stands_alone = true},
    {.name = "async_copy", .arity = 2, .stands_alone = true},
    {.name = "ptx_commit_group", .arity = 1, .stands_alone = true},
    {.name = "ptx_wait_group", .arity = 1, .stands_alone = true},
};

}  // namespace

std::span<const IntrinsicInfo> Intrinsics() { return kIntrinsics; }

const IntrinsicInfo* FindIntrinsic(std::string_view name) {
  const auto* found = std::ranges::find(kIntrinsics, name, &IntrinsicInfo::name);
  return found == std::end(kIntrinsics) ? nullptr : found;
}

}  // namespace hone
