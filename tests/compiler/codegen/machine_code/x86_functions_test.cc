// The bodies that stand for x86 instructions, held against what Intel's manual says of them.
#include "tests/compiler/codegen/machine_code/x86_functions.h"

#include <array>
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "compiler/support/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class Result, size_t kLanes, class... Args>
std::array<Result, kLanes> Call(const char* function, const Args&... args) {
  std::array<Result, kLanes> result{};
  const void* pointers[] = {args.data()...};
  X86Body const body = FindX86Body(function);
  HONE_CHECK(body != nullptr) << function << " has no body";
  body(result.data(), pointers);
  return result;
}

// Each element of all vectors is the same.
int32_t DotOfBytes(int32_t sum, uint8_t a, int8_t b) {
  std::array<int32_t, 4> sums;
  std::array<uint8_t, 16> left;
  std::array<int8_t, 16> right;
  sums.fill(sum), left.fill(a), right.fill(b);
  return Call<int32_t, 4>("llvm.x86.avx512.vpdpbusd.128", sums, left, right)[3];
}
constexpr int32_t kMost = std::numeric_limits<int32_t>::max(), kLeast = std::numeric_limits<int32_t>::min();

TEST(X86Functions, DotsOfBytesWrapAndDoNotSaturate) {
  EXPECT_EQ(DotOfBytes(7, 255, -128), 7 - 4 * 255 * 128);  // VPMADDUBSW saturates pairs to 16 bits, VPDPBUSD does not
  EXPECT_EQ(DotOfBytes(7, 255, 127), 7 + 4 * 255 * 127);
  EXPECT_EQ(DotOfBytes(kMost, 1, 1), kLeast + 3);  // VPDPBUSDS would stay at the largest
  EXPECT_EQ(DotOfBytes(kLeast, 1, -1), kMost - 3);
}

TEST(X86Functions, ProductsOfWordsWrapInOneCase) {
  std::array<int16_t, 16> least, one;
  least.fill(-32768), one.fill(1);
  // The only pair that 32 signed bits do not hold: 2^31.
  EXPECT_EQ((Call<int32_t, 8>("llvm.x86.avx2.pmadd.wd", least, least)[7]), kLeast);
  EXPECT_EQ((Call<int32_t, 8>("llvm.x86.avx2.pmadd.wd", least, one)[7]), -65536);
  std::array<int32_t, 8> sums;
  sums.fill(-1);
  EXPECT_EQ((Call<int32_t, 8>("llvm.x86.avx512.vpdpwssd.256", sums, least, least)[0]), kMost);
}

TEST(X86Functions, LanesTakeTheirOwnElements) {
  std::array<int32_t, 16> sums;
  std::array<uint8_t, 64> left;
  std::array<int8_t, 64> right;
  for (size_t i = 0; i < 64; ++i) left[i] = static_cast<uint8_t>(i), right[i] = static_cast<int8_t>(i % 5);
  for (size_t i = 0; i < 16; ++i) sums[i] = static_cast<int32_t>(1000 * i);
  const std::array<int32_t, 16> got = Call<int32_t, 16>("llvm.x86.avx512.vpdpbusd.512", sums, left, right);
  for (int32_t i = 0; i < 16; ++i) {
    int32_t want = 1000 * i;
    for (int32_t l = 4 * i; l < 4 * i + 4; ++l) want += l * (l % 5);
    EXPECT_EQ(got[static_cast<size_t>(i)], want) << i;
  }
}

// ---- bfloat16

uint16_t Bfloat16(float x) {  // exact ones
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  EXPECT_EQ(bits & 0xFFFF, 0u) << x << " is no bfloat16";
  return static_cast<uint16_t>(bits >> 16);
}
struct Pair {
  float even, odd;
};
float DotOfPairs(float sum, Pair a, Pair b) {
  std::array<float, 4> sums;
  std::array<uint16_t, 8> left, right;
  sums.fill(sum);
  for (size_t i = 0; i < 8; i += 2) {
    left[i] = Bfloat16(a.even), left[i + 1] = Bfloat16(a.odd);
    right[i] = Bfloat16(b.even), right[i + 1] = Bfloat16(b.odd);
  }
  return Call<float, 4>("llvm.x86.avx512bf16.dpbf16ps.128", sums, left, right)[2];
}

