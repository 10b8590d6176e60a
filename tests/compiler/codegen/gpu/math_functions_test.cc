// Every function of ir/math_functions.h on a GPU: printed in each language, compiled by NVRTC, run by OpenCL; under the
// language's own name, and made of its expansion as in a language that lacks it. The printers name none of them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/ir/math_functions.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "deploy/runtime/devices/opencl_device.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/deploy/runtime/pocl_cache.h"

namespace hone::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPoints[] = {0,    -0.0,  1,    -1,  0.5, -0.25, 3.75, -2.5,      30,         -30,
                              88.5, -88.5, -110, 110, 0.3, 2.414, 1e-6, kInfinity, -kInfinity, 1e-3};

// A kernel of all functions; what each writes has the name by which a language may know the function.
DeviceProgram AllFunctions(DType type) {
  constexpr char kBlock[] = R"(
        with T.block("OUT"):
            v = T.axis.spatial(SIZE, t)
            OUT[v] = T.FUNCTION(ARGUMENTS))";
  std::string params = "A: BUFFER, B: BUFFER",
              blocks = "\n    for t in T.thread_binding(SIZE, thread=\"threadIdx.x\"):";
  for (const MathFunction& function : MathFunctions()) {
    const std::string_view device = function.device.opencl;
    const std::string out(device.empty() ? function.name : device);
    absl::StrAppend(&params, ", ", out, ": BUFFER");
    absl::StrAppend(&blocks, absl::StrReplaceAll(kBlock, {{"OUT", out},
                                                          {"FUNCTION", std::string(function.name)},
                                                          {"ARGUMENTS", function.of_two ? "A[v], B[v]" : "A[v]"}}));
  }
  const std::string buffer = absl::StrCat("T.Buffer((SIZE,), \"", ToText(type), "\")");
  const std::string text =
      absl::StrReplaceAll(absl::StrCat("@T.prim_func\ndef main(", params, "):", blocks, "\n"), {{"BUFFER", buffer}});
  const absl::StatusOr<PrimFunc> func =
      ParsePrimFunc(absl::StrReplaceAll(text, {{"SIZE", absl::StrCat(std::size(kPoints))}}));
  HONE_CHECK(func.ok()) << func.status() << text;
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(*func);
  HONE_CHECK(program.ok()) << program.status();
  return *program;
}

// The language as it is, and one that has no function with an expansion.
std::vector<Dialect> WithAndWithout(const Dialect& language) {
  Dialect without = language;
  without.name_of_math = [](const MathFunction& f) { return std::string(f.expand ? "" : f.device.opencl); };
  return {language, without};
}

class MathOnGpus : public ::testing::TestWithParam<DType> {};

TEST_P(MathOnGpus, PrintsInEveryLanguage) {
  const DeviceProgram program = AllFunctions(GetParam());
  for (const Dialect* language : {&OpenClC(), &CudaCpp()}) {
    for (const Dialect& dialect : WithAndWithout(*language)) {
      const absl::StatusOr<std::string> source = PrintKernels(program, dialect, {});
      ASSERT_TRUE(source.ok()) << source.status();
      const std::string helper = absl::StrCat("sigmoid_", GetParam().bits == 64 ? "float64" : "float32", "(");
      EXPECT_NE(source->find(helper), std::string::npos) << *source;
    }
  }
}

TEST_P(MathOnGpus, CompilesAsCuda) {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const DeviceProgram program = AllFunctions(GetParam());
  for (const Dialect& dialect : WithAndWithout(CudaCpp())) {
    const absl::StatusOr<std::string> source = PrintKernels(program, dialect, {});
    ASSERT_TRUE(source.ok()) << source.status();
    const absl::StatusOr<CudaImage> image = (*nvrtc)->Compile(*source, "sm_80");
    EXPECT_TRUE(image.ok()) << image.status() << *source;
  }
}

// How far the function may be from its value, in the terms of its record.
double Bound(const MathFunction& function, DType type, double value) {
  const double u = type.bits == 64 ? 0x1p-53 : type.bits == 32 ? 0x1p-24 : 0x1p-11;
  const double least = type.bits == 64 ? 0x1p-1022 : type.bits == 32 ? 0x1p-126 : 0x1p-24;
  return u * ((function.errors.relative + 2) * std::abs(value) + function.errors.absolute) + least;
}

// Runs all functions on the points; what differs from their values, a line each.
std::string WrongOn(hone::Device& device, DType type, const Dialect& dialect) {
  const DeviceProgram program = AllFunctions(type);
  std::vector<NdArray> args(2 + MathFunctions().size(), NdArray(type, {std::size(kPoints)}));
  for (size_t i = 0; i < std::size(kPoints); ++i) {
    args[0].Set(static_cast<int64_t>(i), kPoints[i]);
    args[1].Set(static_cast<int64_t>(i), static_cast<double>(i % 5) / 2 - 1);
  }
  const absl::StatusOr<std::string> source = PrintKernels(program, dialect, {});
  if (!source.ok()) return source.status().ToString();
  if (const absl::Status ran = RunCode(device, program, dialect, *source, args); !ran.ok())
    return absl::StrCat(ran.ToString(), *source);
  std::string wrong;
  for (size_t f = 0; f < MathFunctions().size(); ++f) {
    const MathFunction& function = MathFunctions()[f];
    for (int64_t i = 0; i < args[0].NumElements(); ++i) {
      const double a = args[0].Get(i), b = args[1].Get(i), got = args[2 + f].Get(i);
      const double want = RoundToType(function.of_one ? function.of_one(a) : function.of_two(a, b), type);
      if (got == want || (std::isnan(got) && std::isnan(want))) continue;
      if (std::abs(got - want) <= Bound(function, type, want)) continue;
      absl::StrAppend(&wrong, std::string(function.name), "(", a, ", ", b, ") is ", got, ", not ", want, "\n");
    }
  }
  return wrong;
}

TEST(MathOnOpenCl, ComputesTheFunctions) {
  const RuntimeResult<std::unique_ptr<hone::Device>> device =
      OpenClDevice::Open(static_cast<size_t>(FromEnvironment("HONE_OPENCL_DEVICE", 0)));
  if (!device.ok()) GTEST_SKIP() << "no device: " << device.error().message();
  const std::vector<Dialect> dialects = WithAndWithout(OpenClC());
  EXPECT_EQ(WrongOn(**device, kFloat32, dialects[0]), "");
  EXPECT_EQ(WrongOn(**device, kFloat32, dialects[1]), "");
  EXPECT_EQ(WrongOn(**device, DType::Float(64), dialects[1]), "");
}

INSTANTIATE_TEST_SUITE_P(Types, MathOnGpus, ::testing::Values(DType::Float(16), kFloat32, DType::Float(64)),
                         [](const auto& info) { return ToText(info.param); });

}  // namespace
}  // namespace hone::testing
