#include "compiler/schedule/primitives/prefetch.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

namespace {

constexpr int64_t kLineBytes = 64, kMostLines = 4096;

// What is asked for, and where.
struct Fetch {
  std::string where;  // for messages
  int node = 0, loop = 0;
  Buffer buffer;
  int across = 0;        // the loop whose later iteration reads it
  int64_t distance = 1;  // by how much later
  int share = -1;        // the loop whose iterations each take a part; -1: all of it
};

absl::StatusOr<Fetch> Look(const Schedule& schedule, std::string_view step, BlockRef block_ref, int read_index,
                           LoopRef loop_ref) {
  Fetch fetch;
  HONE_ASSIGN_OR_RETURN(fetch.node, schedule.BlockNode(block_ref, step));
  HONE_ASSIGN_OR_RETURN(fetch.loop, schedule.LoopNode(loop_ref, step));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(fetch.node);
  if (read_index < 0 || read_index >= static_cast<int>(block.reads.size())) {
    return Invalid(step, "(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ",
                   read_index);
  }
  fetch.across = fetch.loop;
  fetch.buffer = block.reads[read_index].buffer;
  fetch.where = Message(step, "(", block.name, ", ", fetch.buffer, ", ", index.loop(fetch.loop).var, ")");
  return fetch;
}

// Whether a later iteration of `fetch.across` follows where `fetch.loop` is.
absl::Status CheckLoops(const ProgramIndex& index, const Fetch& fetch) {
  if (!index.Contains(fetch.loop, fetch.node) || index.EnclosingBlock(fetch.node) != index.EnclosingBlock(fetch.loop)) {
    return Refused(fetch.where, ": the loop is not around the block");
  }
  for (int n = fetch.loop; n >= 0 && !index.IsBlock(n); n = index.parent(n)) {
    if (!index.IsLoop(n)) continue;
    const ForKind kind = index.loop(n).kind;
    const bool serial = kind == ForKind::kSerial || kind == ForKind::kUnrolled;
    if (kind == ForKind::kVectorized || (n == fetch.across && !serial)) {
      return Refused(fetch.where, ": loop ", index.loop(n).var, " is ", Describe(kind),
                     ", so no iteration of it follows another; choose a serial loop inside");
    }
  }
  return absl::OkStatus();
}

// The lines of the buffer to ask for: the last dimension in lines, the others in elements.
struct Lines {
  std::vector<Expr> first;
  std::vector<int64_t> extents, domains;
};

absl::StatusOr<Lines> LinesOf(const ProgramIndex& index, const Fetch& fetch, Analyzer& known, const VarRanges& around) {
  const Buffer& buffer = fetch.buffer;
  const For& across = index.loop(fetch.across);
  const int64_t line = std::max<int64_t>(1, kLineBytes / buffer.type().bytes());
  const int last = buffer.rank() - 1;
  std::vector<IntervalSet> region = UnionOf(TouchedWithin(index, fetch.loop, fetch.node, buffer, false, known), known);
  const VarMap later = [&](const Var& var) -> std::optional<Expr> {
    if (!var.SameAs(across.var)) return std::nullopt;
    return Expr(var) + IntConst(fetch.distance, var.type());
  };
  bool moves = false;
  int64_t lines = 1;
  Lines found;
  for (int d = 0; d <= last; ++d) {
    IntervalSet& set = region[d];
    int64_t domain = *ConstantValue(buffer.shape()[d]);
    bool usable = set.bounded();
    for (const Expr& end : {set.min, set.max}) {
      if (!usable) break;
      ForEachExpr(end, [&](const Expr& e) {
        usable &= e.As<Load>() == nullptr;
        return usable;
      });
      for (const Var& var : FreeVars(end)) usable &= around.count(var) != 0;
    }
    if (!usable) set = {IntConst(0), IntConst(domain - 1)};
    moves |= UsesVar(set.min, across.var);
    set = {Substitute(set.min, later), Substitute(set.max, later)};
    if (d == last) {
      domain = (domain + line - 1) / line;
      set = {FloorDiv(set.min, IntConst(line)), FloorDiv(set.max, IntConst(line))};
    }
    set = {known.Simplify(set.min), known.Simplify(set.max)};
    const std::optional<int64_t> extent = MaxExtent(set, known);
    if (!extent.has_value()) {
      return Refused(fetch.where, ": how much of dimension ", d, " one iteration reads has no constant bound");
    }
    found.first.push_back(set.min);
    found.extents.push_back(std::min(std::max<int64_t>(*extent, 1), domain));
    found.domains.push_back(domain);
    lines = lines > kMostLines ? lines : lines * found.extents[d];
  }
  if (!moves) {
    return Refused(fetch.where, ": every iteration reads the same part, which stays in the cache by itself");
  }
  if (lines > kMostLines) {
    return Refused(fetch.where, ": one iteration reads more than ", kMostLines,
                   " cache lines, more than a cache near the core holds; choose a loop further in");
  }
  return found;
}

// The part [begin, begin + count) of a dimension that one iteration of `fetch.loop` asks for in one of the loop
// `share`.
struct Share {
  Expr begin;
  int64_t count = 0;
  Expr exists = True();  // false in iterations for which nothing is left
};

// Iterations of the loop `share` in which the block runs, at the least sizes: where their number follows a size, the
// first ask for all.
int64_t PassesAtLeast(const ProgramIndex& index, const Fetch& fetch, Analyzer& known) {
  const For& share = index.loop(fetch.share);
  const int64_t passes =
      std::max<int64_t>(1, ConstantValue(share.extent).value_or(known.ConstBounds(share.extent).min));
  const Expr& predicate = index.realize(fetch.node).predicate;
  if (!MentionsSize(predicate)) return passes;
  SizeValues values;  // of the loops: in the first iteration
  for (const Var& var : FreeVars(predicate)) values[var] = var.range().has_value() ? var.range()->min : 0;
  for (int64_t pass = 1; pass < passes; ++pass) {
    values[share.var] = pass;
    if (EvaluateSize(predicate, values) != 1) return pass;
  }
  return passes;
}

// `first` and `extent`: of the dimension, what an iteration of `fetch.loop` reads. Where the iterations read runs that
// follow each other, the passes ask for them in the order of memory, the first pass for the first of them: memory and
// what fetches ahead by itself are quickest along a line. Else every iteration asks for a part of its own run.
Share ShareOf(const ProgramIndex& index, const Fetch& fetch, const Expr& first, int64_t extent, Analyzer& known) {
  const For &share = index.loop(fetch.share), &loop = index.loop(fetch.loop);
  const int64_t shares = PassesAtLeast(index, fetch, known);
  const int64_t runs = ConstantValue(loop.extent).value_or(0);
  const DType type = first.type();
  const auto number = [&](const For& of) { return MakeCast(type, Expr(of.var) - of.min); };
  const Expr at_start = Substitute(first, loop.var, loop.min);
  const bool follow = runs > 0 && known.CanProveEqual(first, at_start + number(loop) * IntConst(extent, type));
  Share part;
  part.count = (extent + shares - 1) / shares;
  const Expr asked =
      (follow ? number(share) * IntConst(runs, type) + number(loop) : number(share)) * IntConst(part.count, type);
  part.begin = (follow ? at_start : first) + asked;
  // What is beyond belongs to the next iteration of the loop, or to the next panel.
  if (part.count * shares > extent || ConstantValue(share.extent) != shares)
    part.exists = known.Simplify(asked < IntConst(follow ? extent * runs : extent, type));
  return part;
}

// The loops that ask for the lines, around a block that asks for one.
Stmt PrefetchNest(const ProgramIndex& index, const Fetch& fetch, const Lines& lines, const std::string& name,
                  Analyzer& known) {
  const For& across = index.loop(fetch.across);
  const Buffer& buffer = fetch.buffer;
  BlockRealize realize;
  realize.block.name = name;
  realize.predicate =
      known.Simplify(Expr(across.var) + IntConst(fetch.distance, across.var.type()) < across.min + across.extent);
  const size_t longest = static_cast<size_t>(std::ranges::max_element(lines.extents) - lines.extents.begin());
  std::vector<std::pair<Var, int64_t>> loops;
  std::vector<Expr> indices;
  for (size_t d = 0; d < lines.first.size(); ++d) {
    const bool is_last = d + 1 == lines.first.size();
    int64_t extent = lines.extents[d];
    Expr value = lines.first[d];
    if (fetch.share >= 0 && d == longest) {
      const Share share = ShareOf(index, fetch, value, extent, known);
      realize.predicate = Conjoin(realize.predicate, share.exists);
      value = share.begin;
      extent = share.count;
    }
    const IterVar iter = SpatialIter(Message("v", d), IntConst(lines.domains[d]));
    if (extent != 1) {
      const Var ax(Message("ax", loops.size()));
      loops.push_back({ax, extent});
      known.Bind(ax, Range{IntConst(0), IntConst(extent)});
      value = value + Expr(ax);
    }
    value = MakeCast(iter.var.type(), known.Simplify(value));
    ConstraintScope inside(known, realize.predicate);
    realize.predicate = Conjoin(realize.predicate, known.Simplify(value >= IntConst(0)));
    realize.predicate = Conjoin(realize.predicate, known.Simplify(value < IntConst(lines.domains[d])));
    realize.block.iters.push_back(iter);
    realize.values.push_back(value);
    const int64_t line = std::max<int64_t>(1, kLineBytes / buffer.type().bytes());
    indices.push_back(is_last ? Expr(iter.var) * IntConst(line) : Expr(iter.var));
  }
  realize.block.reads = {{buffer, {}}};
  for (const Expr& e : indices) realize.block.reads[0].region.push_back(Range{e, IntConst(1)});
  realize.block.body = Stmt::Make(Evaluate{MakeCall("prefetch", {MakeLoad(buffer, indices)})});
  Stmt nest = Stmt::Make(std::move(realize));
  for (size_t i = loops.size(); i-- > 0;) nest = MakeLoop(loops[i].first, IntConst(loops[i].second), std::move(nest));
  return nest;
}

// Checks what remains and rewrites. Gives the name of the new block.
absl::StatusOr<std::string> Insert(Schedule& schedule, const Fetch& fetch) {
  const ProgramIndex& index = schedule.index();
  const Buffer& buffer = fetch.buffer;
  if (buffer.scope() == Scope::kRegister) return Refused(fetch.where, ": it lives in registers, which are not fetched");
  std::vector<Range> all;
  for (const Expr& extent : buffer.shape()) {
    if (!ConstantValue(extent).has_value()) return Refused(fetch.where, ": the shape is symbolic: ", extent);
    all.push_back(Range{IntConst(0), extent});
  }
  if (all.empty()) return Refused(fetch.where, ": the buffer has no dimensions");
  HONE_RETURN_IF_ERROR(CheckThereBefore(index, fetch.node, buffer, all, fetch.where));
  VarRanges around = RangesAround(index, fetch.loop);
  around[index.loop(fetch.loop).var] = Range{index.loop(fetch.loop).min, index.loop(fetch.loop).extent};
  Analyzer known(around);
  HONE_ASSIGN_OR_RETURN(const Lines lines, LinesOf(index, fetch, known, around));

  // ---- nothing below fails ----
  std::string name = FreshBlockName(index, Message(buffer.name(), "_prefetch"));
  Stmt nest = PrefetchNest(index, fetch, lines, name, known);
  const Stmt body = index.Replace(fetch.loop + 1, MakeSeq({std::move(nest), index.stmt(fetch.loop + 1)}));
  schedule.SetBody(WithReads(body, index.block(index.EnclosingBlock(fetch.node)).name, buffer, all));
  return name;
}

}  // namespace

