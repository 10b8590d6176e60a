// The register-tiled convolution that templates emit: every primitive it takes, end to end.
#include <chrono>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/trace/trace.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

struct Tiling {
  const char* name;
  ConvShape shape;
  int64_t rows, vectors, lanes;
  bool pad_at_tile;
};

Schedule RegisterTiled(const PrimFunc& workload, const Tiling& t) {
  Schedule s(workload);
  const BlockRef pad = Get(GetBlock(s, "pad")), conv = Get(GetBlock(s, "conv")), out = Get(GetBlock(s, "out"));
  const int64_t panel = t.vectors * t.lanes;
  const std::string p = std::to_string(panel);
  Do(LayoutConstant(s, conv, 1,
                    Get(ParseIndexMap("lambda kh, kw, ic, oc: (oc // " + p + ", kh, kw, ic, oc % " + p + ")"))));
  const std::vector<LoopRef> l = Get(GetLoops(s, conv));  // n, oh, ow, oc, kh, kw, ic
  const std::vector<LoopRef> ow = Get(Split(s, l[2], {-1, t.rows}));
  const std::vector<LoopRef> oc = Get(Split(s, l[3], {-1, t.vectors, t.lanes}));
  Do(Reorder(s, {l[0], oc[0], l[1], ow[0], l[4], l[5], l[6], ow[1], oc[1], oc[2]}));
  const LoopRef outer = Get(Fuse(s, {l[0], oc[0], l[1]}));
  Do(SetScope(s, conv, 0, Scope::kRegister));
  Do(ReverseComputeAt(s, out, ow[0]));
  if (t.pad_at_tile) {
    Do(ComputeAt(s, pad, outer));
  } else {
    const std::vector<LoopRef> pl = Get(GetLoops(s, pad));
    Do(Parallel(s, Get(Fuse(s, {pl[0], pl[1]}))));
    const std::vector<LoopRef> c = Get(Split(s, pl[3], {-1, t.lanes}));
    Do(Vectorize(s, c[1]));
  }
  Do(Parallel(s, outer));
  Do(Unroll(s, ow[1]));
  Do(Unroll(s, oc[1]));
  Do(Vectorize(s, oc[2]));
  Get(DecomposeReduction(s, conv, l[4]));
  const std::vector<LoopRef> ol = Get(GetLoops(s, out));
  const std::vector<LoopRef> o = Get(Split(s, ol.back(), {-1, t.lanes}));
  Do(Vectorize(s, o[1]));
  return s;
}

class ConvTrace : public ::testing::TestWithParam<Tiling> {};

TEST_P(ConvTrace, KeepsTheResultAndReplays) {
  const Tiling& t = GetParam();
  const PrimFunc workload = ConvBiasResidualRelu(t.shape);
  const Schedule s = RegisterTiled(workload, t);
  ExpectSound(s, workload);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvTrace,
                         ::testing::Values(Tiling{"Even", {6, 8, 4, 64}, 4, 2, 16, false},
                                           Tiling{"EvenPadAtTile", {6, 8, 4, 64}, 4, 2, 16, true},
                                           Tiling{"RowRemainder", {5, 7, 3, 32}, 4, 2, 16, false},
                                           Tiling{"RowRemainderPadAtTile", {5, 7, 3, 32}, 4, 2, 16, true},
                                           Tiling{"ChannelRemainder", {4, 6, 3, 40}, 3, 2, 16, true},
                                           Tiling{"FewChannels", {4, 5, 2, 7}, 2, 1, 8, true},
                                           Tiling{"Strided", {9, 11, 3, 24, 3, 2, 1}, 4, 1, 16, true},
                                           Tiling{"Pointwise", {5, 6, 8, 16, 1, 1, 0}, 4, 1, 16, true},
                                           Tiling{"UnitRow", {1, 1, 3, 16, 3, 1, 1}, 1, 1, 16, true},
                                           Tiling{"SevenBySeven", {9, 9, 3, 16, 7, 2, 3}, 5, 1, 8, true}),
                         [](const ::testing::TestParamInfo<Tiling>& info) { return info.param.name; });

TEST(ConvTraceReplay, IsFast) {
  const Tiling t{"", {56, 56, 64, 64}, 14, 2, 16, true};
  const PrimFunc workload = ConvBiasResidualRelu(t.shape);
  const Schedule s = RegisterTiled(workload, t);
  double best_ms = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<Schedule> again = Replay(s.trace(), workload);
    best_ms =
        std::min(best_ms, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    ASSERT_TRUE(again.ok());
  }
  RecordProperty("replay_us", static_cast<int>(best_ms * 1000));
  EXPECT_LT(best_ms, 50)
      << "a replay should take a millisecond or two";  // far above, for loaded and instrumented hosts
}

}  // namespace
}  // namespace hone::testing
