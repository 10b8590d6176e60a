// A histogram of a daemon's page of metrics, as Prometheus writes it.
#pragma once

#include <cstdlib>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace hone {

// A histogram of the page, its series added up: those with that label alone where there is one ("event=\"sync\"").
class Histogram {
 public:
  Histogram(const std::string& page, const std::string& name, const std::string& label = "") {
    const std::string head = name + "_bucket{";
    for (const absl::string_view line : absl::StrSplit(page, '\n')) {
      if (!absl::StartsWith(line, head) || !absl::StrContains(line, label)) continue;
      const std::string bound(line.substr(line.find("le=\"") + 4));
      const double count = std::atof(std::string(line.substr(line.rfind(' '))).c_str());
      if (absl::StartsWith(bound, "+Inf")) {
        all_ += count;
      } else {
        below_[std::atof(bound.c_str())] += count;
      }
    }
  }
  double count() const { return all_; }
  // Of what came after the earlier page.
  Histogram Since(const Histogram& earlier) const {
    Histogram since = *this;
    for (const auto& [bound, count] : earlier.below_) since.below_[bound] -= count;
    since.all_ -= earlier.all_;
    return since;
  }
  // Below which that part of the durations lies, in microseconds; as Prometheus' histogram_quantile has it: evenly
  // spread within each bucket, and at most the last bound.
  double Quantile(double part) const {
    double bound = 0, count = 0;
    for (const auto& [next, until] : below_) {
      if (until >= part * all_) return 1e6 * (bound + (next - bound) * (part * all_ - count) / (until - count));
      bound = next;
      count = until;
    }
    return 1e6 * bound;
  }

 private:
  std::map<double, double> below_;  // by bound, how many
  double all_ = 0;
};

}  // namespace hone
