// A device of OpenCL: what it runs, and how it refuses. Skipped, which is said, where there is none.
#include "deploy/runtime/devices/opencl_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/deploy/runtime/pocl_cache.h"

namespace hone {
namespace {

class OpenClDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeResult<std::unique_ptr<Device>> opened = OpenClDevice::Open();
    if (!opened.ok()) GTEST_SKIP() << "no device: " << opened.error().message();
    device_ = *std::move(opened);
  }

  std::unique_ptr<Device> device_;
};

const std::vector<std::string> kAddOne = {
    "__kernel void add_one(__global const int* a, __global int* b) { b[get_global_id(0)] = a[get_global_id(0)] + 1; }"};

TEST_F(OpenClDeviceTest, LaunchesRunInOrder) {
  ASSERT_TRUE(device_->Build(kAddOne).ok());
  const std::array<int64_t, 3> bytes = {32, 32, 32};
  ASSERT_TRUE(device_->Allocate(bytes).ok());
  std::array<int, 8> values = {0, 1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(device_->Write(0, values.data(), 32).ok());
  ASSERT_TRUE(device_->Start({"add_one", {2, 1, 1}, {4, 1, 1}, {0, 1}}).ok());
  ASSERT_TRUE(device_->Start({"add_one", {4, 1, 1}, {2, 1, 1}, {1, 2}}).ok());
  ASSERT_TRUE(device_->Finish().ok());
  ASSERT_TRUE(device_->Read(2, values.data(), 32).ok());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], i + 2);
}

TEST_F(OpenClDeviceTest, PartsAreOfTheirBuffers) {
  constexpr int64_t kAt = OpenClDevice::kPartAlignment;
  const std::array<int64_t, 2> bytes = {kAt + 32, 32};
  const std::array<OpenClDevice::Part, 1> parts = {{{0, kAt, 32}}};
  ASSERT_TRUE(device_->Allocate(bytes, parts).ok());
  std::array<int, 8> values = {0, 1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE(device_->Write(2, values.data(), 32).ok());
  ASSERT_TRUE(device_->Copy(2, 1, 32).ok());
  std::vector<char> whole(kAt + 32);
  std::array<int, 8> copied{};
  ASSERT_TRUE(device_->Read(0, whole.data(), kAt + 32).ok());
  ASSERT_TRUE(device_->Read(1, copied.data(), 32).ok());
  EXPECT_EQ(std::memcmp(whole.data() + kAt, values.data(), 32), 0);
  EXPECT_EQ(copied, values);
  const std::array<OpenClDevice::Part, 1> beyond = {{{1, kAt, 32}}};
  EXPECT_EQ(device_->Allocate(bytes, beyond).message(), "buffer 1 has 32 bytes, not 1056");
}

TEST_F(OpenClDeviceTest, WhatCannotBeIsRefusedWithItsReason) {
  const RuntimeError refused =
      device_->Build(std::vector<std::string>{"__kernel void k(__global int* a) { a[0] = no_such_name; }"});
  EXPECT_EQ(refused.code(), RuntimeCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("no_such_name"), std::string::npos) << refused.message();
  ASSERT_TRUE(device_->Build(kAddOne).ok());
  const std::array<int64_t, 1> bytes = {32};
  ASSERT_TRUE(device_->Allocate(bytes).ok());
  EXPECT_EQ(device_->Start({"add_two", {1, 1, 1}, {1, 1, 1}, {0, 0}}).message(), "the program has no kernel add_two");
  EXPECT_EQ(device_->Start({"add_one", {1, 1, 1}, {1, 1, 1}, {0, 7}}).message(),
            "add_one: there is no buffer 7; Allocate made 1");
  int value = 0;
  EXPECT_EQ(device_->Read(0, &value, 33).message(), "buffer 0 has 32 bytes, not 33");
  const int64_t too_many = 2 * device_->facts().most_threads;
  EXPECT_EQ(device_->Start({"add_one", {1, 1, 1}, {too_many, 1, 1}, {0, 0}}).code(), RuntimeCode::kKernelFailed);
  EXPECT_EQ(OpenClDevice::Open(1000).error().code(), RuntimeCode::kNotFound);
}

}  // namespace
}  // namespace hone
