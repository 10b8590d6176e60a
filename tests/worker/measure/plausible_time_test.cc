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

// Whether `pairs` alike agree, of what was left unaccounted for: {first request, second request}.
bool Agrees(double calls_us, int pairs, double once_us, double twice_us, double waits_us = 0) {
  UnaccountedTime time(calls_us);
  for (int pair = 0; pair < pairs; ++pair) time.Add(once_us, twice_us, waits_us);
  return time.Agrees();
}

TEST(UnaccountedTime, WhatPassedElsewhereIsMissed) {
  EXPECT_TRUE(Agrees(100'000, 1, 2'000, 5'000)) << "even what surrounds the calls is short";
  EXPECT_TRUE(Agrees(100, 1, 100, 900)) << "waking up";
  EXPECT_TRUE(Agrees(100'000, 4, 500'000, 503'000)) << "outputs are copied";
  EXPECT_TRUE(Agrees(100'000, 4, 503'000, 500'000));
  EXPECT_TRUE(Agrees(100'000, 4, 500'000, 530'000, 25'000)) << "it waited for a processor";
  EXPECT_FALSE(Agrees(50'000, 8, 0, 50'000)) << "half of the time passed elsewhere";
  EXPECT_FALSE(Agrees(100'000, 8, 500'000, 520'000));
  EXPECT_FALSE(Agrees(0, 8, 0, 30'000)) << "its clock stands";
}

TEST(UnaccountedTime, AFirstRequestThatWasHeldUpHidesNothing) {
  UnaccountedTime liar(20'000);
  liar.Add(19'000, 20'000, 0);  // 19 ms of these are the machine's
  EXPECT_FALSE(liar.Agrees());
  for (int pair = 0; pair < 3; ++pair) liar.Add(100, 20'000, 0);
  EXPECT_FALSE(liar.Agrees());

  UnaccountedTime honest(20'000);
  honest.Add(0, 18'000, 0);  // held up at its many calls
  EXPECT_FALSE(honest.Agrees());
  honest.Add(0, 300, 0);
  EXPECT_TRUE(honest.Agrees());
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
