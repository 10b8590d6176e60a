// Candidates that are wrong or mean harm, handed to a real worker: none becomes a record, the worker lives, the job
// ends.
#include <cctype>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "compiler/support/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"
#include "tests/worker/agent/hostile_candidates.h"

namespace hone::system_test {
namespace {

constexpr char kBuilder[] = HONE_BIN "/hone-hostile-builder";

// What the hostile builder made of each candidate, by the SHA-256 of its trace.
std::map<std::string, std::string> Kinds(const std::string& log) {
  std::map<std::string, std::string> kinds;
  std::istringstream lines(ReadAll(log));
  for (std::string kind, digest; lines >> kind >> digest;) kinds[digest] = kind;
  return kinds;
}

bool WorkerIsListed(const TempFolder& folder, const Service& service) {
  const Finished list = Hone(folder, {"workers", "list", "--json", "--server", service.address()});
  for (const Json& worker : JsonLines(list.output)) {
    if (worker.at("state") != "lost") return true;
  }
  return false;
}

// Processes that a process started, that ended, and that it never waited for.
int Zombies(pid_t parent) {
  int zombies = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
    const std::string stat = ReadAll(entry.path() / "stat");  // "812 (name) Z 811 ..."
    const size_t after_name = stat.rfind(')');
    if (after_name == std::string::npos) continue;
    std::istringstream words(stat.substr(after_name + 1));
    std::string state;
    pid_t of = 0;
    words >> state >> of;
    zombies += of == parent && state == "Z";
  }
  return zombies;
}
int Descriptors(pid_t process) {
  const std::filesystem::directory_iterator open("/proc/" + std::to_string(process) + "/fd");
  return static_cast<int>(std::distance(begin(open), end(open)));
}

#if defined(__x86_64__)  // some candidates are machine code

using Outcomes = std::map<std::string, std::string>;  // by kind; empty: it rests on the workload

// A worker whose builder makes each kind once out of the candidates of a job.
void ExpectNoneBecomesARecord(const Outcomes& kinds_and_outcomes) {
  std::map<std::string, int> failures;
  std::string list;
  for (const auto& [kind, outcome] : kinds_and_outcomes) {
    if (!outcome.empty()) ++failures[outcome];
    list += (list.empty() ? "" : ",") + kind;
  }
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), log = folder / "hostile.log";
  // Some hang: the limits are what the test takes. The task is not left alone for want of a gain.
  Service service(folder, {"--build-limit", "6", "--run-limit", "2", "--stall", "1000"});
  Process& worker = service.StartWorker({"--builder", kBuilder}, {{"HONE_HOSTILE", list}, {"HONE_HOSTILE_LOG", log}});
  // Each kind takes the place of one of the first candidates. Of these a quarter are honest: so many are asked for that
  // every kind has its turn.
  Process tune(folder, "hone",
               {"tune", model, "--tasks", "relu", "--server", service.address(), "--trials",
                std::to_string(kinds_and_outcomes.size() / 2), "--threads", "1", "--json"});
  ASSERT_EQ(tune.Wait(280), 0) << tune.Errors() << worker.Errors();
  const Json result = JsonLines(tune.Output()).back();

  const std::map<std::string, std::string> kinds = Kinds(log);
  std::set<std::string> used;
  for (const auto& [digest, kind] : kinds) used.insert(kind);
  for (const auto& [kind, outcome] : kinds_and_outcomes)
    EXPECT_EQ(used.count(kind), 1u) << kind << " never had its turn";

  const std::vector<Json> records = service.Records();
  EXPECT_EQ(records.size(), result.at("trials").get<size_t>());
  for (const Json& record : records) {
    const auto kind = kinds.find(ToHex(Sha256(record.at("trace").get<std::string>())));
    ASSERT_NE(kind, kinds.end()) << record.dump();
    EXPECT_EQ(kind->second, "honest") << record.dump();
  }
  int failed = 0;
  for (const auto& [outcome, count] : result.at("failed").items()) failed += count.get<int>();
  EXPECT_GE(failed, static_cast<int>(kinds_and_outcomes.size())) << result.at("failed").dump();
  for (const auto& [outcome, count] : failures) {
    EXPECT_GE(result.at("failed").value(outcome, 0), count) << outcome << " in " << result.at("failed").dump();
  }
  EXPECT_TRUE(worker.running()) << worker.Errors();
  EXPECT_TRUE(WorkerIsListed(folder, service));
  EXPECT_EQ(Zombies(worker.pid()), 0);
  // Its own, those to the daemon, three for each builder; inputs of a task. Each candidate had half a dozen.
  EXPECT_LE(Descriptors(worker.pid()), 50);
}

TEST(Hostile, NoneBecomesARecord) {
  Outcomes kinds = {{"dropped_tail", "wrong_result"},
                    {"dropped_rows", "wrong_result"},
                    {"short_reduction", "wrong_result"},
                    {"lost_init", "build_error"},  // seen before it runs; Mutants runs those that are not
                    {"swapped_axis", "wrong_result"},
                    {"does_nothing", "wrong_result"},
                    {"write_past_end", "crash"},
                    {"null_write", "crash"},
                    {"illegal_instruction", "crash"},
                    {"stack_bomb", "crash"},
                    {"fork", "crash"},
                    {"exit", "crash"},
                    {"fails", "crash"},
                    {"endless_loop", "timeout"},
                    {"memory_bomb", "out_of_memory"},
                    {"not_an_image", "build_error"},
                    {"broken_image", "build_error"},
                    {"builder_crash", "build_error"},
                    {"builder_hang", "timeout"}};
  // Those of machine code too. What becomes of each rests on the workload: hostile_candidates_test.cc says it for one.
  for (const HostileCandidate& candidate : HostileCandidates()) kinds.emplace(candidate.name, "");
  // One job alone has too few candidates for all where vectors are short.
  Outcomes halves[2];
  for (const auto& kind : kinds) halves[halves[0].size() > halves[1].size() ? 1 : 0].insert(kind);
  for (const Outcomes& half : halves) ExpectNoneBecomesARecord(half);
}
#endif

TEST(Hostile, NothingButHostileCandidates) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path());
  Service service(folder);
  Process& worker = service.StartWorker(
      {"--builder", kBuilder}, {{"HONE_HOSTILE", "always:dropped_tail"}, {"HONE_HOSTILE_LOG", folder / "hostile.log"}});
  const Finished tune = Hone(folder, {"tune", model, "--tasks", "relu", "--server", service.address(), "--trials", "12",
                                      "--threads", "1", "--json"});
  EXPECT_EQ(tune.code, 4) << tune.errors;
  EXPECT_THAT(tune.errors, testing::HasSubstr("no valid schedule"));
  EXPECT_TRUE(service.Records().empty());
  const Json job = service.Job(1);
  EXPECT_EQ(job.at("state"), "failed");
  EXPECT_EQ(job.at("trials"), 0);
  EXPECT_GT(job.at("failed").value("wrong_result", 0), 0) << job.dump();
  EXPECT_TRUE(worker.running()) << worker.Errors();
  EXPECT_TRUE(WorkerIsListed(folder, service));
}

}  // namespace
}  // namespace hone::system_test
