// What a nest costs, by arithmetic on its plan: registers and their latencies, loads, and from where the operands of a
// tile come given the order of the loops around it. Comparable with the drafts of simple_nest.h.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "tuner/space/nests/access_region.h"
#include "tuner/space/nests/nest_context.h"
#include "tuner/space/nests/nest_plan.h"

namespace hone {

class NestModel {
 public:
  NestModel(const NestContext& context, int block, const NestShape& shape);

  // Microseconds of the nest with the copies in front of it; nullopt when the plan is not legal: the tile does not fit
  // the registers, an unrolled loop does not divide, a piece would be empty, the code would be too long. Arithmetic
  // alone, no allocation.
  std::optional<double> Cost(const NestPlan& plan) const;
  // Vectors of results in a tile, and those of the operand that the body of the innermost loop reads for several of its
  // taps: they stay in registers from the first to the last.
  double VectorsHeld(const NestPlan& plan, size_t read) const;

 private:
  using Sizes = std::array<int64_t, kMostIters>;
  using Moves = std::array<bool, kMostIters>;
  struct Read {
    AccessRegion region;
    Moves moves{};                              // with each iteration variable
    std::array<int64_t, kMostIters> strides{};  // in bytes
    double element = 4;                         // bytes
    double bytes = 0;                           // of the whole operand
    bool with_vector = false;                   // moves with the vectorised variable
    bool apart = false;                         // and its elements do not lie side by side
    bool alternates = false;         // but every other one is read: two loads and a shuffle (emit_near_lanes.cc)
    int64_t period = 0;              // it moves every so many iterations of that variable; 0: with each
    int64_t step = 0;                // by so many elements
    BlockInfo::Access::Steps steps;  // of another variable than the vectorised one
    bool in_vectors = false;         // and vectors of it begin where vectors of the buffer do
    bool has_panels = false;         // see NestShape::panels
    bool constant = false;
    bool cold = false;       // and it comes from memory
    bool made_here = false;  // by another nest of the function
    bool overlaps = false;   // neighbouring rows of a tile read, with another tap, elements that all lanes share
    int rows = -1;           // the variable that moves its outermost dimension; -1: one of the reduction does
  };
  // From where the tiles of a plan take an operand.
  struct Source {
    double cycles = 0;  // for a byte; 0: it comes from memory, as WithCold says
    double share = 1;   // of the sets of the first cache that a tile falls on
  };
  using Sources = std::array<Source, kMostReads>;
  struct Registers {
    double accumulators = 1;                      // vectors
    double loads = 0;                             // for one step of k, in all
    std::array<double, kMostReads> vectors_of{};  // that are read, or elements of all lanes
    std::array<double, kMostReads> loads_of{};
    std::array<double, kMostReads> shuffles_of{};  // after loads
    std::array<bool, kMostReads> shares{};
    double held = 0;  // vectors of operands that are live at once
  };
  // For the vectors of one row of a tile.
  struct RowLoads {
    double loads = 0, shuffles = 0;
    bool shares = false;  // taps that read the same vectors load them once
  };
  RowLoads RowLoadsOf(const NestPlan& plan, const Sizes& inner, size_t read, double vectors) const;
  // The innermost loop's body, of what it reads of an operand along the vector.
  struct Body {
    double taps = 1;     // iterations of the reduction in it
    double vectors = 0;  // that they read, each from a place of its own
    double shared = 0;   // of their reads, the share that meets a vector that another tap reads too
    double places = 1;   // of their reads, the share that is of another place than those before
  };
  // Elements of an operand that all lanes read, of which several taps of straight code read the same one.
  struct SharedElements {
    double taps = 1;   // in that code
    double again = 0;  // reads of an element that another tap has read before
    double held = 0;   // elements that wait for their next tap, at most at once
  };
  SharedElements SharedElementsOf(const NestPlan& plan, const Sizes& inner, size_t read) const;
  bool Overlaps(const Read& read) const;
  // Whether an operand that is computed in the tile is let through lane by lane: taps move it along the vector.
  bool MasksLanes(const NestPlan& plan, size_t read) const;
  Body BodyOf(const NestPlan& plan, const Sizes& inner, const Registers& registers, size_t read) const;
  bool Legal(const NestPlan& plan, const Registers& registers) const;  // those of a whole tile
  bool InPanels(const NestPlan& plan, size_t read) const {
    return reads_[read].has_panels && (reads_[read].constant || plan.packing[read] != Packing::kNone);
  }
  bool PackedInBlocks(const NestPlan& plan, size_t read) const {
    return reads_[read].has_panels && !reads_[read].constant && plan.packing[read] == Packing::kBlock;
  }
  // The thread that reads it made it or copied it just before.
  bool IsNear(const NestPlan& plan, size_t read) const {
    return (plan.near >> read & 1) != 0 || PackedInBlocks(plan, read);
  }
  Registers RegistersOf(const NestPlan& plan, const Sizes& inner) const;
  // Where operands come from is found from the innermost loop over tiles outwards (nest_sources.cc).
  struct Reuse {
    Sizes tile, piece;
    Sizes below;                                 // iterations of every variable below the loop reached so far
    std::array<double, kMostReads> of_tile{};    // elements of an operand that a tile reads
    std::array<double, kMostReads> touched{};    // bytes of each operand below that loop
    double all = 0;                              // of all of them
    std::array<double, kMostReads> share_of_l2;  // of the sets of the second cache, the share that a tile falls on
    std::array<double, kMostReads> fresh;        // of the reads of an operand, the share that is not met again so far
  };
  Sources SourcesOf(const NestPlan& plan) const;
  Reuse BeginReuse(const NestPlan& plan, Sources& sources) const;  // at one tile; sets Source::share
  void TouchBelow(Reuse& reuse) const;
  void PassLoop(const NestPlan& plan, int iter, Reuse& reuse, Sources& sources) const;
  double FirstFootprint(const NestPlan& plan, size_t read, double touched, double thread_bytes) const;
  double SharedWithNext(const NestPlan& plan, size_t read, const Sizes& tile, double elements, size_t iter) const;
  double PartOfLine(const NestPlan& plan, size_t read, const Sizes& tile) const;
  // Of one tile: arithmetic and loads from the first cache, what comes from further off, and results and epilogue;
  // `steps` iterations of the reduction.
  struct Core {
    double cycles = 0;
    double spills = 0;  // of sums that registers have no room for: nothing hides them
  };
  Core CoreOf(const NestPlan& plan, const Sizes& inner, const Registers& registers, double steps) const;
  double StreamCycles(const NestPlan& plan, const Sizes& inner, const Registers& registers, double steps,
                      const Sources& sources) const;
  double ResultCycles(const NestPlan& plan, const Sizes& inner, double accumulators) const;
  double TileCycles(const NestPlan& plan, const Sizes& inner, const Registers& registers, const Sources& sources) const;
  // Of all tiles in the first piece, in which no variable but one with a single piece has a tail. `whole`: the
  // registers of a tile that none cuts off.
  double PieceCycles(const NestPlan& plan, size_t variable, Sizes& inner, const Registers& whole,
                     const Sources& sources) const;
  bool RowsCollide(const Read& read, const Sizes& inner) const;
  // To read and write so many bytes of partial results between two blocks of k, beyond what the second cache takes.
  double FarSumCycles(const NestPlan& plan, double bytes) const;
  // Iterations of every variable in a tile, a block of k long; those of the reduction whole or a block of it.
  Sizes TileSizes(const NestPlan& plan, const Sizes& inner) const;
  Sizes PieceSizes(const NestPlan& plan) const;
  // Of the tiles that follow one another along the vectors, where these are the innermost loop over tiles: what is side
  // by side in memory is then read and written in one go, and comes ahead of its use.
  Sizes RowOfTiles(const NestPlan& plan) const;
  // What one thread touches in all: its share of the operands that pieces divide, the whole of the others. Of what
  // stays in a piece, one piece of it: the next one is in the same place.
  double ThreadBytes(const NestPlan& plan) const;
  // Whether a long panel of cold constants is asked for while only few tiles pass over the one before.
  bool PassesByFewTiles(const NestPlan& plan) const;
  // Pieces that an operand is divided into; of its bytes, the share that one thread touches.
  double PiecesOf(const NestPlan& plan, const Moves& moves) const;
  double ShareOfThread(const NestPlan& plan, const Moves& moves) const;
  // What the kernels before and after this one are handed by another core (nest_handover.cc).
  void FindHandedOn(const WorkloadInfo& info);
  int RowsOfBuffer(const std::vector<int64_t>& strides) const;
  double OwnShare(const NestPlan& plan, int rows) const;
  double HandoverMicroseconds(const NestPlan& plan) const;
  // Microseconds of so much work beside reading the cold constants from memory, on all threads at once (nest_cold.cc).
  double WithCold(const NestPlan& plan, const Registers& registers, double work) const;
  // Whether every thread reads the cold constants once in the whole nest, each from its beginning to its end.
  bool IsStream(const NestPlan& plan) const;
  // Of copies into panels: in front of the nest, and in one piece.
  double CopyMicroseconds(const NestPlan& plan) const;
  double CopyCycles(const NestPlan& plan) const;
  // The results are taken in the piece, by another block.
  bool stays() const { return shape_.pieces_of >= 0; }
  // Of the innermost reduce loop, where nothing is cut.
  double InnermostSteps() const {
    return static_cast<double>(block_.extents[static_cast<size_t>(reduce_.back())] / shape_.depth());
  }
  // All taps of a window in straight code.
  bool IsStraight(const NestPlan& plan) const {
    return plan.window && plan.unroll == block_.extents[static_cast<size_t>(reduce_.back())];
  }
  bool of_lanes() const { return shape_.cut == ReductionCut::kLanes; }
  // Tiles down, in registers, where `inner` iterations of a variable are; the iterations themselves without tiles.
  int64_t Down(int iter, int64_t inner) const {
    return iter == shape_.tile_rows ? CeilDiv(inner, shape_.dot->rows) : inner;
  }
  // Rows of a read that `inner` iterations of a variable are: those of one group read one, where tiles begin with a
  // group or lie in one.
  static int64_t RowsOf(const Read& read, int iter, int64_t inner, int64_t of_tile) {
    if (read.steps.iter != iter || (of_tile % read.steps.period != 0 && read.steps.period % of_tile != 0)) return inner;
    return CeilDiv(inner, read.steps.period);
  }
  // Vectors of memory that one accumulator is.
  double RowsOfAccumulator() const { return shape_.in_tiles() ? static_cast<double>(shape_.dot->rows) : 1; }
  double LoadsOfTiles(double accumulators, size_t read, double down, double across) const;  // vectors, for one step
  int VectorBits(const NestPlan& plan) const;                             // of the vectors that hold its lanes
  double ProductCycles(const NestPlan& plan, double accumulators) const;  // of one step, of all accumulators

  // Instructions that a core has begun and not finished, at least.
  static constexpr double kInFlight = 200;
  // Bytes in one piece, from which on the hardware fetches ahead.
  static constexpr int64_t kPrefetched = 256;
  static constexpr int64_t kLine = 64;      // bytes of a cache line
  static constexpr int64_t kPage = 4096;    // bytes: of a way of the first cache, whose index is within a page
  static constexpr int64_t kWaysOfL2 = 16;  // as most have
  static int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

  const BlockInfo& block_;
  NestShape shape_;
  Target target_;
  Machine machine_;
  int threads_;
  int vector_iter_;  // of the output's last dimension
  std::vector<Read> reads_;
  std::vector<int> spatial_;  // with more than one iteration
  std::vector<int> reduce_;
  double reduce_steps_ = 1;  // groups of products are one
  double epilogue_operations_ = 0;
  double whole_bytes_ = 0;  // of all reads
  double output_bytes_ = 0;
  double handed_on_bytes_ = 0;  // of results that leave the function, with operands that lie as they do
  Moves moves_results_{};       // that every variable of the results moves
  int rows_of_results_ = -1;
};

}  // namespace hone
