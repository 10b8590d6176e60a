// What a search knows: which candidates are out, how those that came back did, which failed.
//
// A time is filed under the program that ran. Where no point of the space gives that program, the time trains the model
// and nothing is bred from it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hone/v1/search.pb.h"
#include "tuner/search/candidates/candidate_space.h"
#include "tuner/search/candidates/legality.h"

namespace hone {

class Experience {
 public:
  // A program that was timed: what the cost model is trained on.
  struct Timed {
    Program program;
    double us = 0;
    std::optional<Point> point;
  };

  // ---- what must not be proposed again ----
  bool Knows(const std::string& trace) const { return traces_.count(trace) > 0; }
  bool Knows(const Point& point) const { return points_.count(point) > 0; }
  bool KnowsProgram(uint64_t hash) const { return programs_.count(hash) > 0; }
  void KnowTrace(const std::string& trace) { traces_.insert(trace); }
  // A point that gives a program which is known already.
  void Skip(const Point& point) { points_.insert(point); }
  // A point that the draft took for legal and the schedule or lowering refused.
  void Refuse(const Point& point);

  // ---- candidates, out and back ----
  void GoesOut(const std::string& trace, Identified what);
  bool IsOut(const std::string& trace) const { return out_.count(trace) > 0; }
  const std::map<std::string, Identified>& out() const { return out_; }
  // `what` is for a trace that is not out.
  void ComesBack(const v1::Observation& observation, Identified what);

  // ---- what was learned ----
  const std::vector<std::pair<double, Point>>& measured() const { return measured_; }  // best first
  const std::vector<Timed>& timed() const { return timed_; }                           // in the order they came
  double best_us() const { return best_us_; }                                          // 0: nothing was timed
  int since_gain() const { return since_gain_; }  // candidates that were timed or failed since the best last improved
  const Legality& legality() const { return legality_; }
  // Candidates of a source that went out.
  int tried(size_t source) const;

 private:
  std::set<std::string> traces_;
  std::set<Point> points_;
  std::set<uint64_t> programs_;
  std::map<uint64_t, int> lost_;  // by program: attempts that the infrastructure failed
  std::map<std::string, Identified> out_;
  std::vector<std::pair<double, Point>> measured_;
  std::vector<Timed> timed_;
  std::map<size_t, int> tried_;
  Legality legality_;
  double best_us_ = 0;
  int since_gain_ = 0;
};

}  // namespace hone
