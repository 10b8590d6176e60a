#include "tuner/service/endpoints/http_server.h"

#include <httplib.h>

#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tuner/service/core/metrics.h"

namespace hone {
namespace {

constexpr size_t kThreads = 2;
constexpr time_t kPatienceSeconds = 5;  // with a peer that says nothing

void Say(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain");
}

}  // namespace

struct HttpServer::Parts {
  httplib::Server server;
  std::thread thread;
};

HttpServer::HttpServer() : parts_(std::make_unique<Parts>()) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Core& core) {
  const size_t colon = address.rfind(':');
  const std::string host = colon == std::string::npos ? "127.0.0.1" : address.substr(0, colon);
  int port = 0;
  const bool is_port = absl::SimpleAtoi(address.substr(colon == std::string::npos ? 0 : colon + 1), &port);
  if (host.empty() || !is_port || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("--http ", address,
                     ": PORT, which this machine alone can reach, or HOST:PORT is needed, such as 0.0.0.0:9464"));
  }
  std::unique_ptr<HttpServer> http(new HttpServer());
  httplib::Server& server = http->parts_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kPatienceSeconds);
  server.set_write_timeout(kPatienceSeconds);
  server.set_keep_alive_max_count(16);
  server.set_payload_max_length(0);  // nobody has anything to tell
  server.Get("/metrics", [&core](const httplib::Request&, httplib::Response& response) {
    const std::optional<ServiceMetrics> metrics = core.Metrics();
    if (!metrics.has_value()) return Say(response, 503, "the daemon is stopping");
    response.set_content(MetricsText(*metrics), "text/plain; version=0.0.4; charset=utf-8");
  });
  server.Get("/healthz", [&core](const httplib::Request&, httplib::Response& response) {
    const bool alive = core.Alive();
    Say(response, alive ? 200 : 503, alive ? "alive" : "the daemon is stopping");
  });
  server.Get("/readyz", [&core](const httplib::Request&, httplib::Response& response) {
    if (!core.Alive()) return Say(response, 503, "the daemon is stopping");
    // The reason may name a path: whoever asks without a name is not told it.
    const std::optional<StoreWriter::Trouble> trouble = core.write_trouble();
    if (!trouble.has_value()) return Say(response, 200, "ready");
    Say(response, 503,
        trouble->kind == v1::HOLD_UP_DISK_FULL ? "the disk of the database is full" : "the database takes no write");
  });
  const bool bound = port == 0 ? (port = server.bind_to_any_port(host)) > 0 : server.bind_to_port(host, port);
  if (!bound) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on --http ", address, ": the address is in use or not of this machine"));
  }
  http->address_ = absl::StrCat(host, ":", port);
  http->parts_->thread = std::thread([&server] { server.listen_after_bind(); });
  return http;
}

HttpServer::~HttpServer() {
  if (!parts_->thread.joinable()) return;
  while (!parts_->server.is_running()) std::this_thread::yield();  // `stop` before that has no effect
  parts_->server.stop();
  parts_->thread.join();
}

}  // namespace hone
