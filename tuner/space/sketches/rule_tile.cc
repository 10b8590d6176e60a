// Tile: a block that accumulates is computed in multi-level tiles, with whatever the rules before have decided about
// its results and its operands (nest_plan.h). The knobs are the sizes of the plan, taken from what registers and
// threads like.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/draft_costs.h"
#include "tuner/space/nests/lanes.h"
#include "tuner/space/nests/nest_builder.h"
#include "tuner/space/nests/nest_model.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

constexpr int64_t kMostPieces = 1024;  // of one variable
// With more rows than these the products take longer than the panels take to come.
constexpr int64_t kMostRowsOfStreams = 4;
// Beyond this times an even share a thread waits for another.
constexpr double kUneven = 1.1;

class TileStep : public SketchStep {
 public:
  TileStep(const SketchContext& context, const Sketch& sketch, int block)
      : SketchStep(absl::StrCat("tile(", context.block(block).name, ")")),
        context_(context.nest_context()),
        block_(static_cast<size_t>(block)),
        info_(context.block(block)),
        shape_(sketch.at(block)),
        model_(context_, block, shape_),
        n_(info_.last_iter()),
        lanes_(shape_.dot.has_value()               ? static_cast<int>(shape_.dot->lanes)
               : shape_.cut == ReductionCut::kLanes ? 1
                                                    : LanesFor(context.target, info_, n_)),
        shared_(SharedVariables(context, sketch, block)) {
    FindVariables();
    MakeKnobs();
  }

  bool Plan(std::span<const int64_t> values, SketchPlan& plans) const override;
  std::optional<double> Cost(std::span<const int64_t>, const SketchPlan& plans) const override {
    return model_.Cost(plans[block_]);
  }
  absl::Status Apply(std::span<const int64_t> values, const SketchPlan& plans, SketchBuild& build) const override;
  std::optional<std::vector<int64_t>> ValuesLike(const SketchStep& other, std::span<const int64_t> values,
                                                 const SketchPlan& plans) const override;
  std::string ConstantLayout(const SketchPlan& plans) const override;

 private:
  struct Cut {  // a variable with its knobs; -1: it has none of that kind
    int iter = 0;
    int inner_knob = -1, pieces_knob = -1;
  };
  int64_t extent(int iter) const { return info_.extents[static_cast<size_t>(iter)]; }
  // Tiles of a variable in each of so many pieces, which are alike but for the last.
  int64_t TilesOfPiece(int iter, int64_t inner, int64_t pieces) const {
    const int64_t tiles = (extent(iter) + inner - 1) / inner;
    return (tiles + pieces - 1) / pieces;
  }
  const std::string& name_of(int iter) const { return info_.iters[static_cast<size_t>(iter)].var.name(); }
  void FindVariables();
  void MakeKnobs();
  void MakeTileKnobs();
  void MakePieceKnobs();
  void MakeReductionKnobs();
  void MakePanelKnobs();
  int AddKnob(const std::string& what, std::vector<int64_t> candidates);
  // Candidates of knobs.
  std::vector<int64_t> WidthsOfTile() const;
  std::vector<int64_t> RowsOfTile(int iter, bool innermost) const;
  std::vector<int64_t> WhatDivides(int iter, std::vector<int64_t> sizes) const;
  std::vector<int64_t> SizesInMatrices(int iter, std::vector<int64_t> sizes) const;
  std::vector<int64_t> SizesInPieces(int iter, std::vector<int64_t> sizes) const;
  std::set<int64_t> NumbersOfPieces(int iter) const;
  int64_t RowsInAll() const;  // that pass over a panel

  NestContext context_;
  size_t block_;
  const BlockInfo& info_;
  NestShape shape_;
  NestModel model_;
  int n_;                  // the variable of the output's last dimension
  int lanes_;              // along it
  std::set<int> shared_;   // variables that are cut into the same pieces as those of another block
  std::vector<Cut> cuts_;  // spatial variables with more than one iteration
  std::vector<int> reduce_;
  int k_parts_knob_ = -1, unroll_knob_ = -1, window_knob_ = -1, order_knob_ = -1, prefetch_knob_ = -1;
  int streams_knob_ = -1;
  std::vector<int> packing_knobs_;  // of NestShape::panels; -1: a constant
};

void TileStep::FindVariables() {
  for (int i = 0; i < static_cast<int>(info_.iters.size()); ++i) {
    if (!info_.spatial(i)) {
      reduce_.push_back(i);
    } else if (extent(i) > 1) {
      cuts_.push_back({i});
    }
  }
}

