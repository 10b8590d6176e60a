#include "tuner/search/replay/recorded_space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/wire_numeric.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "nlohmann/json.hpp"
#include "proto/numeric_level.h"
#include "tuner/search/candidates/generated_space.h"
#include "tuner/search/strategies/workbench.h"

namespace hone {
namespace {

using nlohmann::json;

constexpr int kFormat = 2;

std::vector<std::string> LinesOf(std::string_view trace) {
  std::vector<std::string> lines = absl::StrSplit(absl::string_view(trace.data(), trace.size()), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

absl::Status Wrong(size_t line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("recorded space: line ", line, ": ", what));
}

}  // namespace

std::string ToText(const Recording& recording) {
  std::vector<std::string> lines;
  std::unordered_map<std::string, size_t> numbers;
  std::string rows;
  for (const Recording::Candidate& candidate : recording.candidates) {
    absl::StrAppend(&rows, "[", candidate.us, absl::StrFormat(",%.2g,", candidate.spread), candidate.draft_us);
    for (const std::string& line : LinesOf(candidate.trace)) {
      const auto [number, added] = numbers.emplace(line, lines.size());
      if (added) lines.push_back(line);
      absl::StrAppend(&rows, ",", number->second);
    }
    rows += "]\n";
  }
  const json header = {{"format", kFormat},
                       {"name", recording.name},
                       {"workload", recording.workload},
                       {"target", recording.target},
                       {"machine", recording.machine},
                       {"threads", recording.threads},
                       {"numeric", NumericLevelName(recording.numeric)},
                       {"note", recording.note},
                       {"networks", recording.networks},
                       {"lines", lines}};
  return header.dump() + "\n" + rows;
}

absl::StatusOr<Recording> ParseRecording(std::string_view text) {
  const std::vector<std::string> rows = LinesOf(text);
  if (rows.empty()) return Wrong(1, "the file is empty");
  const json header = json::parse(rows[0], nullptr, /*allow_exceptions=*/false);
  if (!header.is_object() || header.value("format", 0) != kFormat)
    return Wrong(1, absl::StrCat("not the header of a recorded space of format ", kFormat));
  const auto field = [&](const char* name) {
    const auto found = header.find(name);
    return found != header.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Recording recording;
  recording.name = field("name");
  recording.workload = field("workload");
  recording.target = field("target");
  recording.machine = field("machine");
  recording.note = field("note");
  recording.numeric = NumericLevelOfName(field("numeric"));
  if (const auto threads = header.find("threads"); threads != header.end() && threads->is_number_integer())
    recording.threads = threads->get<int>();
  if (const auto found = header.find("networks"); found != header.end() && found->is_object()) {
    for (const auto& [network, weight] : found->items()) {
      if (!weight.is_number()) return Wrong(1, absl::StrCat("the weight of network ", network, " is no number"));
      recording.networks[network] = weight.get<double>();
    }
  }
  std::vector<std::string> lines;
  if (const auto found = header.find("lines"); found != header.end() && found->is_array()) {
    for (const json& line : *found) {
      if (!line.is_string()) return Wrong(1, "\"lines\" holds something that is not text");
      lines.push_back(line.get<std::string>());
    }
  }
  for (size_t r = 1; r < rows.size(); ++r) {
    const json row = json::parse(rows[r], nullptr, false);
    constexpr size_t kNumbers = 3;
    if (!row.is_array() || row.size() <= kNumbers ||
        !std::all_of(row.begin(), row.begin() + kNumbers, [](const json& value) { return value.is_number(); }))
      return Wrong(r + 1, "not [us, spread, draft_us, lines...]");
    Recording::Candidate& candidate = recording.candidates.emplace_back();
    candidate.us = row[0].get<double>();
    candidate.spread = row[1].get<double>();
    candidate.draft_us = row[2].get<double>();
    if (!(candidate.us > 0)) return Wrong(r + 1, absl::StrCat("the time is ", candidate.us, " us"));
    for (size_t i = kNumbers; i < row.size(); ++i) {
      if (!row[i].is_number_unsigned() || row[i].get<size_t>() >= lines.size())
        return Wrong(r + 1, absl::StrCat("there is no line ", row[i].dump(), " of traces"));
      absl::StrAppend(&candidate.trace, lines[row[i].get<size_t>()], "\n");
    }
  }
  return recording;
}

Recording OfKind(Recording recording, std::string_view kind) {
  std::erase_if(recording.candidates, [&](const Recording::Candidate& candidate) {
    const absl::StatusOr<Trace> trace = ParseTrace(candidate.trace);
    const std::optional<Origin> origin = trace.ok() ? OriginOf(*trace) : std::nullopt;
    return !origin.has_value() || KindOf(origin->generator) != kind;
  });
  return recording;
}

namespace {

// What the traces chose, as points: a source is a generator by name and number of knobs, and the values that traces
// have for a knob, in ascending order, are its choices.
class RecordedChoices {
 public:
  RecordedChoices(const std::vector<std::string>& traces, const std::vector<absl::StatusOr<Identified>>& identified) {
    for (size_t i = 0; i < traces.size(); ++i) {
      const absl::StatusOr<Trace> trace = ParseTrace(traces[i]);
      origins_.push_back(trace.ok() && identified[i].ok() ? OriginOf(*trace) : std::nullopt);
      if (!origins_[i].has_value()) continue;
      std::vector<std::set<int64_t>>& of_knobs = values_[SourceOf(*origins_[i])];
      of_knobs.resize(origins_[i]->values.size());
      for (size_t k = 0; k < of_knobs.size(); ++k) of_knobs[k].insert(origins_[i]->values[k]);
    }
  }

  std::vector<CandidateSpace::Source> Sources() const {
    std::vector<CandidateSpace::Source> sources;
    for (const auto& [source, of_knobs] : values_) {
      CandidateSpace::Source& added = sources.emplace_back(CandidateSpace::Source{source.first, {}});
      for (const std::set<int64_t>& of_knob : of_knobs) added.sizes.push_back(static_cast<int>(of_knob.size()));
    }
    return sources;
  }

  // nullopt: the trace does not replay, or does not say where it is from.
  std::optional<Point> PointOf(size_t trace) const {
    const std::optional<Origin>& origin = origins_[trace];
    if (!origin.has_value()) return std::nullopt;
    const auto source = values_.find(SourceOf(*origin));
    Point point{static_cast<size_t>(std::distance(values_.begin(), source)), {}};
    for (size_t k = 0; k < origin->values.size(); ++k) {
      const std::set<int64_t>& of_knob = source->second[k];
      point.choice.push_back(static_cast<int>(std::distance(of_knob.begin(), of_knob.find(origin->values[k]))));
    }
    return point;
  }

 private:
  using SourceKey = std::pair<std::string, size_t>;
  static SourceKey SourceOf(const Origin& origin) { return {origin.generator, origin.values.size()}; }

  std::vector<std::optional<Origin>> origins_;  // of each trace
  std::map<SourceKey, std::vector<std::set<int64_t>>> values_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const RecordedSpace>> RecordedSpace::Make(const Recording& recording, int threads) {
  HONE_ASSIGN_OR_RETURN(const PrimFunc workload, ParsePrimFunc(recording.workload));
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(recording.target));
  const NumericLevel numeric = FromWire(recording.numeric);
  HONE_ASSIGN_OR_RETURN(const Machine machine, ParseMachine(recording.machine, target));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<CandidateSpace> today,
                        MakeGeneratedSpace(workload, {target, recording.threads, numeric, machine}));
  std::vector<std::string> traces;
  for (const Recording::Candidate& candidate : recording.candidates) traces.push_back(candidate.trace);
  std::vector<absl::StatusOr<Identified>> identified = Workbench(*today, threads).Identify(traces);

  const RecordedChoices choices(traces, identified);
  std::shared_ptr<RecordedSpace> space(new RecordedSpace);
  space->sources_ = choices.Sources();
  space->of_source_.resize(space->sources_.size());
  space->favourites_.resize(space->sources_.size());

  std::vector<bool> rebuilds(space->sources_.size(), true);
  for (size_t i = 0; i < traces.size(); ++i) {
    const std::optional<Point> point = choices.PointOf(i);
    if (!point.has_value() || identified[i]->point.has_value()) continue;
    rebuilds[point->source] = false;
    ++space->built_otherwise_;
  }
  for (size_t i = 0; i < traces.size(); ++i) {
    std::optional<Point> point = choices.PointOf(i);
    if (!point.has_value()) {
      ++space->left_out_;
      continue;
    }
    Program program = std::move(identified[i]->program);
    if (!rebuilds[point->source] && recording.candidates[i].draft_us > 0)
      program.draft_us = recording.candidates[i].draft_us;
    space->Add(*std::move(point), Built{traces[i], std::move(program)}, recording.candidates[i].us);
  }
  if (space->candidates_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("recorded space ", recording.name, ": none of its ",
                                                      traces.size(),
                                                      " candidates replays with today's schedules; record it anew"));
  }
  return space;
}

void RecordedSpace::Add(Point point, Built built, double us) {
  const size_t number = candidates_.size();
  if (!by_point_.emplace(point, number).second) return;  // measured twice
  by_trace_[built.trace] = number;
  of_source_[point.source].push_back(number);
  std::optional<Point>& favourite = favourites_[point.source];
  if (!favourite.has_value() || built.program.draft_us < *Draft(*favourite)) favourite = point;
  candidates_.push_back({std::move(point), std::move(built), us});
  if (best_us_ == 0 || us < best_us_) best_us_ = us;
}

double RecordedSpace::TimeOf(const std::string& trace) const {
  const auto found = by_trace_.find(trace);
  HONE_CHECK(found != by_trace_.end()) << "a trace that was not recorded";
  return candidates_[found->second].us;
}

std::optional<double> RecordedSpace::Draft(const Point& point) const {
  const auto found = by_point_.find(point);
  if (found == by_point_.end()) return std::nullopt;
  return candidates_[found->second].built.program.draft_us;
}

absl::StatusOr<Built> RecordedSpace::Build(const Point& point) const {
  const auto found = by_point_.find(point);
  if (found == by_point_.end()) return absl::NotFoundError("the point was not recorded");
  return candidates_[found->second].built;
}

absl::StatusOr<Identified> RecordedSpace::Identify(const std::string& trace) const {
  const auto found = by_trace_.find(trace);
  if (found == by_trace_.end()) return absl::NotFoundError("the trace was not recorded");
  return Identified{candidates_[found->second].point, candidates_[found->second].built.program};
}

std::optional<Point> RecordedSpace::Fit(const std::string& trace) const {
  const auto found = by_trace_.find(trace);
  if (found == by_trace_.end()) return std::nullopt;
  return candidates_[found->second].point;
}

Point RecordedSpace::Snap(Point point) const {
  if (by_point_.count(point) > 0) return point;
  const std::vector<int>& sizes = sources_[point.source].sizes;
  size_t best = of_source_[point.source].front();
  double least = std::numeric_limits<double>::infinity();
  for (const size_t i : of_source_[point.source]) {
    const Choice& other = candidates_[i].point.choice;
    double away = 0;
    for (size_t k = 0; k < sizes.size() && away < least; ++k)
      away += std::abs(point.choice[k] - other[k]) / static_cast<double>(sizes[k]);
    if (away >= least) continue;
    least = away;
    best = i;
  }
  return candidates_[best].point;
}

}  // namespace hone
