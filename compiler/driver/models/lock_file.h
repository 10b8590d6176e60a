// A lock file: which schedule made each kernel of a bundle, and what came of it. With it the same bundle is made again,
// byte for byte, without the database: on another machine, in a year, or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

struct LockedKernel {
  std::string workload;    // hash, 32 bytes
  std::string name;        // for people
  std::string source;      // as in the manifest: "record", "default", ...
  std::string record;      // id, "" when there is none
  double measured_us = 0;  // 0: not measured
  std::string trace;
  std::string object_digest;  // SHA-256 of the code that came of it
};

struct LockFile {
  std::string model_name, model_hash;
  std::string target;  // canonical text
  int threads = 1;
  std::string numeric;  // ToText(NumericLevel)
  std::string generator;
  std::string bundle_digest;  // SHA-256 of the whole bundle
  std::vector<LockedKernel> kernels;
};

std::string ToJson(const LockFile& lock);
// DataLoss says which field is missing or no such thing.
absl::StatusOr<LockFile> ParseLockFile(std::string_view text);

}  // namespace hone
