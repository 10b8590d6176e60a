// A bundle is a function of the model, the target and the records: where and how it is compiled leaves no trace in it.
#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

// Compiles in a shell, under `environment`; the bytes of the bundle.
std::string BundleUnder(const TempFolder& folder, const std::string& environment, const std::string& model,
                        const std::string& target, int number) {
  const std::string bundle = folder / (std::to_string(number) + ".hone");
  const Finished compile = RunProgram(folder, "/bin/sh",
                                      {"-c", environment + " " + HONE_BIN + "/hone compile " + model + " -o " + bundle +
                                                 " --untuned --threads 2 --target " + target});
  EXPECT_EQ(compile.code, 0) << environment << "\n" << compile.errors;
  return ReadAll(bundle);
}

TEST(SameBundle, WhateverTheEnvironment) {
  const TempFolder folder;
  const std::string tiny = SaveTiny(folder.path());
  std::vector<std::string> models = {tiny};
  if (const char* more = std::getenv("HONE_MODELS")) models.push_back(std::string(more) + "/mobilenetv2.onnx");
  const std::vector<std::string> environments = {"env -i LC_ALL=tr_TR.UTF-8 TZ=Asia/Kathmandu TMPDIR=/nonexistent",
                                                 "cd / && setarch -R taskset -c 0", "env MALLOC_PERTURB_=165"};
  // A network takes seconds to compile: all that may leave a trace at once. The tiny model says which it was.
  const std::vector<std::string> all_at_once = {
      "cd / && env -i LC_ALL=tr_TR.UTF-8 TZ=Asia/Kathmandu TMPDIR=/nonexistent MALLOC_PERTURB_=165 "
      "setarch -R taskset -c 0"};
  int number = 0;
  for (const std::string& model : models) {
    for (const char* target : {"cpu:x86-64-v3,cores=4", "cpu:cortex-a76,cores=4"}) {
      const std::string usual = BundleUnder(folder, "", model, target, number++);
      ASSERT_FALSE(usual.empty());
      for (const std::string& environment : model == tiny ? environments : all_at_once) {
        EXPECT_TRUE(BundleUnder(folder, environment, model, target, number++) == usual)
            << model << " for " << target << " under " << environment;
      }
    }
  }
}

}  // namespace
}  // namespace hone::system_test
