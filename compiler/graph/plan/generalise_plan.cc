#include "compiler/graph/plan/generalise_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/constant_parts.h"
#include "compiler/graph/plan/generalise_function.h"
#include "compiler/graph/plan/plan_sizes.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// How far apart any two of the values are: a multiple of it.
int64_t CommonStep(const std::vector<int64_t>& values) {
  int64_t step = 0;
  for (const int64_t value : values) step = std::gcd(step, values[0] - value);
  return step;
}

// `count` different values, the greatest first, spread over the range and above 1. They lie in no one residue class:
// what goes by steps of several (a window, a stride, padding to a multiple) would look even to values that all fit it.
std::vector<int64_t> SpreadValues(const SizeRange& range, int count) {
  const int64_t low = std::max<int64_t>(range.min, 2), high = std::max(range.max, low + count - 1);
  std::vector<int64_t> values;
  for (int i = 0; i < count; ++i) values.push_back(high - (high - low) * i / (count - 1));
  while (CommonStep(values) != 1) ++values[1];  // at the latest one below the greatest
  return values;
}

class Generaliser {
 public:
  Generaliser(std::vector<PlanSize> sizes, std::vector<std::vector<int64_t>> points, std::vector<Plan> plans)
      : sizes_(std::move(sizes)), plans_(std::move(plans)), fit_(std::move(points)) {
    for (const PlanSize& size : sizes_) {
      vars_.emplace_back(size.name, kInt32, size.range);
      greatest_.push_back(size.range.max);
    }
  }

  absl::StatusOr<Plan> Run() {
    for (const Plan& plan : plans_) HONE_RETURN_IF_ERROR(CheckGeneralises(plan));
    HONE_RETURN_IF_ERROR(CheckSameForm());
    Plan plan;
    plan.model_name = plans_[0].model_name;
    plan.inputs = plans_[0].inputs;
    plan.outputs = plans_[0].outputs;
    plan.sizes = sizes_;
    for (size_t t = 0; t < plans_[0].tensors.size(); ++t) {
      HONE_ASSIGN_OR_RETURN(PlanTensor tensor, Tensor(t));
      plan.tensors.push_back(std::move(tensor));
    }
    for (size_t s = 0; s < plans_[0].steps.size(); ++s) HONE_RETURN_IF_ERROR(AddStep(s, plan));
    return plan;
  }

 private:
  absl::Status Differs(const std::string& what, size_t i) const {
    return absl::FailedPreconditionError(
        absl::StrCat("the model is another one at the sizes ", PointText(i), " than at ", PointText(0), ": ", what));
  }
  std::string PointText(size_t i) const { return SizesText(sizes_, fit_.points()[i]); }

