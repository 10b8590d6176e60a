// Clients: they submit and stop jobs, and insist until they are answered.
#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "tests/tuner/dispatch/simulation/sim_parts.h"

namespace hone {
namespace {

constexpr int kWorkloads = 8;

v1::Workload MakeWorkload(int number) {
  v1::Workload workload;
  workload.set_text(absl::StrCat("workload ", number));
  workload.set_hash(Sha256(workload.text()));
  workload.set_name(absl::StrCat(number % 2 == 0 ? "conv2d_" : "dense_", number));
  workload.set_flop(1e6);
  workload.set_bytes(1e4);
  return workload;
}

}  // namespace

void SimWorld::Submit(int tasks, int64_t max_trials, double max_seconds, int priority) {
  auto client = std::make_unique<Client>();
  v1::SubmitRequest& request = client->request;
  const size_t whose = clients_.size() % static_cast<size_t>(faults_.tenants);
  client->tenant = TenantOf(whose == 0 ? "local" : absl::StrCat("guest", whose));
  request.set_request_id(absl::StrCat("request ", clients_.size()));
  request.set_model_name("model");
  const size_t kind = clients_.size() % static_cast<size_t>(faults_.kinds);
  request.set_target(kind == 0 ? "cpu:native" : absl::StrCat("cpu:sim/c", 2 << kind));
  request.set_threads(2);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_max_trials(max_trials);
  request.set_max_seconds(max_seconds);
  request.set_priority(priority);
  request.set_seed(7);
  const uint64_t first = random_.Below(kWorkloads);
  for (int i = 0; i < tasks; ++i) {
    v1::TaskSpec& task = *request.add_tasks();
    *task.mutable_workload() = MakeWorkload(static_cast<int>((first + i) % kWorkloads));
    task.set_weight(1 + i);
    task.set_default_trace(absl::StrCat(task.workload().text(), " / default"));
    request.add_anchors((first + i) % kWorkloads % 3 == 0 ? "" : absl::StrCat("anchor ", (first + i) % 2));
  }
  if (faults_.kinds > 1 && clients_.size() % 3 == 2) {
    request.set_target("cpu:sim/c2");
    for (int other = 1; other < faults_.kinds; ++other) {
      v1::SubmitPart& part = *request.add_parts();
      part.set_target(absl::StrCat("cpu:sim/c", 2 << other));
      part.set_threads(2 << other);
      *part.mutable_tasks() = request.tasks();
      *part.mutable_anchors() = request.anchors();
    }
  }
  clients_.push_back(std::move(client));
  Insist(static_cast<int>(clients_.size()) - 1);
}

void SimWorld::Insist(int index) {
  Client& client = *clients_[index];
  if (client.job == 0) {
    Send([this, index, request = client.request, tenant = client.tenant] {
      if (dispatcher_ == nullptr) return;
      const ReplyTo to = Expect([this, index](const Message& message) {
        const v1::SubmitReply* reply = std::get_if<v1::SubmitReply>(&message);
        if (reply == nullptr) return;
        Client& c = *clients_[index];
        HONE_CHECK(c.job == 0 || c.job == reply->job_id()) << "one request made two jobs";
        const auto row = store_.jobs().find(reply->job_id());
        HONE_CHECK(row != store_.jobs().end() && row->second.request.request_id() == c.request.request_id())
            << "job " << reply->job_id() << " was promised before it was durable";
        c.job = reply->job_id();
      });
      // As the service does: what the store knows is not submitted again.
      const auto known = *store_.FindJob(tenant.id, request.request_id());
      if (known.has_value()) {
        v1::SubmitReply reply;
        reply.set_job_id(*known);
        Answer(to, reply);
      } else {
        ToDaemon(hone::Submit{to, request, "2026-01-01T00:00:00Z", tenant});
      }
    });
  } else if (client.stop && !client.stop_answered) {
    Send([this, index, job = client.job, tenant = client.tenant.id] {
      if (dispatcher_ == nullptr) return;
      const ReplyTo to = Expect([this, index, job](const Message& message) {
        const Refusal* refusal = std::get_if<Refusal>(&message);
        const JobRow& row = store_.jobs().at(job);
        HONE_CHECK(refusal != nullptr || row.stop_requested || !IsOpen(row.state))
            << "the stop of job " << job << " was promised before it was durable";
        const bool lost = refusal != nullptr && refusal->code == static_cast<int>(absl::StatusCode::kUnavailable);
        if (!lost) clients_[index]->stop_answered = true;
      });
      ToDaemon(StopJob{to, job, tenant});
    });
  }
  if (client.job == 0 || (client.stop && !client.stop_answered)) {
    At(now_ + 5 * kSecond, [this, index] { Insist(index); });
  }
}

void SimWorld::StopSomeJobAt(Micros at) {
  At(at, [this] {
    if (clients_.empty()) return;
    const int index = static_cast<int>(random_.Below(clients_.size()));
    if (clients_[index]->job == 0) return;
    clients_[index]->stop = true;
    Insist(index);
  });
}

void SimWorld::PauseSomeJobAt(Micros at, Micros time) {
  At(at, [this, time] {
    const int index = static_cast<int>(random_.Below(clients_.size()));
    if (clients_[index]->job == 0) return;
    clients_[index]->pause = true;
    At(now_ + time, [this, index] { clients_[index]->pause = false; });
    InsistOnPause(index);
  });
}

// Until its job has ended: what it asked for before may arrive late, behind what it wants now.
void SimWorld::InsistOnPause(int index) {
  const Client& client = *clients_[index];
  const JobRow& row = store_.jobs().at(client.job);
  if (!IsOpen(row.state)) return;
  if (row.request.paused() != client.pause) {
    Send([this, job = client.job, paused = client.pause, tenant = client.tenant.id] {
      if (dispatcher_ != nullptr) ToDaemon(PauseJob{Expect([](const Message&) {}), job, paused, tenant});
    });
  }
  At(now_ + 5 * kSecond, [this, index] { InsistOnPause(index); });
}

void SimWorld::DrainSomeWorkerAt(Micros at) {
  At(at, [this] {
    const uint64_t index = random_.Below(workers_.size());
    Send([this, index] {
      if (dispatcher_ == nullptr) return;
      ToDaemon(DrainWorkers{Expect([](const Message&) {}), absl::StrCat("worker ", index), kLocalTenant});
    });
  });
}

}  // namespace hone
