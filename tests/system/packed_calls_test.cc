// A model that calls a function of the program that runs it: what our own programs do with it, which have no such
// function.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;

// With that many rows: a number, or the name of a size in quotes.
std::string CallingModule(const std::string& rows) {
  const std::string type = "R.Tensor((" + rows + ", 50), dtype=\"float32\")";
  return "@I.ir_module\n"
         "class Module:\n"
         "    @R.function\n"
         "    def main(x: " +
         type + ") -> " + type +
         ":\n"
         "        with R.dataflow():\n"
         "            lv = R.nn.softmax(x, axis=-1)\n"
         "            lv1 = R.call_dps_packed(\"env.scale\", (lv,), out_sinfo=" +
         type +
         ")\n"
         "            gv = R.nn.softmax(lv1, axis=-1)\n"
         "            R.output(gv)\n"
         "        return gv\n";
}

TEST(PackedCalls, AreNamedByProgramsThatCannotMakeThem) {
  const TempFolder folder;
  const std::string model = folder / "calls.py", bundle = folder / "calls.hone";
  WriteAll(model, CallingModule("12"));
  const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--untuned"});
  ASSERT_EQ(compile.code, 0) << compile.errors;

  EXPECT_THAT(Hone(folder, {"inspect", bundle}).output,
              HasSubstr("functions     [\"env.scale\"] of the program that runs"));
  const Json manifest = JsonLines(Hone(folder, {"inspect", bundle, "--json"}).output).at(0);
  EXPECT_EQ(manifest.at("functions"), Json({"env.scale"}));

  for (const Arguments& arguments :
       {Arguments{"run", bundle, "--random"}, {"bench", bundle}, {"bench", bundle, bundle}}) {
    const Finished finished = Hone(folder, arguments);
    EXPECT_EQ(finished.code, 10) << finished.errors;
    EXPECT_THAT(finished.errors,
                HasSubstr("calls functions that only a program of yours has: env.scale; run it there"));
  }

  for (const Arguments& arguments :
       {Arguments{"compile", model, "-o", folder / "gpu.hone", "--untuned", "--target", "opencl:generic"},
        {"tune", model, "--target", "opencl:generic", "--trials", "1"}}) {
    const Finished finished = Hone(folder, arguments);
    EXPECT_EQ(finished.code, 2) << finished.errors;
    EXPECT_THAT(finished.errors, HasSubstr("the model calls \"env.scale\", a function of the program that runs it"));
  }
}

TEST(PackedCalls, HaveTensorsOfOneShape) {
  const TempFolder folder;
  const std::string model = folder / "calls.py";
  WriteAll(model, CallingModule("\"n\""));
  const Finished refused =
      Hone(folder, {"compile", model, "-o", folder / "calls.hone", "--untuned", "--dim", "n=1..12"});
  EXPECT_EQ(refused.code, 3) << refused.errors;
  EXPECT_THAT(refused.errors, HasSubstr("the model calls \"env.scale\", a function of the program that runs it, whose "
                                        "tensors have one shape"));
  const Finished compile = Hone(folder, {"compile", model, "-o", folder / "calls.hone", "--untuned", "--dim", "n=12"});
  EXPECT_EQ(compile.code, 0) << compile.errors;
}

TEST(PackedCalls, DoNotKeepAModelFromBeingTuned) {
  const TempFolder folder;
  const std::string model = folder / "calls.py";
  WriteAll(model, CallingModule("12"));
  const Finished tune = Hone(folder, {"tune", model, "--db", folder / "tuning.db", "--trials", "2", "--threads", "1"});
  EXPECT_EQ(tune.code, 0) << tune.errors;
  EXPECT_THAT(tune.errors, HasSubstr("the model was not timed: this machine lacks a program that has env.scale\n"));
}

}  // namespace
}  // namespace hone::system_test
