// Use of the driver of the tests' own (fake_cuda/fake_cuda.h) in the test's process. Include it in every test that
// opens a CUDA device; the driver is opened once in a process.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "deploy/runtime/devices/cuda_driver.h"
#include "tests/deploy/runtime/fake_cuda/fake_image.h"

namespace hone {

inline constexpr const char* kFakeCudaDriver = HONE_LIB "/libhone_fake_cuda_driver.so";

class FakeCuda {
 public:
  static void Reset(const std::string& words = "") {
    Entry<void (*)(const char*)>("hone_fake_cuda_reset")(words.c_str());
  }
  static int Live() { return Entry<int (*)()>("hone_fake_cuda_live")(); }
  static std::string Calls() { return Entry<const char* (*)()>("hone_fake_cuda_calls")(); }
  static int Count(const std::string& entry) {
    return Entry<int (*)(const char*)>("hone_fake_cuda_count")(entry.c_str());
  }
  // As their compiler packs it.
  static std::string Image(const std::string& text, const std::string& architecture = "sm_90") {
    return fake::kImageMagic + architecture + "\n" + text;
  }

 private:
  template <class Function>
  static Function Entry(const char* name) {
    static void* const library = dlopen(kFakeCudaDriver, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<Function>(dlsym(library, name));
  }
};

// Opens it before the first test, so that what Reset says holds for whichever test comes first in a process.
class NamesFakeCuda : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("HONE_CUDA_LIBRARY", kFakeCudaDriver, 1);
    ASSERT_TRUE(CudaDriver::Load().ok()) << CudaDriver::Load().error().message();
  }
};
inline const ::testing::Environment* const kNamesFakeCuda = ::testing::AddGlobalTestEnvironment(new NamesFakeCuda);

}  // namespace hone
