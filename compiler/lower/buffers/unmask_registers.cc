#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

// One lane of an expression of constants; nullopt where it is of another kind.
std::optional<int64_t> Lane(const Expr& e, int64_t lane) {
  if (const Broadcast* broadcast = e.As<Broadcast>()) return ConstantValue(broadcast->value);
  if (const Ramp* ramp = e.As<Ramp>()) {
    const std::optional<int64_t> base = ConstantValue(ramp->base), stride = ConstantValue(ramp->stride);
    if (!base.has_value() || !stride.has_value()) return std::nullopt;
    return *base + *stride * lane;
  }
  const Binary* binary = e.As<Binary>();
  if (binary == nullptr) return ConstantValue(e);
  const std::optional<int64_t> a = Lane(binary->a, lane), b = Lane(binary->b, lane);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  switch (binary->op) {
    case BinaryOp::kAdd: return *a + *b;
    case BinaryOp::kSub: return *a - *b;
    case BinaryOp::kMul: return *a * *b;
    case BinaryOp::kLt: return *a < *b;
    case BinaryOp::kLe: return *a <= *b;
    case BinaryOp::kAnd: return *a != 0 && *b != 0;
    default: return std::nullopt;
  }
}

// Which elements of a register buffer are ever written.
class Written {
 public:
  explicit Written(const Buffer& buffer)
      : elements_(static_cast<size_t>(std::max<int64_t>(buffer.NumElements().value_or(0), 0))) {}

  void Add(const Store& store) {
    for (int64_t lane = 0; lane < Lanes(store); ++lane) {
      const std::optional<int64_t> at = ElementOf(store, lane);
      const std::optional<int64_t> on = store.mask ? Lane(store.mask, lane) : 1;
      if (!at.has_value() || !on.has_value()) return elements_.clear();  // it could be any
      if (*on != 0) elements_[static_cast<size_t>(*at)] = true;
    }
  }

  // The lanes that are off are elements of the buffer, and none of them is written.
  bool MayWriteAllLanes(const Store& store) const {
    for (int64_t lane = 0; lane < Lanes(store); ++lane) {
      const std::optional<int64_t> at = ElementOf(store, lane);
      if (!at.has_value() || (Lane(store.mask, lane) == 0 && elements_[static_cast<size_t>(*at)])) return false;
    }
    return true;
  }

 private:
  static int64_t Lanes(const Store& store) { return store.indices[0].type().lanes; }
  std::optional<int64_t> ElementOf(const Store& store, int64_t lane) const {
    const std::optional<int64_t> at = store.indices.size() == 1 ? Lane(store.indices[0], lane) : std::nullopt;
    return at.has_value() && *at >= 0 && *at < static_cast<int64_t>(elements_.size()) ? at : std::nullopt;
  }

  std::vector<bool> elements_;  // empty: not known
};

}  // namespace

Stmt UnmaskRegisters(const Stmt& body) {
  std::map<Buffer, Written> written;
  bool any_mask = false;
  ForEachStmt(body, [&](const Stmt& s) {
    const Store* store = s.As<Store>();
    if (store == nullptr || store->buffer.scope() != Scope::kRegister) return true;
    any_mask = any_mask || store->mask;
    written.try_emplace(store->buffer, store->buffer).first->second.Add(*store);
    return true;
  });
  if (!any_mask) return body;
  ForEachStmt(body, [&](const Stmt& s) {
    if (const TileOp* op = s.As<TileOp>()) {
      for (const BufferRegion& operand : op->operands) written.erase(operand.buffer);  // it may write any element
    }
    return true;
  });
  return RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Store* store = s.As<Store>();
    if (store == nullptr || !store->mask) return std::nullopt;
    const auto found = written.find(store->buffer);
    if (found == written.end() || !found->second.MayWriteAllLanes(*store)) return std::nullopt;
    return Stmt::Make(Store{store->buffer, store->indices, store->value, Expr()});
  });
}

}  // namespace hone
