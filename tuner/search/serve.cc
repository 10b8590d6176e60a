#include "tuner/search/serve.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "compiler/ir/wire_numeric.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

constexpr int kMostThreads = 4096;

absl::StatusOr<std::unique_ptr<TaskSearch>> CreateSearch(const v1::SearchRequest& request,
                                                         std::shared_ptr<DeviceModel> model) {
  HONE_ASSIGN_OR_RETURN(const PrimFunc workload, ParsePrimFunc(request.workload().text()));
  SearchTuning tuning;
  tuning.threads = HostTarget().cores;
  if (NamesGpu(request.device().target())) {
    HONE_ASSIGN_OR_RETURN(const GpuTarget target, ParseGpuTarget(request.device().target()));
    return TaskSearch::CreateForGpu(workload, target, request.seed(), tuning, request.strategy(), std::move(model));
  }
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(request.device().target()));
  // Facts that cannot be read are as good as none.
  const absl::StatusOr<Machine> machine = ParseMachine(request.device().machine(), target);
  const NumericLevel numeric = FromWire(request.numeric());
  return TaskSearch::Create(
      workload,
      {target, std::clamp(request.threads(), 1, kMostThreads), numeric, machine.ok() ? *machine : UsualMachine(target)},
      request.seed(), tuning, request.strategy(), std::move(model));
}

}  // namespace

std::shared_ptr<DeviceModel> SearchServer::ModelFor(const v1::SearchRequest& request) {
  std::shared_ptr<DeviceModel>& model = models_[{request.tenant(), request.device().device_class()}];
  if (model == nullptr) model = std::make_shared<DeviceModel>();
  if (request.cost_model().empty()) return model;
  // A model that is of no use is learnt anew.
  const absl::Status merged = model->Merge(request.cost_model());
  if (!merged.ok()) std::fprintf(stderr, "hone-search: %s\n", std::string(merged.message()).c_str());
  return model;
}

v1::SearchReply SearchServer::Answer(const v1::SearchRequest& request) {
  const Clock::time_point start = Clock::now();
  v1::SearchReply reply;
  reply.set_request_id(request.request_id());
  const std::shared_ptr<DeviceModel> model = ModelFor(request);
  std::unique_ptr<TaskSearch>& search = searches_[request.task_id()];
  const size_t known = search == nullptr ? 0 : search->num_observations();
  if (request.observations_before() > known) {
    reply.set_need_all(true);
    return reply;
  }
  if (search == nullptr || request.observations_before() < known) {  // from the start: the log is another one
    absl::StatusOr<std::unique_ptr<TaskSearch>> created = CreateSearch(request, model);
    if (!created.ok()) {
      searches_.erase(request.task_id());
      reply.set_error(std::string(created.status().message()));
      return reply;
    }
    if (request.observations_before() > 0) {
      reply.set_need_all(true);
      return reply;
    }
    search = *std::move(created);
  }
  for (const v1::Observation& observation : request.observations()) search->Observe(observation);
  for (const std::string& trace : request.pending()) search->NotePending(trace);
  for (const std::string& seed : request.seeds()) search->AddSeed(seed);
  const int refused_before = search->refused();
  absl::StatusOr<std::vector<v1::Candidate>> batch = search->Propose(std::max(1, request.batch()), request.polish());
  if (!batch.ok()) {
    reply.set_error(std::string(batch.status().message()));
    return reply;
  }
  for (v1::Candidate& candidate : *batch) *reply.add_candidates() = std::move(candidate);
  reply.set_exhausted(batch->empty());
  if (const int refused = search->refused() - refused_before; refused > 0) {
    std::fprintf(stderr, "hone-search: %s: %d choices were refused, the last: %s\n", request.workload().name().c_str(),
                 refused, search->last_refusal().c_str());
  }
  const BatchScores scores = search->TakeScores();
  reply.set_judged_batches(scores.batches);
  reply.set_draft_first(scores.draft_first);
  reply.set_model_first(scores.model_first);
  if (model->worth_saving()) {
    if (absl::StatusOr<std::string> saved = model->Save(); saved.ok()) reply.set_cost_model(*std::move(saved));
    model->NoteSaved();
  }
  reply.set_search_seconds(SecondsSince(start));
  return reply;
}

}  // namespace hone
