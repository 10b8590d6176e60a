// map: a block without reduction at the root of the function.
//
//   for a: for b: for c: S      =>   parallel ab: for c0: vectorized c1: S
//
// The innermost loop is the last dimension of the output, so that stores are contiguous; a tail is masked. Where what
// is read is contiguous along another variable, as in a transpose, a vector takes its elements from as many cache
// lines: some iterations of that variable then come next to the vector, which use up the lines while they are near.
//
//   B[a, b, c] = A[a, c, b]     =>   parallel a b0: for c0: for b1: vectorized c1: S
//
// Results that are more than the second cache holds may be written past the caches.
#include <algorithm>
#include <cmath>

#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/stream.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_loops.h"
#include "tuner/space/nests/simple_nest.h"

namespace hone {
namespace {

class MapNest : public SimpleNest {
 public:
  MapNest(const NestContext& context, int block)
      : context_(context), block_(context.info->blocks[static_cast<size_t>(block)]) {
    const int last = block_.last_iter();
    const int64_t extent = last < 0 ? 1 : block_.extents[static_cast<size_t>(last)];
    const int bits = std::max(8, static_cast<int>(block_.output.type().bits));
    // The loops are in the order of the iteration variables, and the last of them must be the output's last dimension.
    if (last == static_cast<int>(block_.iters.size()) - 1 && block_.single_store && extent >= 4) {
      std::vector<int64_t> lanes{context_.target.lanes(std::max(bits, 32))};
      if (lanes[0] > 4 && extent < lanes[0]) lanes = {lanes[0], lanes[0] / 2};
      knobs_.push_back({"lanes", lanes});
      vector_ = true;
      FindCrossing();
    }
    if (crossing_ >= 0) {
      across_knob_ = static_cast<int>(knobs_.size());
      std::vector<int64_t> sizes{1};
      // As many rows of the output as use up a line, or twice as many: more of them fall on more pages than a core
      // translates at once.
      const int64_t most = 2 * kLineBytes / block_.output.type().bytes();
      for (const int64_t size : {kLineBytes / 4, kLineBytes / 2, kLineBytes}) {
        if (size <= std::min(most, block_.extents[static_cast<size_t>(crossing_)])) sizes.push_back(size);
      }
      knobs_.push_back({"across", sizes});
    }
    if (context_.threads > 1 && block_.instances() > 1) {
      parallel_knob_ = static_cast<int>(knobs_.size());
      knobs_.push_back({"parallel", {0, 1}});
    }
    if (vector_ && CanStream(context_, block)) {
      stream_knob_ = static_cast<int>(knobs_.size());
      knobs_.push_back({"stream", {0, 1}});
    }
  }

  const std::vector<Knob>& knobs() const override { return knobs_; }

  std::optional<double> Draft(std::span<const int> choice) const override {
    const int64_t lanes = vector_ ? Value(0, choice) : 1, across = Value(across_knob_, choice);
    const Machine& machine = context_.machine;
    const int64_t last = block_.extents.empty() ? 1 : block_.extents.back();
    const int64_t vectors = (last + lanes - 1) / lanes * (block_.instances() / std::max<int64_t>(last, 1));
    const double written = static_cast<double>(block_.instances() * block_.output.type().bytes());
    double bytes = written;
    const bool streams = Has(stream_knob_, choice);
    // Lines that are written in parts, with others in between, are not put together on their way to memory.
    if (streams && across > 1 && lanes * block_.output.type().bytes() < kLineBytes) return std::nullopt;
    double gathers = 0, refetched = 0;  // cycles of lines that are fetched for one element each
    for (const BlockInfo::Access& read : block_.reads) {
      const double elements = static_cast<double>(std::min(read.elements, block_.instances()));
      const double type_bytes = read.buffer.type().bytes();
      bytes += elements * type_bytes;
      if (read.strides.empty() || (read.affine && std::abs(read.strides.back()) <= 1)) continue;
      // Blocks of as many rows as a vector has lanes are transposed by shuffles (compiler/codegen/emit_transpose.cc).
      const bool transposed = Crosses(read) && lanes > 1 && across >= lanes;
      gathers += transposed ? 1 + std::log2(static_cast<double>(lanes)) : static_cast<double>(lanes);
      if (!Crosses(read)) continue;
      // A line is needed again after the loops inside the variable along which it lies.
      int64_t between = 1;
      for (size_t i = static_cast<size_t>(crossing_) + 1; i < block_.extents.size(); ++i) between *= block_.extents[i];
      const double lines = static_cast<double>(kLineBytes) / type_bytes;  // elements of one
      const double times = std::max(1.0, lines / static_cast<double>(across)) - 1;
      refetched += times * elements * type_bytes /
                   BytesPerCycle(context_.target, machine, static_cast<double>(between * kLineBytes));
    }
    const double compute = static_cast<double>(vectors) *
                           (block_.operations / machine.fma_per_cycle(context_.target.vector_bits) + 1 + gathers);
    const double moved = (bytes - written) / BytesPerCycle(context_.target, machine, bytes / context_.threads) +
                         StoreCycles(context_, {.bytes = written, .cold = block_.output_cold}, bytes, streams) +
                         refetched;
    const double us = std::max(compute, moved) / machine.cycles_per_us();
    const bool parallel = Has(parallel_knob_, choice);
    return parallel ? ParallelTime(machine, us, ParallelTasks(lanes, across), context_.threads) : us;
  }