  absl::Status CheckSameForm() const {
    const Plan& first = plans_[0];
    for (size_t i = 1; i < plans_.size(); ++i) {
      const Plan& plan = plans_[i];
      for (size_t s = 0; s < std::min(first.steps.size(), plan.steps.size()); ++s) {
        if (first.steps[s].tensors == plan.steps[s].tensors) continue;
        return Differs(absl::StrCat("step ", s, " is `", plan.tasks[plan.steps[s].task].name, "` and not `",
                                    first.tasks[first.steps[s].task].name, "`"),
                       i);
      }
      if (first.steps.size() != plan.steps.size() || first.tensors.size() != plan.tensors.size()) {
        return Differs(absl::StrCat(plan.steps.size(), " kernels run and not ", first.steps.size()), i);
      }
      for (size_t t = 0; t < first.tensors.size(); ++t) {
        const PlanTensor &a = first.tensors[t], &b = plan.tensors[t];
        if (a.kind == b.kind && a.alias_of == b.alias_of && a.dtype == b.dtype && a.shape.size() == b.shape.size())
          continue;
        return Differs(absl::StrCat("tensor `", b.name, "`"), i);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<PlanTensor> Tensor(size_t t) {
    PlanTensor tensor = plans_[0].tensors[t];
    HONE_ASSIGN_OR_RETURN(const bool is_part, IsPart(t));
    if (is_part) {
      parts_.insert(static_cast<int>(t));
      return tensor;
    }
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      std::vector<int64_t> values;
      for (const Plan& plan : plans_) values.push_back(plan.tensors[t].shape[d]);
      const std::optional<SizePolynomial> extent = fit_.Of(values);
      if (!extent.has_value()) {
        return absl::FailedPreconditionError(
            absl::StrCat("dimension ", d, " of the tensor `", tensor.name,
                         "` is no polynomial of the sizes: ", absl::StrJoin(values, ", "), " at the sizes tried"));
      }
      tensor.shape[d] = extent->At(greatest_);
      tensor.extents.push_back(*extent);
    }
    return tensor;
  }

  // Whether the constant is one of which smaller sizes use a part; false for what all sizes have in common.
  absl::StatusOr<bool> IsPart(size_t t) const {
    const PlanTensor& first = plans_[0].tensors[t];
    if (first.kind != PlanTensor::kConstant || first.alias_of >= 0) return false;
    bool is_part = false;
    for (size_t i = 1; i < plans_.size(); ++i) {
      const NdArray &part = *plans_[i].tensors[t].data, &whole = *first.data;
      if (&part == &whole || (part.shape == whole.shape && part.data == whole.data)) continue;
      is_part = true;
      if (!IsCornerOf(part, whole))
        return Differs(absl::StrCat("the constant `", first.name, "` follows from them"), i);
    }
    if (!is_part) return false;
    for (const PlanTensor& tensor : plans_[0].tensors) {
      if (tensor.alias_of == static_cast<int>(t))
        return absl::FailedPreconditionError(
            absl::StrCat("the constant `", first.name, "` follows from the sizes and is read under another shape"));
    }
    return true;
  }

  // A step runs what it does at every point: equal steps are those that are so everywhere.
  absl::Status AddStep(size_t s, Plan& plan) {
    std::vector<int> key;
    for (const Plan& at : plans_) key.push_back(at.steps[s].task);
    const size_t own = key.size();
    const std::vector<int>& tensors = plans_[0].steps[s].tensors;
    for (size_t p = 0; p < tensors.size(); ++p) {
      if (parts_.contains(tensors[p])) key.push_back(static_cast<int>(p));
    }
    const auto [at, is_new] = task_of_.try_emplace(key, static_cast<int>(plan.tasks.size()));
    if (is_new) {
      const std::set<int> fixed(key.begin() + static_cast<int64_t>(own), key.end());
      absl::StatusOr<PlanTask> task = Task({key.begin(), key.begin() + static_cast<int64_t>(own)}, fixed);
      if (!task.ok()) return Annotate(task.status(), absl::StrCat("the kernel `", plans_[0].tasks[key[0]].name, "`"));
      plan.tasks.push_back(*std::move(task));
    }
    plan.tasks[static_cast<size_t>(at->second)].weight += 1;
    plan.steps.push_back({at->second, tensors});
    return absl::OkStatus();
  }

  absl::StatusOr<PlanTask> Task(const std::vector<int>& tasks, const std::set<int>& fixed) {
    std::vector<const PrimFunc*> funcs;
    for (size_t i = 0; i < tasks.size(); ++i) funcs.push_back(&plans_[i].tasks[static_cast<size_t>(tasks[i])].func);
    HONE_ASSIGN_OR_RETURN(SymbolicFunction symbolic, GeneraliseFunction(funcs, fixed, vars_, fit_));
    PlanTask task = plans_[0].tasks[static_cast<size_t>(tasks[0])];
    task.weight = 0;
    task.func = std::move(symbolic.func);
    task.sizes = std::move(symbolic.sizes);
    return task;
  }

  std::vector<PlanSize> sizes_;
  std::vector<Plan> plans_;
  PolynomialFit fit_;
  std::vector<Var> vars_;  // the sizes in functions
  std::vector<int64_t> greatest_;
  std::set<int> parts_;  // tensors that are constants of which smaller sizes use a part
  std::map<std::vector<int>, int> task_of_;
};

}  // namespace

std::vector<std::vector<int64_t>> SizesToPlanAt(const std::vector<PlanSize>& sizes) {
  constexpr int kValues = 4;  // as many as a polynomial of degree 2 has terms, and one that confirms it
  std::vector<std::vector<int64_t>> values;
  for (const PlanSize& size : sizes) values.push_back(SpreadValues(size.range, kValues));
  std::vector<std::vector<int64_t>> points(1);
  for (const std::vector<int64_t>& of_size : values) points[0].push_back(of_size[0]);
  for (size_t s = 0; s < sizes.size(); ++s) {
    for (int v = 1; v < kValues; ++v) {
      points.push_back(points[0]);
      points.back()[s] = values[s][static_cast<size_t>(v)];
    }
  }
  if (sizes.size() < 2) return points;
  for (const size_t v : {0, 1}) {  // all differ at once: terms of several sizes
    points.emplace_back();
    for (size_t s = 0; s < sizes.size(); ++s) points.back().push_back(values[s][1 + (v + s) % 2]);
  }
  return points;
}

void ShareConstants(const Plan& first, Plan& plan) {
  for (size_t t = 0; t < std::min(first.tensors.size(), plan.tensors.size()); ++t) {
    const std::shared_ptr<const NdArray>& theirs = first.tensors[t].data;
    std::shared_ptr<const NdArray>& ours = plan.tensors[t].data;
    if (ours == nullptr || theirs == nullptr || ours == theirs) continue;
    if (ours->dtype == theirs->dtype && ours->shape == theirs->shape && ours->data == theirs->data) ours = theirs;
  }
}

absl::Status CheckGeneralises(const Plan& plan) {
  const std::vector<std::string> called = CalledFunctions(plan);
  if (called.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the model calls \"", called[0],
                   "\", a function of the program that runs it, whose tensors have one shape; give every dimension one "
                   "size"));
}

absl::StatusOr<Plan> GeneralisePlan(std::vector<PlanSize> sizes, std::vector<std::vector<int64_t>> points,
                                    std::vector<Plan> plans) {
  HONE_CHECK(!plans.empty() && plans.size() == points.size()) << "one plan for each point";
  return Generaliser(std::move(sizes), std::move(points), std::move(plans)).Run();
}

}  // namespace hone
