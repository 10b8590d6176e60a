// A plan with symbolic sizes, made of plans at some sizes.
//
// The model is imported, optimised and cut into kernels at a few sizes, as if each were the only one. What the plans
// have in common is the plan; where they differ it is by numbers, and each number becomes the polynomial over the sizes
// (size_polynomial.h) that gives it at every size tried. So every operator takes symbolic sizes, and what a model
// computes with shapes is done when it is imported. A model that takes another way at a size that was tried is refused;
// of those that were not, graph_at_sizes.h sees to it that their graphs follow the same polynomials.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/plan/plan.h"

namespace hone {

// The sizes to plan a model at: the first is the greatest in every size, and at least the range's. None is 1, where
// what a tensor is in one dimension looks like a number. A size of fewer values than are needed is tried beyond its
// range.
std::vector<std::vector<int64_t>> SizesToPlanAt(const std::vector<PlanSize>& sizes);

// Makes `plan` share the constants that are byte for byte those of `first`: of many plans of a model one copy is held.
void ShareConstants(const Plan& first, Plan& plan);

// What GeneralisePlan refuses of a plan by itself: FailedPrecondition where it calls a function of the program that
// runs the model, since a bundle says the shapes of what that is given once and for all.
absl::Status CheckGeneralises(const Plan& plan);

// plans[i] is the model's at points[i], which SizesToPlanAt gave. A constant that smaller sizes use a part of (the
// first rows of a table, a corner of a mask) is whole. FailedPrecondition names what differs otherwise: the kernel,
// constant or tensor, and the sizes.
absl::StatusOr<Plan> GeneralisePlan(std::vector<PlanSize> sizes, std::vector<std::vector<int64_t>> points,
                                    std::vector<Plan> plans);

}  // namespace hone
