#include "compiler/driver/service/tune_session.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/driver/bundles/model_gain.h"
#include "compiler/driver/duration.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/interrupt.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/service/check_records.h"
#include "compiler/driver/service/hold_up.h"
#include "compiler/driver/service/job_report.h"
#include "compiler/driver/service/last_progress.h"
#include "compiler/driver/service/private_service.h"
#include "compiler/driver/status_line.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "database/store/rows.h"
#include "nlohmann/json.hpp"
#include "tuner/service/client.h"
#include "worker/probe/gpu_probe.h"

namespace hone {
namespace {

constexpr absl::Duration kNoticed = absl::Seconds(2);  // shorter hold-ups are part of the work
constexpr absl::Duration kSilence = absl::Seconds(3);  // of a daemon that speaks every second
constexpr absl::Duration kSubmitCall = absl::Milliseconds(1500);
// After Ctrl-C the program has two seconds: for the daemon to take note, and for the trials under work to end.
constexpr absl::Duration kStopCall = absl::Seconds(1);
constexpr absl::Duration kStopWait = absl::Milliseconds(1500);
constexpr absl::Duration kLastCall = absl::Milliseconds(300);

class TuneSession {
 public:
  explicit TuneSession(const TuneOrder& order) : order_(order) {}

  absl::Status Run(const v1::SubmitRequest& request) {
    HONE_RETURN_IF_ERROR(Connect());
    CrashPoint("client.connected");
    const absl::Status checked = CheckOldRecords();
    CatchInterrupts();  // only now: there is no job to stop before, and checking compiles for a while
    HONE_RETURN_IF_ERROR(Submit(request));
    CrashPoint("client.submitted");
    if (!checked.ok())
      status_.Say(absl::StrCat("what another Hone measured was not checked: ", std::string(checked.message())));
    status_.Say(
        absl::StrCat("job ", job_, ": ", request.tasks_size(), " tasks of ", request.model_name(),
                     request.parts().empty() ? "" : absl::StrCat(" for each of ", order_.targets.size(), " targets"),
                     " at ", client().address()));
    if (order_.detach) return Detach();
    HONE_ASSIGN_OR_RETURN(const v1::JobSnapshot last, Watch());
    CrashPoint("client.watched");
    return Conclude(last);
  }

 private:
  DaemonClient& client() { return private_ != nullptr ? private_->client() : *shared_; }

  // What cannot be checked now is checked by the next tune.
  absl::Status CheckOldRecords() {
    for (const TunedTarget& target : order_.targets) {
      HONE_ASSIGN_OR_RETURN(const RecordChecks checks,
                            CheckRecords(*target.model, target.resolved, order_.service, client()));
      if (checks.stale == 0) continue;
      status_.Say(absl::StrCat(checks.stale, " of ", checks.stale + checks.holding,
                               " records of another Hone are of code that this one does not make: they are measured "
                               "again"));
    }
    return absl::OkStatus();
  }

  // The job goes on by itself: says its number, and how to join it.
  absl::Status Detach() {
    status_.Close();
    if (order_.json) {
      const nlohmann::ordered_json line = {{"event", "submitted"}, {"job", job_}, {"server", client().address()}};
      std::printf("%s\n", line.dump().c_str());
      return absl::OkStatus();
    }
    std::printf("%llu\n", static_cast<unsigned long long>(job_));
    std::fprintf(stderr, "to follow it: %s jobs watch %llu%s\n", HoneProgram().c_str(),
                 static_cast<unsigned long long>(job_), ServiceFlags(order_.service).c_str());
    return absl::OkStatus();
  }

  absl::Status Connect() {
    if (!order_.service.server.empty()) {
      HONE_ASSIGN_OR_RETURN(shared_, ConnectTo(order_.service));
      return absl::OkStatus();
    }
    const ResolvedSettings& own = order_.own().resolved;
    if (own.gpu.has_value()) {
      const absl::StatusOr<GpuTarget> here = DeviceHere(*own.gpu);
      if (!here.ok()) return WithExitCode(ExitCode::kNoService, here.status());
    }
    HONE_ASSIGN_OR_RETURN(private_,
                          PrivateService::Start(order_.service.database(), own.threads, own.gpu ? own.gpu->text : ""));
    return absl::OkStatus();
  }

