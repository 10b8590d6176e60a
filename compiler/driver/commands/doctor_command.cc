// `hone doctor`: is everything there that a job needs? One line a check, with the remedy where something is amiss.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/machine_facts.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/service_options.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/turn_lock.h"
#include "compiler/target/target.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/store.h"
#include "deploy/runtime/devices/device_drivers.h"
#include "nlohmann/json.hpp"
#include "tuner/service/client.h"

namespace hone {
namespace {

// What was found, or what is wrong and how to mend it.
using Check = std::function<absl::StatusOr<std::string>()>;

absl::StatusOr<std::string> CheckPrograms() {
  for (const char* program :
       {"honed", "hone-search", "hone-worker", "hone-builder", "hone-oracle", "hone-runner", "hone-device-runner"}) {
    const std::string path = ProgramFolder() + "/" + program;
    if (::access(path.c_str(), X_OK) != 0) {
      return absl::NotFoundError(
          absl::StrCat(path, " is missing; install it beside hone (deploy/quickstart builds all of them)"));
    }
  }
  return absl::StrCat("all in ", ProgramFolder());
}

absl::StatusOr<std::string> CheckTarget() {
  const Target target = HostTarget();
  if (target.arch == "x86_64" && !target.has("avx2")) {
    return absl::UnimplementedError("this CPU has no AVX2; Hone's kernels need it");
  }
  return absl::StrCat(DeviceClass(target), " (", target.text, ")");
}

absl::StatusOr<std::string> CheckMachineFacts() {
  HONE_ASSIGN_OR_RETURN(const MachineFacts facts, FindMachineFacts(HostTarget(), "measured"));
  return absl::StrCat(ToText(facts.machine), " (", facts.source, ")");
}

absl::StatusOr<std::string> CheckTurnLock() {
  HONE_RETURN_IF_ERROR(TurnLock::Open().status());
  return std::string("can be taken");
}

absl::StatusOr<std::string> CheckDatabase(const ServiceOptions& options) {
  const std::string path = options.database();
  if (!std::filesystem::exists(path)) return absl::StrCat(path, " (not there yet: the first hone tune makes it)");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store, OpenForReading(options));
  RecordFilter filter;
  filter.best_only = true;
  HONE_ASSIGN_OR_RETURN(const RecordPage page, store->Records(kLocalTenant, filter));
  return absl::StrCat(path, ", ", page.rows.size(), " kernels have a best record");
}

absl::StatusOr<std::string> CheckDaemon(const ServiceOptions& options) {
  if (options.server.empty() && AddressOfDaemon(options.database()).empty()) {
    return std::string("none runs on this database (hone tune starts one)");
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(options));
  v1::ListWorkersReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(client->tune().ListWorkers(client->Context().get(), {}, &reply)));
  int living = 0, lost = 0;
  for (const v1::WorkerInfo& worker : reply.workers()) ++(worker.state() == "lost" ? lost : living);
  const std::string found = absl::StrCat(client->address(), ", ", living, " workers", lost > 0 ? ", " : "",
                                         lost > 0 ? absl::StrCat(lost, " lost") : "");
  if (living > 0) return found;
  return WithExitCode(ExitCode::kNoService, absl::UnavailableError(absl::StrCat(
                                                found, ": nothing is measured; ",
                                                options.server.empty() ? "the next hone tune starts a worker"
                                                                       : "start one: " + WorkerCommand(options, 0))));
}

// What devices there are beside the CPU. None is needed, so that none is nothing amiss.
absl::StatusOr<std::string> CheckDevices(const DeviceDriver& driver) {
  const RuntimeResult<std::vector<DeviceFacts>> devices = driver.list();
  if (!devices.ok()) return absl::StrCat("none: ", devices.error().message());
  std::vector<std::string> names;
  for (const DeviceFacts& facts : *devices) {
    names.push_back(absl::StrCat(names.size(), ": ", facts.name, " (", facts.version,
                                 facts.architecture.empty() ? "" : ", ", facts.architecture, ", ",
                                 facts.is_cpu ? "CPU" : "GPU", ", ", facts.compute_units, " units)"));
  }
  return absl::StrJoin(names, "; ");
}

absl::StatusOr<std::string> CheckNvrtc() {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) return absl::StrCat("none: ", nvrtc.status().message());
  return absl::StrCat("NVRTC ", (*nvrtc)->version());
}

absl::Status Doctor(const ServiceOptions& options, bool json) {
  std::vector<std::pair<std::string, Check>> checks = {
      {"programs", CheckPrograms},
      {"device", CheckTarget},
      {"machine", CheckMachineFacts},
  };
  for (const DeviceDriver& driver : DeviceDrivers())
    checks.emplace_back(driver.language, [&driver] { return CheckDevices(driver); });
  checks.insert(checks.end(), {
                                  {"nvrtc", CheckNvrtc},
                                  {"turn lock", CheckTurnLock},
                                  {"database", [&] { return CheckDatabase(options); }},
                                  {"daemon", [&] { return CheckDaemon(options); }},
                              });
  absl::Status first;
  for (const auto& [name, check] : checks) {
    const absl::StatusOr<std::string> found = check();
    const std::string words = found.ok() ? *found : std::string(found.status().message());
    if (json) {
      std::printf("%s\n", nlohmann::ordered_json{{"check", name}, {"ok", found.ok()}, {"found", words}}.dump().c_str());
    } else {
      std::printf("%-10s %-5s %s\n", name.c_str(), found.ok() ? "ok" : "AMISS", words.c_str());
    }
    if (!found.ok() && first.ok()) first = Annotate(found.status(), name);
  }
  return first;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action* chosen) {
  auto options = std::make_shared<ServiceOptions>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Check that this machine has what a job needs.");
  options->AddTo(*command);
  command->add_flag("--json", *json, "one JSON object a line");
  command->footer(Examples({"hone doctor", "hone doctor --db tuned.db"}));
  command->callback([options, json, chosen] { *chosen = [options, json] { return Doctor(*options, *json); }; });
}

}  // namespace hone
