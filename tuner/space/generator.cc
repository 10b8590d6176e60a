#include "tuner/space/generator.h"

#include <algorithm>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_join.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

constexpr double kChoicesOfDescent = 4000;  // are drafted, about; that many for each start may be tried one by one

struct Best {
  Choice choice;
  std::optional<double> us;
  bool Offer(const Choice& other, std::optional<double> other_us) {
    if (!other_us.has_value() || (us.has_value() && *us <= *other_us)) return false;
    choice = other;
    us = other_us;
    return true;
  }
};

// Calls `on` with every choice that is drafted, and its draft.
template <class On>
void Exhaust(const Generator& generator, const On& on) {
  const std::vector<Knob>& knobs = generator.knobs();
  Choice choice(knobs.size(), 0);
  for (;;) {
    on(choice, generator.Draft(choice));
    size_t i = 0;
    while (i < choice.size() && ++choice[i] == static_cast<int>(knobs[i].candidates.size())) choice[i++] = 0;
    if (i == choice.size()) return;
  }
}

// Drafts of a generator, each worked out once: descents cross one another and end at the same places. A choice goes by
// a number, whose digits are the indices of the knobs.
class KnownDrafts {
 public:
  using Number = absl::uint128;
  explicit KnownDrafts(const Generator& generator) : generator_(generator) {
    double choices = 1;
    Number weight = 1;
    for (const Knob& knob : knobs()) {
      weights_.push_back(weight);
      weight *= knob.candidates.size();
      choices *= static_cast<double>(knob.candidates.size());
    }
    remembers_ = choices < kMostNumbers;
  }
  const std::vector<Knob>& knobs() const { return generator_.knobs(); }
  // What one step of a knob adds to the number of a choice.
  Number Weight(size_t knob) const { return weights_[knob]; }
  Number NumberOf(const Choice& choice) const {
    Number number = 0;
    for (size_t k = 0; k < choice.size(); ++k) number += weights_[k] * static_cast<uint64_t>(choice[k]);
    return number;
  }
  struct Draft {
    std::optional<double> us;
    bool is_new = true;  // as far as is known, it was not asked for before
  };
  Draft Of(const Choice& choice, Number number) {
    if (!remembers_) return {generator_.Draft(choice)};
    const auto [at, is_new] = drafts_.try_emplace(number);
    if (is_new) at->second = generator_.Draft(choice);
    return {at->second, is_new};
  }
  // Whether a descent has begun a round here before. It is then known where it leads.
  bool SeenBefore(Number number) { return remembers_ && !rounds_.insert(number).second; }

 private:
  static constexpr double kMostNumbers = 1e38;  // less than 2 to the power of 128
  const Generator& generator_;
  std::vector<Number> weights_;
  bool remembers_ = true;  // false: there are more choices than numbers
  absl::flat_hash_map<Number, std::optional<double>> drafts_;
  absl::flat_hash_set<Number> rounds_;
};

// Changes one knob, or two neighbouring knobs together, as long as that helps.
template <class On>
void Descend(KnownDrafts& drafts, const Choice& start, const On& on) {
  const std::vector<Knob>& knobs = drafts.knobs();
  Best here;
  here.choice = start;
  const auto offer = [&](const Choice& choice, KnownDrafts::Number number) {
    const KnownDrafts::Draft draft = drafts.Of(choice, number);
    if (draft.is_new) on(choice, draft.us);
    return here.Offer(choice, draft.us);
  };
  offer(start, drafts.NumberOf(start));
  for (bool better = true; better && !drafts.SeenBefore(drafts.NumberOf(here.choice));) {
    better = false;
    for (size_t i = 0; i < knobs.size(); ++i) {
      for (size_t j = i; j < std::min(knobs.size(), i + 3); ++j) {
        Choice choice = here.choice;
        choice[i] = choice[j] = 0;
        const KnownDrafts::Number others = drafts.NumberOf(choice);
        for (int a = 0; a < static_cast<int>(knobs[i].candidates.size()); ++a) {
          choice[i] = a;
          const KnownDrafts::Number number = others + drafts.Weight(i) * static_cast<uint64_t>(a);
          if (i == j) {
            better |= offer(choice, number);
            continue;
          }
          for (int b = 0; b < static_cast<int>(knobs[j].candidates.size()); ++b) {
            choice[j] = b;
            better |= offer(choice, number + drafts.Weight(j) * static_cast<uint64_t>(b));
          }
        }
      }
    }
  }
}