TEST(X86Functions, Bfloat16AddsTheOddElementFirst) {
  // 1 + 2^24 is half way between two floats: the even one is 2^24, and so again with the 1 that follows. The other way
  // round, 1 + 1 + 2^24 is a float.
  EXPECT_EQ(DotOfPairs(1, {1, 0x1p24F}, {1, 1}), 0x1p24F);
  EXPECT_EQ(DotOfPairs(1, {0x1p24F, 1}, {1, 1}), 0x1p24F + 2);
}
TEST(X86Functions, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(DotOfPairs(1, {0, 0x1p-12F}, {0, 0x1p-12F}), 1);
  EXPECT_EQ(DotOfPairs(1 + 0x1p-23F, {0, 0x1p-12F}, {0, 0x1p-12F}), 1 + 0x1p-22F);
  EXPECT_EQ(DotOfPairs(1, {0, 0x1.02p-12F}, {0, 0x1p-12F}), 1 + 0x1p-23F);
}
TEST(X86Functions, Bfloat16RoundsOnceAProduct) {
  EXPECT_EQ(DotOfPairs(-0x1p127F, {0, 0x1p100F}, {0, 0x1p28F}), 0x1p127F);  // the product alone is infinite in float32
}
TEST(X86Functions, Bfloat16HasNoDenormalNumbers) {
  const float least_normal = FLT_MIN, denormal = 0x1p-130F;
  EXPECT_EQ(DotOfPairs(denormal, {0, 1}, {0, 0}), 0) << "a sum";
  EXPECT_EQ(DotOfPairs(0, {0, denormal}, {0, 0x1p127F}), 0) << "a factor";
  EXPECT_EQ(DotOfPairs(0, {0, 0x1p-100F}, {0, 0x1p-40F}), 0) << "a result";
  EXPECT_EQ(DotOfPairs(0, {0x1p60F, 0x1p-100F}, {0x1p-100F, 0x1p-40F}), 0x1p-40F) << "one in between";
  EXPECT_EQ(DotOfPairs(0, {0, least_normal}, {0, 1}), least_normal);
}

// ---- Tile registers

struct Configuration {
  std::array<uint8_t, 64> bytes{};
  void Set(size_t tile, uint8_t rows, uint8_t row_bytes) {
    bytes[16 + 2 * tile] = row_bytes;
    bytes[48 + tile] = rows;
  }
};
void TileCall(const char* function, std::vector<int64_t> args) {
  std::vector<const void*> pointers;
  for (const int64_t& arg : args) pointers.push_back(&arg);
  X86Body const body = FindX86Body(function);
  HONE_CHECK(body != nullptr) << function << " has no body";
  body(nullptr, pointers.data());
}
int64_t AddressOf(const void* p) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(p)); }
void Configure(const Configuration& configuration) {
  TileCall("llvm.x86.ldtilecfg", {AddressOf(configuration.bytes.data())});
}
// Sums in register 0 of 2 rows of 3 elements, left ones in 1, right ones in 2, 4 elements of 32 bits deep.
Configuration Product() {
  Configuration c;
  c.bytes[0] = 1;
  c.Set(0, 2, 12), c.Set(1, 2, 16), c.Set(2, 4, 12);
  return c;
}

