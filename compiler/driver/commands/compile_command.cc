// `hone compile`: a model and what is known about its kernels become a bundle.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/driver/commands/command.h"
#include "compiler/driver/exit_code.h"
#include "compiler/driver/models/hints.h"
#include "compiler/driver/models/locked_records.h"
#include "compiler/driver/models/model.h"
#include "compiler/graph/plan/plan_sizes.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/package/sign_bundle.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

struct CompileCommand {
  std::string model, output;
  ServiceOptions service;
  BuildSettings settings;
  std::string lock, locked, sign;
  bool untuned = false, json = false;
};

// A key that cannot sign is refused before anything is written.
absl::Status CheckKey(const CompileCommand& command) {
  if (command.sign.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string key, ReadFile(command.sign));
  return Annotate(CheckSigningKey(key), absl::StrCat("--sign ", command.sign));
}

// Comes last: what a lock file makes again is the bundle without its signature.
absl::Status Sign(const CompileCommand& command) {
  if (command.sign.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string key, ReadFile(command.sign));
  return Annotate(SignBundle(command.output, key), absl::StrCat("--sign ", command.sign));
}

// What takes one size for each dimension.
absl::Status NoRange(const ImportOptions& import, const char* where) {
  if (import.ranges.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--dim ", import.ranges.begin()->first, "=LOW..HIGH: ", where,
                                                 " a dimension has one size; leave the range out"));
}

absl::Status CompileAsLocked(const CompileCommand& command) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(command.locked));
  const absl::StatusOr<LockFile> lock = ParseLockFile(text);
  if (!lock.ok()) return WithExitCode(ExitCode::kCorrupt, Annotate(lock.status(), command.locked));
  HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(command.settings.import));
  HONE_RETURN_IF_ERROR(NoRange(import, "with --locked"));
  HONE_ASSIGN_OR_RETURN(const ResolvedSettings settings, ResolveLocked(*lock));
  HONE_ASSIGN_OR_RETURN(Model model, LoadModel(command.model, import, settings.plan()));
  const absl::StatusOr<CompileSummary> summary = CompileLocked(std::move(model), *lock, settings, command.output);
  if (absl::IsFailedPrecondition(summary.status())) {
    return WithExitCode(ExitCode::kMismatch, Annotate(summary.status(), command.locked));
  }
  HONE_RETURN_IF_ERROR(summary.status());
  HONE_RETURN_IF_ERROR(Sign(command));
  std::fprintf(stderr, "%s: %d kernels, the bundle of %s byte for byte\n", command.output.c_str(), summary->kernels,
               command.locked.c_str());
  return absl::OkStatus();
}

// What the bundle is expected to take at some sizes, beside one for these alone.
void PrintRegrets(const CompileCommand& command, const std::vector<PlanSize>& sizes, const CompileSummary& summary) {
  if (summary.regrets.empty()) return;
  std::set<std::string> unknown;
  std::string text;
  for (const RegretAtSizes& at : summary.regrets) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", SizesText(sizes, at.sizes, ","),
                    absl::StrFormat(" %.2f", at.regret));
    unknown.insert(at.unknown.begin(), at.unknown.end());
  }
  std::fprintf(stderr,
               "%s: %d more kernels for some sizes; expected time over that of a bundle for one size alone: %s\n",
               command.output.c_str(), summary.kernels_by_size, text.c_str());
  if (!unknown.empty()) {
    std::fprintf(stderr, "%s: not in these figures, since nothing is known of them at some sizes: %s\n",
                 command.output.c_str(), absl::StrJoin(unknown, ", ").c_str());
  }
}

nlohmann::ordered_json ToJson(const std::vector<PlanSize>& sizes, const std::vector<RegretAtSizes>& regrets) {
  auto list = nlohmann::ordered_json::array();
  for (const RegretAtSizes& at : regrets) {
    nlohmann::ordered_json here;
    for (size_t s = 0; s < at.sizes.size(); ++s) here[sizes[s].name] = at.sizes[s];
    list.push_back({{"sizes", here}, {"regret", at.regret}, {"unknown", at.unknown}});
  }
  return list;
}

void PrintJson(const CompileCommand& command, const std::vector<PlanSize>& sizes, const CompileSummary& summary) {
  nlohmann::ordered_json line = {{"bundle", command.output},
                                 {"kernels", summary.kernels},
                                 {"from_records", summary.from_records},
                                 {"from_near_records", summary.from_near_records},
                                 {"from_defaults", summary.from_defaults},
                                 {"from_faster_defaults", summary.from_faster_defaults},
                                 {"from_stale_records", summary.from_stale_records}};
  if (!summary.regrets.empty()) line["regrets"] = ToJson(sizes, summary.regrets);
  std::printf("%s\n", line.dump().c_str());
}

