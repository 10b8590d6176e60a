// Two tenants at a daemon whose limits are tried, and what is asked of it.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "tests/tuner/service/two_tenants.h"

namespace hone {

class Limits : public TwoTenants {
 protected:
  static v1::SubmitRequest Job(const std::string& id, int tasks) {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.set_threads(99);  // no worker has as many: the job waits
    request.set_numeric(v1::NUMERIC_DEFAULT);
    for (int i = 0; i < tasks; ++i) {
      v1::TaskSpec& task = *request.add_tasks();
      task.mutable_workload()->set_name(absl::StrCat("dense_", i));
      task.mutable_workload()->set_text(absl::StrCat("text of dense_", i));
      task.mutable_workload()->set_hash(Sha256(task.workload().text()));
      task.mutable_workload()->set_flop(1e6);
      task.set_weight(1);
    }
    return request;
  }

  static grpc::Status Submit(DaemonClient& client, const v1::SubmitRequest& request, uint64_t* job = nullptr) {
    const absl::StatusOr<v1::SubmitReply> reply = client.Submit(request, absl::Seconds(60));
    if (job != nullptr) *job = reply.ok() ? reply->job_id() : 0;
    return ToGrpc(reply.status());
  }

  static grpc::Status List(DaemonClient& client) {
    v1::ListJobsReply reply;
    return client.tune().ListJobs(client.Context().get(), {}, &reply);
  }

  // A channel with a connection of its own: channels to one address share theirs else, and its streams.
  static std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  // Whether the daemon takes another connection within that time.
  static bool Connects(const std::string& address, absl::Duration limit) {
    return OwnConnection(address)->WaitForConnected(absl::ToChronoTime(absl::Now() + limit));
  }
};

}  // namespace hone
