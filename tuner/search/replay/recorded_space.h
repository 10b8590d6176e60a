// A workload's candidates that were measured once, to search again without a device.
//
// The points of a recorded space are its candidates alone: what a strategy puts together snaps to the recorded
// candidate nearest to it. Programs and features are made anew from the traces, so that today's model is judged; drafts
// are today's for the sources that still rebuild what was recorded, and the recorded ones for the others.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hone/v1/common.pb.h"
#include "tuner/search/candidates/candidate_space.h"

namespace hone {

struct Recording {
  std::string name;      // of the workload: "conv2d_3x3_s1_64x56x56_add_relu"
  std::string workload;  // printed TensorIR
  std::string target;
  std::string machine;  // its facts, which drafts are computed from (compiler/target/machine.h); "": the usual ones
  int threads = 1;
  v1::NumericLevel numeric = v1::NUMERIC_DEFAULT;
  std::string note;                        // how, when, and on what, it was measured
  std::map<std::string, double> networks;  // that have the workload, with how often each runs it
  struct Candidate {
    double us = 0;        // the median of its samples
    double spread = 0;    // half the width of the median's interval, relative to it; 0: not known
    double draft_us = 0;  // when it was recorded; 0: not known
    std::string trace;
  };
  std::vector<Candidate> candidates;
};

// The candidates whose source is of that kind: "template" or "sketch".
Recording OfKind(Recording recording, std::string_view kind);

// The form in which it is kept: a line of JSON with all but the candidates and with every distinct line of their
// traces; then a line for each candidate, [us, spread, draft_us, numbers of its trace's lines].
std::string ToText(const Recording& recording);
absl::StatusOr<Recording> ParseRecording(std::string_view text);  // InvalidArgument with the line

class RecordedSpace : public CandidateSpace {
 public:
  // Candidates that do not replay any more are left out; FailedPrecondition where none is left.
  static absl::StatusOr<std::shared_ptr<const RecordedSpace>> Make(const Recording& recording, int threads);

  double best_us() const { return best_us_; }
  size_t size() const { return candidates_.size(); }
  size_t left_out() const { return left_out_; }
  // Candidates whose values give another program today, or none: how stale the recording is. The drafts of their
  // sources are the recorded ones.
  size_t built_otherwise() const { return built_otherwise_; }
  // HONE_CHECK: the trace is one of Build's.
  double TimeOf(const std::string& trace) const;

  std::optional<double> Draft(const Point& point) const override;
  absl::StatusOr<Built> Build(const Point& point) const override;
  absl::StatusOr<Identified> Identify(const std::string& trace) const override;
  std::optional<Point> Fit(const std::string& trace) const override;
  Point Snap(Point point) const override;
  const std::vector<std::optional<Point>>& Favourites() const override { return favourites_; }

 private:
  struct Candidate {
    Point point;
    Built built;
    double us = 0;
  };
  RecordedSpace() = default;
  void Add(Point point, Built built, double us);  // unless the point is there already

  std::vector<Candidate> candidates_;
  std::map<Point, size_t> by_point_;
  std::unordered_map<std::string, size_t> by_trace_;
  std::vector<std::vector<size_t>> of_source_;
  std::vector<std::optional<Point>> favourites_;
  double best_us_ = 0;
  size_t left_out_ = 0;
  size_t built_otherwise_ = 0;
};

}  // namespace hone
