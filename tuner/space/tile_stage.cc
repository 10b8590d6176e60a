// tile: a block that accumulates into a tile of registers. Convolutions, products, depthwise convolutions and pooling
// are all of this form: y[outer.., m, n] += f(A[.., m, k..], B[k.., n]) with n along memory.
//
//   parallel (p0, n0):                              p: the outermost of outer.., m with more than one iteration
//     n1, p1, outer.., m0:                          or p1, outer.., n1, m0: see "order"
//       for k..:                                    serial; the last one unrolled in part
//         unroll m1 in [0, mr): unroll v in [0, nv): vectorized lane in [0, lanes):   acc += ..
//       epilogue of the tile                        bias, residual, activation
//
// A constant operand that moves with n is stored in panels [n / nr][k..][nr], nr = nv * lanes (the trace step
// layout_constant), so that the kernel reads it in one stream; a variable one that does not lie along n is packed so in
// front of the nest. Tile shapes and their limits: codegen.md 2.1 and 2.2; blocking by panels: Goto and van de Geijn,
// "Anatomy of high-performance matrix multiplication" (2008).
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/cache.h"
#include "compiler/schedule/compute_at.h"
#include "compiler/schedule/decompose_reduction.h"
#include "compiler/schedule/fuse.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/schedule/reorder.h"
#include "compiler/schedule/set_scope.h"
#include "compiler/schedule/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/stage.h"

namespace hone {
namespace {

enum Order : int64_t { kPanelsOutside = 0, kPanelsInside = 1 };

// The positions of the knobs in a choice.
enum KnobAt { kMr, kNv, kUnroll, kWindow, kParallelM, kParallelN, kOrder, kKnobs };

class TileStage : public StageTemplate {
 public:
  TileStage(const StageContext& context, int block, int epilogue)
      : block_(context.info->blocks[static_cast<size_t>(block)]),
        epilogue_(epilogue < 0 ? nullptr : &context.info->blocks[static_cast<size_t>(epilogue)]),
        target_(context.target),
        machine_(context.machine),
        threads_(context.threads) {
    FindAxes();
    FindOperands();
    MakeKnobs();
  }

  const std::vector<Knob>& knobs() const override { return knobs_; }
  std::optional<double> Draft(std::span<const int> choice) const override;
  absl::Status Apply(Schedule& schedule, std::span<const int> choice) const override;

 private:
  struct Operand {
    int read = 0;   // in block_.reads
    int along = 0;  // its dimension indexed by n
  };
  int64_t Value(std::span<const int> choice, KnobAt knob) const {
    return knobs_[knob].candidates[static_cast<size_t>(choice[knob])];
  }
  int64_t extent(int iter) const { return iter < 0 ? 1 : block_.extents[static_cast<size_t>(iter)]; }
  int64_t Panels(int64_t nv) const { return (extent(n_) + nv * lanes_ - 1) / (nv * lanes_); }
  // How many iterations of p run in parallel pieces: what is left is inside.
  int64_t ParallelExtent(int64_t mr) const { return p_ == m_ ? (extent(m_) + mr - 1) / mr : extent(p_); }

  void FindAxes();
  void FindOperands();
  void MakeKnobs();
  absl::Status LayOutOperands(Schedule& schedule, BlockRef block, int64_t nr) const;
  absl::Status ScheduleEpilogue(Schedule& schedule, BlockRef epilogue, size_t shared_loops, int64_t nv) const;

