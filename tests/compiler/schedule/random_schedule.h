// Random primitives on small workloads of awkward sizes, for tests of the schedule and of what comes after it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/schedule/program_index.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {

inline int64_t PickSize(Random& r) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 13};
  return kSizes[r.Below(std::size(kSizes))];
}

inline PrimFunc PickWorkload(Random& r) {
  switch (r.Below(7)) {
    case 0:
      return Matmul(PickSize(r), PickSize(r), PickSize(r));
    case 1:
      return DenseRelu(PickSize(r), PickSize(r), PickSize(r));
    case 2: {
      const int64_t kernel = 1 + static_cast<int64_t>(r.Below(3)), padding = static_cast<int64_t>(r.Below(kernel));
      const int64_t size = kernel + static_cast<int64_t>(r.Below(5));
      return ConvBiasResidualRelu({size, kernel + static_cast<int64_t>(r.Below(5)),
                                   1 + static_cast<int64_t>(r.Below(3)), 1 + static_cast<int64_t>(r.Below(9)), kernel,
                                   1 + static_cast<int64_t>(r.Below(2)), padding});
    }
    case 3:
      return TwoElementwise(PickSize(r), PickSize(r));
    case 4:
      return Softmax(PickSize(r), PickSize(r));
    case 5:
      return ThreeStages(PickSize(r), PickSize(r));
    default:
      return Blur(PickSize(r), 1 + static_cast<int64_t>(r.Below(4)));
  }
}

// Makes one move after the other. A refused one must leave the program as it was.
class Player {
 public:
  Player(const PrimFunc& workload, Random& random) : schedule_(workload), random_(random) {}

  const Schedule& schedule() const { return schedule_; }
  const std::map<std::string, int>& done() const { return done_; }

  void Play() {
    const Schedule before = schedule_;
    const absl::Status status = Move();
    if (status.ok()) {
      ++done_[last_];
      return;
    }
    EXPECT_FALSE(status.message().empty());
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status.ToString();
    // What was looked up before the refusal stays in the trace; the program must not have changed.
    EXPECT_TRUE(before.func().body.SameAs(schedule_.func().body)) << status.ToString();
    schedule_ = before;
  }

 private:
  template <class T>
  const T& Pick(const std::vector<T>& list) {
    return list[random_.Below(list.size())];
  }

  absl::StatusOr<BlockRef> Block() {
    const std::vector<int> blocks = schedule_.index().AllBlocks();
    if (blocks.empty()) return absl::NotFoundError("no blocks");
    return GetBlock(schedule_, schedule_.index().block(Pick(blocks)).name);
  }
  absl::StatusOr<std::vector<LoopRef>> Loops(BlockRef block) {
    HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule_, block));
    if (loops.empty()) return absl::NotFoundError("no loops");
    return loops;
  }
  absl::StatusOr<LoopRef> Loop() {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, Block());
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
    return Pick(loops);
  }
  std::string MapFor(const Buffer& buffer) {
    std::string inputs, outputs, tail;
    for (int d = 0; d < buffer.rank(); ++d) {
      const std::string i = "i" + std::to_string(d), f = std::to_string(2 + random_.Below(3));
      inputs += (d == 0 ? "" : ", ") + i;
      if (random_.Chance(0.5)) {
        outputs += i + ", ";
      } else {
        outputs += i + " // " + f + ", ";
        tail += i + " % " + f + ", ";
      }
    }
    return "lambda " + inputs + ": (" + outputs + tail + ")";
  }

  absl::Status Move() {
    Schedule& s = schedule_;
    HONE_ASSIGN_OR_RETURN(const BlockRef block, Block());
    switch (random_.Below(22)) {
      case 0:
      case 1:
      case 2: {
        last_ = "split";
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        std::vector<Value> factors = {-1, 1 + static_cast<int64_t>(random_.Below(5))};
        if (random_.Chance(0.3)) factors.push_back(1 + static_cast<int64_t>(random_.Below(3)));
        if (random_.Chance(0.2)) std::swap(factors[0], factors[1]);
        return Split(s, loop, factors).status();
      }
      case 3:
      case 4: {
        last_ = "fuse";
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        const size_t first = random_.Below(loops.size()), count = 1 + random_.Below(3);
        return Fuse(s, {loops.begin() + first, loops.begin() + std::min(loops.size(), first + count)}).status();
      }
      case 5:
      case 6: {
        last_ = "reorder";
        HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, Loops(block));
        for (size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[random_.Below(i)]);
        loops.resize(1 + random_.Below(loops.size()));
        return Reorder(s, loops);
      }
      case 7: {
        last_ = "parallel";
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Parallel(s, loop);
      }
      case 8: {
        last_ = "vectorize";
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Vectorize(s, loop);
      }
      case 9: {
        last_ = "unroll";
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Unroll(s, loop);
      }
      case 10:
        last_ = "compute_inline";
        return ComputeInline(s, block);
      case 11:
        last_ = "reverse_compute_inline";
        return ReverseComputeInline(s, block);
      case 12:
      case 13: {
        last_ = "compute_at";
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return ComputeAt(s, block, loop, random_.Chance(0.3));
      }
      case 14:
      case 15: {
        last_ = "reverse_compute_at";
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return ReverseComputeAt(s, block, loop, random_.Chance(0.3));
      }
      case 16:
        last_ = "cache_read";
        return CacheRead(s, block, static_cast<int>(random_.Below(2)), Scope::kGlobal).status();
      case 17:
        last_ = "cache_write";
        return CacheWrite(s, block, 0, random_.Chance(0.5) ? Scope::kThread : Scope::kRegister).status();
      case 18: {
        last_ = "decompose_reduction";
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        return DecomposeReduction(s, block, Pick(loops)).status();
      }
      case 19: {
        last_ = "rfactor";
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        return Rfactor(s, Pick(loops), static_cast<int>(random_.Below(3)) - 1).status();
      }
      case 20: {
        last_ = "layout_constant";
        HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
        if (realize->block.reads.empty()) return absl::NotFoundError("no reads");
        const size_t index = random_.Below(realize->block.reads.size());
        HONE_ASSIGN_OR_RETURN(IndexMap map, ParseIndexMap(MapFor(realize->block.reads[index].buffer)));
        return LayoutConstant(s, block, static_cast<int>(index), map);
      }
      default: {
        last_ = "transform_layout";
        HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
        HONE_ASSIGN_OR_RETURN(IndexMap map, ParseIndexMap(MapFor(realize->block.writes[0].buffer)));
        return TransformLayout(s, block, 0, BufferKind::kWrite, map);
      }
    }
  }

  Schedule schedule_;
  Random& random_;
  std::string last_;
  std::map<std::string, int> done_;
};

}  // namespace hone::testing
