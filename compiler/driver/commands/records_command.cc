// `hone records`: what was learned, as a list, and out of and into a database as JSON lines.
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/service_options.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/record_json.h"
#include "database/store/store.h"
#include "nlohmann/json.hpp"
#include "proto/numeric_level.h"
#include "tuner/service/client.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kWholeDatabase = absl::Hours(1);  // for all of it to go over the network

struct RecordsOptions {
  ServiceOptions service;
  std::string regex, file, id;
  int limit = 0;
  bool json = false, trace = false, program = false;
};

// An imported record is its writer's word until a worker here has measured it; what was measured as other code than is
// made of it now is stale until then.
const char* StateOf(const v1::Record& record) {
  return record.origin() == "imported" ? "claimed" : record.origin() == "stale" ? "stale" : "verified";
}

Json RecordJson(const v1::Record& record) {
  return {{"id", std::to_string(record.id())}, {"workload", ToHex(record.workload_hash())},
          {"name", record.workload_name()},    {"device_class", record.device_class()},
          {"threads", record.threads()},       {"numeric", NumericLevelName(record.numeric())},
          {"median_us", record.median_us()},   {"created", record.created()},
          {"generator", record.generator()},   {"driver", record.driver()},
          {"state", StateOf(record)},          {"trace", record.trace()}};
}

void PrintRecord(const v1::Record& record, bool json) {
  if (json) {
    std::printf("%s\n", RecordJson(record).dump().c_str());
    return;
  }
  std::printf("%-20llu %12.2f %-8s %3d %-8s %-40s %s\n", static_cast<unsigned long long>(record.id()),
              record.median_us(), StateOf(record), record.threads(), NumericLevelName(record.numeric()).c_str(),
              record.device_class().c_str(), record.workload_name().c_str());
}

absl::Status List(const RecordsOptions& options, bool best_only) {
  if (!options.json)
    std::printf("%-20s %12s %-8s %3s %-8s %-40s %s\n", "record", "us", "state", "thr", "numeric", "device class",
                "workload");
  if (!options.service.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
    v1::ListRecordsRequest request;
    request.set_workload_regex(options.regex);
    request.set_limit(static_cast<uint32_t>(options.limit));
    request.set_best_only(best_only);
    const std::unique_ptr<grpc::ClientContext> context = client->Context();
    const auto reader = client->tune().ListRecords(context.get(), request);
    for (v1::Record record; reader->Read(&record);) PrintRecord(record, options.json);
    HONE_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    WarnOfCorruptRows(CorruptRowsOf(*context));
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options.service));
  RecordFilter filter;
  filter.workload_regex = options.regex;
  filter.best_only = best_only;
  filter.limit = options.limit;
  HONE_ASSIGN_OR_RETURN(const RecordPage page, store->Records(kLocalTenant, filter));
  for (const RecordRow& row : page.rows) {
    v1::Record record = row.record;
    record.set_origin(row.origin);
    PrintRecord(record, options.json);
  }
  WarnOfCorruptRows(page.corrupt);
  return absl::OkStatus();
}

// Every record, until `visit` says that it has seen enough; from the daemon that is named, else from the file.
absl::Status ForEachRecord(const RecordsOptions& options, const std::function<bool(const v1::Record&)>& visit) {
  if (!options.service.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
    const std::unique_ptr<grpc::ClientContext> context = client->Context();
    const auto reader = client->tune().ListRecords(context.get(), {});
    for (v1::Record record; reader->Read(&record);) {
      if (visit(record)) continue;
      context->TryCancel();
      return absl::OkStatus();
    }
    return FromGrpc(reader->Finish());
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options.service));
  RecordFilter filter;
  filter.limit = 1000;
  do {
    HONE_ASSIGN_OR_RETURN(const RecordPage page, store->Records(kLocalTenant, filter));
    for (size_t i = 0; i < page.rows.size(); ++i) {
      v1::Record record = page.rows[i].record;
      record.set_best(page.best[i]);
      record.set_origin(page.rows[i].origin);
      if (!visit(record)) return absl::OkStatus();
    }
    filter.after = page.last;
  } while (filter.after != 0);
  return absl::OkStatus();
}

