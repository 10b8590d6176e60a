// A PostgreSQL server of the tests' own: its data in a temporary directory, reached over a Unix socket alone, run by a
// user who is not root (the server refuses root), ended with the process that started it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace hone {

class PrivateServer {
 public:
  // NotFound when no server is installed (initdb in PATH, or where Debian puts it).
  // `durable`: what is committed survives a machine that loses power, not only a server that is killed; slow, for
  // figures.
  static absl::StatusOr<std::unique_ptr<PrivateServer>> Start(bool durable = false);
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;

  std::string Url(const std::string& database) const;
  std::string NewDatabase();  // its URL; empty when it cannot be made
  // Ends the server as a crash would (SIGQUIT: it writes nothing any more); Restart starts it again on the same data.
  // Both by the thread that started it, with which the server ends.
  void Crash();
  absl::Status Restart();
  const std::string& folder() const { return folder_; }

 private:
  PrivateServer(std::string programs, std::string folder, bool durable)
      : programs_(std::move(programs)), folder_(std::move(folder)), durable_(durable) {}
  absl::Status Run();
  const std::string programs_, folder_;
  const bool durable_;
  pid_t server_ = -1;
  int databases_ = 0;
};

// Of a program that is told where its database is: for "postgres", a durable server with a new database, whose URL
// takes the word's place; for anything else nullptr. Ends the process when there is no server.
std::unique_ptr<PrivateServer> ServerFor(std::string& db);

// The server that all tests of this process share. nullptr where there is none, which is said on standard error and
// fails the test when HONE_REQUIRE_POSTGRES is 1: the test is to be skipped.
PrivateServer* SharedServer();

}  // namespace hone
