// Whether a model is one model at every size of its dimensions, by its graphs as they are imported.
//
// A plan with symbolic sizes (generalise_plan.h) is made of plans at a few of them. What holds at these need not hold
// elsewhere: a model may branch by its size, window a sequence in steps, cut it at a length. Importing a graph is cheap
// beside planning it, so the graphs at the other sizes are held against those that were planned: the same nodes, and in
// place of every number (extents, attributes, what is computed from shapes) what its polynomial gives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/plan/plan.h"
#include "compiler/graph/plan/size_polynomial.h"

namespace hone {

// The sizes at which a model is looked at besides those of its plan: all of them, where there are up to a thousand. Of
// more, every value of one size while the others are at an end of their ranges, thinned out evenly.
// None is 0, at which what has no elements is not in a graph; a plan's loops over it are not run.
std::vector<std::vector<int64_t>> SizesToCheck(const std::vector<PlanSize>& sizes);

class GraphAtSizes {
 public:
  // `graphs[i]` is the model's at points[i], as imported; the first is the greatest.
  GraphAtSizes(std::vector<PlanSize> sizes, std::vector<std::vector<int64_t>> points, const std::vector<Graph>& graphs);

  // FailedPrecondition names the node or constant in which the graph at `point` is another than those of the plan. A
  // number that is no polynomial at the points is not looked at: a plan that uses it is refused.
  absl::Status Check(const std::vector<int64_t>& point, const Graph& graph) const;

 private:
  // What a graph is but for its numbers, a text for each constant and node, and the numbers in order.
  struct Flat {
    std::vector<std::string> forms, names;
    std::vector<std::vector<double>> numbers;  // of each form
    std::vector<std::shared_ptr<const NdArray>> tables;
    std::vector<size_t> constants;  // the form of each table
  };
  static Flat Flatten(const Graph& graph);
  absl::Status Differs(const std::vector<int64_t>& point, const std::string& what) const;

  std::vector<PlanSize> sizes_;
  std::vector<std::vector<int64_t>> points_;
  Flat greatest_;
  // By form and number: what it is at every size; nullopt: it is not looked at.
  std::vector<std::vector<std::optional<SizeNumber>>> numbers_;
  std::vector<bool> is_part_;  // by greatest_.tables: at every point it is a part of the greatest's
};

}  // namespace hone
