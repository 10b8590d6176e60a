// A source of schedules for one workload: a template with knobs, or a sketch with tile sizes to fill in.
//
// Whoever proposes, a candidate is (generator, choice): the search varies the choice, the draft judges it by
// arithmetic, and only finalists are built into a schedule, whose trace is what travels and is stored. The first steps
// of the trace are sample_categorical steps with the choice as their decisions, and the root block carries the names of
// the generator and of its knobs, so that a stored trace can be turned back into (generator, value of each knob).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/random.h"
#include "compiler/target/machine.h"
#include "compiler/target/target.h"

namespace hone {

struct Knob {
  std::string name;
  std::vector<int64_t> candidates;  // at least one; in an order in which neighbours are alike
};
// One index into `candidates` for each knob.
using Choice = std::vector<int>;

class Generator {
 public:
  virtual ~Generator() = default;
  // "template", "sketch:tile(dense)", ...: unique among the generators of a workload; what is before ':' is the source.
  virtual const std::string& name() const = 0;
  virtual const std::vector<Knob>& knobs() const = 0;
  // Microseconds the program would take by the analytic model; nullopt when the choice is not legal (too many
  // registers). Arithmetic alone: microseconds to call.
  virtual std::optional<double> Draft(const Choice& choice) const = 0;
  // Fails where the draft took a choice for legal that the schedule refuses.
  virtual absl::StatusOr<Schedule> Build(const Choice& choice) const = 0;

  // Of a function with symbolic sizes at one of them. `other` is a generator of it at another: what a schedule that it
  // builds of `choice` takes by the analytic model where it is used here, its tiles as they are and as many of them as
  // the extents ask for (ForAllSizes of trace_edit.h). nullopt: it is of another form, or its pieces are not alike.
  virtual std::optional<double> DraftOfOther(const Generator& other, const Choice& choice) const;
  // How the constants lie that the schedule reads: of equal texts they are the same copies, whichever generator of the
  // function it is and at which of its sizes. "": as they came.
  virtual std::string ConstantLayout(const Choice& choice) const;
};

// Annotations of the root block: the generator's name, which the generator writes, and the names of its knobs,
// separated by commas, which BuildCandidate writes.
inline constexpr char kGeneratorKey[] = "hone.generator";
inline constexpr char kKnobsKey[] = "hone.knobs";

// Build, and the names of the knobs beside the generator's: what is proposed, measured and stored.
absl::StatusOr<Schedule> BuildCandidate(const Generator& generator, const Choice& choice);

// What candidates are made for.
struct SpaceOptions {
  Target target;
  int threads = 1;
  NumericLevel numeric = NumericLevel::kDefault;  // the loosest that is allowed
  Machine machine = UsualMachine(target);         // what drafts are computed from
};

// Every source that applies, templates first. Never empty for a function that AnalyzeWorkload takes.
absl::StatusOr<std::vector<std::unique_ptr<Generator>>> Generators(const PrimFunc& workload,
                                                                   const SpaceOptions& options);

// Every knob at random, whether or not that is legal.
Choice RandomChoice(const Generator& generator, Random& random);

// The choice with the least draft: exhaustive where the space is small, by coordinate descent from several starts
// otherwise. NotFound when no choice is legal.
inline constexpr int kDescents = 24;
absl::StatusOr<Choice> BestByDraft(const Generator& generator, int descents = kDescents);

// Of each layout of the constants that the generator can have (ConstantLayout), the choice with the least draft, found
// likewise. Empty when no choice is legal.
struct DraftedChoice {
  Choice choice;
  double us = 0;
};
std::map<std::string, DraftedChoice> BestOfLayouts(const Generator& generator, int descents = kDescents);

// What the trace of a candidate says of its making; nullopt when it is of another making.
struct Origin {
  std::string generator;
  Choice choice;                   // indices into the candidates the generator had then
  std::vector<int64_t> values;     // the values chosen
  std::vector<std::string> knobs;  // their names; empty in a trace that was stored before names were
};
std::optional<Origin> OriginOf(const Trace& trace);

// The choice of `generator` that has exactly the values of `origin`; nullopt where there is none. Values are matched by
// the name of their knob, by position where the trace has no names.
std::optional<Choice> ChoiceWithValues(const Generator& generator, const Origin& origin);

// The legal choice of `generator` nearest to the values of `origin`, which may come from another workload: every knob
// takes the candidate nearest by logarithm to the value of the knob of the same name, a block's name aside where that
// block is not here; knobs that the origin lacks are set by the draft. nullopt where no legal choice is near, or where
// the trace has no names and another number of knobs.
std::optional<Choice> FitChoice(const Generator& generator, const Origin& origin);

}  // namespace hone
