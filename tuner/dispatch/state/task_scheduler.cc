#include "tuner/dispatch/state/task_scheduler.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hone {
namespace {

constexpr double kUsualSecondsPerTrial = 0.3;  // until a task has been measured itself

int StaleRounds(const std::vector<double>& rounds, double least_gain) {
  int stale = 0;
  for (size_t i = rounds.size(); i-- > 1 && rounds[i] >= rounds[i - 1] * (1 - least_gain);) ++stale;
  return stale;
}

}  // namespace

double GainPerSecond(const TaskProgress& task, double similar_rate, const DispatchOptions& options) {
  if (task.best_us <= 0) return 0;
  const double rounds = static_cast<double>(task.rounds.size()) + 1;
  const int window = std::min<int>(options.window, static_cast<int>(task.rounds.size()) - 1);
  double backward = 0;
  if (window > 0) {
    const double before = task.rounds[task.rounds.size() - 1 - window];
    if (before > 0) backward = std::max(0.0, before - task.rounds.back()) / window;
  }
  double forward = task.best_us / rounds;
  if (similar_rate > 0 && task.flop > 0) {
    // A task far behind its kin is expected to come within beta of their rate.
    forward = std::max(forward, task.best_us - options.beta * task.flop / similar_rate);
  }
  forward *= std::pow(options.stale_decay, StaleRounds(task.rounds, options.stall_gain));
  if (task.lower_bound_us > 0) forward = std::min(forward, std::max(0.0, task.best_us - task.lower_bound_us / 0.9));
  const double seconds = task.seconds_per_trial > 0 ? task.seconds_per_trial : kUsualSecondsPerTrial;
  return task.weight * (options.alpha * backward + (1 - options.alpha) * forward) / (seconds * options.batch);
}

int PickTask(const std::vector<TaskProgress>& tasks, const std::vector<bool>& eligible,
             const DispatchOptions& options) {
  double total_us = 0;
  std::map<std::string, double> rate;  // best flop/us by kind
  for (const TaskProgress& task : tasks) {
    total_us += task.weight * task.best_us;
    if (task.best_us > 0) rate[task.kind] = std::max(rate[task.kind], task.flop / task.best_us);
  }
  int warm = -1, best = -1, any = -1;
  double warm_share = -1, best_gain = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!eligible[i]) continue;
    const TaskProgress& task = tasks[i];
    if (any < 0) any = static_cast<int>(i);
    const double share = task.weight * task.best_us;
    const bool negligible = task.best_us > 0 && share < options.warm_up_share * total_us;
    if (!task.searched && !negligible && share > warm_share) {
      warm = static_cast<int>(i);
      warm_share = share;
    }
    const double gain = GainPerSecond(task, rate[task.kind], options);
    if (gain > best_gain) {
      best = static_cast<int>(i);
      best_gain = gain;
    }
  }
  if (warm >= 0) return warm;
  return best >= 0 ? best : any;
}

std::string KindOfName(const std::string& name) {
  size_t end = 0;
  while (end < name.size()) {
    const size_t next = name.find('_', end);
    if (end > 0 && name[end] >= '0' && name[end] <= '9') return name.substr(0, end - 1);
    if (next == std::string::npos) break;
    end = next + 1;
  }
  return name;
}

}  // namespace hone
