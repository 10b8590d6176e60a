#include "tuner/service/endpoints/tune_service.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "database/store/record_json.h"
#include "proto/rpc/channel.h"
#include "proto/rpc/status.h"
#include "tuner/dispatch/state/job_state.h"
#include "tuner/service/access/auth.h"
#include "tuner/service/access/request_memory.h"
#include "tuner/service/access/silence_limit.h"
#include "tuner/service/core/core.h"
#include "tuner/service/endpoints/submit_pieces.h"
#include "tuner/service/endpoints/task_pages.h"
#include "tuner/service/endpoints/waiting.h"
#include "tuner/service/endpoints/watch_call.h"

namespace hone {
namespace {

constexpr int kPage = 64;
constexpr size_t kLongestLine = 64 << 20;  // of a record with its object

// The writes of a piece of an import, through the dispatcher: it knows which champions are in use. Whose times are to
// be believed no longer is an admin's to say: a client's records are claims, and what was measured here stays as it is.
absl::Status Import(Core& core, grpc::ServerContext* context, const Caller& caller, const std::string& lines,
                    uint64_t first_line, v1::ImportReply& total) {
  const CheckLines checks = caller.role == Role::kAdmin ? CheckLines::kTaken : CheckLines::kRefused;
  absl::StatusOr<ImportPlan> plan = PlanImport(core.store(), caller.tenant.id, lines, first_line, checks);
  if (!plan.ok()) return plan.status();
  CrashPoint("tune.import");
  plan->writes.insert(plan->writes.begin(), PutTenant{caller.tenant});
  v1::ImportReply part;
  part.set_records(plan->records);
  part.set_duplicates(plan->duplicates);
  for (const std::string& refused : plan->refused) part.add_refused(refused);
  v1::ImportReply reply;
  const grpc::Status status = AskCore(core, context, &reply, [&](ReplyTo to) {
    return ImportLines{to, part, std::move(plan->writes)};
  });
  if (!status.ok()) return FromGrpc(status);
  total.set_records(total.records() + reply.records());
  total.set_duplicates(total.duplicates() + reply.duplicates());
  for (const std::string& refused : reply.refused()) total.add_refused(refused);
  return absl::OkStatus();
}

class TuneService : public v1::Tune::WithCallbackMethod_Watch<v1::Tune::Service> {
 public:
  TuneService(Core& core, Gate& gate, const CallLimits& limits, std::atomic<Micros>& last_call)
      : core_(core),
        gate_(gate),
        request_memory_(limits.request_bytes),
        silence_limit_(limits.silence),
        last_call_(last_call) {}

  grpc::Status Submit(grpc::ServerContext* context, grpc::ServerReader<v1::SubmitRequest>* reader,
                      v1::SubmitReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_Submit>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    RequestMemory::Share memory(request_memory_, caller->tenant);
    v1::SubmitRequest request;
    if (const absl::Status read = ReadRequest(*caller, *context, *reader, memory, request); !read.ok()) {
      return ToGrpc(read);
    }
    CrashPoint("tune.submit");
    // Here, on the caller's thread: it hashes every workload, and the dispatcher has others to answer.
    if (const absl::Status valid = CheckSubmit(request); !valid.ok()) return ToGrpc(valid);
    // A job that ended, or of an earlier life of the daemon, may have the same request.
    const absl::StatusOr<std::optional<uint64_t>> known =
        core_.store().FindJob(caller->tenant.id, request.request_id());
    if (!known.ok()) return ToGrpc(known.status());
    if (known->has_value()) {
      reply->set_job_id(**known);
      reply->set_existed(true);
      return grpc::Status::OK;
    }
    return AskCore(core_, context, reply, [&](ReplyTo to) {
      return hone::Submit{to, std::move(request), Core::Utc(), caller->tenant, /*checked=*/true};
    });
  }

  grpc::ServerWriteReactor<v1::JobEvent>* Watch(grpc::CallbackServerContext* context,
                                                const v1::WatchRequest* request) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_Watch>(*context);
    if (!caller.ok()) {
      class Refused : public grpc::ServerWriteReactor<v1::JobEvent> {
       public:
        explicit Refused(const grpc::Status& status) { Finish(status); }
        void OnDone() override { delete this; }
      };
      return new Refused(ToGrpc(caller.status()));
    }
    return StartWatch(core_, gate_, *caller, *request);
  }

  grpc::Status Stop(grpc::ServerContext* context, const v1::StopRequest* request, v1::JobSnapshot* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_Stop>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    CrashPoint("tune.stop");
    const grpc::Status status = AskCore(core_, context, reply, [&](ReplyTo to) {
      return StopJob{to, request->job_id(), caller->tenant.id};
    });
    KeepTaskPage(0, *reply);
    if (status.error_code() != grpc::StatusCode::NOT_FOUND) return status;
    return Return(core_.Snapshot(caller->tenant.id, request->job_id(), true),
                  reply);  // it has ended before: nothing to stop
  }

