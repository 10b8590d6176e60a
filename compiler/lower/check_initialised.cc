#include <map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
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
    starts[buffer] |= !Needs(store.value, buffer);
  }
  // Whether the value cannot be computed without an element of the buffer: not where a condition decides.
  bool Needs(const Expr& e, const Buffer& buffer) const {
    bool needs = false;
    ForEachExpr(e, [&](const Expr& part) {
      if (const Load* load = part.As<Load>()) needs |= !load->mask && Root(load->buffer) == buffer;
      if (const VarRef* ref = part.As<VarRef>()) {
        const auto let = lets_.find(ref->var);
        needs |= let != lets_.end() && Needs(let->second, buffer);
      }
      const Binary* op = part.As<Binary>();
      if (op != nullptr && (op->op == BinaryOp::kAnd || op->op == BinaryOp::kOr)) {
        needs |= Needs(op->a, buffer);
        return false;
      }
      if (const Select* choice = part.As<Select>()) {
        needs |= Needs(choice->condition, buffer);
        return false;
      }
      if (const IfThenElseExpr* choice = part.As<IfThenElseExpr>()) {
        needs |= Needs(choice->condition, buffer);
        return false;
      }
      return !needs;
    });
    return needs;
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
  return absl::OkStatus();
}

}  // namespace hone
