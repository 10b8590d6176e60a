// A daemon on a Unix socket in a folder of its own, and jobs for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/tuner/fake_task.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {

class HonedTest : public ::testing::Test {
 protected:
  static constexpr char kFakeSearch[] = HONE_BIN "/hone-fake-search";
  // A job of tasks that the fake worker and the fake search know how to time.
  static v1::SubmitRequest Request(const std::string& id, const std::vector<std::string>& tasks, int64_t max_trials) {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.set_model_name("model");
    request.set_target("cpu:native");
    request.set_threads(2);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    request.set_max_trials(max_trials);
    for (const std::string& name : tasks) { *request.add_tasks() = FakeTask(name, 2); }
    return request;
  }
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"--db", folder_ / "t.db",   "--listen", "unix:" + (folder_ / "s"), "--lease",
                                    "2",    "--search-program", kFakeSearch};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::unique_ptr<DaemonClient> Connect(const HonedProcess& honed, const std::string& token = "") {
    auto client = DaemonClient::Connect(honed.address(), {token, {}}, absl::Seconds(5));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  uint64_t Submit(DaemonClient& client, const v1::SubmitRequest& request) {
    const absl::StatusOr<v1::SubmitReply> reply = client.Submit(request, absl::Seconds(10));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->job_id() : 0;
  }
  v1::JobSnapshot WaitForEnd(DaemonClient& client, uint64_t job) {
    const auto last = client.Watch(job, absl::Milliseconds(50),
                                   [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
    EXPECT_TRUE(last.ok()) << last.status();
    return last.ok() ? *last : v1::JobSnapshot();
  }

  TempFolder folder_;
};

}  // namespace hone
