// What the `checksum` columns hold: over all other columns of the row, so that one whose bits changed is not served.
#pragma once

#include <cstdint>
#include <string>

#include "database/store/rows.h"

namespace hone {

std::string ChecksumOf(const RecordRow& row);
std::string ChecksumOf(const MeasurementRow& row, const std::string& outcome);
std::string ChecksumOfChoice(uint64_t record, const std::string& model_hash, const std::string& faster_default);
std::string ChecksumOfObject(uint64_t record, const std::string& object, const std::string& kernel_set);

}  // namespace hone