  // A call that the daemon cannot answer for now is made again: the request has a number of its own.
  absl::Status Submit(const v1::SubmitRequest& request) {
    const absl::Time start = MonotonicNow();
    for (;;) {
      const absl::StatusOr<v1::SubmitReply> reply =
          client().Submit(request, kSubmitCall, [] { return !Interrupted(); });
      const absl::Status& status = reply.status();
      const absl::Duration waited = MonotonicNow() - start;
      if (reply.ok()) job_ = reply->job_id();
      if (reply.ok()) return absl::OkStatus();
      if (Interrupted()) return InterruptedStatus("interrupted before there was a job");
      if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) return status;
      if (waited >= order_.patience) return GaveUp(std::string(status.message()), waited);
      if (absl::IsUnavailable(status)) HONE_RETURN_IF_ERROR(MendDaemon());
      status_.Show(
          absl::StrCat("waiting ", ShortDuration(absl::ToDoubleSeconds(waited)), ": ", std::string(status.message())),
          std::string(status.message()));
      absl::SleepFor(absl::Milliseconds(200));
    }
  }

  absl::Status MendDaemon() {
    if (private_ == nullptr) return absl::OkStatus();
    absl::StatusOr<std::string> done = private_->ReviveDaemon(Interrupted);
    if (Interrupted()) return absl::OkStatus();
    if (!done.ok()) return done.status();
    if (!done->empty()) status_.Say(*done);
    return absl::OkStatus();
  }
  absl::Status MendWorker(absl::Duration without) {
    if (private_ == nullptr) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::string done, private_->ReviveWorker(without));
    if (!done.empty()) status_.Say(done);
    return absl::OkStatus();
  }

  // The job's last snapshot; exit codes 5 (held up for too long), 130 and 143.
  absl::StatusOr<v1::JobSnapshot> Watch() {
    for (;;) {
      absl::Status trouble;
      bool again = false;  // the daemon is another one now: a watch of its own
      const DaemonClient* watched = &client();
      HONE_ASSIGN_OR_RETURN(const v1::JobSnapshot last,
                            client().Watch(job_, absl::Seconds(1), [&](const DaemonClient::Sight& sight) {
                              if (Interrupted()) return false;
                              trouble = Look(sight);
                              again = &client() != watched;
                              return trouble.ok() && !again;
                            }));
      if (Interrupted()) return StopAndLeave();
      if (!trouble.ok()) return trouble;
      if (!again) return last;
    }
  }

  // One look at the job: shows it, mends what is ours to mend. Not OK: the wait is over.
  absl::Status Look(const DaemonClient::Sight& sight) {
    if (!sight.away.empty() || sight.silence > kSilence) {
      if (!sight.away.empty()) HONE_RETURN_IF_ERROR(MendDaemon());
      const std::string words = absl::StrCat("the daemon at ", client().address(), " does not answer",
                                             sight.away.empty() ? "" : ": ", sight.away);
      if (sight.silence >= order_.patience) return GaveUp(words, sight.silence);
      if (sight.silence > kNoticed) {
        Held(sight.silence, words, "the daemon");
        return absl::OkStatus();
      }
    }
    if (sight.snapshot == nullptr || (!sight.fresh && sight.silence < kSilence)) return absl::OkStatus();
    const v1::JobSnapshot job = Together(*sight.snapshot, PartsOf(*sight.snapshot));
    if (order_.json && sight.fresh) {
      std::printf("%s\n", ProgressJson(job).dump().c_str());
      std::fflush(stdout);
    }
    const absl::Duration held = absl::Seconds(job.held_up_seconds());
    if (job.hold_up() == v1::HOLD_UP_NO_WORKER && held > kNoticed) HONE_RETURN_IF_ERROR(MendWorker(held));
    std::string words = HoldUpText(job, order_.service);
    if (private_ != nullptr && job.hold_up() == v1::HOLD_UP_NO_WORKER) words += "; one is being started";
    if (!words.empty() && held >= order_.patience) {
      Stop().status().IgnoreError();  // a daemon that cannot write takes note all the same
      return GaveUp(words, held);
    }
    const absl::Duration quiet = last_progress_.Since(job, MonotonicNow());
    if (words.empty() && quiet >= std::max(order_.patience, kLongestWork)) {
      Stop().status().IgnoreError();
      return GaveUp(
          NoProgressText(job, absl::StrCat(HoneProgram(), " jobs explain ", job_, ServiceFlags(order_.service))),
          quiet);
    }
    if (!words.empty() && held > kNoticed) {
      Held(held, words, ProgressLine(job));
    } else {
      if (!said_.empty()) status_.Say("going on");
      said_.clear();
      status_.Show(ProgressLine(job));
    }
    return absl::OkStatus();
  }

