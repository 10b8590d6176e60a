#include "database/store/rows.h"

#include <algorithm>

#include "compiler/support/sha256.h"
#include "database/store/checksum.h"

namespace hone {
namespace {

// SQLite's integers are signed; 2^63 leaves no room for accidents.
uint64_t PositiveId(const std::string& digest) {
  uint64_t id = 0;
  for (int i = 0; i < 8; ++i) id = id << 8 | static_cast<uint8_t>(digest[i]);
  return std::max<uint64_t>(id & ((uint64_t{1} << 63) - 1), 1);
}

}  // namespace

std::string OutcomeName(v1::OutcomeKind kind) {
  switch (kind) {
    case v1::OUTCOME_OK: return "ok";
    case v1::OUTCOME_BUILD_ERROR: return "build_error";
    case v1::OUTCOME_CRASH: return "crash";
    case v1::OUTCOME_TIMEOUT: return "timeout";
    case v1::OUTCOME_OUT_OF_MEMORY: return "out_of_memory";
    case v1::OUTCOME_WRONG_RESULT: return "wrong_result";
    case v1::OUTCOME_INVALID_TIMING: return "invalid_timing";
    case v1::OUTCOME_INFRA: return "infra";
    case v1::OUTCOME_CANCELLED: return "cancelled";
    default: return "unknown";
  }
}

Tenant TenantOf(const std::string& name) {
  if (name == "local") return {kLocalTenant, name};
  if (name == "*") return {kAllTenants, name};
  const uint64_t id = PositiveId(Digester().Add(std::string_view("tenant")).Add(name).Finish());
  return {std::max(id, kLocalTenant + 1), name};
}

uint64_t RecordId(const TuningKey& key, const std::string& trace) {
  Digester digester;
  digester.Add(key.workload_hash)
      .Add(key.device_class)
      .Add(int64_t{key.threads})
      .Add(int64_t{key.numeric})
      .Add(int64_t{key.protocol})
      .Add(trace);
  // The local tenant's ids are those of the first release, which had no other: files and bundles name records by them.
  if (key.tenant != kLocalTenant) digester.Add(int64_t(key.tenant));
  return PositiveId(digester.Finish());
}

}  // namespace hone
