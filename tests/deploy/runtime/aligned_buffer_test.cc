// Memory of a program's own allocator: what comes from it, that all goes back, and what happens when it gives none.
#include "deploy/runtime/bundle/aligned_buffer.h"

#include <cstdlib>
#include <map>

#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// Counts what it gives, and gives nothing or something askew at its n-th allocation.
struct Counting {
  int allocations = 0;
  int none_at = -1, askew_at = -1;
  size_t bytes = 0;                // of all allocations
  std::map<void*, size_t> in_use;  // bytes of each
  int wrong_releases = 0;

  static void* Allocate(void* context, size_t bytes, size_t alignment) {
    auto& self = *static_cast<Counting*>(context);
    EXPECT_EQ(alignment, kTensorAlignment);
    const int number = self.allocations++;
    if (number == self.none_at) return nullptr;
    char* memory = static_cast<char*>(std::aligned_alloc(alignment, AlignUp(bytes, alignment) + alignment));
    if (number == self.askew_at) memory += 8;
    self.bytes += bytes;
    self.in_use[memory] = bytes;
    return memory;
  }
  static void Release(void* context, void* memory, size_t bytes) {
    auto& self = *static_cast<Counting*>(context);
    const auto found = self.in_use.find(memory);
    if (found == self.in_use.end() || found->second != bytes) {
      ++self.wrong_releases;
      return;
    }
    self.in_use.erase(found);
    std::free(static_cast<char*>(memory) - reinterpret_cast<uintptr_t>(memory) % kTensorAlignment);
  }
  Allocator allocator() { return {&Allocate, &Release, this}; }
};

// Constants, tensors, scratch, scratch of all threads.
constexpr int kAllocations = 4;

// Loads and runs the sample with memory of `counting`; its first error.
RuntimeError RunSample(Counting& counting) {
  auto bundle = Bundle::FromMemory(SampleMembers().Archive(), {}, counting.allocator());
  if (!bundle.ok()) return bundle.error();
  auto made = Instance::Create(*bundle, {.threads = 2, .allocator = counting.allocator()});
  if (!made.ok()) return made.error();
  Instance& instance = **made;
  EXPECT_EQ(counting.allocations, kAllocations);
  auto* a = reinterpret_cast<int32_t*>(instance.OwnInput(0));
  for (int i = 0; i < 16; ++i) a[i] = i;
  if (RuntimeError error = instance.Run()) return error;
  for (int i = 0; i < 16; ++i) EXPECT_EQ(reinterpret_cast<const int32_t*>(instance.output(0))[i], 102 * i);
  EXPECT_EQ(counting.allocations, kAllocations);  // none by the run
  return {};
}

TEST(Allocator, GivesConstantsTensorsAndScratchAndGetsThemBack) {
  Counting counting;
  const RuntimeError error = RunSample(counting);
  EXPECT_TRUE(error.ok()) << error.message();
  const size_t constants = 64, tensors = 256, scratch = AlignUp(100), of_threads = 2 * AlignUp(10);
  EXPECT_EQ(counting.bytes, constants + tensors + scratch + of_threads);
  EXPECT_TRUE(counting.in_use.empty());
  EXPECT_EQ(counting.wrong_releases, 0);
}

TEST(Allocator, NothingLeaksWhereverItGivesNone) {
  for (const bool askew : {false, true}) {
    for (int number = 0; number < kAllocations; ++number) {
      Counting counting;
      (askew ? counting.askew_at : counting.none_at) = number;
      const RuntimeError error = RunSample(counting);
      EXPECT_EQ(error.code(), RuntimeCode::kOutOfMemory) << number;
      EXPECT_THAT(error.message(), HasSubstr(number == 0   ? "no memory for 64 bytes of constants"
                                             : number == 1 ? "no memory for 256 bytes of tensors"
                                                           : "bytes of scratch"));
      EXPECT_THAT(error.message(), HasSubstr("the program's allocator returned NULL, or memory that is not 64-byte"));
      EXPECT_EQ(counting.allocations, number + 1);
      EXPECT_TRUE(counting.in_use.empty()) << number;
      EXPECT_EQ(counting.wrong_releases, 0) << number;
    }
  }
}

TEST(AlignedBuffer, MovesWithItsAllocator) {
  Counting first, second;
  AlignedBuffer kept(100, first.allocator());
  AlignedBuffer buffer(0, second.allocator());
  EXPECT_NE(buffer.data(), nullptr);
  kept = std::move(buffer);
  EXPECT_TRUE(first.in_use.empty());
  EXPECT_EQ(second.in_use.size(), 1u);
  kept = AlignedBuffer(10);
  EXPECT_TRUE(second.in_use.empty());
  EXPECT_EQ(first.wrong_releases + second.wrong_releases, 0);
}

TEST(AlignedBuffer, MoreThanThereIsIsRefused) {
  EXPECT_EQ(AlignedBuffer(size_t{1} << 63).data(), nullptr);
  AlignedBuffer buffer;
  EXPECT_EQ(Allocate(size_t{1} << 63, "tensors", {}, &buffer).message(),
            "no memory for 9223372036854775808 bytes of tensors");
}

}  // namespace
}  // namespace hone
