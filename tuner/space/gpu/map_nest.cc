// map: a thread an element, or as many neighbours as lie in a vector; where the block reduces, all terms of each. Where
// it does not, a thread takes several such runs, each as far from the next as all threads of the block reach: their
// loads are on their way at once.
//
//   for i: for j: for k: S   =>   blockIdx.x ij0: threadIdx.x ij1: for k: for j1: S;  [epilogue]
//   for i: for j: S          =>   blockIdx.x ij0: threadIdx.x ij2: for ij1, unrolled: for j1: S
//
// one thread: everything in the stated order.
#include <algorithm>

#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/gpu/memory_draft.h"
#include "tuner/space/nests/nest_loops.h"

namespace hone {
namespace {

constexpr int64_t kMostWidth = 8;
// Runs of neighbours that end with a row of the output: the greatest power of 2 that divides its last extent.
int64_t RunsOf(const BlockInfo& block) {
  if (!block.single_store || block.last_iter() < 0) return 1;
  const int64_t extent = block.extents[static_cast<size_t>(block.last_iter())];
  return std::min(kMostWidth, extent & -extent);
}

class MapNest : public GpuNest {
 public:
  MapNest(GpuContextRef context, int block) : GpuNest("map", std::move(context), block) {
    AddKnob("threads", {32, 64, 128, 256, 512, 1024}, target().threads);
    AddKnob("width", {1, 2, 4, 8}, RunsOf(info()));
    AddKnob("runs", {1, 2, 4, 8}, info().reduces ? 1 : PowerOfTwoFrom(info().instances()));
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const int64_t threads = values[0], width = values[1], runs = values[2], terms = TermsOf(info());
    const double elements = static_cast<double>(info().instances()) / static_cast<double>(terms);
    if (elements <= static_cast<double>(width * runs)) return std::nullopt;  // nothing is left to share among threads
    LaunchWork work{.threads = threads, .registers = 16 + 4 * width};
    if (!info().reduces)
      work.registers = 20 + width * runs * std::max<int64_t>(1, static_cast<int64_t>(info().reads.size()));
    work.blocks = std::max(1.0, elements / static_cast<double>(threads * width * runs));
    const double instances = static_cast<double>(threads * width * runs * terms);
    work.operations = instances * std::max(1.0, info().operations);
    const std::vector<int64_t> portion = PortionOf(threads * width * runs);
    Streaming streaming;
    for (const BlockInfo::Access& read : info().reads) {
      const double bytes = read.buffer.type().bytes();
      const int64_t stride = info().last_iter() < 0 ? 1 : read.strides[static_cast<size_t>(info().last_iter())];
      // What does not move along a run is read once for it; what moves with it takes fewer loads of the same bytes.
      const double of_run = stride == 0 ? 1 / static_cast<double>(width) : stride == 1 ? kRunLoads : 1;
      const bool apart = !info().reduces && stride * bytes > kLineBytes;  // each lane asks a line of its own
      work.near_bytes += instances * (apart ? kLineBytes : bytes * (width > 1 ? of_run : 1));
      double distinct = 1;
      for (size_t i = 0; i < portion.size(); ++i)
        distinct *= read.strides[i] != 0 ? static_cast<double>(portion[i]) : 1;
      work.far_bytes += std::min(distinct, static_cast<double>(read.elements)) * (apart ? kSectorBytes : bytes);
      streaming.thread_bytes += bytes * static_cast<double>(width * runs * std::min(terms, kTermsInFlight));
    }
    work.memory_bytes = BytesOfBuffers(info());
    // Lanes that are further apart than one load reaches use a part of each sector at a time.
    if (width * info().output.type().bytes() > kVectorBytes) work.memory_bytes *= kPartsOfSectors;
    return StreamingMicroseconds(work, streaming, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override {
    Schedule& schedule = build.schedule;
    const int64_t threads = values[0], width = values[1], runs = values[2];
    HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info().name));
    HONE_ASSIGN_OR_RETURN(LoopsOfBlock loops, FindLoops(schedule, ref, info()));
    auto& [spatial, terms, by_iter] = loops;
    if (spatial.empty()) return absl::FailedPreconditionError("map: the block has one element");
    std::optional<LoopRef> lanes;  // apart from the others, so that what a thread takes is a run of one row
    if (width > 1) {
      const LoopRef row = *by_iter[static_cast<size_t>(info().last_iter())];
      HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, row, {-1, width}));
      *std::ranges::find(spatial, row) = parts[0];
      lanes = parts[1];
    }
    std::vector<LoopRef> order = spatial;
    order.insert(order.end(), terms.begin(), terms.end());
    if (lanes.has_value()) order.push_back(*lanes);
    if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
    std::optional<BlockRef> taker;
    if (info().reduces) { HONE_ASSIGN_OR_RETURN(taker, TakeFromRegisters(schedule, *context_, block_, ref)); }
    HONE_ASSIGN_OR_RETURN(const LoopRef elements, FuseAll(schedule, spatial));
    std::vector<LoopRef> parts;  // over blocks, and over threads
    if (runs > 1) {
      HONE_ASSIGN_OR_RETURN(parts, Split(schedule, elements, {-1, runs, threads}));
      HONE_RETURN_IF_ERROR(Reorder(schedule, {parts[2], parts[1]}));
      HONE_RETURN_IF_ERROR(Unroll(schedule, parts[1]));
      parts = {parts[0], parts[2]};
    } else {
      HONE_ASSIGN_OR_RETURN(parts, Split(schedule, elements, {-1, threads}));
    }
    HONE_RETURN_IF_ERROR(Bind(schedule, parts[0], "blockIdx.x"));
    HONE_RETURN_IF_ERROR(Bind(schedule, parts[1], "threadIdx.x"));
    if (lanes.has_value()) HONE_RETURN_IF_ERROR(Vectorize(schedule, *lanes));
    if (!taker.has_value()) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule, *taker, parts[1]));
    if (width > 1) HONE_RETURN_IF_ERROR(VectorizeInnermost(schedule, *taker, 2, static_cast<int>(width), false));
    return terms.empty() ? absl::OkStatus() : DecomposeReduction(schedule, ref, terms[0]).status();
  }

 private:
  static constexpr double kRunLoads = 0.75;
  static constexpr double kPartsOfSectors = 1.3;  // times the bytes
  static constexpr int64_t kTermsInFlight = 4;    // of a loop over terms, as compilers unroll it

  // Iterations of each variable that so many neighbouring elements come to.
  std::vector<int64_t> PortionOf(int64_t elements) const {
    std::vector<int64_t> portion = info().extents;
    for (size_t i = portion.size(); i-- > 0;) {
      if (!info().spatial(static_cast<int>(i))) continue;
      portion[i] = std::min(portion[i], elements);
      elements = (elements + portion[i] - 1) / portion[i];
    }
    return portion;
  }
};

class OneThreadNest : public GpuNest {
 public:
  OneThreadNest(GpuContextRef context, int block) : GpuNest("one_thread", std::move(context), block) {}

  std::optional<double> Cost(std::span<const int64_t>, const SketchPlan&) const override {
    // An instance without arithmetic moves an element, and its loads wait for one another.
    const double operations = static_cast<double>(info().instances()) * std::max(1.0, info().operations);
    return LaunchMicroseconds({.operations = operations * kIdle, .memory_bytes = BytesOfBuffers(info())}, target());
  }
  absl::Status Apply(std::span<const int64_t>, const SketchPlan&, SketchBuild&) const override {
    return absl::OkStatus();  // what stands outside of loops over threads is the first one's
  }

 private:
  static constexpr double kIdle = 128;  // lanes beside it that do nothing
};

}  // namespace

GpuNestRef MakeMapNest(GpuContextRef context, int block) {
  return std::make_shared<MapNest>(std::move(context), block);
}

GpuNestRef MakeOneThreadNest(GpuContextRef context, int block) {
  return std::make_shared<OneThreadNest>(std::move(context), block);
}

}  // namespace hone
