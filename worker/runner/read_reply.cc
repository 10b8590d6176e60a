#include "worker/runner/read_reply.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/printable.h"
#include "worker/measure/plausible_time.h"

namespace hone {

RunnerVerdict ReadReply(RunnerReply& reply, ssize_t got) {
  RunnerVerdict verdict;
  const bool whole = got >= static_cast<ssize_t>(offsetof(RunnerReply, samples)) && reply.num_samples >= 0 &&
                     reply.num_samples <= kRunnerMaxSamples && got == static_cast<ssize_t>(ReplyBytes(reply));
  if (!whole) {
    verdict.kind = RunnerVerdict::kCrashed;
    verdict.message = got > 0 ? "answered with something that is no reply" : "";
    return verdict;
  }
  reply.message[kRunnerMessageBytes - 1] = '\0';
  verdict.message = Printable(reply.message);
  verdict.reported_us = reply.elapsed_us;
  switch (reply.outcome) {
    case RunnerOutcome::kReady:
    case RunnerOutcome::kDone: verdict.kind = RunnerVerdict::kOk; break;
    case RunnerOutcome::kKernelFailed: verdict.kind = RunnerVerdict::kKernelFailed; break;
    case RunnerOutcome::kRefused: verdict.kind = RunnerVerdict::kRefused; break;
    case RunnerOutcome::kOutOfMemory: verdict.kind = RunnerVerdict::kOutOfMemory; break;
    case RunnerOutcome::kNoDevice: verdict.kind = RunnerVerdict::kNoDevice; break;
    case RunnerOutcome::kDeviceLost: verdict.kind = RunnerVerdict::kDeviceLost; break;
    default: verdict.kind = RunnerVerdict::kCrashed; break;
  }
  return verdict;
}

RunnerVerdict WithSamples(RunnerVerdict verdict, const RunnerReply& reply, const TimeRequest& request,
                          const TimePassed& passed) {
  if (!verdict.ok()) return verdict;
  double sum_us = 0;
  for (int i = 0; i < reply.num_samples; ++i) {
    const RunnerSample& sample = reply.samples[i];
    if (!(sample.us > 0) || !(sample.us < 1e12)) {
      return {.kind = RunnerVerdict::kImpossibleTime, .message = "reported a time that is none"};
    }
    sum_us += sample.us * request.inner;
    verdict.samples.push_back({sample.us, sample.involuntary_switches, sample.major_faults, 0});
  }
  if (reply.num_samples != request.samples) {
    return {.kind = RunnerVerdict::kImpossibleTime, .message = "reported another number of samples than asked for"};
  }
  // Renewing and flushing take processor time of their own.
  const bool calls_alone = request.renewal == Renewal::kNone && request.flushed == 0 && !passed.device;
  const bool possible = !calls_alone || IsPossibleTime(sum_us, passed.threads, passed.processor_us);
  if (sum_us <= passed.elapsed_us + 1 && possible) return verdict;
  return {.kind = RunnerVerdict::kImpossibleTime,
          .message = absl::StrCat("reported times are not those that passed: ", sum_us, " us of ", passed.elapsed_us,
                                  ", with ", passed.processor_us, " us of processor time"),
          .reported_us = sum_us,
          .elapsed_us = passed.elapsed_us};
}

}  // namespace hone
