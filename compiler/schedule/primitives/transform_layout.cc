#include "compiler/schedule/primitives/transform_layout.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/element_map.h"
#include "compiler/schedule/analysis/inserted_copy.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/plain_nest.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::vector<int> BlocksThatUse(const ProgramIndex& index, const Buffer& buffer) {
  std::vector<int> blocks = index.AllBlocks();
  std::erase_if(blocks, [&](int n) { return !Reads(index.block(n), buffer) && !Writes(index.block(n), buffer); });
  return blocks;
}

absl::Status CheckWritesStayBoxes(const ProgramIndex& index, const Buffer& buffer, const IndexMap& map,
                                  const std::string& where) {
  for (const int n : BlocksThatUse(index, buffer)) {
    for (const BufferRegion& write : index.block(n).writes) {
      if (!write.buffer.SameAs(buffer) || StaysBox(write, index.block(n), map)) continue;
      return Refused(
          where, ": block ", index.block(n).name,
          " writes a region of it that is no box in the new layout; use transform_layout before blockize, or a map "
          "that does not cut or pad that region");
    }
  }
  return absl::OkStatus();
}

// The buffer in its new layout, and what its padding is to hold.
struct Padded {
  Buffer from, to;
  LayoutPlaces places;
  Expr value;  // absent: nothing, or there is no padding
};

// The block that writes each element of the buffer once and does nothing else, in a plain nest: its node. -1: none.
int PlainWriter(const ProgramIndex& index, const Buffer& buffer) {
  std::vector<int> writers = BlocksThatUse(index, buffer);
  std::erase_if(writers, [&](int n) { return !Writes(index.block(n), buffer); });
  if (writers.size() != 1 || index.EnclosingBlock(writers[0]) != AllocatingBlock(index, buffer)) return -1;
  const Block& block = index.block(writers[0]);
  const Store* store = block.body.As<Store>();
  if (store == nullptr || store->mask || block.init || !block.matches.empty() || Reads(block, buffer)) return -1;
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial) return -1;
  }
  const bool plain =
      FindPlainNest(index, writers[0], "").ok() && ElementMap::Find(block, buffer, store->indices, "").ok();
  return plain ? writers[0] : -1;
}

// for the places: to[place] = if_then_else(inside, what the block writes there, the pad value).
Stmt PaddingNest(const Block& writer, const Padded& padded) {
  const Store& store = *writer.body.As<Store>();
  const absl::StatusOr<ElementMap> elements = ElementMap::Find(writer, padded.from, store.indices, "");
  Block block = writer;
  block.iters = padded.places.iters;
  Analyzer known;
  for (const IterVar& iter : block.iters) known.Bind(iter.var, iter.domain);
  const Expr value = elements->At(padded.places.original, store.value, known);
  block.body = Stmt::Make(
      Store{padded.to, padded.places.indices, IfThenElse(padded.places.inside, value, padded.value), Expr()});
  return NestAround(std::move(block));
}

// for the places: if it is padding, to[place] = the pad value.
Stmt FillingNest(const std::string& name, const Padded& padded) {
  Block block;
  block.name = name;
  block.iters = padded.places.iters;
  Analyzer known;
  for (const IterVar& iter : block.iters) known.Bind(iter.var, iter.domain);
  const Stmt fill = Stmt::Make(Store{padded.to, padded.places.indices, padded.value, Expr()});
  block.body = Stmt::Make(IfThen{known.Simplify(MakeNot(padded.places.inside)), fill, Stmt()});
  return NestAround(std::move(block));
}

// The first statement of the allocating block's body that uses the buffer.
int FirstUse(const ProgramIndex& index, const Buffer& buffer) {
  const int allocating = AllocatingBlock(index, buffer), first = BlocksThatUse(index, buffer).front();
  const int statement = index.ChildTowards(allocating, first);
  return index.stmt(statement).As<Seq>() == nullptr ? statement : index.ChildTowards(statement, first);
}

// What is in shared memory or registers is there for the threads of one launch, and a filling block is outside of it.
absl::Status CheckFillIsSeen(const ProgramIndex& index, const Buffer& buffer, const std::string& where) {
  if (buffer.scope() == Scope::kGlobal) return absl::OkStatus();
  for (const int block : BlocksThatUse(index, buffer)) {
    for (int n = block; n > AllocatingBlock(index, buffer); n = index.parent(n)) {
      if (!index.IsLoop(n) || index.loop(n).kind != ForKind::kThreadBinding) continue;
      return Refused(where, ": pad_value needs a block that fills the padding, outside of loop ", index.loop(n).var,
                     ", which is bound to ", index.loop(n).thread, ", and what lies in scope ", ToText(buffer.scope()),
                     " is not seen from there; use transform_layout while the block that writes it has loops of its "
                     "own, neither split nor moved");
    }
  }
  return absl::OkStatus();
}

