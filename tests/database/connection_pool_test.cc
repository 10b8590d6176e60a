#include "database/sql/connection_pool.h"

#include <atomic>
#include <optional>
#include <thread>

#include "gtest/gtest.h"

namespace hone {
namespace {

class FakeConnection : public SqlConnection {
 public:
  absl::StatusOr<std::unique_ptr<SqlQuery>> Prepare(std::string_view) override { return absl::InternalError("fake"); }
  absl::Status Execute(const std::string&) override { return absl::OkStatus(); }
  absl::Status Begin(Access) override { return absl::OkStatus(); }
  absl::Status Commit() override { return absl::OkStatus(); }
  void Rollback() override { broken_ = true; }
  bool usable() const override { return !broken_; }
  const std::string& name() const override { return name_; }

 private:
  bool broken_ = false;
  std::string name_ = "fake";
};

struct Opener {
  int opened = 0;
  absl::Status failure;
  ConnectionPool::Open Function() {
    return [this]() -> absl::StatusOr<std::unique_ptr<SqlConnection>> {
      if (!failure.ok()) return failure;
      ++opened;
      return std::make_unique<FakeConnection>();
    };
  }
};

TEST(ConnectionPool, EachReaderHasItsOwnAndTheyAreUsedAgain) {
  Opener opener;
  ConnectionPool pool(opener.Function(), 2);
  {
    const auto first = pool.Take(), second = pool.Take();
    EXPECT_NE(&**first, &**second);
  }
  const auto again = pool.Take(), other = pool.Take();
  EXPECT_EQ(opener.opened, 2);
}

TEST(ConnectionPool, WhoComesBeyondTheLimitWaits) {
  Opener opener;
  ConnectionPool pool(opener.Function(), 1);
  std::optional<ConnectionPool::Lease> held = *pool.Take();
  std::atomic<bool> given_back{false};
  std::thread waiting([&] {
    const auto mine = pool.Take();
    EXPECT_TRUE(given_back) << "it had to wait";
  });
  given_back = true;
  held.reset();
  waiting.join();
  EXPECT_EQ(opener.opened, 1);
}

TEST(ConnectionPool, ABrokenOneIsOpenedAnewAndAFailureTakesNoPlace) {
  Opener opener;
  ConnectionPool pool(opener.Function(), 1);
  (*pool.Take())->Rollback();
  EXPECT_TRUE((*pool.Take())->usable());
  EXPECT_EQ(opener.opened, 2);
  (*pool.Take())->Rollback();
  opener.failure = absl::UnavailableError("no server");
  EXPECT_EQ(pool.Take().status(), opener.failure);
  opener.failure = absl::OkStatus();
  EXPECT_TRUE(pool.Take().ok());
}

}  // namespace
}  // namespace hone
