// Inside: a block that accumulates, whose results another such block alone reads, is computed in the pieces of that
// one: what a piece reads of it is in the cache of the thread that made it, and no barrier stands between the two.
//
//   parallel h: for w, c: D[h, w, c] += X[..] * W[..]  (+ epilogue)
//   parallel h: for w, f: Y[h, w, f] += D[h, w, c] * U[c, f]
//     =>  parallel pieces of h:  D[piece] += X[..] * W[..]  (+ epilogue);  Y[piece] += D[piece] * U
//
// Both are tiled as any nest; the loops over pieces are the reader's, and the other takes a piece each
// (NestShape::pieces_of). A nest of rows may stand between the two (rule_rows.cc), and is computed there as well, as
// the softmax of attention between its products is.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "tuner/space/nests/access_region.h"
#include "tuner/space/sketches/sketch.h"

namespace hone {
namespace {

// How the two blocks go together.
struct Pair {
  int reader = -1;
  size_t read = 0;              // of the reader's reads
  std::optional<RowNest> rows;  // between the two
  // Variables of the block, outermost first, and the reader's that counts their iterations.
  struct Follow {
    std::vector<size_t> own;
    size_t followed;
  };
  std::vector<Follow> follow;
};

// The variable of a block that an index is, where those of one iteration are left out; -1: it is none.
int VariableOf(const BlockInfo& block, const Expr& index) {
  const Expr rest = Simplify(Substitute(index, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (block.iters[i].var == var && block.extents[i] == 1) return IntConst(0, var.type());
    }
    return std::nullopt;
  }));
  const VarRef* ref = rest.As<VarRef>();
  if (ref == nullptr) return -1;
  const auto found = std::ranges::find(block.iters, ref->var, &IterVar::var);
  return found == block.iters.end() ? -1 : static_cast<int>(found - block.iters.begin());
}

// The nest of rows that alone reads what `block` makes, and makes what one block alone reads.
std::optional<RowNest> RowsThatRead(const SketchContext& context, const Sketch& sketch, int block) {
  for (int leader = block + 1; leader < static_cast<int>(context.info->blocks.size()); ++leader) {
    if (context.info->Consumers(leader).size() != 1) continue;
    std::optional<RowNest> rows = FindRows(context, sketch, leader);
    if (rows.has_value() && rows->rows_of[static_cast<size_t>(block)].has_value()) return rows;
  }
  return std::nullopt;
}

// The variables of `block` that walk along dimensions [first, last) of what the reader reads; nullopt where others do.
std::optional<std::vector<size_t>> VariablesAlong(const SketchContext& context, const Pair& pair, int block, int result,
                                                  const JoinedDimension& joined) {
  const BlockInfo& info = context.block(block);
  std::vector<size_t> own;
  for (size_t d = joined.first; d < joined.last; ++d) {
    const BlockInfo& read = context.block(pair.rows.has_value() ? pair.rows->leader : result);
    if (IsConst(read.output.shape()[d], 1)) continue;
    size_t dimension = d;
    if (pair.rows.has_value()) {
      const int row = read.output_iters[d];
      const std::vector<int>& rows = *pair.rows->rows_of[static_cast<size_t>(result)];
      const auto found = std::ranges::find(rows, row);
      if (row < 0 || row >= pair.rows->depth || found == rows.end()) return std::nullopt;
      dimension = static_cast<size_t>(found - rows.begin());
    }
    if (info.output_iters[dimension] < 0) return std::nullopt;
    own.push_back(static_cast<size_t>(info.output_iters[dimension]));
  }
  return own;
}

// `reader` is tiled, and reads what `block` makes, after its epilogue, one element for one of its own; or what a nest
// of rows makes of that.
std::optional<Pair> Match(const SketchContext& context, const Sketch& sketch, int index) {
  const int result = sketch.at(index).epilogue >= 0 ? sketch.at(index).epilogue : index;
  Pair pair{.rows = RowsThatRead(context, sketch, result)};
  const int made = pair.rows.has_value() ? pair.rows->leader : result;
  const std::vector<int> readers = context.info->Consumers(made);
  if (readers.size() != 1) return std::nullopt;
  pair.reader = readers[0];
  const BlockInfo& reader = context.block(pair.reader);
  const auto read = std::ranges::find(reader.reads, context.block(made).output, &BlockInfo::Access::buffer);
  if (read == reader.reads.end() || read->places != 1) return std::nullopt;
  pair.read = static_cast<size_t>(read - reader.reads.begin());
  // The copy of an operand in panels is what is read of it.
  if (std::ranges::count(sketch.at(pair.reader).panels, static_cast<int>(pair.read)) > 0) return std::nullopt;
  for (const JoinedDimension& joined : JoinDimensions(reader, *read)) {
    if (joined.extent == 1) continue;
    const int followed = VariableOf(reader, joined.index);
    // The variable that vectors run along seldom has pieces that are alike.
    if (followed < 0 || followed == reader.last_iter()) return std::nullopt;
    if (reader.extents[static_cast<size_t>(followed)] != joined.extent) return std::nullopt;
    if (!reader.spatial(followed)) continue;
    std::optional<std::vector<size_t>> own = VariablesAlong(context, pair, index, result, joined);
    if (!own.has_value()) return std::nullopt;
    pair.follow.push_back({*std::move(own), static_cast<size_t>(followed)});
  }
  return pair.follow.empty() ? std::nullopt : std::optional(pair);
}