int TileStep::AddKnob(const std::string& what, std::vector<int64_t> candidates) {
  if (candidates.size() < 2 && (candidates.empty() || candidates[0] == 1)) return -1;
  knobs_.push_back({absl::StrCat(info_.name, ".", what), std::move(candidates)});
  return static_cast<int>(knobs_.size()) - 1;
}

std::vector<int64_t> TileStep::WhatDivides(int iter, std::vector<int64_t> sizes) const {
  std::erase_if(sizes, [&](int64_t size) { return extent(iter) % size != 0; });
  return sizes;
}

// Sizes for a variable of sums in matrices: of their rows whole ones, of another what divides it, where anything does:
// few sums are held at once, and one cut off costs more than one more of them gains.
std::vector<int64_t> TileStep::SizesInMatrices(int iter, std::vector<int64_t> sizes) const {
  std::vector<int64_t> found;
  if (iter == shape_.tile_rows) {
    const std::vector<int64_t> in_tiles = {1, 2, 3, 4, 6}, in_vectors = {1, 2, 3, 4, 5, 6, 7};
    for (const int64_t matrices : shape_.in_tiles() ? in_tiles : in_vectors) {
      if (matrices * shape_.dot->rows <= extent(iter)) found.push_back(matrices * shape_.dot->rows);
    }
    return found;
  }
  found = WhatDivides(iter, sizes);
  return found.size() > 1 ? found : sizes;
}

// Elements of a tile along n: a few whole vectors, among them the numbers with which every tile begins at a group of a
// read (BlockInfo::Access::steps).
std::vector<int64_t> TileStep::WidthsOfTile() const {
  const int64_t vectors = (extent(n_) + lanes_ - 1) / lanes_;
  std::set<int64_t> in_vectors{1, 2, 3, 4, 6, 8};
  for (const BlockInfo::Access& read : info_.reads) {
    const int64_t whole = read.steps.iter == n_ ? std::lcm<int64_t>(read.steps.period, lanes_) / lanes_ : 1;
    if (whole <= 8) in_vectors.insert(whole);
  }
  std::vector<int64_t> widths;
  for (const int64_t v : in_vectors) {
    if (v <= vectors) widths.push_back(v * lanes_);
  }
  return widths;
}

// Rows of a tile: many along the innermost variable that has any, few along the next one.
std::vector<int64_t> TileStep::RowsOfTile(int iter, bool innermost) const {
  std::vector<int64_t> rows;
  for (const int64_t size : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24}) {
    if (size <= extent(iter) && (innermost || size <= 4)) rows.push_back(size);
  }
  return rows;
}

void TileStep::MakeTileKnobs() {
  int rows = 0;  // variables besides n that the tile has, from the innermost
  for (size_t c = cuts_.size(); c-- > 0;) {
    Cut& cut = cuts_[c];
    std::vector<int64_t> inner;
    if (cut.iter == n_) {
      inner = WidthsOfTile();
    } else if (rows < 2) {
      inner = RowsOfTile(cut.iter, rows == 0);
      ++rows;
    }
    if (shape_.in_matrices() && cut.iter != n_) inner = SizesInMatrices(cut.iter, std::move(inner));
    if (shared_.contains(cut.iter)) inner = SizesInPieces(cut.iter, std::move(inner));
    cut.inner_knob = AddKnob(absl::StrCat(name_of(cut.iter), ".inner"), std::move(inner));
  }
}

// Sizes for a variable whose pieces are those of another block, all alike: what divides it. One that hardly anything
// divides is not cut into pieces, and its last tile is cut off.
std::vector<int64_t> TileStep::SizesInPieces(int iter, std::vector<int64_t> sizes) const {
  const std::vector<int64_t> found = WhatDivides(iter, sizes);
  return found.size() > 2 ? found : sizes;
}

std::set<int64_t> TileStep::NumbersOfPieces(int iter) const {
  std::set<int64_t> pieces;
  if (shared_.contains(iter)) {
    const std::vector<int64_t> all = DivisorsUpTo(extent(iter), kMostPieces);
    return {all.begin(), all.end()};
  }
  for (const int64_t p : {1, 2, 3, 4, 6, 7, 8, 12, 14, 16, 28, 32, 64, 128}) {
    if (p <= extent(iter) && (iter != n_ || p * lanes_ < extent(n_) + lanes_)) pieces.insert(p);
  }
  // Of few iterations each, so that what is computed in a piece fits the first cache.
  for (const int64_t size : {1, 2, 3}) {
    if (iter != n_ && extent(iter) % size == 0 && extent(iter) <= kMostPieces * size)
      pieces.insert(extent(iter) / size);
  }
  return pieces;
}

