// The run-time compiler of fake_cuda.h: packs the text, and refuses what their driver cannot run.
#include <cstring>
#include <string>
#include <string_view>

#include "tests/deploy/runtime/fake_cuda/fake_image.h"

namespace {

constexpr int kInvalidInput = 3, kCompilation = 6;  // of nvrtcResult

struct Program {
  std::string text, log, image;
};

// Helpers around an instruction that the driver has words of its own for (device_words.h).
constexpr std::string_view kReplaced[] = {"copy_async_", "commit_copies", "wait_for_copies_"};

// Without the definitions of those helpers.
std::string WithoutReplaced(std::string text) {
  for (const std::string_view name : kReplaced) {
    const std::string head = "static __device__ __forceinline__ void " + std::string(name);
    for (size_t at = text.find(head); at != std::string::npos; at = text.find(head)) {
      size_t end = text.find('{', at);
      for (int depth = 0; end < text.size(); ++end) {
        if (text[end] == '{') ++depth;
        if (text[end] == '}' && --depth == 0) break;
      }
      text.erase(at, end + 1 - at);
    }
  }
  return text;
}

template <class Text>
int Copy(const Text& text, size_t extra, char* to) {
  std::memcpy(to, text.c_str(), text.size() + extra);
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int result) {
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INVALID_INPUT";
}
int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program{.text = source};
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  constexpr std::string_view kArchitecture = "--gpu-architecture=";
  for (int i = 0; i < count; ++i) {
    const std::string_view option = options[i];
    if (!option.starts_with(kArchitecture)) continue;
    const std::string text = WithoutReplaced(program->text);
    if (text.find("asm") != std::string::npos) {
      program->log = "the tests' compiler has no words for the assembly in this text";
      return kCompilation;
    }
    program->image = hone::fake::kImageMagic + std::string(option.substr(kArchitecture.size())) + "\n" + text;
    return 0;
  }
  program->log = "no architecture is given";
  return kInvalidInput;
}
int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* log) { return Copy(program->log, 1, log); }
int nvrtcGetCUBINSize(Program* program, size_t* bytes) {
  *bytes = program->image.size();
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* cubin) { return Copy(program->image, 0, cubin); }

}  // extern "C"
