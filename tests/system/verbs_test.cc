// What a user does beside tuning: running and checking bundles, comparing them, reading what a database holds without a
// daemon, reaching a daemon by several addresses.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;

class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    model_ = SaveTiny(folder_.path());
    bundle_ = Compile("tiny.hone", {"--threads", "1"});
  }
  std::string Compile(const std::string& name, const Arguments& more) {
    Arguments arguments{"compile", model_, "-o", folder_ / name, "--untuned"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished compile = Hone(folder_, arguments);
    EXPECT_EQ(compile.code, 0) << compile.errors;
    return folder_ / name;
  }
  Finished Ok(const Arguments& arguments) const {
    Finished finished = Hone(folder_, arguments);
    EXPECT_EQ(finished.code, 0) << finished.errors;
    return finished;
  }

  TempFolder folder_;
  std::string model_, bundle_;
};

TEST_F(Verbs, RunsOnSeededValuesAndHoldsThemAgainstTheModel) {
  const Finished random = Ok({"run", bundle_, "--random", "--output", "y=" + folder_ / "y.npy"});
  EXPECT_THAT(random.output, HasSubstr("y: float32[12, 12], from "));
  EXPECT_THAT(random.output, HasSubstr("written to " + folder_ / "y.npy"));
  const std::vector<float> first = ReadNpy(folder_ / "y.npy", {12, 12});
  Ok({"run", bundle_, "--random", "--output", "y=" + folder_ / "y.npy"});
  EXPECT_EQ(ReadNpy(folder_ / "y.npy", {12, 12}), first) << "one seed, one answer";
  Ok({"run", bundle_, "--random", "--seed", "8", "--output", "y=" + folder_ / "y.npy"});
  EXPECT_NE(ReadNpy(folder_ / "y.npy", {12, 12}), first);

  const Finished verified = Ok({"run", bundle_, "--random", "--verify", model_});
  EXPECT_THAT(verified.output, HasSubstr("y agrees with the model within rtol 0.001, atol 0.0001 (largest error "));
  const Json json = JsonLines(Ok({"run", bundle_, "--random", "--verify", model_, "--json"}).output).at(0);
  EXPECT_EQ(json.at("outputs").at(0).at("shape"), Json({12, 12}));
  EXPECT_EQ(json.at("verified").at("y").at("differing"), 0);

  // Another model of the same shape: its numbers are others.
  onnx::ModelProto other = TinyModel().Proto();
  for (onnx::TensorProto& weights : *other.mutable_graph()->mutable_initializer()) {
    if (weights.float_data_size() > 0) weights.set_float_data(0, weights.float_data(0) + 1);
    if (!weights.raw_data().empty()) (*weights.mutable_raw_data())[2] ^= 0x40;
  }
  Save(other, folder_ / "other.onnx");
  const Finished differs = Hone(folder_, {"run", bundle_, "--random", "--verify", folder_ / "other.onnx"});
  EXPECT_EQ(differs.code, 6) << differs.errors;
  EXPECT_THAT(differs.errors, HasSubstr("elements differ from the model's; the worst at ["));
}

TEST_F(Verbs, BenchComparesTwoBundles) {
  const Json same = JsonLines(Ok({"bench", bundle_, bundle_, "--seconds", "1", "--json"}).output).at(0);
  EXPECT_LE(same.at("low"), same.at("ratio"));
  EXPECT_LE(same.at("ratio"), same.at("high"));
  EXPECT_GE(same.at("rounds"), 12);
  EXPECT_GT(same.at("before").at("ms"), 0);
  EXPECT_EQ(same.at("after").at("bundle"), bundle_);
  const Finished text = Ok({"bench", bundle_, Compile("strict.hone", {"--numeric", "strict", "--threads", "1"})});
  EXPECT_THAT(text.output, HasSubstr("ms  " + bundle_));
  EXPECT_THAT(text.output, testing::ContainsRegex("the second against the first: (no measurable change|[0-9.]+x) "
                                                  "\\([0-9.]+-[0-9.]+\\), of [0-9]+ rounds in turn"));
}