// Threads share the pieces out. Those of a block inside another's are cut already.
void TileStep::MakePieceKnobs() {
  if (context_.threads == 1 || shape_.pieces_of >= 0) return;
  int cut_in_pieces = 0;
  for (Cut& cut : cuts_) {  // the outermost two, and n
    if (cut.iter != n_ && ++cut_in_pieces > 2) continue;
    // What is computed in a piece would be computed again in those of another variable.
    if (!shared_.empty() && !shared_.contains(cut.iter)) continue;
    const std::set<int64_t> pieces = NumbersOfPieces(cut.iter);
    cut.pieces_knob = AddKnob(absl::StrCat(name_of(cut.iter), ".pieces"), {pieces.begin(), pieces.end()});
  }
}

void TileStep::MakeReductionKnobs() {
  if (shape_.cut == ReductionCut::kBlocks) k_parts_knob_ = AddKnob("k_blocks", BlocksOfK(info_, shape_.along));
  if (!reduce_.empty()) {
    std::vector<int64_t> unroll;
    for (const int64_t u : {1, 2, 3, 4, 5, 7, 8}) {
      if (u <= extent(reduce_.back()) / shape_.depth()) unroll.push_back(u);
    }
    unroll_knob_ = AddKnob("unroll", std::move(unroll));
  }
  int64_t taps = 1;
  for (size_t i = 0; i + 1 < reduce_.size(); ++i) taps *= extent(reduce_[i]);
  if (shape_.cut == ReductionCut::kNone && taps > 1 && taps <= 9 && extent(reduce_.back()) <= 9)
    window_knob_ = AddKnob("window", {0, 1});
}

int64_t TileStep::RowsInAll() const {
  int64_t rows = 1;
  for (const Cut& cut : cuts_) rows *= SharesPanels(info_, shape_, cut.iter) ? extent(cut.iter) : 1;
  return rows;
}

void TileStep::MakePanelKnobs() {
  // Lines are counted along the last dimension (prefetch.cc), which in panels of groups is a few bytes.
  const bool cold = std::any_of(shape_.panels.begin(), shape_.panels.end(), [&](int r) {
    return r != shape_.dot_operand && info_.reads[static_cast<size_t>(r)].cold;
  });
  // In the pieces of another block all panels are read in every piece: from memory in the first alone.
  if (cold && shape_.cut != ReductionCut::kLanes && shape_.pieces_of < 0 && !reduce_.empty())
    prefetch_knob_ = AddKnob("prefetch", {0, 1});
  if (cold && RowsInAll() <= kMostRowsOfStreams) streams_knob_ = AddKnob("streams", {1, 2});
  for (const int r : shape_.panels) {
    const BlockInfo::Access& read = info_.reads[static_cast<size_t>(r)];
    const bool apart = read.strides[static_cast<size_t>(n_)] != 1 || r == shape_.dot_operand;
    packing_knobs_.push_back(read.constant ? -1
                                           : AddKnob(absl::StrCat("packing", r),
                                                     {static_cast<int64_t>(apart ? Packing::kBefore : Packing::kNone),
                                                      static_cast<int64_t>(Packing::kBlock)}));
  }
}

// The order is that of the values of a point.
void TileStep::MakeKnobs() {
  MakeTileKnobs();
  MakePieceKnobs();
  MakeReductionKnobs();
  if (cuts_.size() > 1) order_knob_ = AddKnob("order", {0, 1});
  MakePanelKnobs();
}

bool TileStep::Plan(std::span<const int64_t> values, SketchPlan& plans) const {
  NestPlan& plan = plans[block_];
  const auto value = [&](int knob, int64_t otherwise) {
    return knob < 0 ? otherwise : values[static_cast<size_t>(knob)];
  };
  plan.lanes = lanes_;
  for (const Cut& cut : cuts_) {
    const size_t i = static_cast<size_t>(cut.iter);
    plan.inner[i] = value(cut.inner_knob, cut.iter == n_                 ? lanes_
                                          : cut.iter == shape_.tile_rows ? shape_.dot->rows
                                                                         : 1);
    if (plan.piece[i] > 0) {  // its pieces are cut already, and the tiles of one of several are all alike
      plan.steps[i] = (plan.piece[i] + plan.inner[i] - 1) / plan.inner[i];
      if (plan.pieces[i] > 1 && plan.steps[i] * plan.inner[i] != plan.piece[i]) return false;
      continue;
    }
    plan.pieces[i] = value(cut.pieces_knob, 1);
    plan.steps[i] = TilesOfPiece(cut.iter, plan.inner[i], plan.pieces[i]);
  }
  plan.k_parts =
      shape_.cut == ReductionCut::kLanes ? LanesFor(context_.target, info_, shape_.along) : value(k_parts_knob_, 1);
  plan.unroll = value(unroll_knob_, 1);
  plan.window = value(window_knob_, 0) == 1;
  plan.panels_outside = value(order_knob_, 0) == 1;
  plan.prefetch = value(prefetch_knob_, 0) == 1;
  plan.streams = value(streams_knob_, 1);
  if (plan.streams > 1 && plan.inner[static_cast<size_t>(n_)] % (plan.streams * lanes_) != 0) return false;
  // The panels of a piece follow each other, and rows pass over each.
  if (plan.prefetch && OneSetOfRows(info_, shape_, plan)) {
    if (extent(reduce_.back()) < 2 * plan.unroll * shape_.depth() * plan.k_parts) return false;
  } else if (plan.prefetch && (!plan.panels_outside || plan.steps[static_cast<size_t>(n_)] == 1)) {
    return false;
  }
  for (size_t p = 0; p < packing_knobs_.size(); ++p) {
    plan.packing[static_cast<size_t>(shape_.panels[p])] = static_cast<Packing>(value(packing_knobs_[p], 0));
  }
  return true;
}

