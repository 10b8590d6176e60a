#include "compiler/ir/float_format.h"

#include <cmath>
#include <vector>

#include "compiler/ir/scalar_arith.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

const DType kNarrow[] = {DType::Float(16), DType::BFloat16(), DType::Float8E4M3(), DType::Float8E5M2()};

TEST(FloatFormat, KnownBits) {
  const DType e4m3 = DType::Float8E4M3(), e5m2 = DType::Float8E5M2();
  EXPECT_EQ(BitsToFloat(0x01, e4m3), 0x1p-9);
  EXPECT_EQ(BitsToFloat(0x07, e4m3), 0x7p-9);
  EXPECT_EQ(BitsToFloat(0x08, e4m3), 0x1p-6);
  EXPECT_EQ(BitsToFloat(0xB8, e4m3), -1.0);
  EXPECT_EQ(BitsToFloat(0x7E, e4m3), 448.0);
  EXPECT_TRUE(std::isnan(BitsToFloat(0x7F, e4m3)));
  EXPECT_TRUE(std::isnan(BitsToFloat(0xFF, e4m3)));
  EXPECT_EQ(BitsToFloat(0x01, e5m2), 0x1p-16);
  EXPECT_EQ(BitsToFloat(0x04, e5m2), 0x1p-14);
  EXPECT_EQ(BitsToFloat(0x3C, e5m2), 1.0);
  EXPECT_EQ(BitsToFloat(0x7B, e5m2), 57344.0);
  EXPECT_EQ(BitsToFloat(0xFC, e5m2), -INFINITY);
  EXPECT_TRUE(std::isnan(BitsToFloat(0x7D, e5m2)));
  EXPECT_EQ(BitsToFloat(0x3C01, DType::Float(16)), 1 + 0x1p-10);
  EXPECT_EQ(BitsToFloat(0x3F81, DType::BFloat16()), 1 + 0x1p-7);
}

TEST(FloatFormat, EveryNumberHasItsBits) {
  for (const DType type : kNarrow) {
    for (int bits = 0; bits < 1 << type.bits; ++bits) {
      const double value = BitsToFloat(static_cast<uint16_t>(bits), type);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(BitsToFloat(FloatToBits(value, type), type))) << ToText(type) << " " << bits;
        continue;
      }
      ASSERT_EQ(FloatToBits(value, type), bits) << ToText(type);
      ASSERT_EQ(RoundToType(value, type), value) << ToText(type) << " " << bits;
    }
  }
}

// What lies between two neighbours goes to the nearer, and halfway to the one whose last bit is 0.
TEST(FloatFormat, RoundsToTheNearest) {
  for (const DType type : kNarrow) {
    const uint16_t largest = FloatToBits(FormatOf(type).largest, type);
    for (uint16_t bits = 0; bits < largest; ++bits) {
      const double low = BitsToFloat(bits, type), high = BitsToFloat(static_cast<uint16_t>(bits + 1), type);
      const double middle = (low + high) / 2;
      ASSERT_EQ(RoundToType(std::nextafter(middle, 0), type), low) << ToText(type) << " " << bits;
      ASSERT_EQ(RoundToType(std::nextafter(middle, INFINITY), type), high) << ToText(type) << " " << bits;
      ASSERT_EQ(RoundToType(-middle, type), bits % 2 == 0 ? -low : -high) << ToText(type) << " " << bits;
    }
  }
}

}  // namespace
}  // namespace hone
