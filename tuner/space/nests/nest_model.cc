#include "tuner/space/nests/nest_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/ir/visit.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/lanes.h"

namespace hone {
namespace {

// Shares and small costs, fitted to the kernels of four networks on one core with AVX-512 (hone-attribution --all shows
// drafts beside times). What differs from machine to machine is in Machine.
constexpr double kTileOverhead = 16;    // cycles: loop set-up, the first results of a chain
constexpr double kLoopExit = 8;         // cycles: a branch that was foreseen otherwise, in part hidden
constexpr double kIteration = 0.6;      // cycles of an iteration's own arithmetic that other work does not hide
constexpr double kGatherLanes = 8;      // cycles to put the lanes of one vector together, or to add them up
constexpr double kGathered = 0.8;       // cycles to fetch one lane of a vector by itself, where they are in cache
constexpr int64_t kMostChosen = 4;      // elements that a vector is put together of by choosing (emit_near_lanes.cc)
constexpr double kOfElement = 0.5;      // of the load of a vector, that of one such element
constexpr double kSpilled = 6;          // cycles to store a vector to the stack, and to load it for each tap
constexpr double kSpilledElement = 2;   // cycles to store a vector of one element to the stack, and to load it again
constexpr double kCopied = 2;           // cycles to copy a vector: its load, its store, the loop
constexpr double kMostUnrolled = 1024;  // accumulations in the body of the innermost loop
constexpr double kNotHidden = 0.25;     // of what is shorter, arithmetic or traffic
constexpr double kOfLoads = 0.75;       // of the loads that nothing but loads reach, those of a tile
constexpr double kOfFirstCache = 0.8;   // of its bytes stay until they are used again

// Of two units that work side by side: the busier one, and a little more where both are busy.
double Both(double a, double b) { return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b)); }

}  // namespace

NestModel::NestModel(const NestContext& context, int block, const NestShape& shape)
    : block_(context.info->blocks[static_cast<size_t>(block)]),
      shape_(shape),
      target_(context.target),
      machine_(context.machine),
      threads_(context.threads),
      vector_iter_(block_.last_iter()) {
  const size_t vector = static_cast<size_t>(of_lanes() ? shape_.along : vector_iter_);
  const int64_t lanes = LanesFor(target_, block_, static_cast<int>(vector));
  for (size_t r = 0; r < std::min(block_.reads.size(), kMostReads); ++r) {
    const BlockInfo::Access& access = block_.reads[r];
    Read read{AccessRegion(block_, access)};
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      const bool mentioned = std::any_of(access.indices.begin(), access.indices.end(),
                                         [&](const Expr& index) { return UsesVar(index, block_.iters[i].var); });
      read.moves[i] = access.strides[i] != 0 || (!access.affine && mentioned);
      read.strides[i] = access.strides[i] * access.buffer.type().bytes();
    }
    read.element = access.buffer.type().bytes();
    // All lanes read one element, where they are of one group.
    if (access.steps.iter == static_cast<int>(vector)) {
      read.period = access.steps.period;
      read.step = access.steps.stride;
      read.in_vectors = access.elements % lanes == 0;
      for (size_t i = 0; i < block_.iters.size(); ++i) {
        const bool along_k = static_cast<int>(i) == block_.last_reduce_iter();
        read.in_vectors = read.in_vectors && (along_k || access.strides[i] % lanes == 0);
      }
    }
    if (access.steps.iter != static_cast<int>(vector)) read.steps = access.steps;
    read.with_vector = read.moves[vector] && (read.period == 0 || read.period % lanes != 0);
    read.apart = read.with_vector && access.strides[vector] != 1;
    read.alternates = read.apart && access.affine && std::abs(access.strides[vector]) == 2;
    read.has_panels = std::find(shape_.panels.begin(), shape_.panels.end(), static_cast<int>(r)) != shape_.panels.end();
    read.constant = access.constant;
    read.cold = access.cold;
    read.made_here = context.info->Producer(access.buffer) >= 0;
    read.rows = RowsOfBuffer(access.strides);
    read.bytes = static_cast<double>(access.elements) * read.element;
    whole_bytes_ += read.bytes;
    reads_.push_back(std::move(read));
  }
  double results = 1;
  for (int i = 0; i < static_cast<int>(block_.iters.size()); ++i) {
    const int64_t extent = block_.extents[static_cast<size_t>(i)];
    if (!block_.spatial(i)) {
      reduce_steps_ *= static_cast<double>(extent);
      reduce_.push_back(i);
      continue;
    }
    results *= static_cast<double>(extent);
    if (extent > 1) spatial_.push_back(i);
  }
  for (Read& read : reads_) read.overlaps = Overlaps(read);
  reduce_steps_ /= static_cast<double>(shape_.depth());
  output_bytes_ = results * block_.output.type().bytes();
  if (shape_.epilogue >= 0)
    epilogue_operations_ = context.info->blocks[static_cast<size_t>(shape_.epilogue)].operations;
  FindHandedOn(*context.info);
}

