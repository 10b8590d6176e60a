// Systems that lack something of what the sandbox is made of: that is a refusal which names it, unless it was allowed
// by name; what was missing is shown.
#include <filesystem>

#include "compiler/sandbox/layers.h"
#include "compiler/support/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;

Arguments Allowing(uint32_t layers) { return {"--allow-missing-layer=" + LayerNames(layers)}; }

class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a program with a sanitizer has no filter of system calls";
  }
  // A worker of `service` on a system without `what`.
  std::unique_ptr<Process> Worker(const Service& service, const std::string& what, const Arguments& more = {}) {
    Arguments arguments = {what, HONE_BIN "/hone-worker", "--server", service.address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(folder_, "hone-without", arguments);
  }
  Finished Tune(const Service& service) {
    return Hone(folder_, {"tune", SaveTiny(folder_.path()), "--tasks", "relu", "--server", service.address(),
                          "--trials", "4", "--threads", "1", "--json"});
  }
  Json OnlyWorker(const Service& service) {
    const std::vector<Json> workers =
        JsonLines(Hone(folder_, {"workers", "list", "--json", "--server", service.address()}).output);
    EXPECT_EQ(workers.size(), 1u);
    return workers.empty() ? Json() : workers[0];
  }

  TempFolder folder_;
};

TEST_F(Sandbox, ALayerThatIsMissingIsARefusal) {
  Service service(folder_);
  const std::unique_ptr<Process> worker = Worker(service, "seccomp", Allowing(~kLayerSystemCalls));
  EXPECT_EQ(worker->Wait(), 8);
  EXPECT_THAT(worker->Errors(), HasSubstr("hone-oracle cannot be locked in: this system does not give it system-calls "
                                          "(a filter of system calls (seccomp)); use a system that does"));
  EXPECT_THAT(worker->Errors(), ContainsRegex("--allow-missing-layer=([a-z-]+,)*system-calls[, ]"));
  const std::unique_ptr<Process> landlock = Worker(service, "landlock", Allowing(~kLayerLandlock));
  EXPECT_EQ(landlock->Wait(), 8);
  EXPECT_THAT(landlock->Errors(), HasSubstr("does not give it landlock (no file of any file system); use"));
  const std::unique_ptr<Process> build =
      Worker(service, "namespaces", {"--role", "build", Allowing(kLayerLandlock)[0]});
  EXPECT_EQ(build->Wait(), 8);
  EXPECT_THAT(build->Errors(), HasSubstr("pid-namespace (no process but its own is seen), ipc-namespace (no shared"));
  const std::unique_ptr<Process> unknown = Worker(service, "seccomp", {"--allow-missing-layer", "walls"});
  EXPECT_EQ(unknown->Wait(), 2);
  EXPECT_THAT(unknown->Errors(), HasSubstr("\"walls\" is no layer of the sandbox"));
  EXPECT_THAT(Hone(folder_, {"workers", "list", "--server", service.address()}).output, HasSubstr("none"));
}

TEST_F(Sandbox, WithoutALayerThatWasAllowedByNameTheJobShowsIt) {
  Service service(folder_);
  const std::unique_ptr<Process> worker =
      Worker(service, "seccomp", Allowing(LayersSomeSystemsLack() | kLayerSystemCalls));
  const Finished tune = Tune(service);
  ASSERT_EQ(tune.code, 0) << tune.errors << worker->Errors();
  EXPECT_THAT(OnlyWorker(service).at("missing_layers"), Contains("system-calls"));
  EXPECT_THAT(JsonLines(tune.output).back().at("missing_layers"), Contains("system-calls"));
  EXPECT_THAT(service.Job(1).at("missing_layers"), Contains("system-calls"));
  EXPECT_THAT(Hone(folder_, {"jobs", "show", "1", "--server", service.address()}).output,
              ContainsRegex("measured in a sandbox that lacks .*system-calls"));
  EXPECT_THAT(Hone(folder_, {"workers", "list", "--server", service.address()}).output,
              ContainsRegex("its sandbox lacks .*system-calls"));
}

