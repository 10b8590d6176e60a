#include "compiler/lower/buffers/tile_registers.h"

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

int64_t Param(const TileOp& op, const std::string& name) { return std::get<int64_t>(op.params.at(name)); }

// What an operation asks of the registers; of one without products, of its sums alone.
TileShapes ShapesOf(const TileIntrinsic& intrinsic, const TileOp& op) {
  TileShapes shapes;
  for (const Var& dim : intrinsic.meaning.dims) {
    const int64_t size = Param(op, SizeParam(dim));
    (dim.name() == "m" ? shapes.rows : dim.name() == "n" ? shapes.columns : shapes.groups) = size;
  }
  shapes.sum_bytes = shapes.columns * op.operands[0].buffer.type().bytes();
  if (op.operands.size() < 3) return shapes;
  const int64_t group = *ConstantValue(intrinsic.operands[2].shape().back());
  shapes.left_bytes = shapes.groups * group * op.operands[1].buffer.type().bytes();
  shapes.right_bytes = shapes.columns * group * op.operands[2].buffer.type().bytes();
  return shapes;
}

// Collects the tiles of one buffer.
class Tiles {
 public:
  explicit Tiles(const Buffer& buffer) : buffer_(buffer) {}

  void Visit(const Stmt& body) {
    ForEachStmt(body, [&](const Stmt& s) {
      const Store* store = s.As<Store>();
      const For* loop = s.As<For>();
      possible_ &= store == nullptr || store->buffer != buffer_;
      possible_ &= loop == nullptr || loop->kind != ForKind::kParallel;
      if (const TileOp* op = s.As<TileOp>()) Add(*op);
      return possible_;
    });
    ForEachExpr(body, [&](const Expr& e) {
      const Load* load = e.As<Load>();
      possible_ &= load == nullptr || load->buffer != buffer_;
      return possible_;
    });
  }

  std::optional<TileRegisters> Registers() const {
    if (!possible_ || shapes_.groups == 0 || Overlap()) return std::nullopt;
    TileRegisters found{shapes_, number_};
    found.shapes.sums = static_cast<int64_t>(number_.size());
    // One for each factor is left.
    return found.shapes.sums + 2 <= kTileRegisters ? std::optional(found) : std::nullopt;
  }

 private:
  void Add(const TileOp& op) {
    const TileIntrinsic* intrinsic = FindTileIntrinsic(op.intrinsic);
    if (intrinsic == nullptr || !intrinsic->in_tiles()) return;
    const size_t at = SumOperand(*intrinsic);
    const std::optional<int64_t> first = ConstantValue(op.operands[at].region[0].min);
    const TileShapes shapes = ShapesOf(*intrinsic, op);
    const int64_t row = Param(op, RowParam(at));
    possible_ &= op.operands[at].buffer == buffer_ && first.has_value();
    possible_ &= number_.empty() || (shapes.rows == shapes_.rows && shapes.columns == shapes_.columns && row == row_);
    if (!possible_) return;
    number_.try_emplace(*first, static_cast<int>(number_.size()));
    row_ = row;
    const bool is_product = shapes.groups > 0;
    possible_ = !is_product || shapes_.groups == 0 || shapes == shapes_;
    if (is_product || shapes_.groups == 0) shapes_ = shapes;
  }

  bool Overlap() const {
    std::vector<std::pair<int64_t, int64_t>> corners;
    for (const auto& [first, number] : number_) corners.push_back({first / row_, first % row_});
    for (size_t i = 0; i < corners.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (std::abs(corners[i].first - corners[j].first) < shapes_.rows &&
            std::abs(corners[i].second - corners[j].second) < shapes_.columns)
          return true;
      }
    }
    return false;
  }

  const Buffer& buffer_;
  bool possible_ = true;
  TileShapes shapes_;
  int64_t row_ = 1;
  std::map<int64_t, int> number_;
};

}  // namespace

std::optional<TileRegisters> AssignTileRegisters(const Alloc& sums) {
  if (sums.buffer.scope() != Scope::kRegister) return std::nullopt;
  Tiles tiles(sums.buffer);
  tiles.Visit(sums.body);
  return tiles.Registers();
}

Stmt KeepTileRegisters(const Stmt& body) {
  std::set<Buffer> kept;
  ForEachStmt(body, [&](const Stmt& s) {
    const Alloc* alloc = s.As<Alloc>();
    if (alloc != nullptr && AssignTileRegisters(*alloc).has_value()) kept.insert(alloc->buffer);
    return true;
  });
  return RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const TileOp* op = s.As<TileOp>();
    const TileIntrinsic* intrinsic = op == nullptr ? nullptr : FindTileIntrinsic(op->intrinsic);
    if (intrinsic == nullptr || !intrinsic->in_tiles()) return std::nullopt;
    if (kept.count(op->operands[SumOperand(*intrinsic)].buffer) != 0) return std::nullopt;
    return ExpandTileOps(s, LowerOptions{.features = {}});
  });
}

}  // namespace hone
