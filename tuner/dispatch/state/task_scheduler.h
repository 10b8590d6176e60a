// Where the next batch of trials gains the whole model most: the gradient of Ansor's task scheduler (Zheng et al., OSDI
// 2020, section 6), divided by the seconds a batch of the task takes, and with its optimistic term capped by the
// roofline.
//
//   gain(i) = w_i * (alpha * (g_i(t - window) - g_i(t)) / window + (1 - alpha) * forward(i)) / seconds(i)
//   forward(i) = min(max(g_i / t_i, g_i - beta * C_i / V_similar) * decay^stale, g_i - bound_i / 0.9)
//
// with g the best latency, t the rounds made, C the operations, V the rate that similar tasks reached, and `stale` the
// latest rounds in a row that gained nothing. The published formula has no decay: a task that cannot reach the rate of
// its kin (a depthwise convolution among others) then takes every batch until it stalls.
#pragma once

#include <string>
#include <vector>

#include "tuner/dispatch/events/options.h"

namespace hone {

struct TaskProgress {
  double weight = 1;
  double flop = 0;
  double best_us = 0;            // 0: nothing measured yet
  double lower_bound_us = 0;     // 0: not known
  std::vector<double> rounds;    // best after each round, oldest first
  bool searched = false;         // its warm-up batch was asked for
  double seconds_per_trial = 0;  // 0: not known yet
  std::string kind;              // tasks of one kind are similar: "conv2d"
};

// Microseconds of the model's latency expected per second of tuning. Never negative. `similar_rate` is the highest
// flop/us among tasks of the same kind; 0 when there is none.
double GainPerSecond(const TaskProgress& task, double similar_rate, const DispatchOptions& options);

// The index in `tasks` of the best among `eligible`, by gain, ties to the lower index; -1 when none is eligible. Tasks
// that were never searched go first when their share of the model's time is not negligible, in order of that share
// (warm-up).
int PickTask(const std::vector<TaskProgress>& tasks, const std::vector<bool>& eligible, const DispatchOptions& options);

// "conv2d" of "conv2d_3x3_s1_64x56x56_add_relu": the name up to the first part that starts with a digit.
std::string KindOfName(const std::string& name);

}  // namespace hone