  grpc::Status Pause(grpc::ServerContext* context, const v1::PauseRequest* request, v1::JobSnapshot* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_Pause>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    CrashPoint("tune.pause");
    const grpc::Status status = AskCore(core_, context, reply, [&](ReplyTo to) {
      return PauseJob{to, request->job_id(), request->paused(), caller->tenant.id};
    });
    KeepTaskPage(0, *reply);
    if (status.error_code() != grpc::StatusCode::NOT_FOUND) return status;
    return Return(core_.Snapshot(caller->tenant.id, request->job_id(), true), reply);  // it has ended before
  }

  grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                       v1::JobExplanation* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_Explain>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    absl::StatusOr<v1::JobExplanation> explanation = core_.Explain(caller->tenant.id, request->job_id());
    if (!explanation.ok()) return ToGrpc(explanation.status());
    *reply = *std::move(explanation);
    KeepTaskPage(0, *reply->mutable_job());
    return grpc::Status::OK;
  }

  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest*, v1::ServiceStatus* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_Status>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    *reply = core_.Status(caller->tenant.id);
    return grpc::Status::OK;
  }

  grpc::Status DrainWorkers(grpc::ServerContext* context, const v1::DrainWorkersRequest* request,
                            v1::ListWorkersReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_DrainWorkers>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    return AskCore(core_, context, reply, [&](ReplyTo to) {
      return hone::DrainWorkers{to, request->name(), caller->tenant.id};
    });
  }

  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request, v1::JobSnapshot* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_GetJob>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    return Return(core_.Snapshot(caller->tenant.id, request->job_id(), true), reply, request->after_task());
  }

  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_ListJobs>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    absl::StatusOr<v1::ListJobsReply> page = core_.ListJobs(caller->tenant.id, request->after());
    if (page.ok()) *reply = *std::move(page);
    return ToGrpc(page.status());
  }

  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest*,
                           v1::ListWorkersReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_ListWorkers>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    core_.Query([&](const Dispatcher& dispatcher) {
      for (v1::WorkerInfo& worker : dispatcher.Workers(caller->tenant.id, Core::Now()))
        *reply->add_workers() = std::move(worker);
    });
    return grpc::Status::OK;
  }

  grpc::Status BestRecords(grpc::ServerContext* context, const v1::BestRecordsRequest* request,
                           v1::BestRecordsReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_BestRecords>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    const std::vector<v1::BestKey> keys(request->keys().begin(), request->keys().end());
    absl::StatusOr<BestEntries> best = core_.store().Best(caller->tenant.id, keys);
    if (!best.ok()) return ToGrpc(best.status());
    reply->set_corrupt(static_cast<uint32_t>(best->corrupt));
    for (std::optional<BestEntry>& entry : best->entries) {
      v1::BestAnswer& answer = *reply->add_answers();
      if (!entry.has_value()) continue;
      *answer.mutable_record() = std::move(entry->row.record);
      answer.mutable_record()->set_origin(entry->row.origin);
      answer.set_exact(entry->exact);
      answer.set_faster_default(std::move(entry->faster_default));
    }
    return grpc::Status::OK;
  }

  grpc::Status KeepChoices(grpc::ServerContext* context, const v1::KeepChoicesRequest* request,
                           v1::KeepChoicesReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_KeepChoices>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    return AskCore(core_, context, reply, [&](ReplyTo to) {
      return hone::KeepChoices{to, *request, caller->tenant.id};
    });
  }

  grpc::Status ListRecords(grpc::ServerContext* context, const v1::ListRecordsRequest* request,
                           grpc::ServerWriter<v1::Record>* writer) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_ListRecords>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    RecordFilter filter;
    filter.workload_regex = request->workload_regex();
    filter.best_only = request->best_only();
    uint32_t left = request->limit() == 0 ? UINT32_MAX : request->limit();
    int corrupt = 0;
    do {
      filter.limit = static_cast<int>(std::min<uint32_t>(kPage, left));
      absl::StatusOr<RecordPage> page = core_.store().Records(caller->tenant.id, filter);
      if (!page.ok()) return ToGrpc(page.status());
      for (size_t i = 0; i < page->rows.size(); ++i) {
        v1::Record& record = page->rows[i].record;
        record.set_origin(page->rows[i].origin);
        record.set_best(page->best[i]);
        if (const absl::Status again = gate_.CheckAgain(*caller); !again.ok()) return ToGrpc(again);
        const bool sent = silence_limit_.Bound(*context, "records", [&] { return writer->Write(record); });
        if (!sent) return {grpc::StatusCode::CANCELLED, "the caller has gone"};
        --left;
      }
      corrupt += page->corrupt;
      filter.after = page->last;
    } while (filter.after != 0 && left > 0);
    context->AddTrailingMetadata(kCorruptRows, std::to_string(corrupt));
    return grpc::Status::OK;
  }

  grpc::Status ExportRecords(grpc::ServerContext* context, const v1::ExportRecordsRequest*,
                             grpc::ServerWriter<v1::ExportChunk>* writer) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_ExportRecords>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    CrashPoint("tune.export_records");
    const absl::StatusOr<int> corrupt = hone::ExportRecords(core_.store(), caller->tenant.id, [&](std::string lines) {
      v1::ExportChunk chunk;
      for (size_t at = 0; at < lines.size(); at += kChunkBytes) {
        chunk.set_lines(lines.substr(at, kChunkBytes));
        HONE_RETURN_IF_ERROR(gate_.CheckAgain(*caller));
        const bool sent = silence_limit_.Bound(*context, "export", [&] { return writer->Write(chunk); });
        if (!sent) return absl::CancelledError("the caller has gone");
      }
      return absl::OkStatus();
    });
    if (corrupt.ok()) context->AddTrailingMetadata(kCorruptRows, std::to_string(*corrupt));
    return ToGrpc(corrupt.status());
  }

  grpc::Status ImportRecords(grpc::ServerContext* context, grpc::ServerReader<v1::ExportChunk>* reader,
                             v1::ImportReply* reply) override {
    const absl::StatusOr<Caller> caller = Admit<v1::Tune::WithAsyncMethod_ImportRecords>(*context);
    if (!caller.ok()) return ToGrpc(caller.status());
    std::string waiting;  // the beginning of a line whose end is in the next chunk
    uint64_t line = 1;
    const auto take = [&](size_t size) -> absl::Status {
      const std::string lines = waiting.substr(0, size);
      waiting.erase(0, size);
      const absl::Status status = Import(core_, context, *caller, lines, line, *reply);
      line += std::count(lines.begin(), lines.end(), '\n');
      return status;
    };
    v1::ExportChunk chunk;
    while (silence_limit_.Bound(*context, "import", [&] { return reader->Read(&chunk); })) {
      if (const absl::Status again = gate_.CheckAgain(*caller); !again.ok()) return ToGrpc(again);
      waiting += chunk.lines();
      const size_t end = waiting.rfind('\n');
      if (end == std::string::npos && waiting.size() > kLongestLine) {
        return {grpc::StatusCode::INVALID_ARGUMENT, absl::StrCat("line ", line, ": longer than any record")};
      }
      if (end == std::string::npos) continue;
      if (const absl::Status status = take(end + 1); !status.ok()) return ToGrpc(status);
    }
    // The end of a line that did not come is no record.
    if (context->IsCancelled()) return {grpc::StatusCode::CANCELLED, "the caller has gone"};
    return waiting.empty() ? grpc::Status::OK : ToGrpc(take(waiting.size()));
  }

 private:
  template <template <class> class Method>
  absl::StatusOr<Caller> Admit(const grpc::ServerContextBase& context) {
    absl::StatusOr<Caller> caller = gate_.Admit<Method>(context);
    if (caller.ok()) last_call_ = Core::Now();
    return caller;
  }
  // All messages of a request. A call that ends before the last one has asked for nothing.
  absl::Status ReadRequest(const Caller& caller, grpc::ServerContext& context,
                           grpc::ServerReader<v1::SubmitRequest>& reader, RequestMemory::Share& memory,
                           v1::SubmitRequest& request) {
    for (bool more = true; more;) {
      v1::SubmitRequest piece;
      if (!silence_limit_.Bound(context, "submit", [&] { return reader.Read(&piece); })) {
        if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
        return absl::InvalidArgumentError(
            "submit: the call ended before the last message of its request (SubmitRequest.more); send the whole again");
      }
      HONE_RETURN_IF_ERROR(gate_.CheckAgain(caller));
      HONE_RETURN_IF_ERROR(memory.Grow(static_cast<int64_t>(piece.SpaceUsedLong())));
      more = piece.more();
      HONE_RETURN_IF_ERROR(AppendPiece(std::move(piece), request));
    }
    return absl::OkStatus();
  }
  static grpc::Status Return(absl::StatusOr<v1::JobSnapshot> snapshot, v1::JobSnapshot* reply,
                             uint64_t after_task = 0) {
    if (!snapshot.ok()) return ToGrpc(snapshot.status());
    *reply = *std::move(snapshot);
    KeepTaskPage(after_task, *reply);
    return grpc::Status::OK;
  }

  Core& core_;
  Gate& gate_;
  RequestMemory request_memory_;
  SilenceLimit silence_limit_;
  std::atomic<Micros>& last_call_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTuneService(Core& core, Gate& gate, const CallLimits& limits,
                                               std::atomic<Micros>& last_call) {
  return std::make_unique<TuneService>(core, gate, limits, last_call);
}

}  // namespace hone
