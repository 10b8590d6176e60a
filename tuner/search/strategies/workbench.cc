#include "tuner/search/strategies/workbench.h"

#include <utility>

#include "compiler/support/parallel_for.h"

namespace hone {
namespace {

constexpr size_t kMostKnown = 2048;  // points; some kilobytes each

}  // namespace

std::vector<std::optional<Built>> Workbench::Build(std::span<const Point> points, Experience* experience) {
  std::vector<std::optional<Built>> all(points.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < points.size(); ++i) {
    if (const auto found = known_.find(points[i]); found != known_.end()) {
      all[i] = found->second;
    } else {
      missing.push_back(i);
    }
  }
  std::vector<absl::StatusOr<Built>> built(missing.size(), absl::UnknownError("not built yet"));
  ParallelFor(missing.size(), threads_, [&](size_t i) { built[i] = space_.Build(points[missing[i]]); });

  if (known_.size() + missing.size() > kMostKnown) known_.clear();
  for (size_t i = 0; i < missing.size(); ++i) {
    const Point& point = points[missing[i]];
    if (built[i].ok()) {
      all[missing[i]] = *built[i];
      known_[point] = *std::move(built[i]);
      continue;
    }
    experience->Refuse(point);
    ++refused_;
    last_refusal_ = std::string(built[i].status().message());
  }
  return all;
}

std::vector<absl::StatusOr<Identified>> Workbench::Identify(std::span<const std::string> traces) const {
  std::vector<absl::StatusOr<Identified>> found(traces.size(), absl::UnknownError("not looked at yet"));
  ParallelFor(traces.size(), threads_, [&](size_t i) { found[i] = space_.Identify(traces[i]); });
  return found;
}

}  // namespace hone