// Calls `on` once with every choice that is drafted.
template <class On>
void ForEachDrafted(const Generator& generator, int descents, const On& on) {
  double choices = 1;
  for (const Knob& knob : generator.knobs()) choices *= static_cast<double>(knob.candidates.size());
  if (choices <= kChoicesOfDescent * descents) return Exhaust(generator, on);
  KnownDrafts drafts(generator);
  Descend(drafts, Choice(generator.knobs().size(), 0), on);
  for (int start = 0; start < descents; ++start) {
    Random random(0, static_cast<uint64_t>(start));
    Descend(drafts, RandomChoice(generator, random), on);
  }
}

}  // namespace

std::optional<double> Generator::DraftOfOther(const Generator&, const Choice&) const { return std::nullopt; }
std::string Generator::ConstantLayout(const Choice&) const { return ""; }

Choice RandomChoice(const Generator& generator, Random& random) {
  Choice choice;
  for (const Knob& knob : generator.knobs()) choice.push_back(static_cast<int>(random.Below(knob.candidates.size())));
  return choice;
}

absl::StatusOr<Choice> BestByDraft(const Generator& generator, int descents) {
  Best best;
  ForEachDrafted(generator, descents, [&](const Choice& choice, std::optional<double> us) { best.Offer(choice, us); });
  if (!best.us.has_value()) return absl::NotFoundError("no choice of the generator is legal on this target");
  return best.choice;
}

std::map<std::string, DraftedChoice> BestOfLayouts(const Generator& generator, int descents) {
  std::map<std::string, DraftedChoice> best;
  ForEachDrafted(generator, descents, [&](const Choice& choice, std::optional<double> us) {
    if (!us.has_value()) return;
    const auto [at, is_new] = best.try_emplace(generator.ConstantLayout(choice), DraftedChoice{choice, *us});
    if (!is_new && *us < at->second.us) at->second = {choice, *us};
  });
  return best;
}

absl::StatusOr<Schedule> BuildCandidate(const Generator& generator, const Choice& choice) {
  HONE_ASSIGN_OR_RETURN(Schedule schedule, generator.Build(choice));
  std::vector<std::string> names;
  for (const Knob& knob : generator.knobs()) names.push_back(knob.name);
  HONE_ASSIGN_OR_RETURN(const BlockRef root, GetBlock(schedule, "root"));
  HONE_RETURN_IF_ERROR(Annotate(schedule, root, kKnobsKey, absl::StrJoin(names, ",")));
  return schedule;
}

namespace {

// Calls `wants_more` with the best schedule of each generator, the fastest by draft first, until it says no. The last
// failure where none was taken.
absl::Status ForEachDefault(std::span<const std::unique_ptr<Generator>> generators,
                            const std::function<bool(DraftedTrace)>& wants_more) {
  absl::Status failure = absl::NotFoundError("no generator applies");
  struct Candidate {
    double us;
    const Generator* generator;
    Choice choice;
  };
  std::vector<Candidate> candidates;
  for (const std::unique_ptr<Generator>& generator : generators) {
    absl::StatusOr<Choice> choice = BestByDraft(*generator);
    if (choice.ok()) {
      candidates.push_back({*generator->Draft(*choice), generator.get(), *std::move(choice)});
    } else {
      failure = choice.status();
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.us < b.us; });
  bool any = false;
  for (const Candidate& candidate : candidates) {
    const absl::StatusOr<Schedule> schedule = BuildCandidate(*candidate.generator, candidate.choice);
    if (!schedule.ok()) {
      failure = schedule.status();
      continue;
    }
    any = true;
    if (!wants_more({schedule->trace(), candidate.us})) break;
  }
  return any ? absl::OkStatus() : failure;
}

}  // namespace

absl::StatusOr<Trace> DefaultTrace(std::span<const std::unique_ptr<Generator>> generators) {
  Trace first;
  HONE_RETURN_IF_ERROR(ForEachDefault(generators, [&](DraftedTrace drafted) {
    first = std::move(drafted.trace);
    return false;
  }));
  return first;
}

absl::StatusOr<std::vector<DraftedTrace>> DefaultTraces(const PrimFunc& workload, const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto generators, Generators(workload, options));
  std::vector<DraftedTrace> all;
  HONE_RETURN_IF_ERROR(ForEachDefault(generators, [&](DraftedTrace drafted) {
    all.push_back(std::move(drafted));
    return true;
  }));
  return all;
}

absl::StatusOr<Trace> DefaultTrace(const PrimFunc& workload, const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(const auto generators, Generators(workload, options));
  return DefaultTrace(generators);
}

}  // namespace hone