bool NestModel::Legal(const NestPlan& plan, const Registers& registers) const {
  double copies = static_cast<double>(plan.unroll) * registers.accumulators;
  if (plan.window) copies *= reduce_steps_ / InnermostSteps();
  if (copies > kMostUnrolled) return false;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    // Every piece has something to do; else it is another plan.
    if (CeilDiv(block_.extents[i], plan.InPiece(i, block_.extents[i])) != plan.pieces[i]) return false;
    const bool in_register = shape_.in_matrices() && (iter == shape_.tile_rows || iter == vector_iter_);
    if (in_register && block_.extents[i] % plan.inner[i] != 0) return false;
  }
  if (reduce_.empty()) return true;
  int64_t last = block_.extents[static_cast<size_t>(reduce_.back())];
  if (shape_.along == reduce_.back()) last = CeilDiv(last, plan.k_parts);
  if (last % (plan.unroll * shape_.depth()) != 0) return false;
  if (shape_.in_tiles()) return registers.accumulators + 2 <= kTileRegisters;  // one for either factor
  // An element of a row, and a product that is added to its sum by an instruction of its own.
  const int on_their_way = shape_.dot.has_value() && shape_.dot->instruction->adds ? 2 : 1;
  return registers.accumulators + registers.held + on_their_way <= target_.vector_registers;
}

NestModel::Registers NestModel::RegistersOf(const NestPlan& plan, const Sizes& inner) const {
  Registers found;
  double elements = 1;
  for (const int iter : spatial_) {
    if (iter != vector_iter_ || of_lanes())
      elements *= static_cast<double>(Down(iter, inner[static_cast<size_t>(iter)]));
  }
  const double vectors =
      of_lanes() ? 1 : static_cast<double>(CeilDiv(inner[static_cast<size_t>(vector_iter_)], plan.lanes));
  found.accumulators = elements * vectors;
  for (size_t r = 0; r < reads_.size(); ++r) {
    const Read& read = reads_[r];
    double rows = 1;
    for (const int iter : spatial_) {
      const size_t i = static_cast<size_t>(iter);
      if (read.moves[i] && (of_lanes() || iter != vector_iter_))
        rows *= static_cast<double>(RowsOf(read, iter, Down(iter, inner[i]), plan.inner[i]));
    }
    if (read.with_vector) found.held += of_lanes() ? std::min(rows, 2.0) : vectors;
    const RowLoads row = RowLoadsOf(plan, inner, r, vectors);
    found.vectors_of[r] = rows * (read.with_vector ? vectors : 1);
    const bool row_by_row = shape_.in_matrices() && !read.with_vector;  // of the left factor
    const double loads = row_by_row ? static_cast<double>(shape_.dot->rows) : row.loads;
    found.loads_of[r] = shape_.in_tiles() ? LoadsOfTiles(found.accumulators, r, rows, vectors) : rows * loads;
    found.shuffles_of[r] = rows * row.shuffles;
    found.shares[r] = row.shares;
    found.loads += found.loads_of[r];
  }
  return found;
}

