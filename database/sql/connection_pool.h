// Connections that readers share: each is one reader's at a time, so that readers wait neither for each other nor for
// the writer. Opened when first needed, up to a number; whoever comes beyond that waits for one to come back.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "database/sql/sql.h"

namespace hone {

class ConnectionPool {
 public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<SqlConnection>>()>;
  ConnectionPool(Open open, int most) : open_(std::move(open)), most_(most) {}
  ConnectionPool(const ConnectionPool&) = delete;

  // Goes back to the pool when it leaves its scope, or is closed when it is of no more use.
  class Lease {
   public:
    Lease(ConnectionPool& pool, std::unique_ptr<SqlConnection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&&) = default;
    ~Lease() {
      if (connection_ != nullptr) pool_->Return(std::move(connection_));
    }
    SqlConnection& operator*() const { return *connection_; }
    SqlConnection* operator->() const { return connection_.get(); }

   private:
    ConnectionPool* pool_;
    std::unique_ptr<SqlConnection> connection_;
  };
  absl::StatusOr<Lease> Take();  // fails as opening does
  void CloseFree();              // those that nobody has

 private:
  void Return(std::unique_ptr<SqlConnection> connection);

  const Open open_;
  const int most_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<SqlConnection>> free_;  // the latest used last: its pages are in memory
  int open_count_ = 0;
};

}  // namespace hone
