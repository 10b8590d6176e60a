#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/checks/needed_loads.h"
#include "compiler/lower/checks/unwritten_reads.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

class Initialisation {
 public:
  // One entry for every buffer that is written: whether some write of it does without its old contents.
  std::map<Buffer, bool> starts;

  void Visit(const Stmt& stmt) {
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      if (IsConst(realize->predicate, 0)) return;
      for (const MatchBuffer& match : realize->block.matches)
        alias_.insert_or_assign(match.buffer, Root(match.source.buffer));
    } else if (const Let* let = stmt.As<Let>()) {
      lets_.insert_or_assign(let->var, let->value);
    } else if (const Store* store = stmt.As<Store>()) {
      Written(*store);
    } else if (const TileOp* op = stmt.As<TileOp>()) {
      for (const BufferRegion& operand : op->operands) starts[Root(operand.buffer)] = true;
    } else if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      if (const std::optional<Store> update = EffectStore(*evaluate)) Written(*update);
    }
    ForEachChild(
        stmt, [this](const Stmt& child) { Visit(child); }, [](const Expr&) {});
  }

 private:
  Buffer Root(const Buffer& buffer) const {
    const auto found = alias_.find(buffer);
    return found == alias_.end() ? buffer : found->second;
  }
  void Written(const Store& store) {
    const Buffer buffer = Root(store.buffer);
    starts[buffer] |= !NeedsLoad(store.value, lets_, [&](const Load& load) { return Root(load.buffer) == buffer; });
  }
  std::map<Buffer, Buffer> alias_;
  std::map<Var, Expr> lets_;
};

}  // namespace

absl::Status CheckInitialised(const PrimFunc& func) {
  Initialisation found;
  found.Visit(func.body);
  for (const auto& [buffer, starts] : found.starts) {
    if (starts) continue;
    return absl::InvalidArgumentError(absl::StrCat("never-initialised: buffer ", buffer.name(),
                                                   ": every store to it reads it, so the first reads what ",
                                                   "nobody wrote; give the block that accumulates an init"));
  }
  if (const std::optional<UnwrittenRead> read = FindUnwrittenRead(func)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "never-written: buffer ", read->buffer.name(), " is read at ", read->index, " of dimension ", read->dimension,
        ", which no store writes first; let the loops and conditions of its stores reach as far as those of its loads, "
        "or read it under a condition"));
  }
  return absl::OkStatus();
}

}  // namespace hone