// Tiles of one factor are loaded row by row. Those of a row of tiles of C are met in turn: where more of B go by than
// the registers left for it, they are loaded for every row.
double NestModel::LoadsOfTiles(double accumulators, size_t read, double down, double across) const {
  if (!reads_[read].with_vector) return down * static_cast<double>(shape_.dot->rows);
  const double left = static_cast<double>(kTileRegisters) - accumulators, for_right = left - std::floor(left / 2);
  const double groups = static_cast<double>(shape_.dot->depth / shape_.dot->group);
  return (across <= for_right ? across : accumulators) * groups;
}

int NestModel::VectorBits(const NestPlan& plan) const {
  if (of_lanes() || shape_.dot.has_value()) return target_.vector_bits;
  const int needed = plan.lanes * std::max(32, static_cast<int>(block_.output.type().bits));
  const int bits = std::min(std::max(needed, 128), target_.vector_bits);
  return machine_.fma_per_cycle(bits) > 0 ? bits : target_.vector_bits;  // of some cores one width alone is known
}

double NestModel::ProductCycles(const NestPlan& plan, double accumulators) const {
  const double fma_per_cycle = machine_.fma_per_cycle(VectorBits(plan));
  if (shape_.in_tiles()) {
    const TileInstruction& product = *shape_.dot->instruction;
    return std::max(accumulators * product.cycles, product.latency);
  }
  const double in_flight = std::min(1.0, accumulators / (machine_.fma_latency * fma_per_cycle));
  const double operations =
      shape_.dot.has_value() ? (shape_.dot->instruction->adds ? 2 : 1) : std::max(1.0, block_.operations / 2);
  return accumulators * operations / (fma_per_cycle * in_flight);
}

NestModel::RowLoads NestModel::RowLoadsOf(const NestPlan& plan, const Sizes& inner, size_t r, double vectors) const {
  const Read& read = reads_[r];
  const RowLoads gathered{vectors * kGatherLanes * 2, 0, false};
  if (read.period == 0 || of_lanes()) {
    if (!read.with_vector) return {1, 0, false};
    if (!read.apart || InPanels(plan, r)) return {vectors, 0, true};
    return read.alternates && !of_lanes() ? RowLoads{2 * vectors, vectors, true} : gathered;
  }
  const size_t n = static_cast<size_t>(vector_iter_);
  if (!read.with_vector) return {static_cast<double>(CeilDiv(inner[n], read.period)), 0, false};
  if (plan.inner[n] % std::lcm<int64_t>(plan.lanes, read.period) != 0) return gathered;
  // Lanes of two groups are chosen between two elements, those of some more too, unless the taps along k are straight
  // code: then they are those of a vector in memory, in another order, which the taps share (emit_near_lanes.cc).
  const bool divides = plan.lanes % read.period == 0;
  const int64_t groups = divides ? plan.lanes / read.period : CeilDiv(plan.lanes - 1, read.period) + 1;
  const bool whole = !reduce_.empty() && plan.unroll == block_.extents[static_cast<size_t>(reduce_.back())];
  if (groups > 2 && divides && whole && read.in_vectors && plan.inner[n] / read.period * read.step % plan.lanes == 0)
    return {vectors, vectors, true};
  if (groups > kMostChosen) return gathered;
  return {kOfElement * vectors * static_cast<double>(groups), vectors * static_cast<double>(groups - 1), false};
}

