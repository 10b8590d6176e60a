// Random primitives on small workloads of awkward sizes, for tests of the schedule and of what comes after it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/primitives/add_unit_loop.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/blockize.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_padding.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/fuse_reduction_epilogue.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/pack.h"
#include "compiler/schedule/primitives/pad_einsum.h"
#include "compiler/schedule/primitives/prefetch.h"
#include "compiler/schedule/primitives/register_tile.h"
#include "compiler/schedule/primitives/reindex.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/reorder_block_iter_var.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/primitives/sample_partitioned_tile.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/storage_align.h"
#include "compiler/schedule/primitives/stream.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/schedule/primitives/transform_block_layout.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/random.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

// Which loop kinds and scopes are played: kGpu adds bindings to threads and shared memory, which lowering for a CPU
// refuses.
enum class Machine { kCpu, kGpu };

// Makes one move after the other. A refused one must leave the program as it was.
class Player {
 public:
  // Without a machine the moves that came last (unit loops, scopes, remarks, threads, algorithms) are not played: seeds
  // that tests keep stand for the same traces as before.
  Player(const PrimFunc& workload, Random& random, std::optional<Machine> machine = std::nullopt)
      : schedule_(workload), random_(random), machine_(machine) {}

  const Schedule& schedule() const { return schedule_; }
  // How often each primitive was let through, by its name; what maps of layouts were like, by "a map that .."; what
  // tile operations were made, by the name of their intrinsic.
  const std::map<std::string, int>& done() const { return done_; }
  int changes() const { return changes_; }

  // Moves until `changes` of them were let through (look-ups not counted), or many were refused.
  void PlayChanges(int changes) {
    if (machine_.has_value() && random_.Chance(0.2))
      PlayAlgorithm();  // later it is refused: it wants a block that is not scheduled
    for (int tries = 0; tries < 3 * changes + 10 && changes_ < changes; ++tries) Play();
  }

  // Up to so many loops of blocks bound to threads.
  void PlayBindings(int tries) {
    for (int i = 0; i < tries; ++i) Play([this] { return MoveByBinding(); });
  }

  void Play() {
    Play([this] { return Move(); });
  }