void PrintWhole(const v1::Record& record) {
  const auto line = [](const char* name, const std::string& value) { std::printf("%-13s %s\n", name, value.c_str()); };
  line("record", std::to_string(record.id()));
  line("workload", absl::StrCat(record.workload_name(), " (", ToHex(record.workload_hash()).substr(0, 16), ")"));
  line("time", absl::StrFormat("%.2f us (%.2f to %.2f)", record.median_us(), record.low_us(), record.high_us()));
  line("best", record.best() ? "yes, of its workload, device class, threads and numeric level" : "no");
  line("device class", record.device_class());
  line("target", record.target());
  line("threads", std::to_string(record.threads()));
  line("numeric", NumericLevelName(record.numeric()));
  line("measured", absl::StrCat(record.created(), " by protocol ", record.protocol()));
  line("origin", record.origin());
  line("generator", record.generator());
  if (!record.driver().empty()) line("driver", record.driver());
  line("program", ToHex(record.program_hash()));
  line("object", ToHex(record.object_digest()));
  std::printf("\n%s", record.trace().c_str());
}

absl::Status Show(const RecordsOptions& options) {
  std::optional<v1::Record> found;
  HONE_RETURN_IF_ERROR(ForEachRecord(options, [&](const v1::Record& record) {
    if (std::to_string(record.id()) != options.id) return true;
    found = record;
    return false;
  }));
  if (!found.has_value()) {
    return absl::NotFoundError(
        absl::StrCat("there is no record ", options.id, "; hone records list shows those there are"));
  }
  if (options.trace) {
    std::printf("%s", found->trace().c_str());
  } else if (options.program) {
    std::printf("%s", found->workload_text().c_str());
  } else if (options.json) {
    Json line = RecordJson(*found);
    line.update({{"low_us", found->low_us()},
                 {"high_us", found->high_us()},
                 {"best", found->best()},
                 {"origin", found->origin()},
                 {"target", found->target()},
                 {"protocol", found->protocol()},
                 {"program_hash", ToHex(found->program_hash())},
                 {"object_digest", ToHex(found->object_digest())},
                 {"program", found->workload_text()}});
    std::printf("%s\n", line.dump().c_str());
  } else {
    PrintWhole(*found);
  }
  return absl::OkStatus();
}

absl::Status Export(const RecordsOptions& options) {
  std::string all;
  if (!options.service.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
    const std::unique_ptr<grpc::ClientContext> context = client->Context(kWholeDatabase);
    const auto reader = client->tune().ExportRecords(context.get(), {});
    for (v1::ExportChunk chunk; reader->Read(&chunk);) all += chunk.lines();
    HONE_RETURN_IF_ERROR(FromGrpc(reader->Finish()));
    WarnOfCorruptRows(CorruptRowsOf(*context));
  } else {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options.service));
    HONE_ASSIGN_OR_RETURN(const int corrupt, ExportRecords(*store, kLocalTenant, [&](std::string lines) {
                            all += lines;
                            return absl::OkStatus();
                          }));
    WarnOfCorruptRows(corrupt);
  }
  if (!options.file.empty()) return WriteFileAtomically(options.file, all);
  std::fwrite(all.data(), 1, all.size(), stdout);
  return absl::OkStatus();
}