TEST_F(Verbs, InspectShowsABundleAndWhereTwoDiffer) {
  const Finished text = Ok({"inspect", bundle_});
  EXPECT_THAT(text.output, HasSubstr("inputs        x: float32[12,50]\n"));
  EXPECT_THAT(text.output, HasSubstr("made from"));
  EXPECT_THAT(text.output, testing::ContainsRegex("default +dense_12x50x50_add_relu\n"));
  EXPECT_EQ(JsonLines(Ok({"inspect", bundle_, "--json"}).output).at(0).at("kernels").size(), 2u);

  EXPECT_EQ(Ok({"inspect", bundle_, bundle_}).output, "0 kernels differ, 2 are the same\n");
  const std::string threads2 = Compile("threads2.hone", {"--threads", "2"});
  const Finished differ = Ok({"inspect", bundle_, threads2});
  EXPECT_THAT(differ.output, HasSubstr("threads\n  1\n  2\n"));
  const Json json = JsonLines(Ok({"inspect", bundle_, threads2, "--json"}).output).at(0);
  EXPECT_EQ(json.at("same_kernels").get<size_t>() + json.at("kernels").size(), 2u);
  EXPECT_EQ(json.at("fields").at("threads"), Json({"1", "2"}));
  const Finished refused = Hone(folder_, {"inspect", bundle_, model_});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("two bundles (.hone) are compared"));
}

TEST_F(Verbs, InspectPrintsAModelAsText) {
  const std::string text = Ok({"inspect", model_, "--text", "--write-constants", folder_ / "constants"}).output;
  EXPECT_THAT(text, HasSubstr("    def main(x: R.Tensor((12, 50), dtype=\"float32\"))"));
  WriteAll(folder_ / "tiny.py", text);
  Ok({"compile", folder_ / "tiny.py", "--constants", folder_ / "constants", "-o", folder_ / "text.hone", "--untuned",
      "--threads", "1"});
  EXPECT_EQ(JsonLines(Ok({"inspect", bundle_, folder_ / "text.hone", "--json"}).output).at(0).at("same_kernels"), 2);
  const Finished missing = Hone(folder_, {"inspect", folder_ / "none.onnx", "--text"});
  EXPECT_EQ(missing.code, 3) << missing.errors;
}

TEST_F(Verbs, ADatabaseIsReadWithoutADaemon) {
  std::string database;
  {
    Service service(folder_);
    service.StartWorker();
    const Finished tune =
        Hone(folder_, {"tune", model_, "--server", service.address(), "--trials", "16", "--threads", "1", "--json"});
    ASSERT_EQ(tune.code, 0) << tune.errors;
    database = service.database();
    service.daemon().Signal(SIGTERM);
    ASSERT_EQ(service.daemon().Wait(), 0);
  }
  const Finished jobs = Ok({"jobs", "--db", database});
  EXPECT_THAT(jobs.output, HasSubstr("job 1  done  tiny"));
  EXPECT_EQ(Ok({"jobs", "list", "--db", database}).output, jobs.output);
  const Json job = JsonLines(Ok({"jobs", "show", "1", "--json", "--db", database}).output).at(0);
  EXPECT_EQ(job.at("tasks").size(), 2u);
  EXPECT_THAT(Ok({"jobs", "show", "1", "--db", database}).output, HasSubstr("dense_12x50x50_add_relu"));
  EXPECT_EQ(Hone(folder_, {"jobs", "show", "77", "--db", database}).code, 2);

  const Finished best = Ok({"records", "--db", database});
  EXPECT_EQ(best.output, Ok({"records", "best", "--db", database}).output);
  const Json record = JsonLines(Ok({"records", "best", "--json", "--db", database}).output).at(0);
  const std::string id = record.at("id");
  const Finished show = Ok({"records", "show", id, "--db", database});
  EXPECT_THAT(show.output, HasSubstr("record        " + id + "\n"));
  EXPECT_THAT(show.output, HasSubstr("best          yes"));
  EXPECT_THAT(show.output, HasSubstr(record.at("trace").get<std::string>()));
  EXPECT_EQ(JsonLines(Ok({"records", "show", id, "--json", "--db", database}).output).at(0).at("id"), id);
  EXPECT_EQ(Hone(folder_, {"records", "show", "12", "--db", database}).code, 2);

  Ok({"records", "export", "-o", folder_ / "records.jsonl", "--db", database});
  const Json twice =
      JsonLines(Ok({"records", "import", folder_ / "records.jsonl", "--json", "--db", database}).output).at(0);
  EXPECT_EQ(twice.at("imported"), 0);
  EXPECT_GT(twice.at("duplicates"), 0);
  EXPECT_EQ(twice.at("refused"), Json::array());

  // Record to program to machine code: what show prints, opt takes.
  WriteAll(folder_ / "task.py", Ok({"records", "show", id, "--program", "--db", database}).output);
  WriteAll(folder_ / "trace.py", Ok({"records", "show", id, "--trace", "--db", database}).output);
  EXPECT_THAT(
      Ok({"opt", folder_ / "task.py", "--schedule", folder_ / "trace.py", "--check", "--run", "llvm", "--time"}).output,
      HasSubstr(" us ("));
}

