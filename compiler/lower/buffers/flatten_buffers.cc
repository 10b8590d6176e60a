#include <limits>
#include <map>

#include "compiler/arith/linear.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

class Flatten {
 public:
  Buffer Define(const Buffer& buffer) {
    if (buffer.rank() == 1) return buffer;
    Expr elements = IntConst(1);
    if (const std::optional<int64_t> count = buffer.NumElements()) {
      elements = Expr(*count);
    } else {
      for (const Expr& extent : buffer.shape()) elements = elements * Wide(buffer, extent);
    }
    return flat_[buffer] = Buffer(buffer.name(), buffer.type(), {elements}, buffer.scope());
  }

  Stmt OnStmt(const Stmt& stmt) {
    if (const Alloc* alloc = stmt.As<Alloc>()) {
      const Buffer flat = Define(alloc->buffer);
      return Stmt::Make(Alloc{flat, OnStmt(alloc->body)});
    }
    const Stmt mapped = MapChildren(
        stmt, [&](const Stmt& s) { return OnStmt(s); }, [&](const Expr& e) { return OnExpr(e); });
    if (const TileOp* op = mapped.As<TileOp>()) return OnTileOp(*op);
    const Store* store = mapped.As<Store>();
    if (store == nullptr) return mapped;
    const auto found = flat_.find(store->buffer);
    if (found == flat_.end()) return mapped;
    return Stmt::Make(Store{found->second, {Index(store->buffer, store->indices)}, store->value, store->mask});
  }

  Expr OnExpr(const Expr& e) {
    const Expr mapped = MapChildren(e, [&](const Expr& child) { return OnExpr(child); });
    const Load* load = mapped.As<Load>();
    if (load == nullptr) return mapped;
    const auto found = flat_.find(load->buffer);
    if (found == flat_.end()) return mapped;
    return MakeLoad(found->second, {Index(load->buffer, load->indices)}, load->mask);
  }

 private:
  // Only operations whose operands are in one piece are left, or their rows are: for matrices in registers.
  Stmt OnTileOp(const TileOp& op) {
    const bool in_rows = FindTileIntrinsic(op.intrinsic)->in_rows();
    TileOp flat = in_rows ? StateLayout(op) : op;
    for (size_t i = 0; i < flat.operands.size(); ++i) {
      BufferRegion& operand = flat.operands[i];
      const auto found = flat_.find(operand.buffer);
      if (found == flat_.end()) continue;
      const std::optional<int64_t> elements = in_rows ? ElementsSpanned(operand) : ContiguousElements(operand);
      HONE_CHECK(elements.has_value()) << op.intrinsic << ": the region of " << operand.buffer.name() << " has gaps";
      std::vector<Expr> first;
      for (const Range& range : operand.region) first.push_back(range.min);
      operand = BufferRegion{found->second, {Range{Index(operand.buffer, first), Expr(*elements)}}};
    }
    return Stmt::Make(std::move(flat));
  }

  // From the first of a region to its last.
  static std::optional<int64_t> ElementsSpanned(const BufferRegion& region) {
    int64_t last = 0;
    for (size_t d = 0; d < region.region.size(); ++d) {
      const std::optional<int64_t> extent = ConstantValue(region.region[d].extent),
                                   size = ConstantValue(region.buffer.shape()[d]);
      if (!extent.has_value() || (last != 0 && !size.has_value())) return std::nullopt;
      last = last * size.value_or(0) + *extent - 1;
    }
    return last + 1;
  }

  // In 64 bits where 32 are too few.
  static Expr Index(const Buffer& buffer, std::vector<Expr> indices) {
    for (Expr& index : indices) index = Wide(buffer, index);
    return FlatIndex(buffer, indices);
  }
  static Expr Wide(const Buffer& buffer, const Expr& index) {
    const int64_t most = MostElements(buffer).value_or(std::numeric_limits<int64_t>::max());
    if (most <= std::numeric_limits<int32_t>::max()) return index;
    return MakeCast(kInt64.with_lanes(index.type().lanes), index);
  }
  std::map<Buffer, Buffer> flat_;
};

}  // namespace

Stmt FlattenBuffers(const Stmt& body, std::vector<Buffer>& params) {
  Flatten flatten;
  for (Buffer& param : params) param = flatten.Define(param);
  return flatten.OnStmt(body);
}

}  // namespace hone
