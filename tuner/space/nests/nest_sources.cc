// From where the tiles of a nest take their operands: which cache, given the order of the loops around them.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/nest_model.h"

namespace hone {

// Of what a tile reads of an operand, the share that the next one along a variable reads too: all of what that does not
// move, of windows what overlaps, and of lines the part that a tile takes of each by itself. `elements`: of the tile.
double NestModel::SharedWithNext(const NestPlan& plan, size_t r, const Sizes& tile, double elements,
                                 size_t iter) const {
  const Read& read = reads_[r];
  if (!read.moves[iter]) return 1;
  if (static_cast<int>(iter) == vector_iter_) return 1 - PartOfLine(plan, r, tile);
  Sizes both = tile;
  both[iter] *= 2;
  return std::max(0.0, 2 - read.region.Elements(both) / elements);
}

// Of every line that a tile reads of an operand, the part that it reads, in (0, 1].
double NestModel::PartOfLine(const NestPlan& plan, size_t r, const Sizes& tile) const {
  if (!reads_[r].with_vector || reads_[r].apart || InPanels(plan, r) || of_lanes()) return 1;
  return std::min(1.0, static_cast<double>(reads_[r].region.RunBytes(tile)) / kLine);
}

NestModel::Reuse NestModel::BeginReuse(const NestPlan& plan, Sources& sources) const {
  Reuse reuse;
  reuse.tile = reuse.below = TileSizes(plan, plan.inner);
  reuse.piece = PieceSizes(plan);
  reuse.share_of_l2.fill(1);
  reuse.fresh.fill(1);
  for (size_t r = 0; r < reads_.size(); ++r) {
    reuse.of_tile[r] = reads_[r].region.Elements(reuse.tile);
    if (!reads_[r].with_vector || InPanels(plan, r)) continue;
    const std::span<const int64_t> buffer =
        IsNear(plan, r) ? std::span<const int64_t>(reuse.piece) : std::span<const int64_t>();
    sources[r].share = reads_[r].region.SetShare(reuse.tile, buffer, kPage);
    reuse.share_of_l2[r] = reads_[r].region.SetShare(reuse.tile, buffer, std::max(kPage, target_.l2 / kWaysOfL2));
  }
  TouchBelow(reuse);
  return reuse;
}

void NestModel::TouchBelow(Reuse& reuse) const {
  reuse.all = 0;
  for (size_t r = 0; r < reads_.size(); ++r) {
    reuse.touched[r] = reads_[r].region.Elements(reuse.below) * reads_[r].element;
    reuse.all += reuse.touched[r];
  }
}

// An operand that the loop does not move is met again in every iteration but the first, after everything below the loop
// was touched once: so far away it lives.
void NestModel::PassLoop(const NestPlan& plan, int iter, Reuse& reuse, Sources& sources) const {
  const size_t i = static_cast<size_t>(iter);
  if (plan.steps[i] == 1) return;
  const double first = 1 / static_cast<double>(plan.steps[i]);
  for (size_t r = 0; r < reads_.size(); ++r) {
    const double again = (1 - first) * SharedWithNext(plan, r, reuse.tile, reuse.of_tile[r], i);
    if (again <= 0) continue;
    const double footprint = std::max(reuse.all, reuse.touched[r] / reuse.share_of_l2[r]);
    sources[r].cycles += reuse.fresh[r] * again / BytesPerCycle(target_, machine_, footprint);
    reuse.fresh[r] *= 1 - again;
  }
  reuse.below[i] = reuse.piece[i];
  TouchBelow(reuse);
}

// Bytes that decide from which cache an operand comes where a piece meets it for the first time.
double NestModel::FirstFootprint(const NestPlan& plan, size_t r, double touched, double thread_bytes) const {
  const bool near = IsNear(plan, r);
  // Made in front of all products of the piece, it is read at one of them, half of the others before it.
  if (near && stays()) return (touched + thread_bytes) / 2;
  // Made in the piece by another nest, whole, and read after that.
  if ((plan.near >> r & 1) != 0) {
    const double made = reads_[r].region.BoxElements(PieceSizes(plan)) * reads_[r].element;
    return std::max(touched, FootprintOfThreads(target_, threads_, made));
  }
  // Cold constants are counted by themselves (ColdMicroseconds); after that they are in the second cache.
  const double footprint = near || (reads_[r].cold && !stays()) ? touched : std::max(thread_bytes, touched);
  // What another nest wrote is in the cache of whichever thread ran that part of it.
  const bool in_tile = (plan.in_tile >> r & 1) != 0;
  const bool of_any_thread = reads_[r].made_here && !near && !in_tile && threads_ > 1;
  return of_any_thread ? std::max(footprint, static_cast<double>(target_.l2)) : footprint;
}

NestModel::Sources NestModel::SourcesOf(const NestPlan& plan) const {
  Sources sources;
  Reuse reuse = BeginReuse(plan, sources);
  const auto pass_all = [&](bool own_panels) {
    for (size_t s = spatial_.size(); s-- > 0;) {
      if (spatial_[s] != vector_iter_ && HasOwnPanels(block_, shape_, spatial_[s]) == own_panels)
        PassLoop(plan, spatial_[s], reuse, sources);
    }
  };
  if (!plan.panels_outside) PassLoop(plan, vector_iter_, reuse, sources);
  pass_all(false);
  if (plan.panels_outside) PassLoop(plan, vector_iter_, reuse, sources);
  pass_all(true);
  const Sizes row = RowOfTiles(plan);
  const double thread_bytes = ThreadBytes(plan);
  const bool is_stream = IsStream(plan);
  for (size_t r = 0; r < reads_.size(); ++r) {
    if (is_stream && reads_[r].cold) {
      sources[r].cycles = 0;
      continue;
    }
    const double footprint = FirstFootprint(plan, r, reuse.touched[r], thread_bytes);
    const bool scattered =
        reads_[r].with_vector && !InPanels(plan, r) && !IsNear(plan, r) && reads_[r].region.RunBytes(row) < kPrefetched;
    sources[r].cycles += reuse.fresh[r] * (scattered ? 2 : 1) / BytesPerCycle(target_, machine_, footprint);
  }
  return sources;
}

NestModel::Sizes NestModel::RowOfTiles(const NestPlan& plan) const {
  Sizes sizes = TileSizes(plan, plan.inner);
  const size_t vector = static_cast<size_t>(vector_iter_);
  if (!plan.panels_outside) sizes[vector] = plan.InPiece(vector, block_.extents[vector]);
  return sizes;
}

double NestModel::ThreadBytes(const NestPlan& plan) const {
  double bytes = output_bytes_ / static_cast<double>(stays() ? plan.Pieces() : threads_);
  for (size_t r = 0; r < reads_.size(); ++r) {
    const bool kept = stays() && IsNear(plan, r);
    bytes += reads_[r].bytes * (kept ? 1 / PiecesOf(plan, reads_[r].moves) : ShareOfThread(plan, reads_[r].moves));
  }
  return bytes;
}

double NestModel::PiecesOf(const NestPlan& plan, const Moves& moves) const {
  double pieces = 1;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    if (moves[i]) pieces *= static_cast<double>(plan.pieces[i]);
  }
  return pieces;
}

// Pieces follow each other with those of the last variable side by side, and a thread takes a part of them without gaps
// (deploy/runtime/run/thread_pool.h): where the first variable has enough for all threads, each walks over all of the
// others.
double NestModel::ShareOfThread(const NestPlan& plan, const Moves& moves) const {
  double share = 1, threads = threads_;
  for (const int iter : spatial_) {
    const size_t i = static_cast<size_t>(iter);
    const double parts = std::min(threads, static_cast<double>(plan.pieces[i]));
    if (moves[i]) share /= parts;
    threads /= parts;
  }
  return share;
}

}  // namespace hone