NestModel::Body NestModel::BodyOf(const NestPlan& plan, const Sizes& inner, const Registers& registers,
                                  size_t read) const {
  Sizes sizes = inner;
  Body body;
  // A last loop over a few taps is unrolled by the compiler too, unless lanes of every load have masks.
  const bool masked = MasksLanes(plan, read);
  for (const int iter : reduce_) {
    int64_t& size = sizes[static_cast<size_t>(iter)];
    const bool last = iter == reduce_.back();
    size = plan.window && !(last && masked) ? block_.extents[static_cast<size_t>(iter)] : last ? plan.unroll : 1;
    body.taps *= static_cast<double>(size);
  }
  if (const size_t n = static_cast<size_t>(vector_iter_); reads_[read].strides[n] != 0) {
    Sizes starts = sizes;  // of vectors: taps along them begin at elements of their own
    if (const int rows = reads_[read].steps.iter; rows >= 0) {  // rows that begin anywhere in a group share nothing
      const size_t i = static_cast<size_t>(rows);
      starts[i] = reads_[read].steps.period * RowsOf(reads_[read], rows, inner[i], plan.inner[i]);
    }
    starts[n] = 1;
    body.vectors = reads_[read].region.Elements(starts) * static_cast<double>(CeilDiv(sizes[n], plan.lanes));
  } else {
    body.vectors = reads_[read].region.Elements(sizes) / plan.lanes;
  }
  if (reads_[read].period > 0) {  // the taps along k are of one place
    Sizes one = sizes;
    double places = 1;
    for (size_t i = 0; i < block_.iters.size(); ++i) {
      const int iter = static_cast<int>(i);
      if (iter == vector_iter_ || (!reduce_.empty() && iter == reduce_.back()) || !reads_[read].moves[i]) continue;
      places *= static_cast<double>(sizes[i]);
      one[i] = 1;
    }
    body.places = std::min(1.0, body.vectors * plan.lanes / (places * reads_[read].region.Elements(one)));
  }
  if (registers.shares[read]) {
    const double own = std::min(1.0, body.vectors / (registers.vectors_of[read] * body.taps));
    body.shared = 1 - own;
    if (reads_[read].period == 0) body.places = own;
  }
  return body;
}

// The compiler loads such an element once, and keeps it from its first tap to its last. Between two halves of the taps
// along a variable those wait that both halves read.
NestModel::SharedElements NestModel::SharedElementsOf(const NestPlan& plan, const Sizes& inner, size_t r) const {
  const Read& read = reads_[r];
  SharedElements shared;
  if (!read.overlaps) return shared;
  Sizes sizes = inner;
  const double elements = read.region.ElementsAlone(sizes);
  for (size_t v = reduce_.size(); v-- > 0;) {
    const size_t i = static_cast<size_t>(reduce_[v]);
    const int64_t taps = v + 1 == reduce_.size() ? plan.unroll : IsStraight(plan) ? block_.extents[i] : 1;
    if (taps == 1) continue;
    shared.taps *= static_cast<double>(taps);
    const auto along = [&](int64_t some) {
      sizes[i] = some;
      return read.region.ElementsAlone(sizes);
    };
    shared.held += along(taps / 2) + along(taps - taps / 2) - along(taps);  // leaves all taps in `sizes`
  }
  shared.again = elements * shared.taps - read.region.ElementsAlone(sizes);
  return shared;
}

bool NestModel::Overlaps(const Read& read) const {
  if (read.with_vector || read.period > 0 || read.steps.iter >= 0 || of_lanes() || shape_.in_matrices()) return false;
  for (const int row : spatial_) {
    for (const int tap : reduce_) {
      if (!read.moves[static_cast<size_t>(row)] || !read.moves[static_cast<size_t>(tap)]) continue;
      const int64_t taps = block_.extents[static_cast<size_t>(tap)];
      Sizes both;
      both.fill(1);
      both[static_cast<size_t>(row)] = 2;
      both[static_cast<size_t>(tap)] = taps;
      if (read.region.ElementsAlone(both) < 2 * static_cast<double>(taps)) return true;
    }
  }
  return false;
}

bool NestModel::MasksLanes(const NestPlan& plan, size_t r) const {
  const Read& read = reads_[r];
  return (plan.in_tile >> r & 1) != 0 && read.with_vector && std::ranges::any_of(reduce_, [&](int iter) {
           const int64_t stride = std::abs(read.strides[static_cast<size_t>(iter)]);
           return stride > 0 && stride < target_.vector_bits / 8;
         });
}

double NestModel::VectorsHeld(const NestPlan& plan, size_t read) const {
  const Registers registers = RegistersOf(plan, plan.inner);
  const Body body = BodyOf(plan, plan.inner, registers, read);
  return registers.accumulators + body.vectors * body.shared;
}

