// Which times are possible: forged ones are not, and those of busy machines are.
#include "worker/measure/plausible_time.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(IsPossibleTime, ForgedTimesAreNotAndBusyMachinesAre) {
  EXPECT_TRUE(IsPossibleTime(100'000, 1, 100'000));
  EXPECT_TRUE(IsPossibleTime(100'000, 1, 40'000)) << "it waited for a processor";
  EXPECT_TRUE(IsPossibleTime(100'000, 4, 400'000));
  EXPECT_TRUE(IsPossibleTime(300, 1, 4'000)) << "a short one says little";
  EXPECT_FALSE(IsPossibleTime(100'000, 1, 250'000));
  EXPECT_FALSE(IsPossibleTime(100'000, 2, 450'000));
}

TEST(AgreesWithClock, WhatPassedElsewhereIsMissed) {
  EXPECT_TRUE(AgreesWithClock(100'000, 3'000));
  EXPECT_TRUE(AgreesWithClock(100'000, -3'000));
  EXPECT_TRUE(AgreesWithClock(100, 900)) << "waking up";
  EXPECT_FALSE(AgreesWithClock(50'000, 50'000)) << "half of the time passed elsewhere";
  EXPECT_FALSE(AgreesWithClock(100'000, 20'000));
  EXPECT_FALSE(AgreesWithClock(0, 30'000)) << "its clock stands";
}

TEST(Remembers, WhoIsFasterOnTheSameInputs) {
  EXPECT_FALSE(Remembers(100, 100));
  EXPECT_FALSE(Remembers(140, 100)) << "noise";
  EXPECT_FALSE(Remembers(90, 100));
  EXPECT_FALSE(Remembers(1.2, 0.4)) << "shorter than the clock tells";
  EXPECT_TRUE(Remembers(100, 60));
  EXPECT_TRUE(Remembers(40, 1));
}

}  // namespace
}  // namespace hone
