#include "compiler/driver/models/locked_records.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "compiler/support/status_macros.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/store.h"
#include "proto/rpc/status.h"
#include "tuner/service/client.h"

namespace hone {

absl::Status KeepLockedRecords(const ServiceOptions& service, const LockFile& lock) {
  v1::KeepChoicesRequest request;
  request.set_model_hash(lock.model_hash);
  for (const LockedKernel& kernel : lock.kernels) {
    uint64_t record = 0;
    if (absl::SimpleAtoi(kernel.record, &record)) request.add_locked(record);
  }
  if (request.locked().empty()) return absl::OkStatus();
  if (!service.server.empty() || !AddressOfDaemon(service.database()).empty()) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DaemonClient> client, ConnectTo(service));
    v1::KeepChoicesReply reply;
    return FromGrpc(client->tune().KeepChoices(client->Context().get(), request, &reply));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TuningStore> store,
                        OpenSqliteStore(service.database(), StoreMode::kWrite));
  HONE_ASSIGN_OR_RETURN(const uint64_t epoch, store->BeginEpoch());
  std::vector<Write> writes;
  for (const uint64_t record : request.locked()) writes.push_back(LockRecord{kLocalTenant, record});
  return store->Commit(epoch, writes);
}

}  // namespace hone
