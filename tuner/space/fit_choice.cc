// A stored trace turned back into a choice: of the generator that made it, or of its like for another workload.
#include <cmath>
#include <limits>
#include <string_view>

#include "absl/strings/str_split.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/step.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

constexpr int kNone = -1;

// "tile_m" of "conv.tile_m".
std::string_view WithoutBlock(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// For every knob the place of its value in `origin`, kNone where it has none. nullopt: they cannot be matched.
std::optional<std::vector<int>> Match(const std::vector<Knob>& knobs, const Origin& origin) {
  std::vector<int> places(knobs.size(), kNone);
  if (origin.knobs.empty()) {
    if (knobs.size() != origin.values.size()) return std::nullopt;
    for (size_t k = 0; k < knobs.size(); ++k) places[k] = static_cast<int>(k);
    return places;
  }
  if (origin.knobs.size() != origin.values.size()) return std::nullopt;
  std::vector<bool> used(origin.knobs.size(), false);
  for (size_t k = 0; k < knobs.size(); ++k) {
    for (size_t o = 0; o < used.size() && places[k] == kNone; ++o) {
      if (used[o] || origin.knobs[o] != knobs[k].name) continue;
      places[k] = static_cast<int>(o);
      used[o] = true;
    }
  }
  // The blocks of a sibling may have other names: what is left goes together in order.
  for (size_t k = 0; k < knobs.size(); ++k) {
    for (size_t o = 0; o < used.size() && places[k] == kNone; ++o) {
      if (used[o] || WithoutBlock(origin.knobs[o]) != WithoutBlock(knobs[k].name)) continue;
      places[k] = static_cast<int>(o);
      used[o] = true;
    }
  }
  return places;
}

double Distance(int64_t a, int64_t b) {
  if (a == b) return 0;
  if (a < 0 || b < 0) return 64;  // a sign is a meaning of its own, such as "none"
  return std::abs(std::log2(static_cast<double>(a) + 1) - std::log2(static_cast<double>(b) + 1));
}

int Nearest(const Knob& knob, int64_t value) {
  int best = 0;
  for (int i = 1; i < static_cast<int>(knob.candidates.size()); ++i) {
    const auto at = [&](int place) { return Distance(knob.candidates[static_cast<size_t>(place)], value); };
    if (at(i) < at(best)) best = i;
  }
  return best;
}

// The best legal choice among those that differ from `start` in the fewest knobs, three at most, by distance, then by
// draft.
class Repair {
 public:
  Repair(const Generator& generator, const std::vector<int>& places, const Origin& origin)
      : generator_(generator), places_(places), origin_(origin) {}

  std::optional<Choice> From(const Choice& start) {
    Offer(start);
    for (int knobs = 1; knobs <= 3 && !best_.has_value(); ++knobs) Change(start, 0, knobs);
    return best_;
  }

 private:
  void Change(const Choice& start, size_t from, int knobs) {
    if (knobs == 0) return Offer(start);
    for (size_t k = from; k < start.size(); ++k) {
      Choice changed = start;
      for (int c = 0; c < static_cast<int>(generator_.knobs()[k].candidates.size()); ++c) {
        if (c == start[k]) continue;
        changed[k] = c;
        Change(changed, k + 1, knobs - 1);
      }
    }
  }

  void Offer(const Choice& choice) {
    double away = 0;
    for (size_t k = 0; k < choice.size(); ++k) {
      if (places_[k] == kNone) continue;
      away += Distance(generator_.knobs()[k].candidates[static_cast<size_t>(choice[k])],
                       origin_.values[static_cast<size_t>(places_[k])]);
    }
    if (best_.has_value() && away > away_) return;
    const std::optional<double> us = generator_.Draft(choice);
    if (!us.has_value() || (best_.has_value() && away == away_ && *us >= us_)) return;
    best_ = choice;
    away_ = away;
    us_ = *us;
  }

  const Generator& generator_;
  const std::vector<int>& places_;
  const Origin& origin_;
  std::optional<Choice> best_;
  double away_ = 0, us_ = 0;
};

// Sets the knobs that have no value, one after the other, to what the draft likes best, as long as that helps.
Choice SetByDraft(const Generator& generator, const std::vector<int>& places, Choice choice) {
  double best = generator.Draft(choice).value_or(std::numeric_limits<double>::infinity());
  for (bool better = true; better;) {
    better = false;
    for (size_t k = 0; k < choice.size(); ++k) {
      if (places[k] != kNone) continue;
      for (int c = 0; c < static_cast<int>(generator.knobs()[k].candidates.size()); ++c) {
        Choice other = choice;
        other[k] = c;
        const std::optional<double> us = generator.Draft(other);
        if (!us.has_value() || *us >= best) continue;
        best = *us;
        choice = std::move(other);
        better = true;
      }
    }
  }
  return choice;
}

}  // namespace

std::optional<Origin> OriginOf(const Trace& trace) {
  Origin origin;
  for (const Step& step : trace.steps) {
    if (const auto* annotate = step.As<AnnotateStep>()) {
      const auto* text = std::get_if<std::string>(&annotate->value);
      if (text == nullptr) continue;
      if (annotate->key == kGeneratorKey) origin.generator = *text;
      if (annotate->key == kKnobsKey && !text->empty()) origin.knobs = absl::StrSplit(*text, ',');
    } else if (const auto* sample = step.As<SampleCategoricalStep>()) {
      if (sample->decision < 0 || sample->decision >= static_cast<int64_t>(sample->candidates.size()))
        return std::nullopt;
      origin.choice.push_back(static_cast<int>(sample->decision));
      origin.values.push_back(sample->candidates[static_cast<size_t>(sample->decision)]);
    }
  }
  if (origin.generator.empty()) return std::nullopt;
  return origin;
}

std::optional<Choice> ChoiceWithValues(const Generator& generator, const Origin& origin) {
  const std::vector<Knob>& knobs = generator.knobs();
  if (origin.generator != generator.name() || origin.values.size() != knobs.size()) return std::nullopt;
  const std::optional<std::vector<int>> places = Match(knobs, origin);
  if (!places.has_value()) return std::nullopt;
  Choice choice;
  for (size_t k = 0; k < knobs.size(); ++k) {
    if ((*places)[k] == kNone) return std::nullopt;
    const int64_t value = origin.values[static_cast<size_t>((*places)[k])];
    const int nearest = Nearest(knobs[k], value);
    if (knobs[k].candidates[static_cast<size_t>(nearest)] != value) return std::nullopt;
    choice.push_back(nearest);
  }
  return choice;
}

std::optional<Choice> FitChoice(const Generator& generator, const Origin& origin) {
  if (origin.generator != generator.name()) return std::nullopt;
  const std::vector<Knob>& knobs = generator.knobs();
  const std::optional<std::vector<int>> places = Match(knobs, origin);
  if (!places.has_value()) return std::nullopt;
  Choice choice;
  for (size_t k = 0; k < knobs.size(); ++k) {
    const int place = (*places)[k];
    choice.push_back(place == kNone ? 0 : Nearest(knobs[k], origin.values[static_cast<size_t>(place)]));
  }
  std::optional<Choice> legal = Repair(generator, *places, origin).From(SetByDraft(generator, *places, choice));
  if (legal.has_value()) *legal = SetByDraft(generator, *places, *std::move(legal));
  return legal;
}

}  // namespace hone
