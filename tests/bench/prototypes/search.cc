#include "tests/bench/prototypes/search.h"

#include <algorithm>
#include <map>

#include "tests/bench/stopwatch.h"

namespace hone::prototypes {
namespace {

using Choice = std::vector<int64_t>;

constexpr size_t kFinalists = 4;

struct Found {
  double us = 0;
  std::string choice;  // " vectors=2 depth=512"
};

class Search {
 public:
  Search(Prototype& prototype, ThreadPool& pool, bool cold) : prototype_(prototype), pool_(pool), cold_(cold) {}

  // Leaves the prototype prepared with the choice found.
  Found Run() {
    const std::vector<Prototype::Knob>& knobs = prototype_.knobs();
    Choice start;
    for (const Prototype::Knob& knob : knobs) start.push_back(knob.values.front());
    for (const int64_t value : knobs.front().values) {
      start[0] = value;
      Vary(start, 1);
    }
    Vary(best_, 0);
    TimeFinalists();
    prototype_.Prepare(best_);
    std::string text;
    for (size_t k = 0; k < knobs.size(); ++k) text += " " + knobs[k].name + "=" + std::to_string(best_[k]);
    return {best_us_, std::move(text)};
  }

 private:
  void Vary(Choice from, size_t first_knob) {
    double from_us = Try(from);
    for (size_t k = first_knob; k < from.size(); ++k) {
      for (const int64_t value : prototype_.knobs()[k].values) {
        Choice other = from;
        other[k] = value;
        if (const double us = Try(other); us < from_us) {
          from = other;
          from_us = us;
        }
      }
    }
  }

  // The best few once more: what was fast once may have met a quiet moment.
  void TimeFinalists() {
    std::vector<std::pair<double, Choice>> order;
    for (const auto& [choice, us] : tried_) order.emplace_back(us, choice);
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), kFinalists));
    best_us_ = 0;
    for (const auto& [us, choice] : order) {
      prototype_.Prepare(choice);
      Observe(choice, TimeOnce(0));
    }
  }

  void Observe(const Choice& choice, double us) {
    if (best_us_ > 0 && us >= best_us_) return;
    best_us_ = us;
    best_ = choice;
  }

  double Try(const Choice& choice) {
    const auto [known, is_new] = tried_.try_emplace(choice, 0);
    if (!is_new) return known->second;
    prototype_.Prepare(choice);
    prototype_.Check();
    known->second = TimeOnce(best_us_);
    Observe(choice, known->second);
    return known->second;
  }

  double TimeOnce(double champion_us) {
    TimedCall call{[&] { prototype_.Run(); }, {}};
    if (cold_) call.cold.push_back(prototype_.constants());
    return TimeCalls(call, pool_, champion_us);
  }

  Prototype& prototype_;
  ThreadPool& pool_;
  bool cold_;
  std::map<Choice, double> tried_;
  Choice best_;
  double best_us_ = 0;
};

}  // namespace

void AddFastest(std::vector<std::unique_ptr<Prototype>> alternatives, ThreadPool& pool, bool cold, Chain* chain) {
  Found fastest;
  std::unique_ptr<Prototype> chosen;
  for (std::unique_ptr<Prototype>& prototype : alternatives) {
    Found found = Search(*prototype, pool, cold).Run();
    if (chosen != nullptr && found.us >= fastest.us) continue;
    fastest = std::move(found);
    chosen = std::move(prototype);
  }
  if (chosen == nullptr) return;
  chain->text += (chain->prototypes.empty() ? "" : " + ") + chosen->name() + fastest.choice;
  chain->prototypes.push_back(std::move(chosen));
}

double Time(const Chain& chain, ThreadPool& pool, bool cold) {
  TimedCall call{[&] {
                   for (const std::unique_ptr<Prototype>& prototype : chain.prototypes) prototype->Run();
                 },
                 {}};
  for (const std::unique_ptr<Prototype>& prototype : chain.prototypes) {
    if (cold) call.cold.push_back(prototype->constants());
  }
  return TimeCalls(call, pool, 0);
}

}  // namespace hone::prototypes
