// The reader of a worker's spool: whatever a file of results holds, the worker starts; it has the result that the file
// is the digest and the message of, or has removed the file. What it found it can keep and forget as one of its own.
#include <fuzzer/FuzzedDataProvider.h>
#include <google/protobuf/stubs/logging.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "compiler/support/check.h"
#include "compiler/support/file.h"
#include "compiler/support/sha256.h"
#include "spdlog/spdlog.h"
#include "tests/fuzz/memory_limit.h"
#include "worker/agent/session/spool.h"

namespace {

constexpr int64_t kMostBytes = 1 << 20;

// In memory, so that no disk is waited for.
const std::string& Folder() {
  static const std::string& folder = *[] {  // which is there until the end
    char name[] = "/dev/shm/hone-spool-XXXXXX";
    HONE_CHECK(::mkdtemp(name) != nullptr);
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return new std::string(name);
  }();
  return folder;
}

std::unique_ptr<hone::Spool> OpenSpool() {
  auto spool = hone::Spool::Open(Folder(), kMostBytes);
  HONE_CHECK(spool.ok()) << spool.status();
  return *std::move(spool);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  spdlog::set_level(spdlog::level::off);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const bool right_digest = bytes.ConsumeBool();
  const std::string message = bytes.ConsumeRemainingBytesAsString();
  const std::string path = Folder() + "/1-1-1.result";
  HONE_CHECK(hone::WriteFileAtomically(path, right_digest ? hone::Sha256(message) + message : message).ok());
  const hone::MemoryLimit limit;
  std::vector<hone::v1::TrialResult> found = OpenSpool()->TakeFound();
  HONE_CHECK(found.size() <= 1);
  HONE_CHECK(std::filesystem::exists(path) == (found.size() == 1));
  std::filesystem::remove(path);
  if (found.empty()) return 0;
  const std::unique_ptr<hone::Spool> spool = OpenSpool();
  HONE_CHECK(spool->size() == 0 && spool->Add(found[0]).ok() && spool->size() == 1);
  spool->Remove(found[0].id());
  HONE_CHECK(spool->size() == 0);
  return 0;
}