  // Moves a random reduction under a random one of the loops that reverse_compute_at takes.
  void PlayMovedReduction() {
    std::vector<std::string> reductions;
    for (const int node : schedule_.index().AllBlocks()) {
      if (HasReduction(schedule_.index().block(node))) reductions.push_back(schedule_.index().block(node).name);
    }
    if (reductions.empty()) return;
    const std::string name = Pick(reductions);
    const size_t blocks = schedule_.index().AllBlocks().size(), first = random_.Below(blocks);
    for (size_t k = 0; k < blocks; ++k) {
      const std::string other = schedule_.index().block(schedule_.index().AllBlocks()[(first + k) % blocks]).name;
      const size_t loops = schedule_.index().LoopsAbove(schedule_.index().FindBlock(other)).size();
      for (size_t l = 0, start = random_.Below(std::max<size_t>(1, loops)); l < loops; ++l) {
        const int before = changes_;
        Play([&]() -> absl::Status {
          HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule_, name));
          HONE_ASSIGN_OR_RETURN(const BlockRef producer, GetBlock(schedule_, other));
          HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> around, GetLoops(schedule_, producer));
          HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule_, block, around[(start + l) % loops], random_.Chance(0.3)));
          ++done_["a sum moved"];
          return absl::OkStatus();
        });
        if (changes_ > before) return;
      }
    }
  }

 private:
  template <class MoveFunction>
  void Play(const MoveFunction& move) {
    const Schedule before = schedule_;
    const absl::Status status = move();
    if (status.ok()) {
      for (size_t i = before.trace().steps.size(); i < schedule_.trace().steps.size(); ++i)
        ++done_[std::string(schedule_.trace().steps[i].info().name)];
      ++changes_;
      return;
    }
    EXPECT_FALSE(status.message().empty());
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status.ToString();
    // What was looked up before the refusal stays in the trace; the program must not have changed.
    EXPECT_TRUE(before.func().body.SameAs(schedule_.func().body)) << status.ToString();
    schedule_ = before;
  }

  // Another algorithm for the first block that has one.
  void PlayAlgorithm() {
    const std::string algorithm = Pick(AlgorithmNames());
    for (const int node : schedule_.index().AllBlocks()) {
      const int before = changes_;
      Play([&]() -> absl::Status {
        HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule_, schedule_.index().block(node).name));
        return ChooseAlgorithm(schedule_, block, algorithm).status();
      });
      if (changes_ > before) return;
    }
  }

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
    bool swizzled = false;
    const std::optional<int64_t> row = buffer.rank() > 1 ? ConstantValue(buffer.shape()[1]) : std::nullopt;
    const bool fuses = machine_.has_value() && row.has_value() && random_.Chance(0.2);  // the first two dimensions
    const bool cuts = fuses && random_.Chance(0.5);                                     // and cuts what they become
    for (int d = 0; d < buffer.rank(); ++d) {
      const std::string i = "i" + std::to_string(d), f = std::to_string(2 + random_.Below(3));
      inputs += (d == 0 ? "" : ", ") + i;
      if (fuses && d < 2) {
        const std::string fused = "(i0 * " + std::to_string(*row) + " + i1)";
        if (d == 0) continue;
        outputs += fused + (cuts ? " // " + f : "") + ", ";
        if (cuts) tail += fused + " % " + f + ", ";
      } else if (random_.Chance(0.5)) {
        outputs += i + ", ";
      } else {
        outputs += i + " // " + f + ", ";
        tail += i + " % " + f;
        // A digit of a power of two's places, swizzled by another index: which is not swizzled itself.
        if (machine_.has_value() && !swizzled && f != "3" && buffer.rank() > 1 && random_.Chance(0.5)) {
          const int other = (d + 1 + static_cast<int>(random_.Below(buffer.rank() - 1))) % buffer.rank();
          tail += " ^ i" + std::to_string(other) + " % " + f;
          swizzled = true;
        }
        tail += ", ";
      }
    }
    if (machine_.has_value() && random_.Chance(0.1)) outputs = "0, " + outputs;
    return "lambda " + inputs + ": (" + outputs + tail + ")";
  }

  // Those of the registry that one thread does, with sums of the type that the block writes, from a random one on.
  absl::StatusOr<std::vector<std::string>> IntrinsicsFor(BlockRef block) {
    std::vector<std::string> names = {"fma_tile_f32", "dot4_u8s8_s32"};
    if (machine_.has_value()) {
      HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule_.FindBlock(block));
      if (realize->block.writes.empty()) return absl::NotFoundError("no writes");
      names.clear();
      for (const TileIntrinsic& intrinsic : TileIntrinsics()) {
        const bool is_operation = intrinsic.threads == 1 && intrinsic.token == AsyncToken::kNone;
        if (is_operation && intrinsic.operands[0].type() == realize->block.writes[0].buffer.type())
          names.push_back(intrinsic.name);
      }
      if (names.empty()) return absl::NotFoundError("no intrinsic with sums of this type");
    }
    std::ranges::rotate(names, names.begin() + static_cast<int64_t>(random_.Below(names.size())));
    if (!machine_.has_value()) names.resize(1);
    return names;
  }

  // Counts what is special about the map of a step that was let through.
  absl::Status Noted(absl::Status status, const Buffer& buffer, const IndexMap& map, const PadValue& pad_value) {
    if (!status.ok()) return status;
    if (ToText(map).find('^') != std::string::npos) ++done_["a map that swizzles"];
    if (IsConst(Get(InvertLayout(map, buffer.shape())).inside, 1)) return status;
    ++done_["a map that pads"];
    if (pad_value.has_value()) ++done_["a map that pads with a value"];
    return status;
  }

  // What padding holds, if anything: no number that could stand in for an element by chance, mostly of the type.
  PadValue PadFor(DType type) {
    if (!machine_.has_value() || random_.Chance(0.5)) return std::nullopt;
    if (type.is_float() != random_.Chance(0.1))
      return Pick(std::vector<double>{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                      -1e4, 0.5});
    return Pick(std::vector<int64_t>{0, 1, 77});
  }

  // Blocks of tiles, and tile operations.
  absl::Status MoveByTile(BlockRef block) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
    const LoopRef loop = Pick(loops);
    switch (random_.Below(3)) {
      case 0: return Blockize(schedule_, loop).status();
      case 1: {
        HONE_ASSIGN_OR_RETURN(const std::vector<std::string> intrinsics, IntrinsicsFor(block));
        const bool whole = machine_.has_value() && random_.Chance(0.3);
        absl::Status status;
        for (const std::string& intrinsic : intrinsics) {
          status = Tensorize(schedule_, whole ? BlockOrLoop(block) : BlockOrLoop(loop), intrinsic);
          if (!status.ok()) continue;
          ++done_[intrinsic];
          if (whole) ++done_["a block tensorized"];
          break;
        }
        return status;
      }
      default:
        return RegisterTile(schedule_, loop, random_.Chance(0.5) ? 0 : 4, 1 + static_cast<int64_t>(random_.Below(2)));
    }
  }

  // Choices, and what is made of them.
  absl::Status MoveBySample(BlockRef block) {
    Schedule& s = schedule_;
    if (random_.Chance(0.3)) {
      HONE_ASSIGN_OR_RETURN(const LoopRef place, SampleComputeLocation(s, block, random_));
      return ComputeAt(s, block, place);
    }
    HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
    if (random_.Chance(0.4)) {
      HONE_ASSIGN_OR_RETURN(const ValueRef factor, SampleCategorical(s, {1, 2, 3, 4, 8}, {}, random_));
      return Split(s, loop, {Value(), factor}).status();
    }
    const int parts = 2 + static_cast<int>(random_.Below(2));
    const int64_t most = random_.Chance(0.5) ? 0 : 4;
    HONE_ASSIGN_OR_RETURN(const std::vector<ValueRef> tile, SamplePerfectTile(s, loop, parts, most, random_));
    return Split(s, loop, {tile.begin(), tile.end()}).status();
  }

  absl::Status MoveByBinding() {
    HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
    return Bind(schedule_, loop,
                Pick(std::vector<std::string>{"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"}));
  }

  absl::StatusOr<std::vector<BlockRef>> Relatives(BlockRef block) {
    switch (random_.Below(4)) {
      case 0: return GetProducers(schedule_, block);
      case 1: return GetConsumers(schedule_, block);
      case 2: return GetChildBlocks(schedule_, block);
      default: return GetOutputBlocks(schedule_);
    }
  }

  // What leaves the statements as they are: unit loops, scopes, remarks, threads.
  absl::Status MoveByRemark(BlockRef block) {
    Schedule& s = schedule_;
    switch (random_.Below(6)) {
      case 0: {
        if (random_.Chance(0.5)) return AddUnitLoop(s, block).status();
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return AddUnitLoop(s, loop).status();
      }
      case 1: {
        const std::vector<Scope> of_cpu = {Scope::kGlobal, Scope::kThread, Scope::kRegister};
        const std::vector<Scope> of_gpu = {Scope::kGlobal, Scope::kThread, Scope::kRegister, Scope::kShared};
        const Scope scope = Pick(machine_ == Machine::kGpu ? of_gpu : of_cpu);
        return SetScope(s, block, 0, scope == Scope::kShared && random_.Chance(0.5) ? Scope::kWarp : scope);
      }
      case 2: {
        return Unannotate(s, block, "note");
      }
      case 3: {
        if (machine_ == Machine::kGpu) return MoveByBinding();
        [[fallthrough]];
      }
      case 4: {
        HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> found, Relatives(block));
        if (found.empty()) return absl::NotFoundError("no such block");
        return Annotate(s, Pick(found), "note", static_cast<int64_t>(1));
      }
      default: {
        const int64_t value = static_cast<int64_t>(random_.Below(3));
        if (random_.Chance(0.5)) return Annotate(s, block, "note", value);
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Annotate(s, loop, "note", value);
      }
    }
  }

  absl::Status Move() {
    Schedule& s = schedule_;
    HONE_ASSIGN_OR_RETURN(const BlockRef block, Block());
    if (random_.Chance(0.1)) return MoveBySample(block);
    if (machine_.has_value() && random_.Chance(0.08)) return MoveByRemark(block);
    switch (random_.Below(37)) {
      case 0:
      case 1:
      case 2: {
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        std::vector<Value> factors = {-1, 1 + static_cast<int64_t>(random_.Below(5))};
        if (random_.Chance(0.3)) factors.push_back(1 + static_cast<int64_t>(random_.Below(3)));
        if (random_.Chance(0.2)) std::swap(factors[0], factors[1]);
        return Split(s, loop, factors).status();
      }
      case 3:
      case 4: {
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        const size_t first = random_.Below(loops.size()), count = 1 + random_.Below(3);
        return Fuse(s, {loops.begin() + first, loops.begin() + std::min(loops.size(), first + count)}).status();
      }
      case 5:
      case 6: {
        HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, Loops(block));
        for (size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[random_.Below(i)]);
        loops.resize(1 + random_.Below(loops.size()));
        return Reorder(s, loops);
      }
      case 7: {
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Parallel(s, loop);
      }
      case 8: {
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Vectorize(s, loop);
      }
      case 9: {
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return Unroll(s, loop);
      }
      case 10: return ComputeInline(s, block);
      case 11: return ReverseComputeInline(s, block);
      case 12:
      case 13: {
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        return ComputeAt(s, block, loop, random_.Chance(0.3));
      }
      case 14:
      case 15: {
        HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
        const bool sums = HasReduction(realize->block);
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        HONE_RETURN_IF_ERROR(ReverseComputeAt(s, block, loop, random_.Chance(0.3)));
        if (sums) ++done_["a sum moved"];
        return absl::OkStatus();
      }
      case 16: return CacheRead(s, block, static_cast<int>(random_.Below(2)), Scope::kGlobal).status();
      case 17: return CacheWrite(s, block, 0, random_.Chance(0.5) ? Scope::kThread : Scope::kRegister).status();
      case 18: {
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        return DecomposeReduction(s, block, Pick(loops)).status();
      }
      case 19: {
        HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
        const bool tuple = realize->block.writes.size() > 1;
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        HONE_RETURN_IF_ERROR(Rfactor(s, Pick(loops), static_cast<int>(random_.Below(3)) - 1).status());
        if (tuple) ++done_["a tuple factored"];
        return absl::OkStatus();
      }
      case 20: {
        HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
        if (realize->block.reads.empty()) return absl::NotFoundError("no reads");
        const size_t index = random_.Below(realize->block.reads.size());
        const Buffer buffer = realize->block.reads[index].buffer;
        HONE_ASSIGN_OR_RETURN(IndexMap map, ParseIndexMap(MapFor(buffer)));
        const PadValue pad_value = PadFor(buffer.type());
        return Noted(LayoutConstant(s, block, static_cast<int>(index), map, pad_value), buffer, map, pad_value);
      }
      case 21: {
        HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
        const bool read = machine_.has_value() && random_.Chance(0.3);
        const std::vector<BufferRegion>& regions = read ? realize->block.reads : realize->block.writes;
        if (regions.empty()) return absl::NotFoundError("no such buffer");
        const size_t index = read ? random_.Below(regions.size()) : 0;
        const Buffer buffer = regions[index].buffer;
        const bool param = AllocatingBlock(s.index(), buffer) < 0;
        if (param && !machine_.has_value()) return absl::NotFoundError("a param");  // refused when seeds were kept
        HONE_ASSIGN_OR_RETURN(IndexMap map, ParseIndexMap(MapFor(buffer)));
        const PadValue pad_value = PadFor(buffer.type());
        HONE_RETURN_IF_ERROR(Noted(TransformLayout(s, block, static_cast<int>(index),
                                                   read ? BufferKind::kRead : BufferKind::kWrite, map, pad_value),
                                   buffer, map, pad_value));
        if (param) ++done_["a param laid out"];
        return absl::OkStatus();
      }
      case 22:
      case 23:
      case 24: return MoveByTile(block);
      default: return MoveFurther(block);
    }
  }

  // Primitives that want a block as the operator wrote it, or a buffer: most are let through early in a trace.
  absl::Status MoveFurther(BlockRef block) {
    Schedule& s = schedule_;
    HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, s.FindBlock(block));
    const std::vector<IterVar> iters = realize->block.iters;
    const std::vector<BufferRegion> reads = realize->block.reads;
    const int read = static_cast<int>(random_.Below(std::max<size_t>(1, reads.size())));
    switch (random_.Below(12)) {
      case 0: {
        HONE_ASSIGN_OR_RETURN(const LoopRef loop, Loop());
        const int n = 1 + static_cast<int>(random_.Below(3)), at = static_cast<int>(random_.Below(n));
        const int64_t factor = 1 + static_cast<int64_t>(random_.Below(3));
        HONE_ASSIGN_OR_RETURN(const std::vector<ValueRef> tile, SamplePartitionedTile(s, loop, n, at, factor, random_));
        return Split(s, loop, std::vector<Value>(tile.begin(), tile.end())).status();
      }
      case 1: {
        std::vector<int64_t> order;
        for (size_t i = 0; i < iters.size(); ++i) order.push_back(static_cast<int64_t>(i));
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
        return ReorderBlockIterVar(s, block, order);
      }
      case 2:
      case 3:
        return Reindex(s, block, random_.Chance(0.5) ? read : 0,
                       random_.Chance(0.5) ? BufferKind::kRead : BufferKind::kWrite)
            .status();
      case 4: {
        HONE_ASSIGN_OR_RETURN(IndexMap map, ParseIndexMap(FusingMap(iters)));
        return TransformBlockLayout(s, block, map);
      }
      case 5: {
        std::vector<int64_t> padding;
        for (size_t i = 0; i < iters.size(); ++i) padding.push_back(1 + static_cast<int64_t>(random_.Below(4)));
        return PadEinsum(s, block, padding);
      }
      case 6:
      case 7: {
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        return DecomposePadding(s, block, Pick(loops)).status();
      }
      case 8: {
        HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> after, GetConsumers(s, block));
        if (after.empty()) return absl::NotFoundError("no consumer");
        return FuseReductionEpilogue(s, block, after[0]);
      }
      case 9: {
        if (machine_.has_value() && random_.Chance(0.5)) return Stream(s, block, 0);
        const int64_t factor = 1 + static_cast<int64_t>(random_.Below(20));
        return StorageAlign(s, block, 0, static_cast<int>(random_.Below(3)) - 2, factor,
                            random_.Chance(0.5) ? 0 : static_cast<int64_t>(random_.Below(factor)));
      }
      case 10: {
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        if (machine_.has_value() && loops.size() >= 3 && random_.Chance(0.7)) {
          const size_t inner = 2 + random_.Below(loops.size() - 2), share = 1 + random_.Below(inner - 1);
          return PrefetchAcross(s, block, read, loops[inner], loops[random_.Below(share)], loops[share]).status();
        }
        return Prefetch(s, block, read, Pick(loops), 1 + static_cast<int64_t>(random_.Below(3))).status();
      }
      default: {
        if (reads.empty()) return absl::NotFoundError("no reads");
        HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, Loops(block));
        HONE_ASSIGN_OR_RETURN(IndexMap map, ParseIndexMap(MapFor(reads[read].buffer)));
        const PanelTails tails = random_.Chance(0.5) ? PanelTails::kZero : PanelTails::kMask;
        const Scope scope = random_.Chance(0.7) ? Scope::kThread : Scope::kGlobal;
        const PadValue pad_value = tails == PanelTails::kZero ? PadFor(reads[read].buffer.type()) : std::nullopt;
        return Pack(s, block, read, Pick(loops), map, tails, scope, pad_value).status();
      }
    }
  }

  // Neighbouring variables of one kind put into one, some of them, and one of them in two.
  std::string FusingMap(const std::vector<IterVar>& iters) {
    std::string inputs, outputs, group;
    for (size_t i = 0; i < iters.size(); ++i) {
      const std::string name = "i" + std::to_string(i);
      const int64_t extent = ConstantValue(iters[i].domain.extent).value_or(1);
      inputs += (i == 0 ? "" : ", ") + name;
      group = group.empty() ? name : "(" + group + ") * " + std::to_string(extent) + " + " + name;
      const bool last = i + 1 == iters.size() || iters[i + 1].kind != iters[i].kind;
      if (!last && random_.Chance(0.5)) continue;
      if (group == name && extent % 2 == 0 && random_.Chance(0.3)) {
        outputs += name + " // 2, " + name + " % 2, ";
      } else {
        outputs += group + ", ";
      }
      group.clear();
    }
    return "lambda " + inputs + ": (" + outputs + ")";
  }

  Schedule schedule_;
  Random& random_;
  std::optional<Machine> machine_;
  int changes_ = 0;
  std::map<std::string, int> done_;
};

}  // namespace hone::testing