  absl::Status Apply(Schedule& schedule, std::span<const int> choice) const override {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, block_.name));
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, block));
    if (loops.empty()) return absl::OkStatus();
    if (vector_) {
      HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, loops.back(), {-1, Value(0, choice)}));
      loops.back() = parts[0];
      if (const int64_t across = Value(across_knob_, choice); across > 1) {
        LoopRef& crossing = loops[static_cast<size_t>(crossing_)];
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> blocks, Split(schedule, crossing, {-1, across}));
        crossing = blocks[0];
        std::vector<LoopRef> order = loops;
        order.push_back(blocks[1]);
        order.push_back(parts[1]);
        HONE_RETURN_IF_ERROR(Reorder(schedule, order));
      }
      HONE_RETURN_IF_ERROR(Vectorize(schedule, parts[1]));
    }
    if (Has(stream_knob_, choice)) HONE_RETURN_IF_ERROR(Stream(schedule, block, 0));
    if (!Has(parallel_knob_, choice)) return absl::OkStatus();
    if (vector_ && loops.size() > 1) loops.pop_back();  // rows are shared out, not pieces of them
    return FuseAndParallel(schedule, loops);
  }

 private:
  static constexpr int64_t kLineBytes = 64;

  // The value of a knob; 1 of one that there is not.
  int64_t Value(int knob, std::span<const int> choice) const {
    return knob < 0
               ? 1
               : knobs_[static_cast<size_t>(knob)].candidates[static_cast<size_t>(choice[static_cast<size_t>(knob)])];
  }
  bool Has(int knob, std::span<const int> choice) const { return knob >= 0 && Value(knob, choice) == 1; }
  int64_t ParallelTasks(int64_t lanes, int64_t across) const {
    const int64_t last = block_.extents.back();
    if (!vector_) return block_.instances();
    if (block_.extents.size() == 1) return (last + lanes - 1) / lanes;
    const int64_t rows = block_.instances() / std::max<int64_t>(last, 1);
    if (across == 1) return rows;
    const int64_t extent = block_.extents[static_cast<size_t>(crossing_)];
    return rows / extent * ((extent + across - 1) / across);
  }
  // Its elements lie apart along the vector, and side by side along the crossing variable.
  bool Crosses(const BlockInfo::Access& read) const {
    return crossing_ >= 0 && read.affine && std::abs(read.strides.back()) > 1 &&
           read.strides[static_cast<size_t>(crossing_)] == 1;
  }
  // The variable along which the largest read that lies across the output is contiguous.
  void FindCrossing() {
    int64_t most = 0;
    for (const BlockInfo::Access& read : block_.reads) {
      if (read.strides.empty() || !read.affine || std::abs(read.strides.back()) <= 1 || read.elements <= most) continue;
      for (size_t i = 0; i + 1 < block_.extents.size(); ++i) {
        if (read.strides[i] != 1 || block_.extents[i] < kLineBytes / 4) continue;
        crossing_ = static_cast<int>(i);
        most = read.elements;
      }
    }
  }

  NestContext context_;
  const BlockInfo& block_;
  bool vector_ = false;
  int crossing_ = -1;  // an iteration variable
  int across_knob_ = -1, parallel_knob_ = -1, stream_knob_ = -1;
  std::vector<Knob> knobs_;
};

}  // namespace

std::unique_ptr<SimpleNest> MakeMapNest(const NestContext& context, int block) {
  return std::make_unique<MapNest>(context, block);
}

}  // namespace hone
