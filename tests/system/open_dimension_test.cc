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

TEST(OpenDimension, WithoutANameIsCalledByItsPlace) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, ""), bundle = folder / "open.hone";
  const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--dim", "x.0=1..4"});
  EXPECT_EQ(compile.code, 0) << compile.errors;
  const Finished run = Hone(folder, {"run", bundle, "--random", "--dim", "x.0=3"});
  EXPECT_EQ(run.code, 0) << run.errors;
}

TEST(OpenDimension, WhatTakesNoRangeSaysSo) {
  const TempFolder folder;
  const std::string model = OpenModel(folder, "rows"), bundle = folder / "open.hone";
  const Finished tune = Hone(folder, {"tune", model, "--dim", "rows=1..4"});
  EXPECT_EQ(tune.code, 2) << tune.errors;
  EXPECT_THAT(tune.errors, HasSubstr("kernels of symbolic sizes are not tuned yet; tune one size"));
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