TEST_F(Verbs, AMachineIsLookedAtInTextAndJson) {
  const std::string database = folder_ / "none.db";
  const Finished text = Ok({"doctor", "--db", database});
  const std::vector<Json> checks = JsonLines(Ok({"doctor", "--json", "--db", database}).output);
  ASSERT_EQ(checks.size(), static_cast<size_t>(std::count(text.output.begin(), text.output.end(), '\n')));
  for (const Json& check : checks) {
    EXPECT_THAT(text.output, HasSubstr(check.at("check").get<std::string>()));
    EXPECT_EQ(check.at("ok"), true) << check;
  }
  Service service(folder_);
  EXPECT_THAT(Ok({"workers", "--server", service.address()}).output, testing::StartsWith("none; to start one: "));
  EXPECT_EQ(Ok({"workers", "--json", "--server", service.address()}).output, "");
  const Finished amiss = Hone(folder_, {"doctor", "--json", "--server", service.address()});
  EXPECT_EQ(amiss.code, 5);
  EXPECT_EQ(JsonLines(amiss.output).back().at("ok"), false) << "a daemon without workers";
}

TEST_F(Verbs, ADetachedJobGoesOnAndIsJoined) {
  Service service(folder_);
  service.StartWorker();
  const Finished tune =
      Ok({"tune", model_, "--server", service.address(), "--trials", "16", "--threads", "1", "--detach"});
  EXPECT_EQ(tune.output, "1\n");
  EXPECT_THAT(tune.errors, HasSubstr("hone jobs watch 1 --server " + service.address()));
  const Finished watch = Ok({"jobs", "watch", "1", "--server", service.address()});
  EXPECT_THAT(watch.output, HasSubstr("job 1  done  tiny"));
  // A private daemon outlives its client as well, until the job is done.
  const std::string database = folder_ / "private.db";
  const Json line =
      JsonLines(Ok({"tune", model_, "--db", database, "--trials", "8", "--threads", "1", "--detach", "--json"}).output)
          .at(0);
  EXPECT_EQ(line.at("job"), 1);
  EXPECT_THAT(Ok({"jobs", "watch", "1", "--db", database}).output, HasSubstr("job 1  done  tiny"));
}

TEST_F(Verbs, ADaemonListensAtSeveralAddresses) {
  WriteAll(folder_ / "token", "open-sesame-0123456789\n");
  std::filesystem::permissions(folder_ / "token",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Process daemon(folder_, "honed",
                 {"--db", folder_ / "several.db", "--listen", "unix:" + folder_ / "a", "--listen", "127.0.0.1:0",
                  "--listen", "unix:" + folder_ / "b", "--insecure", "--token-file", folder_ / "token"});
  ASSERT_TRUE(WaitUntil([&] { return std::ranges::count(daemon.Output(), '\n') == 3 || !daemon.running(); }))
      << daemon.Output() << daemon.Errors();
  const std::string said = daemon.Output();
  std::vector<std::string> addresses;
  for (size_t at = 0; (at = said.find("listening on ", at)) != std::string::npos;) {
    at += 13;
    addresses.push_back(said.substr(at, said.find('\n', at) - at));
  }
  ASSERT_EQ(addresses.size(), 3u);
  EXPECT_THAT(addresses[1], testing::StartsWith("127.0.0.1:"));
  for (const std::string& address : addresses) {
    Ok({"jobs", "list", "--server", address, "--token-file", folder_ / "token"});
  }
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

}  // namespace
}  // namespace hone::system_test
