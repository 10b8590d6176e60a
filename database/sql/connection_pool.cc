#include "database/sql/connection_pool.h"

#include <utility>

namespace hone {

absl::StatusOr<ConnectionPool::Lease> ConnectionPool::Take() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    returned_.wait(lock, [&] { return !free_.empty() || open_count_ < most_; });
    if (!free_.empty()) {
      std::unique_ptr<SqlConnection> connection = std::move(free_.back());
      free_.pop_back();
      return Lease(*this, std::move(connection));
    }
    ++open_count_;
  }
  absl::StatusOr<std::unique_ptr<SqlConnection>> connection = open_();
  if (connection.ok()) return Lease(*this, *std::move(connection));
  Return(nullptr);
  return connection.status();
}

void ConnectionPool::CloseFree() {
  const std::lock_guard<std::mutex> guard(mutex_);
  open_count_ -= static_cast<int>(free_.size());
  free_.clear();
}

void ConnectionPool::Return(std::unique_ptr<SqlConnection> connection) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (connection != nullptr && connection->usable()) {
      free_.push_back(std::move(connection));
    } else {
      --open_count_;
    }
  }
  returned_.notify_one();
}

}  // namespace hone
