// Rows with everything filled in, for tests of stores.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "database/store/record_json.h"
#include "database/store/store.h"

namespace hone {

inline v1::Workload TestWorkload(const std::string& name) {
  v1::Workload workload;
  workload.set_name(name);
  workload.set_text(absl::StrCat("text of ", name));
  workload.set_hash(Sha256(workload.text()));
  workload.set_flop(2e6);
  workload.set_bytes(3e4);
  return workload;
}
inline TuningKey TestKey(const std::string& workload, int threads = 2, v1::NumericLevel numeric = v1::NUMERIC_DEFAULT,
                         const std::string& device_class = "fake/c2", uint32_t protocol = 1) {
  return TuningKey{.workload_hash = TestWorkload(workload).hash(),
                   .device_class = device_class,
                   .threads = threads,
                   .numeric = numeric,
                   .protocol = protocol};
}
inline RecordRow TestRecord(const TuningKey& key, const std::string& trace, double median_us,
                            const std::string& object = "") {
  RecordRow row{.key = key, .record = {}, .origin = "tuned"};
  v1::Record& r = row.record;
  r.set_id(RecordId(key, trace));
  r.set_trace(trace);
  r.set_median_us(median_us);
  r.set_low_us(median_us * 0.99);
  r.set_high_us(median_us * 1.01);
  r.set_program_hash(Sha256("program of " + trace));
  r.set_object_digest(Sha256(object));
  r.set_generator("generator 1");
  r.set_target("cpu:fake");
  r.set_created("2026-11-21T05:03:59Z");
  r.set_object(object);
  if (!object.empty()) r.set_kernel_set("kernel set of " + object);
  return row;
}
inline JobRow TestJob(uint64_t id, const std::string& request_id, v1::JobState state = v1::JOB_RUNNING) {
  JobRow row;
  row.id = id;
  row.request.set_request_id(request_id);
  row.request.set_model_name("model");
  row.request.set_numeric(v1::NUMERIC_DEFAULT);
  row.request.set_max_trials(100);
  row.state = state;
  row.device_class = "fake/c2";
  row.threads = 2;
  row.protocol = 1;
  row.created = "2026-11-21T05:03:59Z";
  row.seconds = 1.5;
  row.build_seconds = 0.25;
  row.busy_seconds = 0.5;
  row.judged_batches = 4;
  row.draft_first = 2.5;
  row.model_first = 3.5;
  return row;
}
inline TaskRow TestTask(uint64_t id, uint64_t job, int index, const std::string& workload) {
  TaskRow row;
  row.id = id;
  row.job = job;
  row.index = index;
  row.workload_hash = TestWorkload(workload).hash();
  row.name = workload;
  row.weight = 3;
  row.flop = 2e6;
  row.least_flop = 5e5;
  row.default_trace = "default";
  row.failed = {{"crash", 2}, {"wrong_result", 1}};
  row.best_us = 12.5;
  return row;
}
inline TrialRow TestTrial(uint64_t id, const TuningKey& key, uint64_t task, const std::string& trace,
                          TrialState state = TrialState::kLeased, v1::OutcomeKind kind = v1::OUTCOME_UNSPECIFIED,
                          double median_us = 0) {
  return TrialRow{.id = id,
                  .key = key,
                  .task = task,
                  .trace = trace,
                  .source = "template",
                  .state = state,
                  .attempt = 1,
                  .epoch = 1,
                  .kind = kind,
                  .median_us = median_us};
}
// What every other write needs to be there first: two device classes, three workloads, a job with two tasks.
inline std::vector<Write> TestGround() {
  std::vector<Write> writes;
  for (const char* name : {"conv2d_1", "conv2d_2", "dense_3"}) writes.push_back(PutWorkload{TestWorkload(name)});
  for (const char* name : {"fake/c2", "fake/c64"}) {
    DeviceClassRow row{.name = name, .profile = {}};
    row.profile.set_device_class(name);
    row.profile.set_target("cpu:fake");
    writes.push_back(PutDeviceClass{row});
  }
  writes.push_back(PutJob{TestJob(1, "request 1")});
  writes.push_back(PutPlan{1, "model hash", std::string("plan\0bytes", 10)});
  writes.push_back(PutTask{TestTask(1, 1, 0, "conv2d_1")});
  writes.push_back(PutTask{TestTask(2, 1, 1, "dense_3")});
  return writes;
}

}  // namespace hone
