#include "compiler/lower/threads/leading_index.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/visit.h"

namespace hone {

Stmt WithLeadingIndex(const Stmt& stmt, const std::map<Buffer, Buffer>& grown,
                      const std::function<Expr(const Buffer&)>& first) {
  const auto indices = [&](const Buffer& buffer, const std::vector<Expr>& old) {
    std::vector<Expr> placed = {first(buffer)};
    placed.insert(placed.end(), old.begin(), old.end());
    return placed;
  };
  const Stmt loaded = RewriteExprs(stmt, [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr || !grown.contains(load->buffer)) return std::nullopt;
    const Buffer& buffer = grown.at(load->buffer);
    return MakeLoad(buffer, indices(buffer, load->indices), load->mask);
  });
  return RewriteBottomUp(loaded, [&](const Stmt& s) -> std::optional<Stmt> {
    if (const Store* store = s.As<Store>(); store != nullptr && grown.contains(store->buffer)) {
      const Buffer& buffer = grown.at(store->buffer);
      return Stmt::Make(Store{buffer, indices(buffer, store->indices), store->value, store->mask});
    }
    const TileOp* op = s.As<TileOp>();
    if (op == nullptr) return std::nullopt;
    TileOp placed = *op;
    for (BufferRegion& operand : placed.operands) {
      if (!grown.contains(operand.buffer)) continue;
      operand.buffer = grown.at(operand.buffer);
      operand.region.insert(operand.region.begin(), Range{first(operand.buffer), IntConst(1)});
    }
    return Stmt::Make(std::move(placed));
  });
}

}  // namespace hone
