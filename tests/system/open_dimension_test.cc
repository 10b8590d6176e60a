// A model that leaves a dimension open: 1 unless --dim says otherwise, and either is said.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OpenDimension, IsOneOrWhatDimSays) {
  const TempFolder folder;
  onnx::ModelProto proto = TinyModel().Proto();
  for (onnx::ValueInfoProto* value :
       {proto.mutable_graph()->mutable_input(0), proto.mutable_graph()->mutable_output(0)})
    value->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("rows");
  const std::string model = folder / "open.onnx", bundle = folder / "open.hone";
  WriteAll(model, proto.SerializeAsString());
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

}  // namespace
}  // namespace hone::system_test
