// Every method of every service against callers who may not call it: the methods come from the descriptors, so that a
// new one is among them by itself.
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "database/record_json.h"
#include "database/sqlite_store.h"
#include "gmock/gmock.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/rpc/authority.h"
#include "proto/rpc/revocation.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_process.h"
#include "tuner/service/policy.h"

namespace hone {
namespace {

using google::protobuf::MethodDescriptor;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const char kFakeSearch[] = HONE_BIN "/hone-fake-search";

struct Method {
  const MethodDescriptor* descriptor;
  Roles roles;
  std::string path() const {
    return absl::StrCat("/", std::string(descriptor->service()->full_name()), "/", std::string(descriptor->name()));
  }
};

std::vector<Method> AllMethods() {
  std::vector<Method> methods;
  const auto add = [&](const char* service, const auto& policies) {
    const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    for (int i = 0; i < descriptor->method_count(); ++i) {
      methods.push_back({descriptor->method(i), policies.at(static_cast<size_t>(i)).roles});
    }
  };
  add("hone.v1.Tune", kPolicies<v1::Tune>);
  add("hone.v1.Fleet", kPolicies<v1::Fleet>);
  return methods;
}

struct Answer {
  grpc::Status status;
  std::vector<std::string> messages;  // serialized

  template <class Message>
  Message First() const {
    Message message;
    EXPECT_TRUE(messages.empty() || message.ParseFromString(messages.front()));
    return message;
  }
};

// Any method, as bytes: one request, then all that comes back.
Answer Call(const std::shared_ptr<grpc::Channel>& channel, std::unique_ptr<grpc::ClientContext> context,
            const std::string& path, const google::protobuf::Message& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(context.get(), path, &queue);
  call->StartCall(nullptr);
  bool alive = done();
  if (alive) {
    const grpc::Slice slice(request.SerializeAsString());
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    done();
  }
  Answer answer;
  while (alive) {
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    alive = done();
    if (!alive) break;
    grpc::Slice slice;
    EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
    answer.messages.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  call->Finish(&answer.status, nullptr);
  done();
  return answer;
}
Answer Call(DaemonClient& client, const std::string& path, const google::protobuf::Message& request) {
  return Call(client.channel(), client.Context(absl::Seconds(20)), path, request);
}

const google::protobuf::Message& EmptyRequest(const Method& method) {
  return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.descriptor->input_type());
}

v1::SubmitRequest Job(const std::string& id, int threads) {
  v1::SubmitRequest request;
  request.set_request_id(id);
  request.set_threads(threads);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_max_trials(10);
  v1::TaskSpec& task = *request.add_tasks();
  task.mutable_workload()->set_name("conv2d_1");
  task.mutable_workload()->set_text("text of conv2d_1");
  task.mutable_workload()->set_hash(Sha256(task.workload().text()));
  task.mutable_workload()->set_flop(1e6);
  task.set_weight(1);
  task.set_default_trace("conv2d_1 default");
  return request;
}

// A daemon on the network with TLS, and an authority that issues to the roles of two tenants, vision and speech.
class Access : public ::testing::Test {
 protected:
  Access() {
    EXPECT_TRUE(MakeAuthority(folder_ / "ca", absl::Now() + absl::Hours(1)).ok());
    const TlsFiles own = Issue("ca", "daemon", "127.0.0.1");
    honed_ = std::make_unique<HonedProcess>(std::vector<std::string>{
        "--db", folder_ / "t.db", "--listen", "127.0.0.1:0", "--tls-ca", own.ca, "--tls-cert", own.certificate,
        "--tls-key", own.key, "--tls-crl", folder_ / "ca/ca.crl", "--search-program", kFakeSearch});
    EXPECT_TRUE(honed_->ready()) << honed_->Errors();
  }
  // The holder's name is the tenant's; a daemon's is its address.
  TlsFiles Issue(const std::string& authority, const std::string& role, const std::string& tenant,
                 absl::Duration valid = absl::Hours(1)) {
    CertificateRequest request;
    request.role = role;
    request.tenant = tenant;
    request.names = {tenant};
    request.from = absl::Now() - absl::Hours(2);
    request.until = absl::Now() + valid;
    absl::StatusOr<TlsFiles> files = IssueCertificate(folder_ / authority, request);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.value_or(TlsFiles());
  }
  std::unique_ptr<DaemonClient> As(const std::string& role, const std::string& tenant) {
    auto client = DaemonClient::Connect(honed_->address(), {"", Issue("ca", role, tenant)}, absl::Seconds(10));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  TempFolder folder_;
  std::unique_ptr<HonedProcess> honed_;
};

// Who is not of the authority's does not get through the handshake, whatever the method.
TEST_F(Access, NobodyCallsWithoutACertificateOfTheAuthoritys) {
  ASSERT_TRUE(MakeAuthority(folder_ / "other", absl::Now() + absl::Hours(1)).ok());
  const TlsFiles good = Issue("ca", "admin", "vision"), other = Issue("other", "admin", "vision");
  const TlsFiles expired = Issue("ca", "admin", "speech", -absl::Minutes(1)),
                 daemon = Issue("ca", "daemon", "impostor");
  const std::string root = ReadFile(good.ca).value();
  const std::map<std::string, std::shared_ptr<grpc::ChannelCredentials>> callers = {
      {"plain text", grpc::InsecureChannelCredentials()},
      {"no certificate", grpc::SslCredentials({.pem_root_certs = root, .pem_private_key = "", .pem_cert_chain = ""})},
      {"wrong authority", MakeChannelCredentials({good.ca, other.certificate, other.key})},
      {"expired", MakeChannelCredentials({good.ca, expired.certificate, expired.key})},
      {"a daemon's certificate", MakeChannelCredentials({good.ca, daemon.certificate, daemon.key})},
      {"daemon of another authority", MakeChannelCredentials({other.ca, good.certificate, good.key})},
  };
  const Credentials token{"admin", {}};
  for (const auto& [name, credentials] : callers) {
    const auto channel = grpc::CreateChannel(honed_->address(), credentials);
    for (const Method& method : AllMethods()) {
      const Answer answer = Call(channel, MakeContext(token, absl::Seconds(20)), method.path(), EmptyRequest(method));
      EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << name << ", " << method.path() << ": " << answer.status.error_message();
      EXPECT_THAT(answer.messages, IsEmpty());
    }
  }
  const auto channel = OpenChannel(honed_->address(), {"", good});
  EXPECT_TRUE(
      Call(channel, MakeContext({}, absl::Seconds(20)), "/hone.v1.Tune/ListJobs", v1::ListJobsRequest()).status.ok());
}

// A daemon's certificate is replaced while it runs, and it says so to whoever connects from then on.
TEST_F(Access, CertificatesAreReadAgainWhenTheyChange) {
  const auto shown = [&] {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    const auto channel = grpc::CreateCustomChannel(honed_->address(),
                                                   MakeChannelCredentials(Issue("ca", "viewer", "vision")), arguments);
    const auto context = MakeContext({}, absl::Seconds(20));
    v1::ListJobsReply reply;
    const grpc::Status status = v1::Tune::NewStub(channel)->ListJobs(context.get(), {}, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto pem = context->auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    return pem.empty() ? std::string() : std::string(pem[0].data(), pem[0].size());
  };
  const std::string before = shown();
  EXPECT_EQ(before, ReadFile(folder_ / "ca/daemon-127.0.0.1.crt").value());
  const std::string after = ReadFile(Issue("ca", "daemon", "127.0.0.1").certificate).value();
  EXPECT_NE(after, before);
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (shown() != after && absl::Now() < end) absl::SleepFor(absl::Milliseconds(200));
  EXPECT_EQ(shown(), after);
}

// On the connection that is open, and whatever the method; another certificate of the same role goes on.
TEST_F(Access, RevokedCertificatesAreRefusedWithoutARestart) {
  const auto revoked = As("admin", "vision"), other = As("admin", "speech");
  const v1::ListJobsRequest list;
  ASSERT_TRUE(Call(*revoked, "/hone.v1.Tune/ListJobs", list).status.ok());
  ASSERT_EQ(RevokeCertificates(folder_ / "ca", "admin", "vision").value(), 1);
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (Call(*revoked, "/hone.v1.Tune/ListJobs", list).status.ok() && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  for (const Method& method : AllMethods()) {
    const Answer answer = Call(*revoked, method.path(), EmptyRequest(method));
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << method.path();
    EXPECT_THAT(answer.status.error_message(), HasSubstr("the certificate of vision was revoked")) << method.path();
    EXPECT_THAT(answer.messages, IsEmpty());
  }
  EXPECT_TRUE(Call(*other, "/hone.v1.Tune/ListJobs", list).status.ok());
}

// A watch that is open when its certificate is revoked ends before its job does.
TEST_F(Access, AWatchEndsWhenItsCertificateIsRevoked) {
  const auto revoked = As("viewer", "vision"), owner = As("client", "vision");
  const uint64_t job = Call(*owner, "/hone.v1.Tune/Submit", Job("waits", 99)).First<v1::SubmitReply>().job_id();
  v1::WatchRequest request;
  request.set_job_id(job);
  request.set_interval_ms(50);
  const auto context = revoked->Context(absl::Seconds(60));
  const auto watch = v1::Tune::NewStub(revoked->channel())->Watch(context.get(), request);
  v1::JobEvent event;
  ASSERT_TRUE(watch->Read(&event) && watch->Read(&event)) << "it is open";
  ASSERT_EQ(RevokeCertificates(folder_ / "ca", "viewer", "vision").value(), 1);
  while (watch->Read(&event)) EXPECT_EQ(event.snapshot().state(), v1::JOB_WAITING);
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("was revoked"));
}

TEST_F(Access, EveryMethodIsForItsRolesAlone) {
  std::map<std::string, std::unique_ptr<DaemonClient>> callers;
  for (const char* role : kRoleNames) callers[role] = As(role, "vision");
  for (const Method& method : AllMethods()) {
    int refused = 0;
    for (const auto& [role, client] : callers) {
      const Answer answer = Call(*client, method.path(), EmptyRequest(method));
      SCOPED_TRACE(absl::StrCat(method.path(), " as ", role, ": ", answer.status.error_message()));
      const bool allowed = method.roles.Has(*RoleFromName(role));
      EXPECT_EQ(answer.status.error_code() != grpc::StatusCode::PERMISSION_DENIED, allowed);
      EXPECT_NE(answer.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
      EXPECT_NE(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
      if (allowed) continue;
      ++refused;
      EXPECT_THAT(answer.status.error_message(), HasSubstr("a caller of role " + role));
      EXPECT_THAT(answer.messages, IsEmpty());
    }
    EXPECT_GT(refused, 0) << method.path() << " is for everybody";
  }
}

// The same by tokens, on a daemon without TLS.
TEST(AccessByToken, EveryMethodIsForItsRolesAlone) {
  const TempFolder folder;
  std::ofstream(folder / "tokens") << "admin vision a-0123456789\nclient vision c-0123456789\n"
                                      "worker vision w-0123456789\nviewer vision v-0123456789\n";
  chmod((folder / "tokens").c_str(), 0600);
  const HonedProcess honed(
      {"--db", folder / "t.db", "--listen", "127.0.0.1:0", "--insecure", "--token-file", folder / "tokens"});
  ASSERT_TRUE(honed.ready());
  const auto channel = OpenChannel(honed.address(), {});
  for (const Method& method : AllMethods()) {
    const auto code_for = [&](const std::string& token) {
      const auto with_token = [&] { return MakeContext({token, {}}, absl::Seconds(20)); };
      return Call(channel, with_token(), method.path(), EmptyRequest(method)).status.error_code();
    };
    EXPECT_EQ(code_for(""), grpc::StatusCode::UNAUTHENTICATED) << method.path();
    EXPECT_EQ(code_for("a-01234567"), grpc::StatusCode::PERMISSION_DENIED) << method.path();
    for (const char* role : kRoleNames) {
      EXPECT_EQ(code_for(std::string(role, 1) + "-0123456789") != grpc::StatusCode::PERMISSION_DENIED,
                method.roles.Has(*RoleFromName(role)))
          << method.path() << " as " << role;
    }
  }
}

// One tenant's jobs, workers, records and workloads are not there for another, whatever it asks and says.
TEST_F(Access, NothingOfAnotherTenantIsThere) {
  // What is vision's: a job that has ended with its records, one that waits, and a worker.
  const auto vision = As("admin", "vision");
  const FakeWorker worker("w", honed_->address(), {"", Issue("ca", "worker", "vision")});
  const uint64_t ended = Call(*vision, "/hone.v1.Tune/Submit", Job("one", 2)).First<v1::SubmitReply>().job_id();
  const auto last = vision->Watch(ended, absl::Milliseconds(50),
                                  [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
  ASSERT_TRUE(last.ok() && last->state() == v1::JOB_DONE) << last.status();
  const v1::SubmitRequest waits = Job("two", 99);
  const uint64_t open = Call(*vision, "/hone.v1.Tune/Submit", waits).First<v1::SubmitReply>().job_id();
  ASSERT_NE(open, 0u);
  v1::GetWorkloadRequest workload;
  workload.set_hash(waits.tasks(0).workload().hash());
  ASSERT_TRUE(Call(*vision, "/hone.v1.Fleet/GetWorkload", workload).status.ok()) << "vision itself has it";
  const auto exported = [&] {
    return Call(*vision, "/hone.v1.Tune/ExportRecords", v1::ExportRecordsRequest()).messages;
  };
  const std::vector<std::string> records = exported();
  ASSERT_THAT(records, SizeIs(1));

  const auto speech = As("admin", "speech");
  std::set<std::string> tried;
  const auto call = [&](const std::string& path, const google::protobuf::Message& request) {
    tried.insert(path);
    return Call(*speech, path, request);
  };
  const auto is_not_there = [](const Answer& answer) {
    EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::NOT_FOUND) << answer.status.error_message();
    EXPECT_THAT(answer.messages, IsEmpty());
  };
  for (const uint64_t job : {ended, open}) {
    v1::WatchRequest watch;
    watch.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/Watch", watch));
    v1::StopRequest stop;
    stop.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/Stop", stop));
    v1::GetJobRequest get;
    get.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/GetJob", get));
    v1::PauseRequest pause;
    pause.set_job_id(job);
    pause.set_paused(true);
    is_not_there(call("/hone.v1.Tune/Pause", pause));
    v1::ExplainRequest explain;
    explain.set_job_id(job);
    is_not_there(call("/hone.v1.Tune/Explain", explain));
  }
  const v1::ServiceStatus status = call("/hone.v1.Tune/Status", v1::StatusRequest()).First<v1::ServiceStatus>();
  EXPECT_EQ(status.jobs_size() + status.workers_size() + status.queued() + status.lent(), 0);
  v1::DrainWorkersRequest drain;
  drain.set_name("w");
  is_not_there(call("/hone.v1.Tune/DrainWorkers", drain));
  drain.set_name("*");
  EXPECT_EQ(call("/hone.v1.Tune/DrainWorkers", drain).First<v1::ListWorkersReply>().workers_size(), 0);
  EXPECT_EQ(call("/hone.v1.Tune/ListJobs", v1::ListJobsRequest()).First<v1::ListJobsReply>().jobs_size(), 0);
  EXPECT_EQ(call("/hone.v1.Tune/ListWorkers", v1::ListWorkersRequest()).First<v1::ListWorkersReply>().workers_size(),
            0);
  v1::BestRecordsRequest best;
  best.add_keys()->set_workload_hash(waits.tasks(0).workload().hash());
  best.mutable_keys(0)->set_device_class("fake/c2");
  best.mutable_keys(0)->set_threads(2);
  best.mutable_keys(0)->set_numeric(v1::NUMERIC_DEFAULT);
  EXPECT_TRUE(Call(*vision, "/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0).has_record());
  EXPECT_FALSE(call("/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0).has_record());
  // A choice about a record of another tenant's changes nothing.
  best.mutable_keys(0)->set_model_hash("model");
  const auto found = [&] {
    return Call(*vision, "/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0);
  };
  v1::KeepChoicesRequest choices;
  choices.set_model_hash("model");
  choices.add_choices()->set_record(found().record().id());
  choices.mutable_choices(0)->set_faster_default("digest");
  EXPECT_TRUE(call("/hone.v1.Tune/KeepChoices", choices).status.ok());
  EXPECT_EQ(found().faster_default(), "");
  EXPECT_TRUE(Call(*vision, "/hone.v1.Tune/KeepChoices", choices).status.ok());
  EXPECT_EQ(found().faster_default(), "digest") << "vision's own does";
  EXPECT_THAT(call("/hone.v1.Tune/ListRecords", v1::ListRecordsRequest()).messages, IsEmpty());
  EXPECT_THAT(call("/hone.v1.Tune/ExportRecords", v1::ExportRecordsRequest()).messages, IsEmpty());
  is_not_there(call("/hone.v1.Fleet/GetWorkload", workload));
  // A session is its tenant's, even for who has learnt it.
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session(FakeWorker::LatestSession());
  hello.mutable_profile()->set_device_class("fake/c2");
  EXPECT_EQ(call("/hone.v1.Fleet/Hello", hello).status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  v1::SyncRequest sync;
  sync.set_session(FakeWorker::LatestSession());
  sync.set_seq(1'000'000);
  sync.set_credits(1);
  EXPECT_TRUE(call("/hone.v1.Fleet/Sync", sync).First<v1::SyncReply>().unknown_session());
  v1::BuildCall build;
  build.set_session(FakeWorker::LatestSession());
  is_not_there(call("/hone.v1.Fleet/Build", build));
  v1::BuiltChunk built;
  built.set_data("program");
  built.set_digest(Sha256("program"));
  built.set_total_bytes(7);
  v1::TakeBuiltRequest take;
  take.set_digest(built.digest());
  EXPECT_TRUE(Call(*vision, "/hone.v1.Fleet/PutBuilt", built).status.ok());
  is_not_there(call("/hone.v1.Fleet/TakeBuilt", take));
  built.set_data("another");
  EXPECT_TRUE(call("/hone.v1.Fleet/PutBuilt", built).status.ok());
  EXPECT_EQ(Call(*vision, "/hone.v1.Fleet/TakeBuilt", take).First<v1::BuiltChunk>().data(), "program")
      << "vision's own is what it was";
  // The same request is another job, the same records are a copy.
  const v1::SubmitReply submitted = call("/hone.v1.Tune/Submit", Job("one", 2)).First<v1::SubmitReply>();
  EXPECT_FALSE(submitted.existed());
  EXPECT_NE(submitted.job_id(), ended);
  v1::ExportChunk chunk;
  ASSERT_TRUE(chunk.ParseFromString(records[0]));
  EXPECT_TRUE(call("/hone.v1.Tune/ImportRecords", chunk).status.ok());
  EXPECT_EQ(exported(), records);

  for (const Method& method : AllMethods()) {
    EXPECT_EQ(tried.count(method.path()), 1u) << method.path() << ": say here what another tenant gets of it";
  }
}

// Whose word a measurement is goes by the certificate, whatever the worker calls itself.
TEST_F(Access, AWorkersWordIsThatOfItsCertificate) {
  v1::HelloRequest hello;
  hello.set_worker_name("w");
  hello.set_session("session of w");
  hello.set_threads(2);
  hello.mutable_profile()->set_device_class("fake/c2");
  ASSERT_TRUE(Call(*As("worker", "vision"), "/hone.v1.Fleet/Hello", hello).status.ok());
  const auto store = OpenSqliteStore(folder_ / "t.db", StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  const absl::StatusOr<StoredState> state = (*store)->LoadState();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_THAT(state->device_classes, SizeIs(1));
  ASSERT_EQ(state->device_classes[0].profile.probes_size(), 1);
  EXPECT_EQ(state->device_classes[0].profile.probes(0).worker(), "certificate of vision, worker of vision\nw");
}

// Reports of a lease: of a worker of the tenant's own that guesses the secret, of another tenant's that has learnt it,
// and the true one said twice.
TEST_F(Access, LeasesAreReportedByTheirHoldersOnce) {
  struct Reporter {
    std::unique_ptr<DaemonClient> client;
    std::string session;
    uint64_t seq = 0;
    v1::SyncReply Sync(uint32_t credits, const std::vector<v1::TrialResult>& results) {
      v1::SyncRequest request;
      request.set_session(session);
      request.set_seq(++seq);
      request.set_credits(credits);
      for (const v1::TrialResult& result : results) *request.add_results() = result;
      return Call(*client, "/hone.v1.Fleet/Sync", request).First<v1::SyncReply>();
    }
  };
  const auto start = [&](const std::string& name, const std::string& tenant) {
    Reporter reporter{As("worker", tenant), "session of " + name};
    v1::HelloRequest hello;
    hello.set_worker_name(name);
    hello.set_session(reporter.session);
    hello.set_threads(2);
    hello.mutable_profile()->set_device_class("fake/c2");
    hello.mutable_profile()->set_target("cpu:fake");
    hello.mutable_profile()->set_cores(2);
    EXPECT_TRUE(Call(*reporter.client, "/hone.v1.Fleet/Hello", hello).status.ok());
    return reporter;
  };
  const auto vision = As("client", "vision");
  const uint64_t job = Call(*vision, "/hone.v1.Tune/Submit", Job("one", 2)).First<v1::SubmitReply>().job_id();
  Reporter holder = start("holder", "vision"), guesser = start("guesser", "vision"), stranger = start("w", "speech");
  const v1::SyncReply lent = holder.Sync(1, {});
  ASSERT_EQ(lent.want_size(), 1);
  const auto report = [&](const std::string& secret, double us) {
    v1::TrialResult result;
    *result.mutable_id() = lent.want(0).id();
    result.mutable_id()->set_secret(secret);
    *result.mutable_outcome() = GoodOutcome(lent.want(0));
    result.mutable_outcome()->mutable_timing()->set_median_us(us);
    for (float& sample : *result.mutable_outcome()->mutable_timing()->mutable_samples_us()) {
      sample = static_cast<float>(us);
    }
    return result;
  };
  const auto trials = [&] {
    v1::GetJobRequest get;
    get.set_job_id(job);
    return Call(*vision, "/hone.v1.Tune/GetJob", get).First<v1::JobSnapshot>().trials();
  };
  const std::string secret = lent.want(0).id().secret();
  const v1::SyncReply guessed = guesser.Sync(0, {report("0123456789abcdef", 1)});
  ASSERT_EQ(guessed.refused_size(), 1);
  EXPECT_EQ(guessed.refused(0).why(), v1::REPORT_REFUSAL_NOT_HOLDER);
  const v1::SyncReply strange = stranger.Sync(0, {report(secret, 1)});
  ASSERT_EQ(strange.refused_size(), 1);
  EXPECT_EQ(strange.refused(0).why(), v1::REPORT_REFUSAL_OVER) << "it is not told that there is such a lease";
  EXPECT_EQ(guessed.acked_size() + strange.acked_size(), 0);
  EXPECT_EQ(trials(), 0) << "a forged report counted";
  EXPECT_EQ(holder.Sync(0, {report(secret, 500)}).acked_size(), 1);
  EXPECT_EQ(trials(), 1);
  holder.Sync(0, {report(secret, 1)});
  EXPECT_EQ(trials(), 1) << "a replayed report counted";
  const v1::ListWorkersReply workers =
      Call(*vision, "/hone.v1.Tune/ListWorkers", v1::ListWorkersRequest()).First<v1::ListWorkersReply>();
  ASSERT_EQ(workers.workers_size(), 2);
  EXPECT_EQ(workers.workers(1).refused_reports(), 1);
  v1::GetJobRequest get;
  get.set_job_id(job);
  EXPECT_NE(Call(*vision, "/hone.v1.Tune/GetJob", get).First<v1::JobSnapshot>().tasks(0).best_us(), 1);
}

// A build is answered by who has it, once: neither by a guess, nor by what was said of another, nor by another
// tenant's.
TEST_F(Access, BuildsAreReportedByTheirHoldersOnce) {
  struct Builder {
    std::unique_ptr<DaemonClient> client;
    std::string session;
    uint64_t seq = 0;
    v1::SyncReply Sync(uint32_t credits, const std::vector<v1::BuildResult>& built) {
      v1::SyncRequest request;
      request.set_session(session);
      request.set_seq(++seq);
      request.set_credits(credits);
      for (const v1::BuildResult& result : built) *request.add_built() = result;
      return Call(*client, "/hone.v1.Fleet/Sync", request).First<v1::SyncReply>();
    }
  };
  const auto start = [&](const std::string& name, const std::string& tenant, bool builds) {
    Builder builder{As("worker", tenant), "session of " + name};
    v1::HelloRequest hello;
    hello.set_worker_name(name);
    hello.set_session(builder.session);
    hello.set_threads(2);
    hello.set_can_build(builds);
    hello.set_can_measure(!builds);
    hello.mutable_profile()->set_device_class("fake/c2");
    hello.mutable_profile()->set_target("cpu:fake");
    hello.mutable_profile()->set_cores(2);
    EXPECT_TRUE(Call(*builder.client, "/hone.v1.Fleet/Hello", hello).status.ok());
    return builder;
  };
  Builder board = start("board", "vision", false), holder = start("holder", "vision", true);
  Builder guesser = start("guesser", "vision", true), stranger = start("stranger", "speech", true);
  const auto ask = [&](const std::string& trace) {
    v1::BuildCall call;
    call.set_session(board.session);
    call.mutable_request()->set_trace(trace);
    call.set_limit_ms(20'000);
    return std::async(std::launch::async, [&board, call] { return Call(*board.client, "/hone.v1.Fleet/Build", call); });
  };
  const auto lend = [&] {
    v1::SyncReply lent;
    for (const absl::Time end = absl::Now() + absl::Seconds(20); lent.build().empty() && absl::Now() < end;) {
      lent = holder.Sync(1, {});
    }
    EXPECT_EQ(lent.build_size(), 1);
    return lent.build_size() == 1 ? lent.build(0).id() : v1::BuildId();
  };
  const auto result = [](v1::BuildId id, const std::string& secret, const std::string& object) {
    id.set_secret(secret);
    v1::BuildResult built;
    *built.mutable_id() = id;
    built.mutable_outcome()->mutable_reply()->set_object(object);
    return built;
  };
  const auto waits = [](std::future<Answer>& call) {
    return call.wait_for(std::chrono::milliseconds(300)) == std::future_status::timeout;
  };
  std::future<Answer> first = ask("first");
  const v1::BuildId lent = lend();
  guesser.Sync(0, {result(lent, "0123456789abcdef", "forged")});
  EXPECT_TRUE(waits(first)) << "a guess was taken for an answer";
  stranger.Sync(0, {result(lent, lent.secret(), "forged")});
  EXPECT_TRUE(waits(first)) << "another tenant's was, who has learnt the secret";
  holder.Sync(0, {result(lent, lent.secret(), "true")});
  EXPECT_EQ(first.get().First<v1::BuildOutcome>().reply().object(), "true");

  std::future<Answer> second = ask("second");
  const v1::BuildId next = lend();
  EXPECT_NE(next.build(), lent.build());
  holder.Sync(0, {result(lent, lent.secret(), "replayed")});
  v1::BuildId mixed = next;
  holder.Sync(0, {result(mixed, lent.secret(), "replayed")});
  mixed.set_attempt(next.attempt() + 1);
  holder.Sync(0, {result(mixed, next.secret(), "of no attempt")});
  mixed = next;
  mixed.set_epoch(next.epoch() - 1);
  holder.Sync(0, {result(mixed, next.secret(), "of an earlier life")});
  EXPECT_TRUE(waits(second)) << "what was said of another lease was taken for an answer";
  holder.Sync(0, {result(next, next.secret(), "true")});
  EXPECT_EQ(second.get().First<v1::BuildOutcome>().reply().object(), "true");

  const v1::ListWorkersReply workers =
      Call(*As("viewer", "vision"), "/hone.v1.Tune/ListWorkers", v1::ListWorkersRequest())
          .First<v1::ListWorkersReply>();
  std::map<std::string, uint64_t> refused;
  for (const v1::WorkerInfo& worker : workers.workers()) refused[worker.name()] = worker.refused_reports();
  EXPECT_EQ(refused["guesser"], 1u);
  EXPECT_EQ(refused["holder"], 1u) << "with the secret of another build";
}

// Whether a record that was measured here still holds is no client's to say.
TEST_F(Access, WhatWasMeasuredIsNoClientsToDoubt) {
  const auto client = As("client", "vision"), admin = As("admin", "vision");
  const FakeWorker worker("w", honed_->address(), {"", Issue("ca", "worker", "vision")});
  const v1::SubmitRequest job = Job("one", 2);
  const uint64_t id = Call(*client, "/hone.v1.Tune/Submit", job).First<v1::SubmitReply>().job_id();
  const auto last = client->Watch(id, absl::Milliseconds(50),
                                  [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
  ASSERT_TRUE(last.ok() && last->state() == v1::JOB_DONE) << last.status();
  v1::BestRecordsRequest best;
  best.add_keys()->set_workload_hash(job.tasks(0).workload().hash());
  best.mutable_keys(0)->set_device_class("fake/c2");
  best.mutable_keys(0)->set_threads(2);
  best.mutable_keys(0)->set_numeric(v1::NUMERIC_DEFAULT);
  const auto record = [&] {
    return Call(*client, "/hone.v1.Tune/BestRecords", best).First<v1::BestRecordsReply>().answers(0).record();
  };
  ASSERT_EQ(record().origin(), "tuned");
  const auto doubt = [&](DaemonClient& caller) {
    v1::ExportChunk chunk;
    chunk.set_lines(ToJsonLine(CheckRecord{kLocalTenant, record().id(), "another generator", "other code"}) + "\n");
    const Answer answer = Call(caller, "/hone.v1.Tune/ImportRecords", chunk);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    return answer.First<v1::ImportReply>();
  };
  const v1::ImportReply refused = doubt(*client);
  ASSERT_EQ(refused.refused_size(), 1);
  EXPECT_THAT(refused.refused(0), HasSubstr("line 1: what another build makes of a record is an admin's to say"));
  EXPECT_EQ(record().origin(), "tuned");
  EXPECT_EQ(doubt(*As("admin", "speech")).refused_size(), 0);
  EXPECT_EQ(record().origin(), "tuned") << "it is another tenant's";
  EXPECT_EQ(doubt(*admin).refused_size(), 0);
  EXPECT_EQ(record().origin(), "stale");
}

}  // namespace
}  // namespace hone
