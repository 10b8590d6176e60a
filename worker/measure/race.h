// Which of several kernels is measured next, and when there is enough: a race of challengers against the champion.
//
// In every round each runner still in the race is timed once, in shuffled order, and the champion twice: its two series
// are an A/A control. They tell how noisy the machine is, and a round in which they disagree by more than that is
// thrown away. A challenger leaves when it has plainly lost or won, or when its ratio to the champion is known well
// enough. Most are slower than the champion: those leave soonest, and how much slower need not be known well.
// Times are compared as logarithms, pair by pair within a round, so that drift cancels. No input or output: the caller
// measures.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/support/random.h"
#include "worker/measure/statistics.h"

namespace hone {

struct RaceOptions {
  int min_rounds = 3;  // nothing is decided before: a trial has at least three samples
  int max_rounds = 12;
  double z = 3;                   // standard errors between "seems" and "is"
  double lose_z = 2;              // the same for "slower": by mistake a gain is missed, and nothing wrong is published
  double lose_margin = 0.01;      // plainly slower: by more than this, in log time
  double win_margin = 0.01;       // plainly faster, likewise: it is measured, and a duel finds out by how much
  double tie_half_width = 0.005;  // known well enough
  double machine_sigma = 0.01;    // log noise of one sample on this machine: the least that is assumed, since few
                                  // samples often look too equal. A worker pools it over its races (noise()).
  int max_bad_rounds = 6;         // more thrown away than this: the race ends and is `noisy`
  double max_noise = 0.15;        // and so it does when single samples are off by this much
};

enum class RaceState : uint8_t { kRunning, kLost, kMeasured };

class Race {
 public:
  // Challengers are 0 .. challengers - 1; the champion is kChampionA and kChampionB. Without a champion (the first of
  // their task) challengers race each other: the fastest so far takes its place, and there is no A/A control.
  static constexpr int kChampionA = -1, kChampionB = -2;
  Race(int challengers, bool has_champion, uint64_t seed, const RaceOptions& options = {});

  // Who is timed next; nullopt when the race is over. Add or Fail answers it.
  std::optional<int> Next();
  void Add(double us);  // the time of the one Next named
  void Fail();          // it crashed or was disturbed beyond use: it leaves the race; a champion's failure
                        // throws the round away

  RaceState state(int challenger) const { return states_[challenger]; }
  const std::vector<double>& samples(int challenger) const { return times_[challenger]; }
  const std::vector<double>& champion_samples() const { return champion_; }
  // Challenger to champion over the rounds both were in; nullopt without a champion or a common round.
  std::optional<PairedRatio> ratio(int challenger) const;
  int rounds() const { return rounds_; }
  int bad_rounds() const { return bad_rounds_; }
  // Log noise of one sample: machine_sigma, or what the champion's two series show when that is more.
  double noise() const;
  bool noisy() const;

 private:
  void StartRound();
  void EndRound();
  void Judge(int challenger);

  RaceOptions options_;
  bool has_champion_;
  Random random_;
  std::vector<RaceState> states_;
  std::vector<char> failed_;
  std::vector<std::vector<double>> times_;  // of each challenger, one a good round
  std::vector<double> champion_;            // one a good round: the geometric mean of both series
  std::vector<double> disagreements_;       // |log(a / b)| of the champion's series, one a round, bad ones too
  std::vector<int> order_;                  // of the round, what is left of it at the back
  std::vector<double> round_;               // this round's times, challengers then A and B; 0: none
  int rounds_ = 0, bad_rounds_ = 0;
};

}  // namespace hone