std::optional<double> NestModel::Cost(const NestPlan& plan) const {
  const Registers registers = RegistersOf(plan, plan.inner);
  if (!Legal(plan, registers)) return std::nullopt;
  const Sources sources = SourcesOf(plan);
  Sizes inner = plan.inner;
  const int64_t pieces = plan.Pieces();
  const double piece = (PieceCycles(plan, 0, inner, registers, sources) + CopyCycles(plan)) / machine_.cycles_per_us();
  const double shared_out = stays() ? piece * static_cast<double>(CeilDiv(pieces, threads_))
                                    : ParallelTime(machine_, piece * static_cast<double>(pieces), pieces, threads_);
  const double work = shared_out + CopyMicroseconds(plan) + HandoverMicroseconds(plan);
  return WithCold(plan, registers, work);
}

double NestModel::PieceCycles(const NestPlan& plan, size_t variable, Sizes& inner, const Registers& whole,
                              const Sources& sources) const {
  if (variable == spatial_.size())
    return TileCycles(plan, inner, inner == plan.inner ? whole : RegistersOf(plan, inner), sources);
  const size_t i = static_cast<size_t>(spatial_[variable]);
  const int64_t rows = plan.InPiece(i, block_.extents[i]);
  const int64_t full = rows / plan.inner[i], tail = rows % plan.inner[i];
  double cycles = 0;
  if (full > 0) cycles += static_cast<double>(full) * PieceCycles(plan, variable + 1, inner, whole, sources);
  if (tail > 0) {
    inner[i] = tail;
    cycles += PieceCycles(plan, variable + 1, inner, whole, sources);
    inner[i] = plan.inner[i];
  }
  return cycles;
}

NestModel::Core NestModel::CoreOf(const NestPlan& plan, const Sizes& inner, const Registers& registers,
                                  double steps) const {
  const double accumulators = registers.accumulators;
  const double fma_per_cycle = machine_.fma_per_cycle(VectorBits(plan));
  double loads = registers.loads * steps, shuffles = 0, spills = 0;
  for (size_t r = 0; r < reads_.size() && !of_lanes() && !shape_.in_matrices(); ++r) {
    if (reduce_.empty()) continue;
    if (const SharedElements elements = SharedElementsOf(plan, inner, r); elements.again > 0) {
      const double bodies = steps / elements.taps;
      const double over = std::max(0.0, accumulators + registers.held + elements.held - target_.vector_registers);
      loads -= elements.again * bodies;
      spills += kSpilledElement * elements.again * std::min(1.0, over / std::max(1.0, elements.held)) * bodies;
    }
    if (!reads_[r].with_vector) continue;
    if (MasksLanes(plan, r)) {  // which differ from tap to tap
      shuffles += registers.shuffles_of[r] * steps;
      continue;
    }
    const Body body = BodyOf(plan, inner, registers, r);
    shuffles += registers.shuffles_of[r] * steps * body.places;
    if (body.shared <= 0 || !registers.shares[r]) continue;
    const double over = accumulators + body.vectors * body.shared - target_.vector_registers;
    loads -= registers.loads_of[r] * (steps - steps / body.taps * body.vectors / registers.vectors_of[r]);
    spills += kSpilled * std::max(0.0, over) * steps / body.taps;
  }
  const double load_rate = machine_.loads_per_cycle(VectorBits(plan)) * (shape_.in_tiles() ? 1 : kOfLoads);
  // The next tiles of straight code begin while the sums of this one wait for each other.
  const double tiles = IsStraight(plan) ? std::max(1.0, kInFlight / (steps * accumulators + loads + accumulators)) : 1;
  const double products =
      std::max(steps * ProductCycles(plan, accumulators * tiles) / tiles, steps * accumulators / fma_per_cycle);
  return {Both(products + shuffles / fma_per_cycle, loads / load_rate), spills};
}