// A copy of the param, by the primitives that make one, is laid out in its place.
absl::Status TransformCopy(Schedule& schedule, BlockRef ref, BlockBuffer buffer, const IndexMap& map,
                           PadValue pad_value, const std::string& where) {
  Schedule trial = schedule;
  const bool reads = buffer.kind == BufferKind::kRead;
  const absl::StatusOr<BlockRef> copy = reads ? CacheRead(trial, ref, buffer.index, Scope::kGlobal)
                                              : CacheWrite(trial, ref, buffer.index, Scope::kGlobal);
  if (!copy.ok()) return Annotate(copy.status(), Message(where, ": it is a param, of which a copy is laid out"));
  const BufferKind copied = reads ? BufferKind::kWrite : BufferKind::kRead;
  if (const absl::Status done = TransformLayout(trial, *copy, 0, copied, map, pad_value); !done.ok()) {
    return Annotate(done, where);
  }
  schedule.SetBody(trial.func().body);
  schedule.Record(TransformLayoutStep{.block = ref, .buffer = buffer, .index_map = map, .pad_value = pad_value}, {});
  return absl::OkStatus();
}

}  // namespace

absl::Status TransformLayout(Schedule& schedule, BlockRef ref, int buffer_index, BufferKind kind, IndexMap map,
                             PadValue pad_value) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "transform_layout"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const std::vector<BufferRegion>& regions = kind == BufferKind::kRead ? block.reads : block.writes;
  if (buffer_index < 0 || buffer_index >= static_cast<int>(regions.size())) {
    return Invalid("transform_layout(", block.name, "): it ", kind == BufferKind::kRead ? "reads " : "writes ",
                   regions.size(), " buffers, there is no number ", buffer_index);
  }
  const Buffer buffer = regions[buffer_index].buffer;
  const std::string where = Message("transform_layout(", block.name, ", ", buffer, ")");
  const absl::StatusOr<InverseMap> inverse = InvertLayout(map, buffer.shape());
  if (!inverse.ok()) return Annotate(inverse.status(), where);
  if (AllocatingBlock(index, buffer) < 0) {
    return TransformCopy(schedule, ref, {kind, buffer_index}, map, pad_value, where);
  }
  if (IsMatched(schedule.func().body, buffer))
    return Refused(where, ": it is an operand of a tile operation, whose layout is fixed");
  HONE_RETURN_IF_ERROR(CheckWritesStayBoxes(index, buffer, map, where));
  Padded padded{.from = buffer,
                .to = Buffer(buffer.name(), buffer.type(), inverse->shape, buffer.scope()),
                .places = PlacesOf(*inverse),
                .value = Expr()};
  if (pad_value.has_value()) { HONE_ASSIGN_OR_RETURN(padded.value, PadConstant(*pad_value, buffer.type(), where)); }
  const bool pads = padded.value && !IsConst(padded.places.inside, 1);
  const int writer = pads ? PlainWriter(index, buffer) : -1;
  if (pads && writer < 0) HONE_RETURN_IF_ERROR(CheckFillIsSeen(index, buffer, where));

  // ---- nothing below fails ----
  Stmt body = schedule.func().body;
  if (writer >= 0) {
    body = index.Replace(Outermost(index, writer), PaddingNest(index.block(writer), padded));
  } else if (pads) {
    const std::string name = FreshBlockName(index, buffer.name() + "_padding");
    body = index.InsertBeside(FirstUse(index, buffer), FillingNest(name, padded), Stmt());
  }
  schedule.SetBody(WithLayout(body, buffer, padded.to, map));
  schedule.Record(
      TransformLayoutStep{
          .block = ref, .buffer = {kind, buffer_index}, .index_map = std::move(map), .pad_value = pad_value},
      {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const TransformLayoutStep& step) {
  return TransformLayout(schedule, step.block, step.buffer.index, step.buffer.kind, step.index_map, step.pad_value);
}

HONE_PRIMITIVES(transform_layout, TransformLayoutStep)

}  // namespace hone