  const BlockInfo& block_;
  const BlockInfo* epilogue_;
  Target target_;
  Machine machine_;
  int threads_;
  int n_ = -1, m_ = -1, p_ = -1;  // iteration variables; -1: the block has none of that kind
  std::vector<int> outer_;        // spatial, neither n nor m, in order
  std::vector<int> reduce_;       // in the order of the block
  int lanes_ = 1;
  std::vector<Operand> packed_;                       // operands to store in panels, constants first
  double operand_vectors_ = 0, operand_scalars_ = 0;  // per step of k: loads for each vector column, for each row
  std::vector<Knob> knobs_;
};

void TileStage::FindAxes() {
  n_ = block_.last_iter();
  for (int i = 0; i < static_cast<int>(block_.iters.size()); ++i) {
    if (!block_.spatial(i)) {
      reduce_.push_back(i);
    } else if (i != n_) {
      outer_.push_back(i);
    }
  }
  for (size_t i = outer_.size(); i-- > 0;) {
    if (extent(outer_[i]) == 1) continue;
    m_ = outer_[i];
    outer_.erase(outer_.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  p_ = m_;
  for (const int iter : outer_) {
    if (extent(iter) > 1) {
      p_ = iter;
      break;
    }
  }
  const int native = target_.lanes(std::max(32, static_cast<int>(block_.output.type().bits)));
  lanes_ = 1;
  while (lanes_ < native && lanes_ < extent(n_)) lanes_ *= 2;
}

void TileStage::FindOperands() {
  for (size_t r = 0; r < block_.reads.size(); ++r) {
    const BlockInfo::Access& read = block_.reads[r];
    const int64_t stride = read.strides[static_cast<size_t>(n_)];
    (stride == 0 ? operand_scalars_ : operand_vectors_) += 1;
    const int along = DimensionToPack(block_, read, lanes_);
    if (along >= 0) packed_.push_back({static_cast<int>(r), along});
  }
  std::stable_partition(packed_.begin(), packed_.end(), [this](const Operand& operand) {
    return block_.reads[static_cast<size_t>(operand.read)].constant;
  });
}

void TileStage::MakeKnobs() {
  knobs_.resize(kKnobs);
  const int64_t m = extent(m_);
  Knob& mr = knobs_[kMr];
  mr.name = "mr";
  mr.candidates = DivisorsUpTo(m, 16);
  if (mr.candidates.back() < 4 && m > 4) {  // no good divisor: tails
    for (const int64_t rows : {4, 6, 8, 12, 14}) {
      if (rows < m) mr.candidates.push_back(rows);
    }
  }
  Knob& nv = knobs_[kNv];
  nv.name = "nv";
  const int64_t vectors = (extent(n_) + lanes_ - 1) / lanes_;
  for (const int64_t n : {1, 2, 3, 4, 6, 8}) {
    if (n <= vectors) nv.candidates.push_back(n);
  }
  knobs_[kUnroll] = {"unroll", reduce_.empty() ? std::vector<int64_t>{1} : DivisorsUpTo(extent(reduce_.back()), 8)};
  // Whether the reduce loops but the last are unrolled too: the taps of a depthwise convolution or a pool.
  int64_t taps = 1;
  for (size_t i = 0; i + 1 < reduce_.size(); ++i) taps *= extent(reduce_[i]);
  knobs_[kWindow] = {"window", {0}};
  if (taps > 1 && taps <= 9 && extent(reduce_.back()) <= 9) knobs_[kWindow].candidates.push_back(1);
  // Numbers of parallel pieces; they must divide what they cut (Draft says so).
  Knob& parallel_m = knobs_[kParallelM];
  parallel_m = {"parallel_m", {1}};
  Knob& parallel_n = knobs_[kParallelN];
  parallel_n = {"parallel_n", {1}};
  if (threads_ > 1) {
    const int64_t rows = p_ == m_ ? m : extent(p_);
    for (const int64_t pieces : DivisorsUpTo(rows, 64)) {
      if (pieces > 1) parallel_m.candidates.push_back(pieces);
    }
    if (p_ != m_ && rows > 64) parallel_m.candidates.push_back(rows);
    for (const int64_t pieces : {2, 3, 4, 6, 8, 16, 32}) {
      if (pieces <= vectors) parallel_n.candidates.push_back(pieces);
    }
  }
  knobs_[kOrder] = {"order", {kPanelsOutside, kPanelsInside}};
}

std::optional<double> TileStage::Draft(std::span<const int> choice) const {
  const int64_t mr = Value(choice, kMr), nv = Value(choice, kNv);
  const int64_t parallel_m = Value(choice, kParallelM), parallel_n = Value(choice, kParallelN);
  const int64_t panels = Panels(nv);
  if (static_cast<double>(mr * nv) + static_cast<double>(nv) * operand_vectors_ + 1 > target_.vector_registers)
    return std::nullopt;
  if (ParallelExtent(mr) % parallel_m != 0 || panels % parallel_n != 0) return std::nullopt;

  double outer = 1, steps = 1;
  for (const int iter : outer_) outer *= static_cast<double>(extent(iter));
  for (const int iter : reduce_) steps *= static_cast<double>(extent(iter));
  const double row_tiles = outer * std::ceil(static_cast<double>(extent(m_)) / static_cast<double>(mr));
  const double tiles = row_tiles * static_cast<double>(panels);

  // The registers: multiply-adds against their latency, and loads.
  const double fma_per_cycle = machine_.fma_per_cycle(target_.vector_bits);
  const double in_flight = std::min(1.0, static_cast<double>(mr * nv) / (machine_.fma_latency * fma_per_cycle));
  const double operations = std::max(1.0, block_.operations / 2);
  const double fma = steps * static_cast<double>(mr * nv) * operations / (fma_per_cycle * in_flight);
  const double loads =
      steps *
      (static_cast<double>(mr) * operand_scalars_ + static_cast<double>(nv) * std::max(operand_vectors_, 1.0) *
                                                        (operand_scalars_ > 0 ? 1.0 : static_cast<double>(mr))) /
      machine_.loads_per_cycle(target_.vector_bits);
  const double loop = steps / static_cast<double>(Value(choice, kUnroll)) * 1.5 + 20;
  double tile_cycles =
      std::max({fma, loads}) + loop + static_cast<double>(mr * nv) * (epilogue_ ? 3 + epilogue_->operations : 2);
  // A tail in m keeps a branch for every row.
  if (m_ >= 0 && extent(m_) % mr != 0) tile_cycles *= 1.3;

  // The panel is read once for each tile, from where it stays in between; the rows likewise.
  const double element = block_.output.type().bytes();
  const double panel_bytes = steps * static_cast<double>(nv * lanes_) * element;
  const double all_panels = panel_bytes * static_cast<double>(panels) / static_cast<double>(parallel_n);
  double row_bytes = 0, all_rows = 0;
  for (const BlockInfo::Access& read : block_.reads) {
    if (read.strides[static_cast<size_t>(n_)] != 0 && operand_scalars_ > 0) continue;
    const double whole = static_cast<double>(read.elements) * element;
    all_rows += whole / static_cast<double>(parallel_m);
    row_bytes += whole / row_tiles;
  }
  const bool outside = Value(choice, kOrder) == kPanelsOutside;
  const double panel_lives = outside ? panel_bytes : panel_bytes + (p_ == m_ ? row_bytes : all_panels);
  const double rows_live = outside ? all_rows : row_bytes * 4;
  if (operand_scalars_ > 0)
    tile_cycles = std::max(tile_cycles, panel_bytes / BytesPerCycle(target_, machine_, panel_lives));
  tile_cycles += row_bytes / BytesPerCycle(target_, machine_, rows_live + panel_bytes) * 0.5;
  // Each operand comes at least once from where it lives: what many small products stream is no panel's alone.
  double operand_cycles = 0;
  for (const BlockInfo::Access& read : block_.reads) {
    const double whole = static_cast<double>(read.elements) * element;
    operand_cycles += whole / BytesPerCycle(target_, machine_, whole);
  }
  return std::max(
      ParallelTime(machine_, tiles * tile_cycles / machine_.cycles_per_us(), parallel_m * parallel_n, threads_),
      operand_cycles / (threads_ * machine_.cycles_per_us()));
}

absl::Status TileStage::LayOutOperands(Schedule& schedule, BlockRef block, int64_t nr) const {
  for (const Operand& operand : packed_) {
    const BlockInfo::Access& read = block_.reads[static_cast<size_t>(operand.read)];
    HONE_RETURN_IF_ERROR(PackOperand(schedule, block, read, operand.along, nr, threads_));
  }
  return absl::OkStatus();
}

absl::Status TileStage::ScheduleEpilogue(Schedule& schedule, BlockRef epilogue, size_t shared_loops, int64_t nv) const {
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, epilogue));
  loops.erase(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(shared_loops));
  if (lanes_ > 1) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, loops.back(), {nv, lanes_}));
    loops.back() = parts[0];
    HONE_RETURN_IF_ERROR(Vectorize(schedule, parts[1]));
  }
  for (const LoopRef loop : loops) HONE_RETURN_IF_ERROR(Unroll(schedule, loop));
  return absl::OkStatus();
}

