#include "tuner/search/candidates/generated_space.h"

#include <functional>
#include <mutex>
#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/status_macros.h"
#include "tuner/search/candidates/gpu_lens.h"
#include "tuner/space/gpu/gpu_generators.h"

namespace hone {
namespace {

// The first source is what an untuned build takes; a rough answer does for the others, which are bred further anyway.
constexpr int kDescentsOfOthers = 4;

// What a candidate's program is told apart by and what features are computed from, and the machine that they are of.
struct Lens {
  std::function<absl::StatusOr<LoweredFunc>(const PrimFunc& scheduled)> lower;
  Target target;
  Machine machine;
  int threads = 1;
};

class GeneratedSpace : public CandidateSpace {
 public:
  GeneratedSpace(PrimFunc workload, Lens lens, std::vector<std::unique_ptr<Generator>> generators)
      : workload_(std::move(workload)), lens_(std::move(lens)), generators_(std::move(generators)) {
    for (const auto& generator : generators_) {
      Source& source = sources_.emplace_back(Source{generator->name(), {}});
      for (const Knob& knob : generator->knobs()) source.sizes.push_back(static_cast<int>(knob.candidates.size()));
    }
  }

  std::optional<double> Draft(const Point& point) const override {
    return generators_[point.source]->Draft(point.choice);
  }

  absl::StatusOr<Built> Build(const Point& point) const override {
    HONE_ASSIGN_OR_RETURN(const Schedule schedule, BuildCandidate(*generators_[point.source], point.choice));
    HONE_ASSIGN_OR_RETURN(Program program, Describe(schedule, point));
    return Built{ToText(schedule.trace()), std::move(program)};
  }

  absl::StatusOr<Identified> Identify(const std::string& text) const override {
    HONE_ASSIGN_OR_RETURN(const Trace trace, ParseTrace(text));
    std::optional<Point> point;
    if (const std::optional<Origin> origin = OriginOf(trace)) {
      if (const std::optional<size_t> source = SourceOf(origin->generator)) {
        if (std::optional<Choice> choice = ChoiceWithValues(*generators_[*source], *origin))
          point = Point{*source, *std::move(choice)};
      }
    }
    absl::StatusOr<Built> built = absl::NotFoundError("no point");
    if (point.has_value()) built = Build(*point);
    if (built.ok() && built->trace == text) return Identified{point, std::move(built->program)};
    // The same values may give another program: of an older generator, or of one that reads its knobs otherwise.
    HONE_ASSIGN_OR_RETURN(const Schedule schedule, Replay(trace, workload_));
    HONE_ASSIGN_OR_RETURN(Program program, Describe(schedule, std::nullopt));
    if (built.ok() && built->program.hash == program.hash) return Identified{point, std::move(built->program)};
    return Identified{std::nullopt, std::move(program)};
  }

  std::optional<Point> Fit(const std::string& text) const override {
    const absl::StatusOr<Trace> trace = ParseTrace(text);
    const std::optional<Origin> origin = trace.ok() ? OriginOf(*trace) : std::nullopt;
    if (!origin.has_value()) return std::nullopt;
    const std::optional<size_t> source = SourceOf(origin->generator);
    if (!source.has_value()) return std::nullopt;
    std::optional<Choice> choice = FitChoice(*generators_[*source], *origin);
    if (!choice.has_value()) return std::nullopt;
    return Point{*source, *std::move(choice)};
  }

  const std::vector<std::optional<Point>>& Favourites() const override {
    std::call_once(favourites_found_, [this] {
      for (size_t source = 0; source < generators_.size(); ++source) {
        const absl::StatusOr<Choice> best =
            BestByDraft(*generators_[source], source == 0 ? kDescents : kDescentsOfOthers);
        favourites_.push_back(best.ok() ? std::optional(Point{source, *best}) : std::nullopt);
      }
    });
    return favourites_;
  }

 private:
  std::optional<size_t> SourceOf(const std::string& name) const {
    for (size_t source = 0; source < generators_.size(); ++source) {
      if (generators_[source]->name() == name) return source;
    }
    return std::nullopt;
  }

  double LeastDraft() const {
    double least = 0;
    for (const std::optional<Point>& point : Favourites()) {
      const std::optional<double> us = point.has_value() ? Draft(*point) : std::nullopt;
      if (us.has_value() && (least == 0 || *us < least)) least = *us;
    }
    return least;
  }

  absl::StatusOr<Program> Describe(const Schedule& schedule, const std::optional<Point>& point) const {
    HONE_ASSIGN_OR_RETURN(const LoweredFunc lowered, lens_.lower(schedule.func()));
    Program program;
    program.hash = StructuralHash(lowered.func);
    std::string kind;
    program.draft_us = LeastDraft();
    if (point.has_value()) {
      program.draft_us = generators_[point->source]->Draft(point->choice).value_or(program.draft_us);
      kind = sources_[point->source].kind();
    }
    program.features = ExtractFeatures(lowered, lens_.target, lens_.machine, lens_.threads, {program.draft_us, kind});
    return program;
  }

  PrimFunc workload_;
  Lens lens_;
  std::vector<std::unique_ptr<Generator>> generators_;
  mutable std::once_flag favourites_found_;
  mutable std::vector<std::optional<Point>> favourites_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CandidateSpace>> MakeGeneratedSpace(const PrimFunc& workload,
                                                                   const SpaceOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Generator>> generators, Generators(workload, options));
  LowerOptions lower = LowerOptionsFor(options.target);
  lower.features.clear();  // tile operations become loops, whose statements the model's features are of
  Lens lens{[lower](const PrimFunc& scheduled) { return Lower(scheduled, lower); }, options.target, options.machine,
            options.threads};
  return std::make_unique<GeneratedSpace>(workload, std::move(lens), std::move(generators));
}

absl::StatusOr<std::unique_ptr<CandidateSpace>> MakeGpuSpace(const PrimFunc& workload, const GpuTarget& target) {
  HONE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Generator>> generators, GpuGenerators(workload, target));
  const auto [cpu, machine] = AsCpu(target);
  Lens lens{[target](const PrimFunc& scheduled) { return LowerToLoops(scheduled, target); }, cpu, machine, cpu.cores};
  return std::make_unique<GeneratedSpace>(workload, std::move(lens), std::move(generators));
}

}  // namespace hone