// What the bundle was made from, and what would make a better one.
void PrintSummary(const CompileCommand& command, const std::vector<PlanSize>& sizes, const CompileSummary& summary) {
  std::fprintf(stderr,
               "%s: %d kernels: %d from records, %d from stale records, %d from near records, %d from defaults\n",
               command.output.c_str(), summary.kernels, summary.from_records, summary.from_stale_records,
               summary.from_near_records, summary.from_defaults + summary.from_faster_defaults);
  PrintRegrets(command, sizes, summary);
  if (summary.from_faster_defaults > 0) {
    std::fprintf(stderr,
                 "%d kernels use default schedules that were found faster than their records inside this model\n",
                 summary.from_faster_defaults);
  }
  if (summary.from_stale_records > 0) {
    std::fprintf(stderr,
                 "stale records: this Hone makes other code of their schedules than was measured, so that their times "
                 "may not hold; hone bench %s shows what the kernels take\n",
                 command.output.c_str());
  }
  if (summary.claimed > 0) {
    std::fprintf(stderr, "the times of %d kernels are what imported records claim; hone tune %s measures them here\n",
                 summary.claimed, command.model.c_str());
  }
  if (summary.from_defaults > 0 && !command.untuned) {
    std::fprintf(stderr, "kernels without a record use default schedules; to find better ones: %s tune %s%s%s\n",
                 HoneProgram().c_str(), ShellWord(command.model).c_str(), ServiceFlags(command.service).c_str(),
                 BuildFlags(command.settings).c_str());
  }
}

// The lock file, and its records kept in the database where they came from one.
absl::Status WriteLock(const CompileCommand& command, const LockFile& lock) {
  HONE_RETURN_IF_ERROR(WriteFileAtomically(command.lock, ToJson(lock)));
  const absl::Status kept = command.untuned ? absl::OkStatus() : KeepLockedRecords(command.service, lock);
  if (!kept.ok()) {
    std::fprintf(stderr,
                 "hone: %s is written and needs no database, but its records may leave this one under a quota: %s\n",
                 command.lock.c_str(), std::string(kept.message()).c_str());
  }
  return absl::OkStatus();
}

absl::Status Compile(const CompileCommand& command) {
  HONE_RETURN_IF_ERROR(CheckKey(command));
  if (!command.locked.empty()) return CompileAsLocked(command);
  HONE_ASSIGN_OR_RETURN(const ResolvedSettings settings, Resolve(command.settings));
  HONE_ASSIGN_OR_RETURN(const ImportOptions import, ImportOptionsOf(command.settings.import));
  if (!command.lock.empty()) { HONE_RETURN_IF_ERROR(NoRange(import, "with --lock")); }
  if (settings.gpu.has_value()) { HONE_RETURN_IF_ERROR(NoRange(import, "for a device")); }
  HONE_ASSIGN_OR_RETURN(Model model, LoadModel(command.model, import, settings.plan()));
  if (settings.gpu.has_value()) { HONE_RETURN_IF_ERROR(Annotate(CheckFitsDevice(model.plan), command.model)); }
  const std::vector<PlanSize> sizes = model.plan.sizes;
  LockFile lock;
  HONE_ASSIGN_OR_RETURN(const CompileSummary summary,
                        CompileModel(std::move(model), settings, command.untuned ? nullptr : &command.service,
                                     command.output, command.lock.empty() ? nullptr : &lock));
  HONE_RETURN_IF_ERROR(Sign(command));
  if (!command.lock.empty()) { HONE_RETURN_IF_ERROR(WriteLock(command, lock)); }
  if (command.json) {
    PrintJson(command, sizes, summary);
  } else {
    PrintSummary(command, sizes, summary);
  }
  return absl::OkStatus();
}

}  // namespace

void AddCompileCommand(CLI::App& app, Action* chosen) {
  auto command = std::make_shared<CompileCommand>();
  CLI::App* sub = app.add_subcommand("compile", "Compile a model into a bundle.");
  sub->add_option("model", command->model, "an ONNX file, or a module of the text dialect (.py)")->required();
  sub->add_option("-o,--output", command->output, "the bundle to write")->required();
  command->service.AddTo(*sub);
  command->settings.AddTo(*sub);
  CLI::Option* lock =
      sub->add_option("--lock", command->lock, "write to this file which schedule and record made each kernel");
  CLI::Option* locked =
      sub->add_option("--locked", command->locked, "make the bundle of this lock file again, byte for byte, or none");
  locked->excludes(lock);
  for (const char* other : {"--server", "--db", "--target", "--threads", "--numeric"}) {
    locked->excludes(sub->get_option(other));  // the lock file says
  }
  sub->add_flag("--untuned", command->untuned, "use default schedules, whatever is recorded")->excludes(locked);
  sub->add_option(
         "--sign", command->sign,
         "sign the bundle with this Ed25519 private key, a PEM file: hone_module_load_signed takes it with the "
         "public key alone")
      ->check(CLI::ExistingFile);
  sub->add_flag("--json", command->json, "print one JSON object");
  sub->footer(Examples(
      {"hone compile resnet18.onnx -o resnet18.hone", "hone compile resnet18.onnx -o r.hone --db tuned.db --threads 2",
       "hone compile resnet18.onnx -o r.hone --untuned", "hone compile resnet18.onnx -o r.hone --target opencl:generic",
       "hone compile resnet18.onnx -o r.hone --lock resnet18.lock",
       "hone compile resnet18.onnx -o r.hone --locked resnet18.lock",
       "openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub",
       "hone compile resnet18.onnx -o r.hone --sign key.pem"}));
  sub->callback([command, chosen] { *chosen = [command] { return Compile(*command); }; });
}

}  // namespace hone