std::optional<std::vector<int64_t>> TileStep::ValuesLike(const SketchStep& other, std::span<const int64_t> values,
                                                         const SketchPlan& plans) const {
  const auto* there = dynamic_cast<const TileStep*>(&other);
  if (there == nullptr || there->label() != label_ || there->lanes_ != lanes_) return std::nullopt;
  const NestPlan& plan = plans[block_];
  std::vector<int64_t> own(knobs_.size());
  for (size_t k = 0; k < knobs_.size(); ++k) {  // what is no size of a variable means the same wherever it is
    const auto same = std::ranges::find(there->knobs_, knobs_[k].name, &Knob::name);
    own[k] = same == there->knobs_.end() ? knobs_[k].candidates[0]
                                         : values[static_cast<size_t>(same - there->knobs_.begin())];
  }
  int64_t all_pieces = 1;
  for (const Cut& cut : cuts_) {
    const size_t i = static_cast<size_t>(cut.iter);
    const int64_t in_piece = plan.inner[i] * plan.steps[i], pieces = (extent(cut.iter) + in_piece - 1) / in_piece;
    all_pieces *= pieces;
    // All pieces but the last are whole ones: what is drafted here, with pieces alike, is another schedule where little
    // is left for the last.
    const auto alike = static_cast<double>(TilesOfPiece(cut.iter, plan.inner[i], pieces));
    if (pieces > 1 && static_cast<double>(plan.steps[i]) > kUneven * alike) return std::nullopt;
    if (cut.inner_knob >= 0) own[static_cast<size_t>(cut.inner_knob)] = plan.inner[i];
    if (cut.pieces_knob >= 0) own[static_cast<size_t>(cut.pieces_knob)] = pieces;
    const bool can_say = (cut.inner_knob >= 0 || plan.inner[i] == (cut.iter == n_ ? lanes_ : 1)) &&
                         (cut.pieces_knob >= 0 || pieces == 1 || shape_.pieces_of >= 0);
    if (!can_say) return std::nullopt;
  }
  if (all_pieces > 1 && plan.Pieces() == 1 && shape_.pieces_of < 0)
    return std::nullopt;  // its one piece is not shared out
  return own;
}

std::string TileStep::ConstantLayout(const SketchPlan& plans) const {
  std::string layout;
  for (const int r : shape_.panels) {
    const BlockInfo::Access& read = info_.reads[static_cast<size_t>(r)];
    if (!read.constant) continue;
    absl::StrAppend(&layout, read.buffer.name(), "/", WidthOfPanels(info_, static_cast<size_t>(r), plans[block_]));
    if (r == shape_.dot_operand) absl::StrAppend(&layout, "x", shape_.group());
  }
  return layout;
}

absl::Status TileStep::Apply(std::span<const int64_t>, const SketchPlan& plans, SketchBuild& build) const {
  HONE_ASSIGN_OR_RETURN(build.pieces[block_], BuildNest(build.schedule, context_, static_cast<int>(block_), shape_,
                                                        plans[block_], std::move(build.pieces[block_])));
  return absl::OkStatus();
}

class TileRule : public SketchRule {
 public:
  std::string name() const override { return "tile"; }

  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block)) return {};
    Sketch tiled = sketch;
    AddInside(context, sketch, block, tiled);
    tiled.steps.push_back(std::make_shared<TileStep>(context, sketch, block));
    tiled.choices.push_back(tiled.steps.back()->label());
    tiled.at(block).fate = SketchBlock::Fate::kTile;
    return {std::move(tiled)};
  }
};

}  // namespace

std::unique_ptr<SketchRule> MakeTileRule() { return std::make_unique<TileRule>(); }

}  // namespace hone
