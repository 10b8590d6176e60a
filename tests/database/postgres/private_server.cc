#include "tests/database/postgres/private_server.h"

#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "database/postgres/postgres_connection.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kStart = absl::Seconds(120);

// The folder of initdb and postgres; empty when there is none. Debian keeps them out of PATH, a folder a version.
std::string FindPrograms() {
  std::vector<std::string> folders = absl::StrSplit(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"), ':');
  glob_t found{};
  if (::glob("/usr/lib/postgresql/*/bin", 0, nullptr, &found) == 0) {
    for (size_t i = found.gl_pathc; i-- > 0;) folders.push_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  for (const std::string& folder : folders) {
    if (::access((folder + "/initdb").c_str(), X_OK) == 0 && ::access((folder + "/postgres").c_str(), X_OK) == 0) {
      return folder;
    }
  }
  return "";
}

// Whom root becomes: Debian's user for the server, or nobody.
const passwd* OtherUser() {
  if (::getuid() != 0) return nullptr;
  const passwd* user = ::getpwnam("postgres");
  return user != nullptr ? user : ::getpwnam("nobody");
}

pid_t Spawn(const std::vector<std::string>& command, const std::string& log) {
  const passwd* user = OtherUser();
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  ::dup2(file, 1);
  ::dup2(file, 2);
  if (user != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 || ::setuid(user->pw_uid) != 0)) {
    ::_exit(126);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateServer>> PrivateServer::Start(bool durable) {
  const std::string programs = FindPrograms();
  if (programs.empty()) return absl::NotFoundError("initdb is in none of the folders of PATH");
  char name[] = "/tmp/hone_postgres_XXXXXX";
  std::unique_ptr<PrivateServer> server(new PrivateServer(programs, ::mkdtemp(name), durable));
  const std::string& folder = server->folder_;
  if (const passwd* user = OtherUser(); user != nullptr && ::chown(folder.c_str(), user->pw_uid, user->pw_gid) != 0) {
    return absl::InternalError("the server's user may not have a folder");
  }
  int status = 0;
  const pid_t initdb = Spawn({programs + "/initdb", "-D", folder + "/data", "-U", "hone", "-A", "trust", "-E", "UTF8",
                              "--locale=C", "--no-sync"},
                             folder + "/log");
  if (::waitpid(initdb, &status, 0) != initdb || status != 0) {
    return absl::InternalError(absl::StrCat("initdb ended with status ", status, "; see ", folder, "/log"));
  }
  HONE_RETURN_IF_ERROR(server->Run());
  return server;
}

absl::Status PrivateServer::Run() {
  server_ = Spawn({programs_ + "/postgres", "-D", folder_ + "/data", "-c", "listen_addresses=", "-c",
                   "unix_socket_directories=" + folder_, "-c", "max_connections=200", "-c",
                   absl::StrCat("fsync=", durable_ ? "on" : "off")},
                  folder_ + "/log");
  absl::Status status;
  for (const absl::Time end = absl::Now() + kStart; absl::Now() < end; absl::SleepFor(absl::Milliseconds(50))) {
    status = PostgresConnection::Open(Url("postgres"), "hone tests").status();
    if (status.ok()) return status;
    if (::waitpid(server_, nullptr, WNOHANG) == server_) break;
  }
  return absl::InternalError(absl::StrCat("the server does not start: ", status.message(), "; see ", folder_, "/log"));
}

PrivateServer::~PrivateServer() {
  Crash();
  fs::remove_all(folder_);
}

std::string PrivateServer::Url(const std::string& database) const {
  return absl::StrCat("postgres:///", database, "?host=", folder_, "&user=hone");
}

std::string PrivateServer::NewDatabase() {
  const std::string name = absl::StrCat("test", ++databases_);
  auto connection = PostgresConnection::Open(Url("postgres"), "hone tests");
  EXPECT_TRUE(connection.ok()) << connection.status();
  if (!connection.ok()) return "";
  const absl::Status made = (*connection)->Execute(absl::StrCat("CREATE DATABASE ", name));
  EXPECT_TRUE(made.ok()) << made;
  return made.ok() ? Url(name) : "";
}

void PrivateServer::Crash() {
  if (server_ < 0) return;
  ::kill(server_, SIGQUIT);
  ::waitpid(server_, nullptr, 0);
  server_ = -1;
}

absl::Status PrivateServer::Restart() {
  Crash();
  return Run();
}

std::unique_ptr<PrivateServer> ServerFor(std::string& db) {
  if (db != "postgres") return nullptr;
  auto server = PrivateServer::Start(/*durable=*/true);
  HONE_CHECK(server.ok()) << server.status();
  db = (*server)->NewDatabase();
  return *std::move(server);
}

PrivateServer* SharedServer() {
  static const absl::StatusOr<std::unique_ptr<PrivateServer>> server = PrivateServer::Start();
  if (server.ok()) return server->get();
  const char* required = std::getenv("HONE_REQUIRE_POSTGRES");
  const bool must = required != nullptr && std::string(required) == "1";
  if (must || !absl::IsNotFound(server.status())) ADD_FAILURE() << server.status();
  std::fprintf(stderr, "no PostgreSQL server to test with (deploy/setup installs one): %s\n",
               std::string(server.status().message()).c_str());
  return nullptr;
}

}  // namespace hone