// The same of a block that is in the pieces of another by now.
std::optional<Pair> PairOf(const SketchContext& context, const Sketch& sketch, int block) {
  std::optional<Pair> pair = sketch.at(block).pieces_of >= 0 ? Match(context, sketch, block) : std::nullopt;
  return pair.has_value() && pair->reader == sketch.at(block).pieces_of ? pair : std::nullopt;
}

class InsideStep : public SketchStep {
 public:
  InsideStep(const SketchContext& context, int block, Pair pair)
      : SketchStep(absl::StrCat("inside(", context.block(block).name, ")")),
        block_(static_cast<size_t>(block)),
        pair_(std::move(pair)),
        extents_(context.block(block).extents),
        reader_extents_(context.block(pair_.reader).extents) {}

  // The pieces of the reader's variables, which are all alike: another that it cuts would have the block computed again
  // for each of its pieces.
  bool Plan(std::span<const int64_t>, SketchPlan& plans) const override {
    NestPlan& reader = plans[static_cast<size_t>(pair_.reader)];
    NestPlan& own = plans[block_];
    int64_t pieces = 1;
    for (const auto& [variables, followed] : pair_.follow) {
      int64_t size = reader.InPiece(followed, reader_extents_[followed]);
      if (size * reader.pieces[followed] != reader_extents_[followed]) return false;
      pieces *= reader.pieces[followed];
      for (size_t v = variables.size(); v-- > 0;) {  // whole inner ones, and as many of the next as are left
        const int64_t extent = extents_[variables[v]], part = std::min(extent, size);
        if (size % part != 0 || extent % part != 0) return false;
        own.piece[variables[v]] = part;
        own.pieces[variables[v]] = extent / part;
        size /= part;
      }
    }
    reader.near |= 1U << pair_.read;
    return pieces > 1 && pieces == reader.Pieces();
  }

  absl::Status Apply(std::span<const int64_t>, const SketchPlan&, SketchBuild& build) const override {
    build.pieces[block_] = build.pieces[static_cast<size_t>(pair_.reader)];
    return absl::OkStatus();
  }

 private:
  size_t block_;
  Pair pair_;
  std::vector<int64_t> extents_, reader_extents_;
};

class InsideRule : public SketchRule {
 public:
  std::string name() const override { return "inside"; }

  // As two nests, and as one.
  std::vector<Sketch> Offer(const SketchContext& context, const Sketch& sketch, int block) const override {
    if (!WillBeTiled(context, sketch, block) || context.threads == 1 || sketch.at(block).pieces_of >= 0) return {};
    if (sketch.at(block).cut == ReductionCut::kLanes) return {};
    const std::optional<Pair> pair = Match(context, sketch, block);
    if (!pair.has_value() || !WillBeTiled(context, sketch, pair->reader) || sketch.at(pair->reader).pieces_of >= 0)
      return {};
    Sketch inside = sketch;
    inside.at(block).pieces_of = pair->reader;
    inside.at(block).cut = ReductionCut::kNone;
    inside.choices.push_back(absl::StrCat("inside(", context.block(block).name, ")"));
    return {sketch, std::move(inside)};
  }
};

}  // namespace

void AddInside(const SketchContext& context, const Sketch& sketch, int block, Sketch& tiled) {
  std::optional<Pair> pair = PairOf(context, sketch, block);
  if (!pair.has_value()) return;
  tiled.steps.push_back(std::make_shared<InsideStep>(context, block, *pair));
  // They move before what they read.
  if (pair->rows.has_value()) AddRows(context, *std::move(pair->rows), pair->reader, tiled);
}

std::set<int> SharedVariables(const SketchContext& context, const Sketch& sketch, int block) {
  std::set<int> shared;
  for (int i = 0; i < static_cast<int>(sketch.blocks.size()); ++i) {
    const std::optional<Pair> pair = PairOf(context, sketch, i);
    if (!pair.has_value()) continue;
    for (const auto& [own, followed] : pair->follow) {
      if (i == block) shared.insert(own.begin(), own.end());
      if (pair->reader == block) shared.insert(static_cast<int>(followed));
    }
  }
  return shared;
}

std::unique_ptr<SketchRule> MakeInsideRule() { return std::make_unique<InsideRule>(); }

}  // namespace hone
