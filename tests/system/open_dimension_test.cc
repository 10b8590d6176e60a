// A model that leaves a dimension open: 1 unless --dim says otherwise, and either is said.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A small model whose first dimension is open, by name or without one.
std::string OpenModel(const TempFolder& folder, const std::string& name) {
  onnx::ModelProto proto = TinyModel().Proto();
  for (onnx::ValueInfoProto* value :
       {proto.mutable_graph()->mutable_input(0), proto.mutable_graph()->mutable_output(0)})
    value->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param(name);
  const std::string model = folder / "open.onnx";
  WriteAll(model, proto.SerializeAsString());
  return model;
}

TEST(OpenDimension, IsOneOrWhatDimSays) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, "rows"), bundle = folder / "open.hone";
  const Finished one = Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--threads", "1"});
  EXPECT_EQ(one.code, 0) << one.errors;
  EXPECT_THAT(one.errors, HasSubstr("has no fixed size and is taken as 1; --dim rows=SIZE gives another."));
  const Finished seven =
      Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--threads", "1", "--dim", "rows=7"});
  EXPECT_EQ(seven.code, 0) << seven.errors;
  EXPECT_THAT(seven.errors, Not(HasSubstr("taken as 1")));
  const Finished shapes = Hone(folder, {"inspect", bundle});
  EXPECT_THAT(shapes.output, HasSubstr("x: float32[7,"));
  const Finished run = Hone(folder, {"run", bundle, "--random", "--verify", model});
  EXPECT_EQ(run.code, 0) << run.errors;
  const Finished wrong = Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--dim", "columns=7"});
  EXPECT_EQ(wrong.code, 3) << wrong.errors;
  EXPECT_THAT(wrong.errors, HasSubstr("the inputs have no dimension of that name; they have rows"));
}

TEST(OpenDimension, ARangeIsLeftToEachRun) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, "rows"), bundle = folder / "open.hone";
  const Finished compile =
      Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--threads", "2", "--dim", "rows=2..40"});
  EXPECT_EQ(compile.code, 0) << compile.errors;
  const Finished shapes = Hone(folder, {"inspect", bundle});
  EXPECT_THAT(shapes.output, HasSubstr("x: float32(rows, "));
  EXPECT_THAT(shapes.output, HasSubstr("rows from 2 to 40"));
  EXPECT_THAT(shapes.output, HasSubstr(" up to [")) << "kernels of one name, each for some sizes";
  EXPECT_THAT(Hone(folder, {"inspect", bundle, bundle}).output, testing::StartsWith("0 kernels differ, "));
  for (const char* rows : {"rows=2", "rows=3", "rows=16", "rows=17", "rows=39", "rows=40"}) {
    const Finished run = Hone(folder, {"run", bundle, "--random", "--dim", rows, "--verify", model});
    EXPECT_EQ(run.code, 0) << rows << run.errors;
  }
  for (const char* rows : {"rows=1", "rows=41"}) {
    const Finished run = Hone(folder, {"run", bundle, "--random", "--dim", rows});
    EXPECT_EQ(run.code, 2) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr("with rows from 2 to 40, the tensor ("));
  }
  const Finished unknown = Hone(folder, {"run", bundle, "--random", "--dim", "columns=3"});
  EXPECT_THAT(unknown.errors, HasSubstr("the bundle has no size of that name; it has rows"));
}

// What a bundle for a range is expected to take beside one for a size alone is said, at the greatest size among others.
TEST(OpenDimension, TheRegretIsSaid) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, "rows"), bundle = folder / "open.hone";
  const Arguments arguments{"compile", model, "-o", bundle, "--untuned", "--threads", "2", "--dim", "rows=1..48"};
  const Finished said = Hone(folder, arguments);
  EXPECT_EQ(said.code, 0) << said.errors;
  EXPECT_THAT(said.errors, HasSubstr("expected time over that of a bundle for one size alone: rows=1 "));
  EXPECT_THAT(said.errors, HasSubstr("rows=48 "));
  Arguments as_json = arguments;
  as_json.push_back("--json");
  const Finished json = Hone(folder, as_json);
  const auto regrets = JsonLines(json.output).back().at("regrets");
  ASSERT_EQ(regrets.size(), 4u);
  for (const auto& at : regrets) {
    EXPECT_GE(at.at("regret").get<double>(), 1);
    EXPECT_LE(at.at("regret").get<double>(), 1.3) << at.dump();
  }
  EXPECT_EQ(regrets.front().at("sizes").at("rows"), 1) << "one row is not like several";
  EXPECT_EQ(regrets.back().at("sizes").at("rows"), 48);
}

TEST(OpenDimension, WithoutANameIsCalledByItsPlace) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, ""), bundle = folder / "open.hone";
  const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--dim", "x.0=1..4"});
  EXPECT_EQ(compile.code, 0) << compile.errors;
  const Finished run = Hone(folder, {"run", bundle, "--random", "--dim", "x.0=3"});
  EXPECT_EQ(run.code, 0) << run.errors;
}

// Tasks are tuned at a few sizes, and what was found serves those around.
TEST(OpenDimension, ARangeIsTuned) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, "rows"), bundle = folder / "open.hone", database = folder / "t.db";
  const Finished tune = Hone(
      folder, {"tune", model, "--db", database, "--threads", "2", "--trials", "12", "--dim", "rows=1..32", "--json"});
  ASSERT_EQ(tune.code, 0) << tune.errors;
  EXPECT_THAT(tune.errors, HasSubstr("_rows32"));
  const Finished compile = Hone(
      folder, {"compile", model, "-o", bundle, "--db", database, "--threads", "2", "--dim", "rows=1..32", "--json"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  EXPECT_GT(JsonLines(compile.output).back().at("from_near_records").get<int>(), 0) << compile.output;
  for (const char* rows : {"rows=1", "rows=3", "rows=8", "rows=9", "rows=31", "rows=32"}) {
    const Finished run = Hone(folder, {"run", bundle, "--random", "--dim", rows, "--verify", model});
    EXPECT_EQ(run.code, 0) << rows << run.errors;
  }
}

TEST(OpenDimension, WhatTakesNoRangeSaysSo) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, "rows"), bundle = folder / "open.hone";
  const Finished tune = Hone(folder, {"tune", model, "--dim", "rows=1..4", "--target", "opencl:generic"});
  EXPECT_EQ(tune.code, 2) << tune.errors;
  EXPECT_THAT(tune.errors, HasSubstr("for a device a dimension has one size"));
  const Finished locked =
      Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--dim", "rows=1..4", "--lock", folder / "l"});
  EXPECT_EQ(locked.code, 2) << locked.errors;
  EXPECT_THAT(locked.errors, HasSubstr("--dim rows=LOW..HIGH: with --lock a dimension has one size"));
  const Finished device =
      Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--dim", "rows=1..4", "--target", "opencl:generic"});
  EXPECT_THAT(device.errors, HasSubstr("for a device a dimension has one size"));
}

}  // namespace
}  // namespace hone::system_test
