// Where PoCL keeps what it compiled: in a folder of the test program's own, which goes with it. Include it in every
// test that opens an OpenCL device; PoCL asks for the folder once in a process.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace hone {

class PoclCache : public ::testing::Environment {
 public:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    setenv("POCL_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

 private:
  std::string folder_ = "/tmp/hone-pocl-XXXXXX";
};
inline const ::testing::Environment* const kPoclCache = ::testing::AddGlobalTestEnvironment(new PoclCache);

}  // namespace hone