double NestModel::StreamCycles(const NestPlan& plan, const Sizes& inner, const Registers& registers, double steps,
                               const Sources& sources) const {
  const double near_rate = BytesPerCycle(target_, machine_, static_cast<double>(target_.l2) / 2);
  const Sizes sizes = TileSizes(plan, inner);
  double stream = 0;
  for (size_t r = 0; r < reads_.size(); ++r) {
    const Read& read = reads_[r];
    if (sources[r].cycles == 0) continue;
    const double blocks = plan.k_parts > 1 && !of_lanes() ? static_cast<double>(plan.k_parts) : 1;
    const double bytes = read.region.Elements(sizes) * read.element * blocks;
    stream += bytes / PartOfLine(plan, r, sizes) * sources[r].cycles;
    // Lines that are pushed out of the first cache before the rest of them, or their next reader, is used are loaded
    // again for every load.
    const double loaded = steps * registers.loads_of[r] * (read.with_vector ? VectorBits(plan) / 8 : kLine);
    const bool again = read.with_vector ? loaded > 1.5 * bytes && bytes / sources[r].share >
                                                                      kOfFirstCache * static_cast<double>(target_.l1d)
                                        : RowsCollide(read, inner);
    if (again) stream += loaded / near_rate;
  }
  return stream;
}

double NestModel::ResultCycles(const NestPlan& plan, const Sizes& inner, double accumulators) const {
  const double results = (of_lanes() ? accumulators * 4 : accumulators) * RowsOfAccumulator();
  double cycles = results * (shape_.epilogue >= 0 ? 2 + 0.6 * epilogue_operations_ : 1.5);
  if (shape_.in_tiles() && shape_.epilogue >= 0) cycles += results * 1.5;  // to memory and back
  const double written = accumulators * RowsOfAccumulator() * (of_lanes() ? 4 : VectorBits(plan) / 8);
  double between = stays() ? ThreadBytes(plan) : (output_bytes_ + whole_bytes_) / threads_;
  for (size_t r = 0; r < reads_.size() && !stays(); ++r) {  // the copies of what a piece reads come on top
    if (IsNear(plan, r)) between += reads_[r].region.BoxElements(PieceSizes(plan)) * reads_[r].element;
  }
  // A line that is written in parts at different times is fetched for each.
  const double run = static_cast<double>(inner[static_cast<size_t>(vector_iter_)] * block_.output.type().bytes());
  const double parts_of_line = plan.panels_outside && !of_lanes() ? std::max(1.0, kLine / run) : 1;
  return cycles + 2 * written * parts_of_line / BytesPerCycle(target_, machine_, between);
}

double NestModel::TileCycles(const NestPlan& plan, const Sizes& inner, const Registers& registers,
                             const Sources& sources) const {
  const double accumulators = registers.accumulators;
  const double parts = static_cast<double>(plan.k_parts);
  const double steps = reduce_steps_ / (of_lanes() ? parts : 1);  // of all blocks of k together
  const Core core = CoreOf(plan, inner, registers, steps);
  const double stream = StreamCycles(plan, inner, registers, steps, sources);
  // A tile register waits for all of its lines.
  const double not_hidden = shape_.in_tiles() ? 1 : kNotHidden;
  double cycles = std::max(core.cycles, stream) + not_hidden * std::min(core.cycles, stream) + core.spills;

  double innermost = 1;  // iterations of the innermost reduce loop in one go
  if (!reduce_.empty() && !plan.window) {
    innermost = InnermostSteps();
    if (shape_.along == reduce_.back()) innermost /= parts;
  }
  const double runs = std::max(1.0, steps / std::max(1.0, innermost) / (plan.window ? reduce_steps_ : 1));
  cycles += (IsStraight(plan) ? 0 : runs * kLoopExit) +
            steps / static_cast<double>(plan.unroll) * (plan.window ? 0 : kIteration) + kTileOverhead;
  if (of_lanes()) {
    cycles += kGatherLanes * accumulators;
  } else if (plan.k_parts > 1) {
    cycles += (parts + 1) * accumulators * 4 +  // set to nothing, then for each block: read, add, write
              parts * FarSumCycles(plan, accumulators * VectorBits(plan) / 8);
  }
  return cycles + ResultCycles(plan, inner, accumulators);
}

