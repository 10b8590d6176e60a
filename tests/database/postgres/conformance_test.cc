#include "database/postgres/postgres_store.h"
#include "tests/database/postgres/private_server.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

std::unique_ptr<TuningStore> OpenPostgres(const std::string&) {
  PrivateServer* server = SharedServer();
  if (server == nullptr) return nullptr;
  auto store = OpenPostgresStore(server->NewDatabase());
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(Backends, StoreTest, testing::Values(Backend{"Postgres", OpenPostgres}), NameOfBackend);

}  // namespace
}  // namespace hone
