// The conformance suite on the backends that need nothing else: a file, and the maps that the simulation runs on.
#include "database/sqlite/sqlite_store.h"
#include "tests/database/memory_store.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

std::unique_ptr<TuningStore> OpenSqlite(const std::string& folder) {
  auto store = OpenSqliteStore(folder + "/t.db", StoreMode::kWrite);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}
std::unique_ptr<TuningStore> OpenMemory(const std::string&) { return std::make_unique<MemoryStore>(); }

INSTANTIATE_TEST_SUITE_P(Backends, StoreTest,
                         testing::Values(Backend{"Sqlite", OpenSqlite}, Backend{"Memory", OpenMemory}), NameOfBackend);

}  // namespace
}  // namespace hone
