// Which workers a job is meant for, by the text of its target.
#include <gtest/gtest.h>

#include "tuner/dispatch/state/fleet_index.h"

namespace hone {
namespace {

struct FitCase {
  const char* name;
  const char* job;
  bool host, gpu;  // whether it may run there
};
constexpr char kGpu[] = "opencl:generic,device=gfx,processors=8";
constexpr FitCase kFits[] = {
    {"Anywhere", "", true, false},
    {"AnyCpu", "cpu:native", true, false},
    {"ThisCpu", "cpu:fake+avx2,l2=1M", true, false},
    {"CpuByClass", "cpu:fake-c2", true, false},
    {"AnotherCpu", "cpu:fake", false, false},
    {"AnyDevice", "opencl:generic", false, true},
    {"ThisDevice", kGpu, false, true},
    {"DeviceByClass", "opencl-generic-gfx-p8", false, true},
    {"AnotherDevice", "opencl:generic,device=other", false, false},
    {"AnotherLanguage", "cuda:sm_80", false, false},
};
class FitOfTarget : public testing::TestWithParam<FitCase> {};
TEST_P(FitOfTarget, IsByWhatTheTextSays) {
  const WorkerKind host{.device_class = "fake-c2", .target = "cpu:fake+avx2,l2=1M"};
  const WorkerKind gpu{.device_class = "opencl-generic-gfx-p8", .target = kGpu};
  const JobKind job{.target = GetParam().job};
  EXPECT_EQ(FitOf(host, job), GetParam().host ? Fit::kFits : Fit::kOtherTarget);
  EXPECT_EQ(FitOf(gpu, job), GetParam().gpu ? Fit::kFits : Fit::kOtherTarget);
}
INSTANTIATE_TEST_SUITE_P(Targets, FitOfTarget, testing::ValuesIn(kFits),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
