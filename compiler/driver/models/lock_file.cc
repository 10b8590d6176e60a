#include "compiler/driver/models/lock_file.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "compiler/ir/numeric.h"
#include "compiler/support/sha256.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

// Reads fields and keeps the first complaint.
class Reader {
 public:
  Reader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string Text(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_string()) return found->get<std::string>();
    return Complain(name, "no text");
  }
  std::string Digest(const char* name) {
    const std::string hex = Text(name);
    const bool whole = hex.size() == 2 * kSha256Bytes && hex.find_first_not_of("0123456789abcdef") == std::string::npos;
    return whole ? absl::HexStringToBytes(hex) : Complain(name, "no digest");
  }
  double Number(const char* name) {
    const auto found = object_.find(name);
    if (found != object_.end() && found->is_number()) return found->get<double>();
    Complain(name, "no number");
    return 0;
  }
  const absl::Status& status() const { return status_; }

 private:
  std::string Complain(const char* name, const char* what) {
    if (status_.ok()) {
      status_ = absl::DataLossError(
          absl::StrCat("the lock file is damaged: ", where_, "\"", name, "\" is missing or ", what));
    }
    return "";
  }
  const Json& object_;
  const std::string where_;
  absl::Status status_;
};

}  // namespace

std::string ToJson(const LockFile& lock) {
  Json kernels = Json::array();
  for (const LockedKernel& kernel : lock.kernels) {
    kernels.push_back({{"name", kernel.name},
                       {"workload", ToHex(kernel.workload)},
                       {"source", kernel.source},
                       {"record", kernel.record},
                       {"measured_us", kernel.measured_us},
                       {"trace", kernel.trace},
                       {"object_digest", ToHex(kernel.object_digest)}});
  }
  const Json json = {{"hone_lock", kFormat},
                     {"model", lock.model_name},
                     {"model_hash", ToHex(lock.model_hash)},
                     {"target", lock.target},
                     {"threads", lock.threads},
                     {"numeric", lock.numeric},
                     {"generator", lock.generator},
                     {"bundle_digest", ToHex(lock.bundle_digest)},
                     {"kernels", std::move(kernels)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<LockFile> ParseLockFile(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("hone_lock")) return absl::DataLossError("not a lock file of Hone's");
  if (json["hone_lock"] != kFormat) {
    return absl::DataLossError("a lock file of a newer format than this program knows; use a newer Hone");
  }
  Reader reader(json, "");
  LockFile lock;
  lock.model_name = reader.Text("model");
  lock.model_hash = reader.Digest("model_hash");
  lock.target = reader.Text("target");
  const double threads = reader.Number("threads");
  lock.numeric = reader.Text("numeric");
  lock.generator = reader.Text("generator");
  lock.bundle_digest = reader.Digest("bundle_digest");
  if (!reader.status().ok()) return reader.status();
  if (!(threads >= 1 && threads <= 1024) || !ParseNumericLevel(lock.numeric).has_value()) {
    return absl::DataLossError("the lock file is damaged: \"threads\" or \"numeric\" is out of range");
  }
  lock.threads = static_cast<int>(threads);
  const auto kernels = json.find("kernels");
  if (kernels == json.end() || !kernels->is_array()) {
    return absl::DataLossError("the lock file is damaged: \"kernels\" is missing or no list");
  }
  for (size_t i = 0; i < kernels->size(); ++i) {
    Reader fields((*kernels)[i], absl::StrCat("kernel ", i, ", "));
    LockedKernel kernel;
    kernel.name = fields.Text("name");
    kernel.workload = fields.Digest("workload");
    kernel.source = fields.Text("source");
    kernel.record = fields.Text("record");
    kernel.measured_us = fields.Number("measured_us");
    kernel.trace = fields.Text("trace");
    kernel.object_digest = fields.Digest("object_digest");
    if (!fields.status().ok()) return fields.status();
    lock.kernels.push_back(std::move(kernel));
  }
  return lock;
}

}  // namespace hone