absl::Status ReportImport(bool json, uint64_t records, uint64_t duplicates, const std::vector<std::string>& refused) {
  if (json) {
    const Json line = {{"imported", records}, {"duplicates", duplicates}, {"refused", refused}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    std::fprintf(stderr, "%llu records imported, %llu were there already, %zu lines refused\n",
                 static_cast<unsigned long long>(records), static_cast<unsigned long long>(duplicates), refused.size());
    for (const std::string& line : refused) std::fprintf(stderr, "  %s\n", line.c_str());
  }
  if (refused.empty()) return absl::OkStatus();
  return WithExitCode(ExitCode::kCorrupt, absl::DataLossError(absl::StrCat(
                                              refused.size(), " lines are not records; the others are imported")));
}

absl::Status ImportToDaemon(DaemonClient& client, const std::string& text, bool json) {
  const std::unique_ptr<grpc::ClientContext> context = client.Context(kWholeDatabase);
  v1::ImportReply reply;
  const auto writer = client.tune().ImportRecords(context.get(), &reply);
  for (size_t at = 0; at < text.size(); at += kChunkBytes) {
    v1::ExportChunk chunk;
    chunk.set_lines(text.substr(at, kChunkBytes));
    if (!writer->Write(chunk)) break;
  }
  CrashPoint("client.imported");
  writer->WritesDone();
  HONE_RETURN_IF_ERROR(FromGrpc(writer->Finish()));
  return ReportImport(json, reply.records(), reply.duplicates(), {reply.refused().begin(), reply.refused().end()});
}

absl::Status Import(const RecordsOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file));
  const std::string daemon =
      options.service.server.empty() ? AddressOfDaemon(options.service.database()) : options.service.server;
  if (!daemon.empty()) {  // the file has one writer: the daemon
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
    return ImportToDaemon(*client, text, options.json);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store,
                        OpenSqliteStore(options.service.database(), StoreMode::kWrite));
  HONE_ASSIGN_OR_RETURN(const uint64_t epoch, store->BeginEpoch());
  HONE_ASSIGN_OR_RETURN(const ImportPlan plan, PlanImport(*store, kLocalTenant, text));
  HONE_RETURN_IF_ERROR(store->Commit(epoch, plan.writes));
  return ReportImport(options.json, plan.records, plan.duplicates, plan.refused);
}

}  // namespace

void AddRecordsCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<RecordsOptions>();
  CLI::App* command = app.add_subcommand("records", "What was learned: list it, take it out, bring it in.");
  command->require_subcommand(0, 1);
  options->service.AddTo(*command);
  command->add_flag("--json", options->json, "one JSON object a line");
  command->callback([options, chosen, command] {
    if (command->get_subcommands().empty()) *chosen = [options] { return List(*options, true); };
  });
  command->footer("Without a command of its own: the best of each key.\n" +
                  Examples({"hone records --db tuned.db", "hone records show 1742359120478836251",
                            "hone records export --db tuned.db > records.jsonl",
                            "hone records import records.jsonl --db other.db"}));
  for (const bool best_only : {false, true}) {
    CLI::App* list = command->add_subcommand(best_only ? "best" : "list",
                                             best_only ? "The best record of each key." : "All records, as written.");
    options->service.AddTo(*list);
    list->add_option("--workload", options->regex, "only workloads whose name matches this regular expression");
    list->add_option("--limit", options->limit, "at most this many");
    list->add_flag("--json", options->json, "one JSON object a line");
    list->callback(
        [options, chosen, best_only] { *chosen = [options, best_only] { return List(*options, best_only); }; });
  }
  CLI::App* show = command->add_subcommand("show", "One record with its trace.");
  options->service.AddTo(*show);
  show->add_option("id", options->id, "the record's number")->required();
  CLI::Option* trace = show->add_flag("--trace", options->trace, "the trace alone: what hone opt --schedule takes");
  CLI::Option* program = show->add_flag("--program", options->program, "the workload alone: what hone opt takes");
  CLI::Option* json = show->add_flag("--json", options->json, "one JSON object");
  trace->excludes(program)->excludes(json);
  program->excludes(json);
  show->callback([options, chosen] { *chosen = [options] { return Show(*options); }; });
  CLI::App* out = command->add_subcommand("export", "Print all records as JSON lines.");
  options->service.AddTo(*out);
  out->add_option("-o,--output", options->file, "a file instead of standard output");
  out->callback([options, chosen] { *chosen = [options] { return Export(*options); }; });
  CLI::App* in = command->add_subcommand("import", "Bring exported records in.");
  options->service.AddTo(*in);
  in->add_option("file", options->file, "what hone records export wrote")->required();
  in->add_flag("--json", options->json, "what became of the lines as one JSON object");
  in->callback([options, chosen] { *chosen = [options] { return Import(*options); }; });
}

}  // namespace hone