  // Its parts as they stand, in the order of the targets; one that cannot be asked about now, as it last did.
  std::vector<v1::JobSnapshot> PartsOf(const v1::JobSnapshot& job) {
    std::vector<v1::JobSnapshot> parts;
    for (const uint64_t id : job.part_jobs()) {
      absl::StatusOr<v1::JobSnapshot> now = client().GetJob(id, kLastCall);
      if (now.ok()) parts_[id] = *std::move(now);
      parts_[id].set_job_id(id);
      parts.push_back(parts_[id]);
    }
    return parts;
  }

  // The whole reason once, on a line of its own, and from then on for how long.
  void Held(absl::Duration since, const std::string& words, const std::string& rest) {
    if (words != said_) status_.Say("waiting: " + words);
    said_ = words;
    status_.Show(absl::StrCat("waiting ", ShortDuration(absl::ToDoubleSeconds(since)), "  ", rest));
  }

  absl::Status GaveUp(const std::string& words, absl::Duration waited) {
    status_.Close();
    return WithExitCode(ExitCode::kNoService,
                        absl::UnavailableError(absl::StrCat(
                            job_ == 0 ? "no job could be made" : absl::StrCat("job ", job_, " is given up"), " after ",
                            ShortDuration(absl::ToDoubleSeconds(waited)), " without progress (--wait): ", words,
                            "\nwhat was measured is kept; to go on: ", CommandLine())));
  }

  absl::StatusOr<v1::JobSnapshot> Stop() {
    v1::StopRequest stop;
    stop.set_job_id(job_);
    v1::JobSnapshot snapshot;
    HONE_RETURN_IF_ERROR(FromGrpc(client().tune().Stop(client().Context(kStopCall).get(), stop, &snapshot)));
    return snapshot;
  }

  // Ends within two seconds, whatever the daemon does. What is under work may end meanwhile, and is counted.
  absl::Status StopAndLeave() {
    status_.Close();
    const absl::Time end = MonotonicNow() + kStopWait;
    const absl::StatusOr<v1::JobSnapshot> stopped = Stop();
    v1::JobSnapshot job = stopped.ok() ? *stopped : v1::JobSnapshot();
    while (stopped.ok() && IsOpen(job.state()) && MonotonicNow() < end) {
      absl::SleepFor(absl::Milliseconds(50));
      absl::StatusOr<v1::JobSnapshot> now = client().GetJob(job_, kLastCall);
      if (now.ok()) job = *std::move(now);
    }
    const std::string go_on =
        absl::StrCat("to go on: ", CommandLine(), "\nto build with what is known: ", CompileCommand());
    if (!stopped.ok()) {
      std::fprintf(stderr, "interrupted; the daemon could not be told to stop job %llu: %s\n%s\n",
                   static_cast<unsigned long long>(job_), std::string(stopped.status().message()).c_str(),
                   go_on.c_str());
      return InterruptedStatus(absl::StrCat("job ", job_, " goes on; to stop it: ", HoneProgram(), " jobs stop ", job_,
                                            ServiceFlags(order_.service)));
    }
    const bool ended = job.state() == v1::JOB_STOPPED || job.state() == v1::JOB_DONE;
    std::fprintf(stderr, "%sinterrupted: %lld trials are kept", TaskTable(job).c_str(),
                 static_cast<long long>(job.trials()));
    if (!ended && job.in_flight() > 0) {
      std::fprintf(stderr, ", and up to %lld more that are being measured", static_cast<long long>(job.in_flight()));
    }
    std::fprintf(stderr, "\n%s\n", go_on.c_str());
    if (order_.json) std::printf("%s\n", ResultJson(job).dump().c_str());
    return InterruptedStatus(absl::StrCat("job ", job_, " was stopped"));
  }

