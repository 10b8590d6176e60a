// Systems that lack something of what the sandbox is made of: what is required is a refusal that names it, unless it
// was allowed by name; what was missing is shown.
#include "compiler/support/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

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

TEST_F(Sandbox, ARequiredLayerThatIsMissingIsARefusal) {
  Service service(folder_);
  const std::unique_ptr<Process> worker = Worker(service, "seccomp");
  EXPECT_EQ(worker->Wait(), 8);
  EXPECT_THAT(worker->Errors(),
              HasSubstr("hone-oracle cannot be locked in: this system does not give it system-calls"));
  EXPECT_THAT(worker->Errors(), HasSubstr("--allow-missing-layer system-calls"));
  const std::unique_ptr<Process> other = Worker(service, "seccomp", {"--allow-missing-layer", "landlock"});
  EXPECT_EQ(other->Wait(), 8) << "another layer was allowed";
  const std::unique_ptr<Process> unknown = Worker(service, "seccomp", {"--allow-missing-layer", "walls"});
  EXPECT_EQ(unknown->Wait(), 2);
  EXPECT_THAT(unknown->Errors(), HasSubstr("\"walls\" is no layer of the sandbox"));
}

TEST_F(Sandbox, WithoutALayerThatWasAllowedByNameTheJobShowsIt) {
  Service service(folder_);
  const std::unique_ptr<Process> worker = Worker(service, "seccomp", {"--allow-missing-layer", "system-calls"});
  const Finished tune = Tune(service);
  ASSERT_EQ(tune.code, 0) << tune.errors << worker->Errors();
  EXPECT_THAT(OnlyWorker(service).at("missing_layers"), Contains("system-calls"));
  EXPECT_THAT(JsonLines(tune.output).back().at("missing_layers"), Contains("system-calls"));
  EXPECT_THAT(Hone(folder_, {"workers", "list", "--server", service.address()}).output,
              HasSubstr("its sandbox lacks system-calls"));
}

TEST_F(Sandbox, NamespacesAndLandlockAreUsedWhereTheyAre) {
  Service service(folder_);
  const std::unique_ptr<Process> worker = Worker(service, "namespaces,landlock");
  const Finished tune = Tune(service);
  ASSERT_EQ(tune.code, 0) << tune.errors << worker->Errors();
  for (const char* layer : {"landlock", "user-namespace", "pid-namespace", "ipc-namespace", "network-namespace"}) {
    EXPECT_THAT(OnlyWorker(service).at("missing_layers"), Contains(layer));
    EXPECT_THAT(JsonLines(tune.output).back().at("missing_layers"), Contains(layer));
  }
  EXPECT_FALSE(service.Records().empty());
}

// The daemon's searches too. A private daemon is told by the environment.
TEST_F(Sandbox, ASearchThatCannotBeLockedInIsRefused) {
  const std::string address = "unix:" + (folder_ / "t");
  // What the daemon says once it is to start a search.
  const auto says = [&](const std::string& expected, const std::map<std::string, std::string>& environment) {
    Process honed(folder_, "hone-without",
                  {"seccomp", HONE_BIN "/honed", "--db", folder_ / "t.db", "--listen", address}, environment);
    EXPECT_TRUE(WaitUntil([&] { return honed.Output().find("listening") != std::string::npos; }));
    Process worker(folder_, "hone-worker", {"--server", address});
    Process tune(
        folder_, "hone",
        {"tune", SaveTiny(folder_.path()), "--tasks", "relu", "--server", address, "--trials", "4", "--threads", "1"});
    return WaitUntil([&] { return honed.Errors().find(expected) != std::string::npos; }, 150);
  };
  EXPECT_TRUE(says("hone-search cannot be locked in: this system does not give it system-calls", {}));
  EXPECT_TRUE(says("its sandbox lacks system-calls", {{"HONE_ALLOW_MISSING_LAYER", "system-calls"}}));
}

}  // namespace
}  // namespace hone::system_test
