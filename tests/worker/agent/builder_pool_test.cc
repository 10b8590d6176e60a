// Builders with requests that mean harm: each fails its own request, and the next is built.
#include "worker/agent/builds/builder_pool.h"

#include <signal.h>
#include <unistd.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/sandbox/layers.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/processes.h"

namespace hone::testing {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60), kShort = absl::Seconds(3);

v1::BuildRequest Honest(int rows = 8) {
  v1::BuildRequest request;
  request.set_workload(ToText(Matmul(rows, 8, 8)));
  request.set_trace("");
  request.set_target(HostTarget().text);
  request.set_threads(1);
  request.set_symbol("k");
  return request;
}

std::string Repeated(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(BuilderPool, ATaskAndAWorkloadHaveTheirOwnProcess) {
  BuilderPool builders(1, "", LayersSomeSystemsLack());
  // The builder's process once it has built for that task a product of so many rows.
  const auto process_of = [&](uint64_t task, int rows) {
    v1::BuildRequest request = Honest(rows);
    request.set_task(task);
    EXPECT_EQ(builders.Build({request}, kLong)[0].reply().error(), "");
    EXPECT_EQ(ChildrenOf(::getpid()).size(), 1u);
    return ChildrenOf(::getpid());
  };
  const std::set<pid_t> first = process_of(1, 8);
  EXPECT_EQ(process_of(1, 8), first);
  const std::set<pid_t> other_workload = process_of(1, 16);
  EXPECT_NE(other_workload, first) << "what it read of one workload could harm the next";
  const std::set<pid_t> other_task = process_of(2, 16);
  EXPECT_NE(other_task, other_workload) << "what it read of one tenant could harm another with the same workload";
  EXPECT_NE(process_of(0, 16), other_task) << "an oracle is made where no candidate was read";
}

TEST(BuilderPool, HandsOutWhatIsBuiltBeforeAllIs) {
  BuilderPool builders(2, "", LayersSomeSystemsLack());
  ASSERT_EQ(builders.Build({Honest()}, kLong)[0].reply().error(), "");
  const std::set<pid_t> one = ChildrenOf(::getpid());
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(::kill(*one.begin(), SIGSTOP), 0);
  builders.Begin({Honest(), Honest()}, 2 * kShort);  // the other one may have little of a busy machine
  const std::optional<Builders::Built> first = builders.Next(), second = builders.Next();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->outcome.reply().error(), "") << "of the builder that goes on";
  EXPECT_TRUE(second->outcome.timed_out());
  EXPECT_EQ(first->request + second->request, 1u);
  EXPECT_FALSE(builders.Next().has_value());
}

// The compiler of a device's language is opened before the builder locks itself in, and works under the lock: machine
// code of an H100, in a process that is not the one for the host's.
TEST(BuilderPool, CompilesForADeviceLockedIn) {
  BuilderPool builders(1, "", LayersSomeSystemsLack());
  ASSERT_EQ(builders.Build({Honest()}, kLong)[0].reply().error(), "");
  const std::set<pid_t> first = ChildrenOf(::getpid());
  v1::BuildRequest request = Honest();
  request.set_target("cuda:sm_90a");
  for (int i = 0; i < 2; ++i) {
    const v1::BuildReply reply = builders.Build({request}, kLong)[0].reply();
    if (reply.error().find("run-time compiler is not here") != std::string::npos) GTEST_SKIP() << reply.error();
    ASSERT_EQ(reply.error(), "");
    EXPECT_EQ(reply.object().substr(0, 4),
              "\x7f"
              "ELF");
    EXPECT_NE(reply.generator().find("-nvrtc-"), std::string::npos) << reply.generator();
  }
  EXPECT_EQ(ChildrenOf(::getpid()).size(), 1u);
  EXPECT_NE(ChildrenOf(::getpid()), first);
}

TEST(BuilderPool, EndsItsBuilders) {
  {
    ASSERT_EQ(
        BuilderPool(2, "", LayersSomeSystemsLack()).Build({Honest(), Honest(), Honest()}, kLong)[2].reply().error(),
        "");
  }
  EXPECT_TRUE(ChildrenOf(::getpid()).empty());
}

TEST(BuilderPool, AProgramThatIsNoBuilderIsOurFailure) {
  EXPECT_TRUE(BuilderPool(1, "/no/such/program").Build({Honest()}, kLong)[0].infrastructure());
  EXPECT_TRUE(BuilderPool(1, "/bin/true").Build({Honest()}, kLong)[0].infrastructure());
}

