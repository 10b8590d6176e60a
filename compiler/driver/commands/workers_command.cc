// `hone workers` and `hone status`: who measures for a daemon, and the service on one page.
#include <cstdio>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/service/service_report.h"
#include "compiler/driver/service_options.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"
#include "proto/rpc/status.h"
#include "tuner/service/client.h"

namespace hone {
namespace {

struct WorkersOptions {
  ServiceOptions service;
  std::string name;
  bool json = false;
};

void Print(const v1::ListWorkersReply& reply, bool json) {
  for (const v1::WorkerInfo& worker : reply.workers()) {
    std::printf("%s", (json ? WorkerJson(worker).dump() + "\n" : WorkerText(worker)).c_str());
  }
}

absl::Status List(const WorkersOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::ListWorkersReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().ListWorkers(client->Context().get(), {}, &reply)));
  if (reply.workers().empty() && !options.json) {
    const bool is_private = options.service.server.empty();
    std::printf("none; %s\n", is_private ? "the next hone tune starts one"
                                         : ("to start one: " + WorkerCommand(options.service, 0)).c_str());
  }
  Print(reply, options.json);
  return absl::OkStatus();
}

absl::Status Drain(const WorkersOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::DrainWorkersRequest request;
  request.set_name(options.name);
  v1::ListWorkersReply reply;
  const absl::Status status = FromGrpc(client->tune().DrainWorkers(client->Context().get(), request, &reply));
  if (absl::IsNotFound(status)) {
    return absl::NotFoundError(absl::StrCat(status.message(), "; ", HoneProgram(), " workers list",
                                            ServiceFlags(options.service), " shows those there are"));
  }
  HONE_RETURN_IF_ERROR(status);
  Print(reply, options.json);
  return absl::OkStatus();
}

absl::Status Status(const WorkersOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options.service));
  v1::ServiceStatus status;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().Status(client->Context().get(), {}, &status)));
  std::printf("%s", (options.json ? StatusJson(status).dump() + "\n" : StatusText(status, options.service)).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddWorkersCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<WorkersOptions>();
  CLI::App* workers = app.add_subcommand("workers", "Who measures for a daemon.");
  workers->require_subcommand(0, 1);
  options->service.AddTo(*workers);
  workers->add_flag("--json", options->json, "one JSON object a line");
  workers->callback([options, chosen, workers] {
    if (workers->get_subcommands().empty()) *chosen = [options] { return List(*options); };
  });
  workers->footer("Without a command of its own: list.\n" +
                  Examples({"hone workers", "hone workers list --server build-host:7171 --token-file token",
                            "hone workers drain edge-a1b2c3 --server build-host:7171"}));
  CLI::App* list = workers->add_subcommand("list", "All workers the daemon has seen.");
  CLI::App* drain =
      workers->add_subcommand("drain", "Have a worker finish what is under work, give back the rest, and end.");
  drain->add_option("name", options->name, "the worker's name; '*' for all")->required();
  for (CLI::App* command : {list, drain}) {
    options->service.AddTo(*command);
    command->add_flag("--json", options->json, "one JSON object a line");
  }
  list->callback([options, chosen] { *chosen = [options] { return List(*options); }; });
  drain->callback([options, chosen] { *chosen = [options] { return Drain(*options); }; });
}

void AddStatusCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<WorkersOptions>();
  CLI::App* status = app.add_subcommand("status", "A daemon, its jobs and its workers on one page.");
  options->service.AddTo(*status);
  status->add_flag("--json", options->json, "one JSON object");
  status->callback([options, chosen] { *chosen = [options] { return Status(*options); }; });
  status->footer(Examples({"hone status", "hone status --server build-host:7171"}));
}

}  // namespace hone