TEST_F(Sandbox, NamespacesAndLandlockMayBeAllowedToBeMissing) {
  Service service(folder_);
  const std::unique_ptr<Process> worker = Worker(service, "namespaces,landlock", Allowing(LayersSomeSystemsLack()));
  const Finished tune = Tune(service);
  ASSERT_EQ(tune.code, 0) << tune.errors << worker->Errors();
  for (const char* layer : {"landlock", "user-namespace", "pid-namespace", "ipc-namespace", "network-namespace"}) {
    EXPECT_THAT(OnlyWorker(service).at("missing_layers"), Contains(layer));
    EXPECT_THAT(JsonLines(tune.output).back().at("missing_layers"), Contains(layer));
  }
  EXPECT_FALSE(service.Records().empty());
}

// The daemon's searches too: it ends before it takes a job.
TEST_F(Sandbox, ADaemonWhoseSearchesCannotBeLockedInIsRefused) {
  const std::string address = "unix:" + (folder_ / "t");
  const auto honed = [&](const std::string& what, const Arguments& more) {
    Arguments arguments = {what, HONE_BIN "/honed", "--db", folder_ / "t.db", "--listen", address};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Process>(folder_, "hone-without", arguments);
  };
  const std::unique_ptr<Process> refused = honed("landlock", Allowing(~kLayerLandlock));
  EXPECT_EQ(refused->Wait(), 8);
  EXPECT_THAT(refused->Errors(), HasSubstr("hone-search cannot be locked in: this system does not give it landlock (no "
                                           "file of any file system); use a system that does"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "t.db")) << "it is refused before it opens anything";
  const std::unique_ptr<Process> allowed = honed("landlock", Allowing(LayersSomeSystemsLack()));
  ASSERT_TRUE(WaitUntil([&] { return allowed->Output().find("listening") != std::string::npos; })) << allowed->Errors();
  const Json status = JsonLines(Hone(folder_, {"status", "--json", "--server", address}).output).at(0);
  EXPECT_THAT(status.at("missing_layers"), Contains("landlock"));
  EXPECT_THAT(status.at("allowed_missing_layers"), Contains("landlock"));
  EXPECT_THAT(Hone(folder_, {"status", "--server", address}).output, ContainsRegex("their sandbox lacks .*landlock"));
}

// What `hone tune` starts for its own user alone may lack what not every system gives, and nothing else.
TEST_F(Sandbox, APrivateServiceGoesWithoutWhatSomeSystemsLack) {
  const std::string model = SaveTiny(folder_.path());
  const auto tune = [&](const std::string& what, const std::map<std::string, std::string>& environment) {
    return std::make_unique<Process>(
        folder_, "hone-without",
        Arguments{what, HONE_BIN "/hone", "tune", model, "--tasks", "relu", "--db",
                  folder_ / (what.substr(0, 4) + ".db"), "--trials", "4", "--threads", "1", "--json"},
        environment);
  };
  const std::unique_ptr<Process> usual = tune("namespaces,landlock", {});
  ASSERT_EQ(usual->Wait(), 0) << usual->Errors();
  EXPECT_THAT(JsonLines(usual->Output()).back().at("missing_layers"), Contains("landlock"));
  const std::unique_ptr<Process> refused = tune("seccomp", {});
  EXPECT_EQ(refused->Wait(), 5);
  EXPECT_THAT(refused->Errors(),
              HasSubstr("hone-search cannot be locked in: this system does not give it system-calls"));
  const std::unique_ptr<Process> allowed = tune("seccomp", {{"HONE_ALLOW_MISSING_LAYER", "system-calls"}});
  EXPECT_EQ(allowed->Wait(), 0) << allowed->Errors();
}

// A worker that a client starts for a daemon which others may use lacks no more than that daemon's owner allowed.
TEST_F(Sandbox, AWorkerForAnothersDaemonLacksNoMoreThanThatAllows) {
  Process daemon(folder_, HONE_BIN "/honed", {"--db", folder_ / "t.db", Allowing(~kLayerLandlock)[0]});
  ASSERT_TRUE(WaitUntil([&] { return !daemon.running() || daemon.Output().find("listening") != std::string::npos; }));
  if (!daemon.running()) GTEST_SKIP() << "this machine has no landlock: " << daemon.Errors();
  Process tune(folder_, "hone-without",
               {"landlock", HONE_BIN "/hone", "tune", SaveTiny(folder_.path()), "--tasks", "relu", "--db",
                folder_ / "t.db", "--trials", "4", "--threads", "1"});
  EXPECT_EQ(tune.Wait(), 5);
  EXPECT_THAT(tune.Errors(), HasSubstr("hone-oracle cannot be locked in: this system does not give it landlock"));
}

}  // namespace
}  // namespace hone::system_test
