// What a search moves in: points, each a choice of one source of schedules, with a draft and a program.
//
// GeneratedSpace is the one that candidates are made from; RecordedSpace (recorded_space.h) has those alone that were
// measured once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tuner/model/features.h"
#include "tuner/space/generator.h"

namespace hone {

struct Point {
  size_t source = 0;
  Choice choice;
  auto operator<=>(const Point&) const = default;
};

// What a candidate lowers to, as the search knows it.
struct Program {
  uint64_t hash = 0;    // of the lowered program: different choices may be one program
  double draft_us = 0;  // of its point; of a program without one, the least draft of any point of the workload
  ProgramFeatures features;
};

struct Built {
  std::string trace;
  Program program;
};

// What a trace of somebody's is here. Without a point it is a program of its own: no choice of a source rebuilds it.
struct Identified {
  std::optional<Point> point;
  Program program;
};

// Of a generator's name: "template" or "sketch".
inline std::string KindOf(const std::string& generator) { return generator.substr(0, generator.find(':')); }

class CandidateSpace {
 public:
  virtual ~CandidateSpace() = default;

  struct Source {
    std::string name;        // of the generator; what is before ':' is its kind
    std::vector<int> sizes;  // how many candidates each knob has
    std::string kind() const { return KindOf(name); }
  };
  const std::vector<Source>& sources() const { return sources_; }

  // Microseconds by the analytic model; nullopt when the point is not legal, or not of this space.
  virtual std::optional<double> Draft(const Point& point) const = 0;
  // Fails where the draft took a point for legal that the schedule refuses. May be called from several threads at once.
  virtual absl::StatusOr<Built> Build(const Point& point) const = 0;
  // Of a trace that replays on the workload. May be called from several threads at once.
  virtual absl::StatusOr<Identified> Identify(const std::string& trace) const = 0;
  // The legal point nearest to the trace of a like workload; nullopt when its source is not here.
  virtual std::optional<Point> Fit(const std::string& trace) const = 0;
  // The point of the space nearest to one that was put together from indices within the sizes of its source.
  virtual Point Snap(Point point) const { return point; }
  // By source: the point with the least draft, as far as one was found.
  virtual const std::vector<std::optional<Point>>& Favourites() const = 0;

 protected:
  std::vector<Source> sources_;
};

}  // namespace hone
