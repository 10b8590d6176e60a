#include "compiler/schedule/primitives/layout_constant.h"

#include <algorithm>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/rewrite_layout.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// for p..: to[p..] = from[original(p..)], or `pad` where that is padding; in parallel over the first axis.
Stmt PackNest(const std::string& name, const Buffer& from, const Buffer& to, const InverseMap& inverse,
              const Expr& pad) {
  BlockRealize pack;
  pack.predicate = True();
  pack.block.name = name;
  std::vector<Expr> indices;
  std::vector<std::pair<Var, Expr>> loops;
  std::vector<Range> points;
  for (size_t d = 0; d < inverse.shape.size(); ++d) {
    const Expr extent = inverse.shape[d];
    const Var v(Message("v", d)), ax(Message("ax", d));
    pack.block.iters.push_back({v, Range{IntConst(0), extent}, IterKind::kSpatial});
    pack.values.push_back(ax);
    loops.push_back({ax, extent});
    indices.push_back(v);
    points.push_back(Range{v, IntConst(1)});
  }
  const VarMap bind = [&](const Var& var) -> std::optional<Expr> {
    for (size_t d = 0; d < inverse.indices.size(); ++d) {
      if (inverse.indices[d].SameAs(var)) return indices[d];
    }
    return std::nullopt;
  };
  std::vector<Expr> original;
  std::vector<Range> read;
  for (const Expr& e : inverse.original) {
    original.push_back(Substitute(e, bind));
    read.push_back(Range{original.back(), IntConst(1)});
  }
  const Expr inside = Substitute(inverse.inside, bind);
  Expr value = MakeLoad(from, original);
  if (!IsConst(inside, 1)) value = IfThenElse(inside, value, pad);
  pack.block.reads = {{from, read}};
  pack.block.writes = {{to, points}};
  pack.block.body = Stmt::Make(Store{to, indices, value, Expr()});
  Stmt nest = Stmt::Make(std::move(pack));
  for (size_t d = loops.size(); d-- > 0;) {
    nest = MakeLoop(loops[d].first, loops[d].second, std::move(nest), d == 0 ? ForKind::kParallel : ForKind::kSerial);
  }
  return nest;
}

// Which parameter the constant is.
absl::StatusOr<int> ConstantParam(const PrimFunc& func, const Buffer& buffer, const std::string& where) {
  const auto found = std::ranges::find(func.params, buffer);
  if (found == func.params.end())
    return Refused(where, ": it is an intermediate, not a param; transform_layout re-lays intermediates");
  const int param = static_cast<int>(found - func.params.begin());
  if (!func.IsConstant(param)) {
    return Refused(where, ": the function does not list param ", param,
                   " in its attribute \"constants\", so its value is not known beforehand");
  }
  return param;
}

absl::Status CheckShapeIsKnown(const Buffer& buffer, const std::string& where) {
  for (const Expr& extent : buffer.shape()) {
    if (!ConstantValue(extent).has_value()) return Refused(where, ": the shape is symbolic: ", extent);
  }
  return absl::OkStatus();
}

// The function that lays out the constant before the kernel runs: `before`, if it has been laid out already, then the
// new layout.
PrimFunc PrepareFunc(const Buffer& buffer, const InverseMap& inverse, const Expr& pad, const PrimFunc* before) {
  const Buffer result(Message(buffer.name(), "_packed"), buffer.type(), inverse.shape);
  PrimFunc prepare;
  BlockRealize root;
  root.predicate = True();
  root.block.name = "root";
  if (before == nullptr) {
    const Buffer original(buffer.name(), buffer.type(), buffer.shape());
    prepare.params = {original, result};
    root.block.body = PackNest("pack", original, result, inverse, pad);
  } else {
    // The earlier result becomes an intermediate of the new function.
    const Buffer stage(Message(before->params[1].name(), "_stage"), buffer.type(), before->params[1].shape());
    const BlockRealize earlier = *ReplaceBuffers(before->body, [&](const Buffer& b) -> std::optional<Buffer> {
                                    return b.SameAs(before->params[1]) ? std::optional<Buffer>(stage) : std::nullopt;
                                  }).As<BlockRealize>();
    root = earlier;
    root.block.allocs.push_back(stage);
    const std::string name = FreshBlockName(ProgramIndex(before->body), "pack");
    root.block.body = MakeSeq({earlier.block.body, PackNest(name, stage, result, inverse, pad)});
    prepare.params = {before->params[0], result};
  }
  prepare.name = Message("prepare_", buffer.name());
  prepare.attrs["outputs"] = int64_t{1};
  prepare.body = Stmt::Make(std::move(root));
  return prepare;
}

}  // namespace

absl::Status LayoutConstant(Schedule& schedule, BlockRef ref, int read_index, IndexMap map, PadValue pad_value) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "layout_constant"));
  const Block& block = schedule.index().block(node);
  if (read_index < 0 || read_index >= static_cast<int>(block.reads.size())) {
    return Invalid("layout_constant(", block.name, "): it reads ", block.reads.size(), " buffers, there is no number ",
                   read_index);
  }
  const Buffer buffer = block.reads[read_index].buffer;
  const std::string where = Message("layout_constant(", block.name, ", ", buffer, ")");
  const PrimFunc& func = schedule.func();
  HONE_ASSIGN_OR_RETURN(const int param, ConstantParam(func, buffer, where));
  HONE_RETURN_IF_ERROR(CheckShapeIsKnown(buffer, where));
  const absl::StatusOr<InverseMap> inverse = InvertLayout(map, buffer.shape());
  if (!inverse.ok()) return Annotate(inverse.status(), where);
  if (IsMatched(func.body, buffer))
    return Refused(where, ": it is an operand of a tile operation, whose layout is fixed");
  Expr pad = Const(0, buffer.type());
  if (pad_value.has_value()) { HONE_ASSIGN_OR_RETURN(pad, PadConstant(*pad_value, buffer.type(), where)); }

  // ---- nothing below fails ----
  const Buffer packed(buffer.name(), buffer.type(), inverse->shape, buffer.scope());
  PrimFunc main = func;
  main.params[param] = packed;
  main.body = WithLayout(func.body, buffer, packed, map);
  const PrimFunc* before = nullptr;  // an earlier layout of the same constant
  for (const Prepare& p : schedule.prepares()) {
    if (p.param == param) before = &p.func;
  }
  PrimFunc prepare = PrepareFunc(buffer, *inverse, pad, before);
  schedule.SetFunc(std::move(main));
  schedule.SetPrepare({param, std::move(prepare)});
  schedule.Record(
      LayoutConstantStep{
          .block = ref, .read_buffer_index = read_index, .index_map = std::move(map), .pad_value = pad_value},
      {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const LayoutConstantStep& step) {
  return LayoutConstant(schedule, step.block, AsIndex(step.read_buffer_index), step.index_map, step.pad_value);
}

HONE_PRIMITIVES(layout_constant, LayoutConstantStep)

}  // namespace hone