  std::string CompileCommand() const { return CompileCommand(order_.own()); }
  std::string CompileCommand(const TunedTarget& target) const {
    return absl::StrCat(HoneProgram(), " compile ", ShellWord(order_.model_path), " -o ",
                        ShellWord(target.model->plan.model_name + ".hone"), ServiceFlags(order_.service),
                        BuildFlags(target.settings));
  }

  // What came of the further targets; not OK where one of them has no valid schedule.
  absl::Status ConcludeParts(const v1::JobSnapshot& last) {
    const std::vector<v1::JobSnapshot> parts = PartsOf(last);
    absl::Status worst;
    for (size_t i = 0; i < parts.size(); ++i) {
      const v1::JobSnapshot& part = parts[i];
      const TunedTarget& target = order_.targets[i + 1];
      std::fprintf(stderr, "target %s, job %llu:\n%s%s%s%s\nto build it: %s\n", target.settings.target_text.c_str(),
                   static_cast<unsigned long long>(part.job_id()), TaskTable(part).c_str(), TrialsText(part).c_str(),
                   part.reason().empty() ? "" : ": ", part.reason().c_str(), CompileCommand(target).c_str());
      if (order_.json) std::printf("%s\n", ResultJson(part).dump().c_str());
      if (part.state() != v1::JOB_FAILED) continue;
      worst = WithExitCode(ExitCode::kNoSchedule, absl::FailedPreconditionError(absl::StrCat(
                                                      "job ", part.job_id(), ", target ", target.settings.target_text,
                                                      ", failed: ", part.reason())));
    }
    return worst;
  }

  absl::Status Conclude(const v1::JobSnapshot& last) {
    status_.Close();
    const absl::Status parts = ConcludeParts(last);
    HONE_RETURN_IF_ERROR(ConcludeOwn(last));
    return parts;
  }

  absl::Status ConcludeOwn(const v1::JobSnapshot& last) {
    if (order_.targets.size() > 1) {
      std::fprintf(stderr, "target %s, job %llu:\n", order_.own().settings.target_text.c_str(),
                   static_cast<unsigned long long>(job_));
    }
    if (last.state() == v1::JOB_FAILED) {
      return WithExitCode(ExitCode::kNoSchedule,
                          absl::FailedPreconditionError(absl::StrCat("job ", job_, " failed: ", last.reason())));
    }
    if (last.state() == v1::JOB_STOPPED) {
      std::fprintf(stderr, "%s", TaskTable(last).c_str());
      if (order_.json) std::printf("%s\n", ResultJson(last).dump().c_str());
      return WithExitCode(ExitCode::kInterrupted, absl::CancelledError(absl::StrCat(
                                                      "job ", job_, " was stopped by another command: ", last.trials(),
                                                      " trials are kept; to go on: ", CommandLine())));
    }
    const EstimatedTimes times = Estimate(last);
    if (times.measured == 0) {
      return WithExitCode(ExitCode::kNoService, absl::UnavailableError(absl::StrCat("job ", job_, ": ", last.reason(),
                                                                                    "; to go on: ", CommandLine())));
    }
    std::fprintf(stderr, "%s%s in %s%s%s\n", TaskTable(last).c_str(), TrialsText(last).c_str(),
                 ShortDuration(last.seconds()).c_str(), last.reason().empty() ? "" : ": ", last.reason().c_str());
    if (const std::string missing = LacksToRun(); !missing.empty()) {
      std::fprintf(stderr, "the model was not timed: this machine lacks %s\nto build it: %s\n", missing.c_str(),
                   CompileCommand().c_str());
      if (order_.json) std::printf("%s\n", ResultJson(last).dump().c_str());
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const ModelGain gain, Gain());
    const SpeedUp& speed_up = gain.speed_up;
    if (gain.faster_defaults > 0) {
      std::fprintf(stderr, "%d kernels keep their default schedules: what was faster alone was not in the model\n",
                   gain.faster_defaults);
    }
    std::fprintf(stderr, "the model: %s: %.4g ms before, %.4g ms now\nto build it: %s\n", ToText(speed_up).c_str(),
                 speed_up.before_ms, speed_up.after_ms, CompileCommand().c_str());
    if (order_.json) {
      nlohmann::ordered_json result = ResultJson(last);
      result["model_ms_before"] = speed_up.before_ms;
      result["model_ms_after"] = speed_up.after_ms;
      result["speed_up"] = speed_up.ratio;
      result["speed_up_interval"] = {speed_up.low, speed_up.high};
      result["changed"] = speed_up.changed();
      result["faster_defaults"] = gain.faster_defaults;
      std::printf("%s\n", result.dump().c_str());
    }
    return absl::OkStatus();
  }

