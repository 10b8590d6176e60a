#include "tests/bench/load/beside.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "database/sqlite/sqlite_connection.h"
#include "grpcpp/grpcpp.h"

namespace hone {
namespace {

// Lends to whoever asks and acknowledges what it is told, at once, and holds the other calls until the next one: what
// is left is gRPC and the workers.
class Echo : public v1::Fleet::CallbackService {
 public:
  grpc::ServerUnaryReactor* Hello(grpc::CallbackServerContext* context, const v1::HelloRequest*,
                                  v1::HelloReply*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Sync(grpc::CallbackServerContext* context, const v1::SyncRequest* request,
                                 v1::SyncReply* reply) override {
    for (const v1::TrialResult& result : request->results()) *reply->add_acked() = result.id();
    for (uint32_t i = 0; i < request->credits(); ++i) {
      v1::Lease& lease = *reply->add_want();
      lease.mutable_id()->set_trial(++trials_);
      lease.set_trace(std::string(200, 't'));
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    grpc::ServerUnaryReactor* over = nullptr;
    bool held = reply->want().empty() && reply->acked().empty();
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      held = held && !released_;
      over = std::exchange(held_[request->session()], held ? reactor : nullptr);
    }
    if (over != nullptr) over->Finish(grpc::Status::OK);
    if (!held) reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  // The calls that are held, and those that still come: the server ends when they have.
  void Release() {
    const std::lock_guard<std::mutex> guard(mutex_);
    released_ = true;
    for (auto& [session, reactor] : held_) {
      if (reactor != nullptr) std::exchange(reactor, nullptr)->Finish(grpc::Status::OK);
    }
  }

 private:
  std::atomic<uint64_t> trials_{0};
  std::mutex mutex_;
  std::map<std::string, grpc::ServerUnaryReactor*> held_;  // by session
  bool released_ = false;
};

}  // namespace

void PrintBareCommits(const std::string& path) {
  constexpr int kGroup = 256, kBytes = 2000;
  const auto connection = SqliteConnection::Open(path, SqliteConnection::Mode::kCreate);
  HONE_CHECK(connection.ok()) << connection.status();
  SqliteConnection& c = **connection;
  HONE_CHECK(c.Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE bare (row BLOB)").ok());
  const std::string row(kBytes, 'r');
  Sample sample;
  int64_t count = 0;
  const absl::Time start = absl::Now();
  for (absl::Time began = start; began < start + absl::Seconds(1); began = absl::Now()) {
    HONE_CHECK(c.Begin(SqlConnection::Access::kWrite).ok());
    for (int i = 0; i < kGroup; ++i, ++count) {
      const auto insert = c.Prepare("INSERT INTO bare VALUES (?)");
      HONE_CHECK(insert.ok() && (*insert)->Blob(row).Run().ok());
    }
    HONE_CHECK(c.Commit().ok());
    sample.Add(absl::Now() - began);
  }
  std::printf("bare    %8.0f rows of %d bytes a second committed, %d at once: %s\n",
              static_cast<double>(count) / absl::ToDoubleSeconds(absl::Now() - start), kBytes, kGroup,
              sample.Text().c_str());
}

void PrintSyncsOfDisk(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  HONE_CHECK(file >= 0) << path;
  const std::string page(4096, 'x');
  Sample sample;
  int64_t count = 0;
  for (const absl::Time end = absl::Now() + absl::Seconds(1); absl::Now() < end; ++count) {
    const absl::Time began = absl::Now();
    HONE_CHECK(::pwrite(file, page.data(), page.size(), 4096 * (count % 1000)) == 4096 && ::fdatasync(file) == 0);
    sample.Add(absl::Now() - began);
  }
  ::close(file);
  std::printf("disk    %8lld writes of 4 KiB with fdatasync a second: %s\n", static_cast<long long>(count),
              sample.Text().c_str());
}

void PrintEcho(const LoadBenchOptions& options) {
  Echo& echo = *new Echo;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.load.address, grpc::InsecureServerCredentials());
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  HONE_CHECK(server != nullptr) << options.load.address;
  {
    Load load("echo", options);
    absl::SleepFor(absl::Seconds(options.warm_up));
    load.Measure(absl::Seconds(options.seconds));
  }
  echo.Release();
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace hone
