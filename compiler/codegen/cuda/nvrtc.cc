#include "compiler/codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hone {

// The interface as NVIDIA documents it ("NVRTC", chapter "User Interface"): 0 is success, strings are sized first.
struct Nvrtc::Api {
  using Program = struct Opaque*;
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error)(int result) = nullptr;
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int options, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
};

namespace {

constexpr std::array kNames = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

void* OpenLibrary(std::string& tried) {
  const char* const named = std::getenv("HONE_NVRTC");
  if (named != nullptr && *named != '\0') {
    tried = absl::StrCat(named, ", which HONE_NVRTC names");
    return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  }
  tried = "libnvrtc.so";
  for (const char* name : kNames) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool LookUp(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

absl::StatusOr<const Nvrtc*> Nvrtc::Load() {
  static const absl::StatusOr<const Nvrtc*> loaded = []() -> absl::StatusOr<const Nvrtc*> {
    std::string tried;
    void* const library = OpenLibrary(tried);
    if (library == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "NVIDIA's run-time compiler is not here (", tried,
          "); install CUDA's toolkit, or the package nvidia-cuda-nvrtc of PyPI and name its libnvrtc.so in "
          "HONE_NVRTC"));
    }
    auto* api = new Api;
    const bool complete =
        LookUp(library, "nvrtcVersion", api->version) && LookUp(library, "nvrtcGetErrorString", api->error) &&
        LookUp(library, "nvrtcCreateProgram", api->create) && LookUp(library, "nvrtcDestroyProgram", api->destroy) &&
        LookUp(library, "nvrtcCompileProgram", api->compile) &&
        LookUp(library, "nvrtcGetProgramLogSize", api->log_size) && LookUp(library, "nvrtcGetProgramLog", api->log) &&
        LookUp(library, "nvrtcGetCUBINSize", api->cubin_size) && LookUp(library, "nvrtcGetCUBIN", api->cubin);
    int major = 0, minor = 0;
    if (!complete || api->version(&major, &minor) != 0)
      return absl::FailedPreconditionError(absl::StrCat(tried, " lacks functions that NVRTC has from 11.2 on"));
    return new Nvrtc(api, absl::StrCat(major, ".", minor));
  }();
  return loaded;
}

absl::StatusOr<CudaImage> Nvrtc::Compile(const std::string& source, const std::string& architecture) const {
  Api::Program program = nullptr;
  int result = api_->create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
  if (result != 0) return absl::InternalError(absl::StrCat("nvrtcCreateProgram: ", api_->error(result)));
  const std::string target = absl::StrCat("--gpu-architecture=", architecture);
  const char* const options[] = {target.c_str(), "--std=c++17", "--ptxas-options=-v",
                                 "--ptxas-options=--warn-on-spills"};
  result = api_->compile(program, static_cast<int>(std::size(options)), options);
  CudaImage image;
  size_t bytes = 0;
  if (api_->log_size(program, &bytes) == 0 && bytes > 1) {
    image.log.resize(bytes);
    api_->log(program, image.log.data());
    image.log.pop_back();  // the end of a C string
  }
  if (result == 0 && api_->cubin_size(program, &bytes) == 0) {
    image.cubin.resize(bytes);
    result = api_->cubin(program, image.cubin.data());
  }
  api_->destroy(&program);
  if (result == 0 && !image.cubin.empty()) return image;
  return absl::InvalidArgumentError(absl::StrCat("NVRTC ", version_, " refused the kernels for ", architecture, " (",
                                                 api_->error(result), "):\n", image.log));
}

}  // namespace hone
