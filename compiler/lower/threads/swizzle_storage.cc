#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/threads/bank_conflicts.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

constexpr int64_t kPieces = kBanks * kBankBytes / kMatrixRowBytes;  // that are as long as all banks

// Piece c of row r is at c ^ (r // rows % pieces).
struct Order {
  int64_t elements = 1;  // of a piece
  int64_t rows = 1;      // that are in the same order: together they are as long as all banks
  int64_t pieces = 1;    // that change places with one another
};

std::optional<Order> OrderOf(const Buffer& buffer) {
  const std::optional<int64_t> row = buffer.rank() < 2 ? std::nullopt : ConstantValue(buffer.shape().back());
  const int64_t elements = kMatrixRowBytes / buffer.type().bytes();
  if (!row.has_value() || *row % elements != 0 || buffer.scope() != Scope::kShared) return std::nullopt;
  const int64_t in_row = *row / elements;
  Order order{.elements = elements};
  while (order.pieces < kPieces && in_row % (2 * order.pieces) == 0) order.pieces *= 2;
  order.rows = std::max<int64_t>(1, kPieces / in_row);
  return order.pieces > 1 ? std::optional(order) : std::nullopt;
}

class Swizzle {
 public:
  explicit Swizzle(std::map<Buffer, Order> orders) : orders_(std::move(orders)) {}

  // Without the buffers of which somebody touches several pieces at once.
  void LeaveOutUnfit(const Stmt& body) {
    Walk(body, [&](const TileOp& op) {
      for (const BufferRegion& operand : op.operands) {
        const auto found = orders_.find(operand.buffer);
        if (found == orders_.end()) continue;
        const Range& last = operand.region.back();
        const std::optional<int64_t> extent = ConstantValue(last.extent);
        bool one_row = extent.has_value() && *extent <= found->second.elements;
        for (size_t d = 0; d + 1 < operand.region.size(); ++d)
          one_row = one_row && IsConst(operand.region[d].extent, 1);
        if (!one_row || !known_.IsMultipleOf(last.min, found->second.elements)) orders_.erase(found);
      }
    });
  }

  Stmt Rewrite(const Stmt& stmt) {
    Bind(stmt);
    const Stmt inside = MapChildren(
        stmt, [&](const Stmt& s) { return Rewrite(s); }, [&](const Expr& e) { return Rewrite(e); });
    if (const Store* store = inside.As<Store>(); store != nullptr && orders_.contains(store->buffer))
      return Stmt::Make(Store{store->buffer, Placed(store->buffer, store->indices), store->value, store->mask});
    const TileOp* op = inside.As<TileOp>();
    if (op == nullptr) return inside;
    TileOp placed = *op;
    for (BufferRegion& operand : placed.operands) {
      if (!orders_.contains(operand.buffer)) continue;
      std::vector<Expr> first;
      for (const Range& range : operand.region) first.push_back(range.min);
      operand.region.back().min = Placed(operand.buffer, first).back();
    }
    return Stmt::Make(std::move(placed));
  }

 private:
  void Bind(const Stmt& stmt) {
    if (const For* loop = stmt.As<For>()) known_.Bind(loop->var, Range{loop->min, loop->extent});
  }
  template <class OnTileOp>
  void Walk(const Stmt& stmt, const OnTileOp& on_op) {
    Bind(stmt);
    if (const TileOp* op = stmt.As<TileOp>()) on_op(*op);
    ForEachChild(
        stmt, [&](const Stmt& s) { Walk(s, on_op); }, [](const Expr&) {});
  }

  Expr Rewrite(const Expr& root) {
    return RewriteBottomUp(root, [&](const Expr& e) -> std::optional<Expr> {
      const Load* load = e.As<Load>();
      if (load == nullptr || !orders_.contains(load->buffer)) return std::nullopt;
      return MakeLoad(load->buffer, Placed(load->buffer, load->indices), load->mask);
    });
  }

  std::vector<Expr> Placed(const Buffer& buffer, std::vector<Expr> indices) {
    const Order& order = orders_.at(buffer);
    const Expr column = indices.back(), row = indices[indices.size() - 2];
    const auto number = [](int64_t value, const Expr& like) { return IntConst(value, like.type()); };
    const Expr piece = known_.Simplify(FloorDiv(column, number(order.elements, column)));
    const Expr turn = known_.Simplify(
        MakeCast(column.type(), FloorMod(FloorDiv(row, number(order.rows, row)), number(order.pieces, row))));
    const Expr inside = known_.Simplify(FloorMod(column, number(order.elements, column)));
    indices.back() =
        known_.Simplify(MakeBinary(BinaryOp::kBitXor, piece, turn) * number(order.elements, column) + inside);
    return indices;
  }

  std::map<Buffer, Order> orders_;
  Analyzer known_;
};

}  // namespace

PrimFunc SwizzleStorage(PrimFunc func) {
  const auto noted = func.attrs.find(kStorageSwizzle);
  if (noted == func.attrs.end()) return func;
  std::set<std::string> wanted;
  if (const auto* names = std::get_if<std::vector<std::string>>(&noted->second))
    wanted.insert(names->begin(), names->end());
  func.attrs.erase(noted);
  std::map<Buffer, Order> orders;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const Alloc* alloc = stmt.As<Alloc>();
    const std::optional<Order> order =
        alloc == nullptr || !wanted.contains(alloc->buffer.name()) ? std::nullopt : OrderOf(alloc->buffer);
    if (order.has_value()) orders.emplace(alloc->buffer, *order);
    return true;
  });
  Swizzle swizzle(std::move(orders));
  swizzle.LeaveOutUnfit(func.body);
  func.body = swizzle.Rewrite(func.body);
  return func;
}

}  // namespace hone
