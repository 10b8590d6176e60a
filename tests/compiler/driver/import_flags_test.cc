#include "compiler/driver/import_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(ErrorOf({.dims = {"batch=0"}}), HasSubstr("--dim batch=0: it is NAME=SIZE"));
  EXPECT_THAT(ErrorOf({.shapes = {"y=4x"}}), HasSubstr("--shape y=4x: it is NAME=SIZES, such as y=4x2"));
  EXPECT_THAT(ErrorOf({.shapes = {"y=1", "y=2"}}), HasSubstr("--shape y=2: y has one already"));
  EXPECT_THAT(ErrorOf({.values = {"n=1", "n=1"}}), HasSubstr("--value n=1: n has one already"));
  EXPECT_THAT(ErrorOf({.values = {"size=two"}}), HasSubstr("--value size=two: it is NAME=NUMBERS"));
  EXPECT_THAT(ErrorOf({.sequences = {"x=-1"}}), HasSubstr("--sequence x=-1"));
}

TEST(ImportFlags, AreGivenAgainAsTheyWere) {
  const ImportFlags flags{.dims = {"n=1"}, .values = {"size=2,3"}, .absent = {"mask"}};
  EXPECT_EQ(flags.AsFlags(), " --dim n=1 --value size=2,3 --absent mask");
}

}  // namespace
}  // namespace hone