  // What this machine lacks to run the model; "" when it can.
  std::string LacksToRun() const {
    const ResolvedSettings& own = order_.own().resolved;
    const std::vector<std::string> called = CalledFunctions(order_.own().model->plan);
    if (!called.empty()) return absl::StrCat("a program that has ", absl::StrJoin(called, ", "));
    if (!own.gpu.has_value()) return MissingFeatures(own.target, HostTarget());
    const absl::StatusOr<GpuTarget> here = DeviceHere(*own.gpu);
    if (!here.ok()) return std::string(here.status().message());
    return DeviceClass(*here) == own.device_class() ? "" : absl::StrCat("the device ", own.device_class());
  }

  absl::Status Keep(const v1::KeepChoicesRequest& choices) {
    v1::KeepChoicesReply reply;
    const auto call = [&] { return FromGrpc(client().tune().KeepChoices(client().Context().get(), choices, &reply)); };
    absl::Status status = call();
    if (absl::IsUnavailable(status)) {
      HONE_RETURN_IF_ERROR(MendDaemon());
      status = call();
    }
    return Annotate(status, "keeping what is faster in the model");
  }

  // The work is done by a thread, which cannot be stopped in the middle of a compilation: on Ctrl-C the program ends
  // without it.
  absl::StatusOr<ModelGain> Gain() {
    std::string folder = (std::filesystem::temp_directory_path() / "hone-tune-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) {
      return absl::InternalError(absl::StrCat("cannot make ", folder, ": ", std::strerror(errno)));
    }
    struct Work {
      std::mutex mutex;
      std::condition_variable changed;
      std::string phase;
      std::optional<absl::StatusOr<ModelGain>> result;
    };
    const auto work = std::make_shared<Work>();
    const absl::Time start = MonotonicNow();
    std::thread worker([this, work, folder] {
      GainOptions options;
      options.folder = folder;
      options.phase = [&](const std::string& text) {
        const std::lock_guard<std::mutex> lock(work->mutex);
        work->phase = text;
        work->changed.notify_all();
        return Interrupted() ? absl::CancelledError("interrupted") : absl::OkStatus();
      };
      options.keep = [this](const v1::KeepChoicesRequest& choices) { return Keep(choices); };
      absl::StatusOr<ModelGain> result =
          MeasureGain(*order_.own().model, order_.own().resolved, order_.service, options);
      const std::lock_guard<std::mutex> lock(work->mutex);
      work->result.emplace(std::move(result));
      work->changed.notify_all();
    });
    std::optional<absl::StatusOr<ModelGain>> result;
    for (std::string shown; !result.has_value() && !Interrupted();) {
      std::unique_lock<std::mutex> lock(work->mutex);
      work->changed.wait_for(lock, std::chrono::milliseconds(100));
      if (work->result.has_value()) {
        result.emplace(*std::move(work->result));
      } else {
        const std::string& phase = work->phase;
        status_.Show(absl::StrCat(phase, "  ", ShortDuration(absl::ToDoubleSeconds(MonotonicNow() - start))),
                     phase.substr(0, phase.find(':')));
      }
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    status_.Close();
    if (!result.has_value() || absl::IsCancelled(result->status())) {
      std::fprintf(stderr, "hone: interrupted: the model was not timed; all of job %llu is kept\nto build it: %s\n",
                   static_cast<unsigned long long>(job_), CompileCommand().c_str());
      std::fflush(nullptr);
      ::_exit(InterruptedCode());  // not by main: what the thread works with must stay until the end
    }
    worker.join();
    return *std::move(result);
  }

  const TuneOrder& order_;
  std::unique_ptr<PrivateService> private_;  // one of the two
  std::unique_ptr<DaemonClient> shared_;
  StatusLine status_;
  std::string said_;  // what it waits for, as it was said last
  uint64_t job_ = 0;
  LastProgress last_progress_;
  std::map<uint64_t, v1::JobSnapshot> parts_;  // as they were last seen
};

}  // namespace

absl::Status RunTuning(const TuneOrder& order, const v1::SubmitRequest& request) {
  return TuneSession(order).Run(request);
}

}  // namespace hone
