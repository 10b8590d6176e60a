#include "database/sql/row_checksums.h"

#include "database/store/checksum.h"

namespace hone {

std::string ChecksumOf(const RecordRow& row) {
  const v1::Record& r = row.record;
  Digester digester;
  digester.Add(int64_t(r.id()))
      .Add(int64_t(row.key.tenant))
      .Add(row.key.workload_hash)
      .Add(row.key.device_class)
      .Add(int64_t{row.key.threads})
      .Add(int64_t{row.key.numeric})
      .Add(int64_t{row.key.protocol})
      .Add(r.trace())
      .Add(r.median_us())
      .Add(r.low_us())
      .Add(r.high_us())
      .Add(r.program_hash())
      .Add(r.object_digest())
      .Add(r.generator())
      .Add(r.target())
      .Add(r.created())
      .Add(row.origin);
  if (!r.driver().empty()) digester.Add(r.driver());  // releases that knew of none have rows with such checksums
  return digester.Short();
}

std::string ChecksumOf(const MeasurementRow& row, const std::string& outcome) {
  return Digester().Add(int64_t(row.trial)).Add(int64_t{row.attempt}).Add(row.worker).Add(outcome).Short();
}

std::string ChecksumOfChoice(uint64_t record, const std::string& model_hash, const std::string& faster_default) {
  return Digester().Add(int64_t(record)).Add(model_hash).Add(faster_default).Short();
}

std::string ChecksumOfObject(uint64_t record, const std::string& object, const std::string& kernel_set) {
  return Digester().Add(int64_t(record)).Add(object).Add(kernel_set).Short();
}

}  // namespace hone
