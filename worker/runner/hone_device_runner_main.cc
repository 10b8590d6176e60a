// hone-device-runner SOCKET FOLDER: has the device of this machine execute one candidate, for the agent at the other
// end of an inherited socket. The folder, which is empty and goes with this process, takes what the driver's compiler
// keeps. The folder of a driver that HONE_CUDA_LIBRARY names stays open to it, too.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/runner/device_candidate.h"
#include "worker/runner/serve.h"

namespace {

constexpr int64_t kLongestFile = int64_t{256} << 20;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "hone-device-runner is started by hone-worker, with the number of a socket and a folder\n");
    return 2;
  }
  const char* const folder = argv[2];
  for (const char* name : {"POCL_CACHE_DIR", "CUDA_CACHE_PATH", "TMPDIR", "HOME", "XDG_CACHE_HOME"})
    ::setenv(name, folder, 1);
  std::vector<hone::OpenFolder> folders = {{folder, true}};
  for (const hone::OpenFolder& open : hone::DriverFolders()) folders.push_back(open);
  const char* const library = std::getenv("HONE_CUDA_LIBRARY");
  const std::string beside = library == nullptr ? "" : std::filesystem::path(library).parent_path().string();
  if (!beside.empty()) folders.push_back({beside.c_str()});
  return hone::ServeRunner(std::atoi(argv[1]), {.process = hone::ProcessKind::kDeviceRunner,
                                                .load = &hone::DeviceCandidate::Load,
                                                .folders = folders,
                                                .file_bytes = kLongestFile});
}