TEST(X86TileFunctions, ProductOfItsSizes) {
  Configure(Product());
  std::array<uint8_t, 2 * 20> left;   // rows of 16 bytes, 20 apart
  std::array<int8_t, 4 * 12> right;   // 4 x 3 groups of 4
  std::array<int32_t, 2 * 5> sums{};  // rows of 3, 5 apart
  for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<uint8_t>(250 - 3 * i);
  for (size_t i = 0; i < right.size(); ++i) right[i] = static_cast<int8_t>(static_cast<int>(i * 37 % 256) - 128);
  TileCall("llvm.x86.tilezero", {0});
  TileCall("llvm.x86.tileloadd64", {1, AddressOf(left.data()), 20});
  TileCall("llvm.x86.tileloadd64", {2, AddressOf(right.data()), 12});
  for (int times = 0; times < 2; ++times) TileCall("llvm.x86.tdpbusd", {0, 1, 2});
  TileCall("llvm.x86.tilestored64", {0, AddressOf(sums.data()), 20});
  TileCall("llvm.x86.tilerelease", {});
  EXPECT_THAT(TakeX86Faults(), IsEmpty());
  for (size_t m = 0; m < 2; ++m) {
    for (size_t n = 0; n < 5; ++n) {
      int32_t want = 0;
      for (size_t k = 0; k < 16 && n < 3; ++k) want += 2 * left[m * 20 + k] * right[k / 4 * 12 + n * 4 + k % 4];
      EXPECT_EQ(sums[m * 5 + n], want) << m << " " << n;
    }
  }
}

// Even and odd elements are summed up apart: 2^24 + 1 - 2^24 among the even ones is 0, the odd ones are 1.
TEST(X86TileFunctions, Bfloat16SumsEvenAndOddElementsApart) {
  Configuration c;
  c.bytes[0] = 1;
  c.Set(0, 1, 4), c.Set(1, 1, 12), c.Set(2, 3, 4);
  Configure(c);
  const std::array<uint16_t, 6> left = {Bfloat16(0x1p24F), Bfloat16(1),        Bfloat16(1),
                                        Bfloat16(0),       Bfloat16(-0x1p24F), Bfloat16(0)};
  std::array<uint16_t, 6> right;
  right.fill(Bfloat16(1));
  std::array<float, 1> sum = {0x1p25F};
  TileCall("llvm.x86.tileloadd64", {0, AddressOf(sum.data()), 4});
  TileCall("llvm.x86.tileloadd64", {1, AddressOf(left.data()), 12});
  TileCall("llvm.x86.tileloadd64", {2, AddressOf(right.data()), 4});
  TileCall("llvm.x86.tdpbf16ps", {0, 1, 2});
  TileCall("llvm.x86.tilestored64", {0, AddressOf(sum.data()), 4});
  EXPECT_EQ(sum[0], 0x1p25F) << "1 is less than half a unit";
  sum = {8};
  TileCall("llvm.x86.tileloadd64", {0, AddressOf(sum.data()), 4});
  TileCall("llvm.x86.tdpbf16ps", {0, 1, 2});
  TileCall("llvm.x86.tilestored64", {0, AddressOf(sum.data()), 4});
  EXPECT_EQ(sum[0], 9);
  TileCall("llvm.x86.tilerelease", {});
  EXPECT_THAT(TakeX86Faults(), IsEmpty());
}

TEST(X86TileFunctions, WhatIsAnExceptionIsNamed) {
  TileCall("llvm.x86.tilezero", {3});
  EXPECT_THAT(TakeX86Faults(), ElementsAre("tilezero: register 3 is not configured"));
  Configuration c = Product();
  c.Set(2, 3, 12);
  Configure(c);
  TileCall("llvm.x86.tdpbssd", {0, 1, 2});
  EXPECT_THAT(TakeX86Faults(),
              ElementsAre("tdpb**d: sums of 2 x 12 bytes, left 2 x 16, right 3 x 12", HasSubstr("are in use")));
  TileCall("llvm.x86.tilerelease", {});
  c.Set(2, 17, 12);
  Configure(c);
  TileCall("llvm.x86.tilerelease", {});
  EXPECT_THAT(TakeX86Faults(), ElementsAre("ldtilecfg: 17 rows of 12 bytes in register 2"));
  Configure(Product());
  TileCall("llvm.x86.tdpbuud", {0, 1, 1});
  TileCall("llvm.x86.tilerelease", {});
  EXPECT_THAT(TakeX86Faults(), ElementsAre("tdpb**d: a register twice", HasSubstr("sums of 2 x 12")));
}

}  // namespace
}  // namespace hone::testing