// Partial results are met again in the next block of k, after all of those of the piece and what one block reads.
double NestModel::FarSumCycles(const NestPlan& plan, double bytes) const {
  const Sizes piece = PieceSizes(plan);
  double between = block_.output.type().bytes();
  for (const int iter : spatial_) between *= static_cast<double>(piece[static_cast<size_t>(iter)]);
  for (const Read& read : reads_) between += read.region.Elements(piece) * read.element;
  const double near_rate = BytesPerCycle(target_, machine_, static_cast<double>(target_.l2) / 2);
  return 2 * bytes * std::max(0.0, 1 / BytesPerCycle(target_, machine_, between) - 1 / near_rate);
}

NestModel::Sizes NestModel::TileSizes(const NestPlan& plan, const Sizes& inner) const {
  Sizes sizes = inner;
  for (const int iter : reduce_) sizes[static_cast<size_t>(iter)] = block_.extents[static_cast<size_t>(iter)];
  if (shape_.along >= 0 && !of_lanes()) {
    int64_t& along = sizes[static_cast<size_t>(shape_.along)];
    along = CeilDiv(along, plan.k_parts);
  }
  return sizes;
}

NestModel::Sizes NestModel::PieceSizes(const NestPlan& plan) const {
  Sizes sizes = TileSizes(plan, plan.inner);
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    sizes[i] = plan.InPiece(i, block_.extents[i]);
  }
  return sizes;
}

// Whether more rows of a tile fall on one set of the first cache than it has ways: their distance is a multiple of a
// large power of two.
bool NestModel::RowsCollide(const Read& read, const Sizes& inner) const {
  const int64_t ways = std::max<int64_t>(2, target_.l1d / kPage);
  int64_t rows = 1;
  int64_t sets = kPage / kLine;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    if (iter == vector_iter_ || !read.moves[i] || inner[i] == 1) continue;
    rows *= inner[i];
    const int64_t stride = std::abs(read.strides[i]);
    if (stride % kLine != 0) return false;  // they walk through the sets
    sets = std::min(sets, kPage / std::gcd(stride, kPage));
  }
  return rows > ways && CeilDiv(rows, std::max<int64_t>(1, sets)) > ways - 2;
}

double NestModel::CopyMicroseconds(const NestPlan& plan) const {
  double us = 0;
  for (const int r : shape_.panels) {
    const BlockInfo::Access& access = block_.reads[static_cast<size_t>(r)];
    if (access.constant || plan.packing[static_cast<size_t>(r)] != Packing::kBefore) continue;
    const double bytes = static_cast<double>(access.elements * access.buffer.type().bytes());
    const double cycles =
        static_cast<double>(access.elements) + 2 * bytes / BytesPerCycle(target_, machine_, 2 * bytes);
    us += ParallelTime(machine_, cycles / machine_.cycles_per_us(), threads_, threads_);
  }
  return us;
}

double NestModel::CopyCycles(const NestPlan& plan) const {
  double cycles = 0;
  for (size_t r = 0; r < reads_.size(); ++r) {
    const Read& read = reads_[r];
    if (!PackedInBlocks(plan, r)) continue;
    Sizes sizes = PieceSizes(plan);
    for (const int iter : reduce_) sizes[static_cast<size_t>(iter)] = block_.extents[static_cast<size_t>(iter)];
    const double elements = read.region.BoxElements(sizes), bytes = elements * read.element;
    double from = read.bytes / threads_;
    if (read.made_here && threads_ > 1) from = std::max(from, static_cast<double>(target_.l2));
    cycles += elements * (read.apart ? kGathered : kCopied / static_cast<double>(plan.lanes)) +
              bytes / BytesPerCycle(target_, machine_, from) +
              2 * bytes / BytesPerCycle(target_, machine_, bytes / static_cast<double>(plan.k_parts));
  }
  return cycles;
}

}  // namespace hone
