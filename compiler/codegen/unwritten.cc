#include "compiler/codegen/unwritten.h"

#include <map>
#include <optional>

#include "compiler/ir/visit.h"

namespace hone {
namespace {

enum class End { kLow, kHigh };

End Other(End end) { return end == End::kLow ? End::kHigh : End::kLow; }

class Keeper {
 public:
  explicit Keeper(const Buffer& buffer) : buffer_(buffer) {}

  // The number that a store to the buffer would keep in place of any other; nothing when there is no such end.
  std::optional<End> Of(const Stmt& body) {
    std::optional<End> end;
    ForEachStmt(body, [&](const Stmt& stmt) {
      if (end.has_value()) return false;
      if (const Let* let = stmt.As<Let>()) lets_[let->var] = let->value;
      const Store* store = stmt.As<Store>();
      if (store != nullptr && store->buffer.SameAs(buffer_)) end = KeptBy(store->value);
      return true;
    });
    return end;
  }

 private:
  const Expr& Resolved(const Expr& e) const {
    const VarRef* ref = e.As<VarRef>();
    const auto found = ref == nullptr ? lets_.end() : lets_.find(ref->var);
    return found == lets_.end() ? e : found->second;
  }
  bool IsOld(const Expr& e) const {
    const Load* load = Resolved(e).As<Load>();
    return load != nullptr && load->buffer.SameAs(buffer_);
  }

  std::optional<End> KeptBy(const Expr& value) const {
    std::optional<End> end;
    ForEachExpr(Resolved(value), [&](const Expr& e) {
      if (end.has_value()) return false;
      if (const Binary* op = e.As<Binary>(); op != nullptr && (IsOld(op->a) || IsOld(op->b))) {
        if (op->op == BinaryOp::kMax || op->op == BinaryOp::kOr) end = End::kHigh;
        if (op->op == BinaryOp::kMin || op->op == BinaryOp::kAnd) end = End::kLow;
      } else if (const Select* choice = e.As<Select>()) {
        if (IsOld(choice->yes)) end = Decides(choice->condition, true);
        if (IsOld(choice->no)) end = Decides(choice->condition, false);
      }
      return true;
    });
    return end;
  }

  // The end at which the first comparison of the old value in the condition has this outcome.
  std::optional<End> Decides(const Expr& condition, bool outcome) const {
    std::optional<End> end;
    ForEachExpr(Resolved(condition), [&](const Expr& e) {
      const Binary* op = e.As<Binary>();
      if (end.has_value()) return false;
      if (op == nullptr || IsOld(op->a) == IsOld(op->b)) return true;
      if (op->op == BinaryOp::kGt || op->op == BinaryOp::kGe) end = IsOld(op->a) ? End::kHigh : End::kLow;
      if (op->op == BinaryOp::kLt || op->op == BinaryOp::kLe) end = IsOld(op->a) ? End::kLow : End::kHigh;
      return true;
    });
    return !end.has_value() || outcome ? end : Other(*end);
  }

  const Buffer buffer_;
  std::map<Var, Expr> lets_;
};

}  // namespace

uint8_t UnwrittenByte(const Buffer& buffer, const Stmt& body) {
  const std::optional<End> end = Keeper(buffer).Of(body);
  const DType type = buffer.type();
  if (type.is_bool()) return end == End::kLow ? 0 : 1;
  if (!end.has_value()) return 0xff;
  const bool high = *end == End::kHigh;
  if (type.is_float()) return high ? 0x7a : 0xfb;  // in any width of floats far from what is computed with, and finite
  const int bits = type.bits < 8 ? type.bits : 8;  // what a byte in memory has of the type
  if (type.code == TypeCode::kUInt) return high ? (1 << bits) - 1 : 0;
  return high ? (1 << (bits - 1)) - 1 : 1 << (bits - 1);
}

}  // namespace hone
