#include "compiler/driver/models/import_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/support/random.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const ImportFlags& flags) {
  const absl::StatusOr<ImportOptions> options = ImportOptionsOf(flags);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(ImportFlags, SayWhatTheModelLeavesOpen) {
  const absl::StatusOr<ImportOptions> options = ImportOptionsOf({.dims = {"batch=4"},
                                                                 .shapes = {"y=4x2", "z=scalar"},
                                                                 .values = {"size=2,-3.5"},
                                                                 .sequences = {"x=2x3,4", "none="},
                                                                 .absent = {"mask"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->dims.at("batch"), 4);
  EXPECT_THAT(options->shapes.at("y"), ElementsAre(4, 2));
  EXPECT_TRUE(options->shapes.at("z").empty());
  EXPECT_THAT(options->values.at("size"), ElementsAre(2, -3.5));
  EXPECT_THAT(options->sequences.at("x"), ElementsAre(ElementsAre(2, 3), ElementsAre(4)));
  EXPECT_TRUE(options->sequences.at("none").empty());
  EXPECT_THAT(options->absent, ElementsAre("mask"));
}

TEST(ImportFlags, WhatIsMalformedIsNamed) {
  EXPECT_THAT(ErrorOf({.dims = {"batch=-1"}}), HasSubstr("--dim batch=-1: it is NAME=SIZE"));
  EXPECT_THAT(ErrorOf({.shapes = {"y=4x"}}), HasSubstr("--shape y=4x: it is NAME=SIZES, such as y=4x2"));
  EXPECT_THAT(ErrorOf({.shapes = {"y=1", "y=2"}}), HasSubstr("--shape y=2: y has one already"));
  EXPECT_THAT(ErrorOf({.values = {"n=1", "n=1"}}), HasSubstr("--value n=1: n has one already"));
  EXPECT_THAT(ErrorOf({.values = {"size=two"}}), HasSubstr("--value size=two: it is NAME=NUMBERS"));
  EXPECT_THAT(ErrorOf({.sequences = {"x=-1"}}), HasSubstr("--sequence x=-1"));
}

TEST(ImportFlags, ADimensionMayHaveARange) {
  const absl::StatusOr<ImportOptions> options = ImportOptionsOf({.dims = {"batch=1..64", "seq=7..7", "x.1=3"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->ranges.size(), 1u);
  EXPECT_EQ(options->ranges.at("batch"), (SizeRange{1, 64}));
  EXPECT_EQ(ImportOptionsOf({.dims = {"past=0..8"}})->ranges.at("past"), (SizeRange{0, 8})) << "there may be none";
  EXPECT_EQ(ImportOptionsOf({.dims = {"past=0"}})->dims.at("past"), 0);
  EXPECT_EQ(options->dims.at("seq"), 7) << "a range of one size is that size";
  EXPECT_EQ(options->dims.at("x.1"), 3);
  EXPECT_THAT(ErrorOf({.dims = {"batch=1..4", "batch=2"}}), HasSubstr("--dim batch=2: batch has a size already"));
  EXPECT_THAT(ErrorOf({.dims = {"batch=2", "batch=1..4"}}), HasSubstr("--dim batch=1..4: batch has a size already"));
}

TEST(ImportFlags, WhatIsNoRangeIsRefusedWithTheForm) {
  for (const char* text :
       {"batch", "batch=", "=1..4", "=", "batch=0..0", "batch=-1", "batch=4..1", "batch=1..", "batch=..4", "batch=..",
        "batch=1...4", "batch=1.4", "batch=-1..4", "batch=1..2147483648", "batch=1..99999999999999999999",
        "batch=1..4..8", "batch=a..b", "batch=1.. 4x", "batch=1e1"}) {
    EXPECT_THAT(ErrorOf({.dims = {text}}),
                HasSubstr(std::string("--dim ") + text + ": it is NAME=SIZE, such as batch=4, or NAME=LOW..HIGH"))
        << text;
  }
}

// Of any text there comes a size, a range, or the message.
TEST(ImportFlags, AnyTextIsASizeOrRefused) {
  Random random(7, 0);
  const std::string letters = "n=..0123456789 -x";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t length = random.Below(14); length > 0; --length) text += letters[random.Below(letters.size())];
    const absl::StatusOr<ImportOptions> options = ImportOptionsOf({.dims = {text}});
    if (!options.ok()) {
      EXPECT_THAT(options.status().message(), HasSubstr("--dim " + text));
      continue;
    }
    ASSERT_EQ(options->dims.size() + options->ranges.size(), 1u) << text;
    for (const auto& [name, size] : options->dims) EXPECT_GE(size, 0) << text;
    for (const auto& [name, range] : options->ranges) {
      EXPECT_GE(range.min, 0) << text;
      EXPECT_GT(range.max, range.min) << text;
    }
  }
}

TEST(ImportFlags, AreGivenAgainAsTheyWere) {
  const ImportFlags flags{.dims = {"n=1"}, .values = {"size=2,3"}, .absent = {"mask"}};
  EXPECT_EQ(flags.AsFlags(), " --dim n=1 --value size=2,3 --absent mask");
}

}  // namespace
}  // namespace hone