absl::StatusOr<BlockRef> Prefetch(Schedule& schedule, BlockRef block, int read_index, LoopRef loop, int64_t distance) {
  HONE_ASSIGN_OR_RETURN(Fetch fetch, Look(schedule, "prefetch", block, read_index, loop));
  fetch.distance = distance;
  if (distance < 1 || distance > INT32_MAX) {
    return Invalid(fetch.where, ": distance is ", distance, ", below 1 or too far");
  }
  HONE_RETURN_IF_ERROR(CheckLoops(schedule.index(), fetch));
  HONE_ASSIGN_OR_RETURN(const std::string name, Insert(schedule, fetch));
  const int number =
      schedule.Record(PrefetchStep{.block = block, .read_buffer_index = read_index, .loop = loop, .distance = distance},
                      {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::StatusOr<BlockRef> PrefetchAcross(Schedule& schedule, BlockRef block, int read_index, LoopRef loop,
                                        LoopRef across, LoopRef share) {
  HONE_ASSIGN_OR_RETURN(Fetch fetch, Look(schedule, "prefetch_across", block, read_index, loop));
  HONE_ASSIGN_OR_RETURN(fetch.across, schedule.LoopNode(across, "prefetch_across"));
  HONE_ASSIGN_OR_RETURN(fetch.share, schedule.LoopNode(share, "prefetch_across"));
  const ProgramIndex& index = schedule.index();
  const auto around = [&](int outer, int inner) { return outer != inner && index.Contains(outer, inner); };
  if (!around(fetch.across, fetch.share) || !around(fetch.share, fetch.loop) ||
      index.EnclosingBlock(fetch.across) != index.EnclosingBlock(fetch.loop)) {
    return Refused(fetch.where, ": loop ", index.loop(fetch.across).var, " has to stand around ",
                   index.loop(fetch.share).var, ", and that around ", index.loop(fetch.loop).var);
  }
  HONE_RETURN_IF_ERROR(CheckLoops(index, fetch));
  HONE_ASSIGN_OR_RETURN(const std::string name, Insert(schedule, fetch));
  const int number = schedule.Record(
      PrefetchAcrossStep{
          .block = block, .read_buffer_index = read_index, .loop = loop, .across = across, .share = share},
      {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const PrefetchStep& step) {
  return Prefetch(schedule, step.block, AsIndex(step.read_buffer_index), step.loop, step.distance).status();
}

absl::Status Apply(Schedule& schedule, const PrefetchAcrossStep& step) {
  return PrefetchAcross(schedule, step.block, AsIndex(step.read_buffer_index), step.loop, step.across, step.share)
      .status();
}

HONE_PRIMITIVES(prefetch, PrefetchStep, PrefetchAcrossStep)

}  // namespace hone