struct HostileRequest {
  const char* name;
  v1::BuildRequest (*request)();
};
v1::BuildRequest WithWorkload(const std::string& text) {
  v1::BuildRequest request = Honest();
  request.set_workload(text);
  return request;
}
v1::BuildRequest WithTrace(const std::string& trace) {
  v1::BuildRequest request = Honest();
  request.set_trace(trace);
  return request;
}
// A product of so many rows, with this trace.
v1::BuildRequest Large(int64_t rows, const std::string& trace) {
  v1::BuildRequest request = WithTrace(trace);
  request.set_workload(ToText(Matmul(rows, 1024, 1024)));
  return request;
}
const std::string kLoops = "b0 = sch.get_block(\"C\", func_name=\"main\")\nl1, l2, l3 = sch.get_loops(b0)\n";

const HostileRequest kRequests[] = {
    {"Nothing", [] { return v1::BuildRequest(); }},
    {"WorkloadOfBytes", [] { return WithWorkload(std::string(100000, '\xff')); }},
    {"ManyParentheses",
     [] { return WithWorkload("@T.prim_func\ndef main(" + Repeated("(", 1 << 20) + "):\n    pass\n"); }},
    {"HalfAWorkload", [] { return WithWorkload(Honest().workload().substr(0, 100)); }},
    {"TraceOfBytes", [] { return WithTrace(std::string(1 << 20, '\x80')); }},
    {"ManySteps", [] { return WithTrace(kLoops + Repeated("sch.parallel(l1)\n", 200000)); }},
    {"UnknownStep", [] { return WithTrace(kLoops + "sch.system(\"rm -rf /\")\n"); }},
    {"NoSuchLoop", [] { return WithTrace(kLoops + "sch.parallel(l99999999)\n"); }},
    {"SplitByNothing", [] { return WithTrace(kLoops + "l4, l5 = sch.split(l1, factors=[None, 0])\n"); }},
    {"SplitByMost", [] { return WithTrace(kLoops + "l4, l5 = sch.split(l1, factors=[None, 9223372036854775807])\n"); }},
    {"UnrollsEverything", [] { return Large(1 << 20, kLoops + "sch.unroll(l1)\nsch.unroll(l2)\nsch.unroll(l3)\n"); }},
    {"VectorOfAMillion", [] { return Large(1 << 20, kLoops + "sch.reorder(l2, l3, l1)\nsch.vectorize(l1)\n"); }},
    {"TargetOfBytes",
     [] {
       v1::BuildRequest r = Honest();
       r.set_target(std::string(1 << 20, ','));
       return r;
     }},
    {"SymbolOfBytes",
     [] {
       v1::BuildRequest r = Honest();
       r.set_symbol(std::string("\0\n\"%s", 5));
       return r;
     }},
    {"ManyThreads",
     [] {
       v1::BuildRequest r = Honest();
       r.set_threads(INT32_MAX);
       return r;
     }},
    {"LessThanNoThread",
     [] {
       v1::BuildRequest r = Honest();
       r.set_threads(-1);
       return r;
     }},
    {"TooLong", [] { return WithTrace(std::string(20 << 20, '#')); }},
};

class HostileRequests : public ::testing::TestWithParam<HostileRequest> {};

// Whatever comes of it, it comes in time, and the next request is served.
TEST_P(HostileRequests, HarmNobodyElse) {
  ::signal(SIGPIPE, SIG_IGN);  // as a worker does
  const size_t others = ChildrenOf(::getpid()).size();
  BuilderPool builders(1, "", LayersSomeSystemsLack());
  for (int64_t run = 0; run < FromEnvironment("HONE_RUNS", 3); ++run) {
    const absl::Time start = absl::Now();
    const v1::BuildOutcome built = builders.Build({GetParam().request()}, kShort)[0];
    EXPECT_LT(absl::Now() - start, kLong);
    EXPECT_FALSE(built.infrastructure()) << built.reply().error();
    EXPECT_LE(ChildrenOf(::getpid()).size(), others + 1);
    EXPECT_EQ(builders.Build({Honest()}, kLong)[0].reply().error(), "");
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, HostileRequests, ::testing::ValuesIn(kRequests),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone::testing