absl::Status TileStage::Apply(Schedule& schedule, std::span<const int> choice) const {
  const int64_t mr = Value(choice, kMr), nv = Value(choice, kNv);
  const int64_t parallel_m = Value(choice, kParallelM), parallel_n = Value(choice, kParallelN);
  HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, block_.name));
  HONE_RETURN_IF_ERROR(LayOutOperands(schedule, block, nv * lanes_));

  BlockRef epilogue;
  if (epilogue_ != nullptr) {
    HONE_ASSIGN_OR_RETURN(epilogue, GetBlock(schedule, epilogue_->name));
    HONE_RETURN_IF_ERROR(SetScope(schedule, block, 0, Scope::kRegister));
  } else {
    HONE_ASSIGN_OR_RETURN(epilogue, CacheWrite(schedule, block, 0, Scope::kRegister));
  }

  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
  const auto loop_of = [&](int iter) { return loops[static_cast<size_t>(iter)]; };
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> n, Split(schedule, loop_of(n_), {parallel_n, -1, nv, lanes_}));
  std::vector<LoopRef> order, outer;
  LoopRef m0, m1;
  if (m_ >= 0) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> m, Split(schedule, loop_of(m_), {-1, mr}));
    m0 = m[0];
    m1 = m[1];
  }
  // Outside: p0 and n0 in parallel, then what is left of p, the other outer loops and the panels.
  std::vector<LoopRef> parallel, rows;
  for (const int iter : outer_) {
    if (iter != p_) {
      (p_ == m_ || rows.empty() ? outer : rows).push_back(loop_of(iter));
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> p, Split(schedule, loop_of(iter), {parallel_m, -1}));
    parallel.push_back(p[0]);
    rows.push_back(p[1]);
  }
  LoopRef last = m0;
  if (m_ >= 0 && p_ == m_) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> p, Split(schedule, m0, {parallel_m, -1}));
    parallel.push_back(p[0]);
    last = p[1];
  }
  parallel.push_back(n[0]);
  order = outer;  // loops of one iteration, mostly
  order.insert(order.end(), parallel.begin(), parallel.end());
  if (Value(choice, kOrder) == kPanelsOutside) order.push_back(n[1]);
  order.insert(order.end(), rows.begin(), rows.end());
  const bool panels_between = Value(choice, kOrder) == kPanelsInside;
  if (panels_between && p_ != m_) order.push_back(n[1]);
  if (m_ >= 0) order.push_back(last);
  if (panels_between && p_ == m_) order.push_back(n[1]);
  const LoopRef tile_loop = order.back();
  const size_t tile_depth = order.size();

  // Inside: the reduction, then the tile.
  std::vector<LoopRef> unrolled;
  for (size_t i = 0; i < reduce_.size(); ++i) {
    const LoopRef loop = loop_of(reduce_[i]);
    if (i + 1 < reduce_.size() || Value(choice, kUnroll) == 1) {
      order.push_back(loop);
      if (i + 1 < reduce_.size() && Value(choice, kWindow) == 1) unrolled.push_back(loop);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> k, Split(schedule, loop, {-1, Value(choice, kUnroll)}));
    order.insert(order.end(), k.begin(), k.end());
    unrolled.push_back(k[1]);
  }
  if (m_ >= 0) {
    order.push_back(m1);
    unrolled.push_back(m1);
  }
  order.push_back(n[2]);
  unrolled.push_back(n[2]);
  order.push_back(n[3]);
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule, epilogue, tile_loop));
  for (const LoopRef loop : unrolled) HONE_RETURN_IF_ERROR(Unroll(schedule, loop));
  if (lanes_ > 1) HONE_RETURN_IF_ERROR(Vectorize(schedule, n[3]));
  if (!reduce_.empty()) HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, block, order[tile_depth]).status());
  HONE_RETURN_IF_ERROR(ScheduleEpilogue(schedule, epilogue, tile_depth, nv));
  if (parallel_m * parallel_n == 1) return absl::OkStatus();
  parallel.insert(parallel.begin(), outer.begin(), outer.end());
  return FuseAndParallel(schedule, std::move(parallel));
}

}  // namespace

std::unique_ptr<StageTemplate> MakeTileStage(const StageContext& context, int block, int epilogue) {
  return std::make_unique<TileStage>(context, block, epilogue);
}

}  // namespace hone
