#include <map>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

struct Matrix {
  int64_t rows = 1, columns = 1;
  bool operator==(const Matrix&) const = default;
};

// Whether an instruction takes the operand from a vector register, a row of it behind the other.
bool IsMatrix(const TileOp& op, size_t operand) {
  for (const TileInstruction& instruction : FindTileIntrinsic(op.intrinsic)->instructions) {
    if (!instruction.in_tiles && instruction.operands[operand].rows > 1) return true;
  }
  return false;
}

// The matrix that the region is, of those that the last two dimensions of its buffer are made of; nullopt when it is
// none.
std::optional<Matrix> MatrixOf(const BufferRegion& region) {
  const size_t rank = region.region.size();
  if (rank < 2) return std::nullopt;
  int64_t extents[2];
  for (size_t d = 0; d < 2; ++d) {
    const Range& range = region.region[rank - 2 + d];
    const std::optional<int64_t> extent = ConstantValue(range.extent),
                                 size = ConstantValue(region.buffer.shape()[rank - 2 + d]);
    if (!extent.has_value() || !size.has_value() || *size % *extent != 0) return std::nullopt;
    if (!Analyzer().IsMultipleOf(range.min, *extent)) return std::nullopt;
    extents[d] = *extent;
  }
  return Matrix{extents[0], extents[1]};
}

// The register buffers that matrix instructions work on, one size of matrix each.
std::map<Buffer, Matrix> FindMatrices(const Stmt& body) {
  std::map<Buffer, std::optional<Matrix>> found;  // nullopt: of several sizes, or of other regions
  ForEachStmt(body, [&](const Stmt& stmt) {
    const TileOp* op = stmt.As<TileOp>();
    for (size_t i = 0; op != nullptr && i < op->operands.size(); ++i) {
      const BufferRegion& region = op->operands[i];
      if (region.buffer.scope() != Scope::kRegister) continue;
      const std::optional<Matrix> matrix = IsMatrix(*op, i) ? MatrixOf(region) : std::nullopt;
      std::optional<Matrix>& known = found.emplace(region.buffer, matrix).first->second;
      if (known != matrix) known = std::nullopt;
    }
    return true;
  });
  std::map<Buffer, Matrix> matrices;
  for (const auto& [buffer, matrix] : found) {
    if (matrix.has_value()) matrices.emplace(buffer, *matrix);
  }
  return matrices;
}

// (.., i, j)  =>  (.., i // rows, j // columns, i % rows, j % columns)
std::vector<Expr> InMatrices(std::vector<Expr> indices, const Matrix& matrix) {
  const Expr row = indices[indices.size() - 2], column = indices.back();
  const Expr rows = IntConst(matrix.rows, row.type()), columns = IntConst(matrix.columns, column.type());
  indices[indices.size() - 2] = FloorDiv(row, rows);
  indices.back() = FloorDiv(column, columns);
  indices.push_back(FloorMod(row, rows));
  indices.push_back(FloorMod(column, columns));
  return indices;
}

struct LaidOut {
  Buffer buffer;
  Matrix matrix;
};

class LayOut {
 public:
  explicit LayOut(const std::map<Buffer, Matrix>& matrices) {
    for (const auto& [buffer, matrix] : matrices) {
      std::vector<Expr> shape(buffer.shape().begin(), buffer.shape().end());
      const int64_t rows = *ConstantValue(shape[shape.size() - 2]), columns = *ConstantValue(shape.back());
      shape[shape.size() - 2] = Expr(rows / matrix.rows);
      shape.back() = Expr(columns / matrix.columns);
      shape.push_back(Expr(matrix.rows));
      shape.push_back(Expr(matrix.columns));
      laid_out_.emplace(buffer, LaidOut{Buffer(buffer.name(), buffer.type(), shape, buffer.scope()), matrix});
    }
  }

  Stmt OnStmt(const Stmt& stmt) const {
    const Stmt mapped = MapChildren(
        stmt, [&](const Stmt& s) { return OnStmt(s); }, [&](const Expr& e) { return OnExpr(e); });
    if (const Alloc* alloc = mapped.As<Alloc>()) {
      const LaidOut* found = Find(alloc->buffer);
      return found == nullptr ? mapped : Stmt::Make(Alloc{found->buffer, alloc->body});
    }
    if (const Store* store = mapped.As<Store>()) {
      const LaidOut* found = Find(store->buffer);
      if (found == nullptr) return mapped;
      return Stmt::Make(Store{found->buffer, InMatrices(store->indices, found->matrix), store->value, store->mask});
    }
    const TileOp* op = mapped.As<TileOp>();
    if (op == nullptr) return mapped;
    TileOp placed = *op;
    for (BufferRegion& operand : placed.operands) {
      const LaidOut* found = Find(operand.buffer);
      if (found == nullptr) continue;
      std::vector<Expr> first;
      for (const Range& range : operand.region) first.push_back(range.min);
      std::vector<Range> region;
      for (Expr& index : InMatrices(std::move(first), found->matrix))
        region.push_back({index, IntConst(1, index.type())});
      for (size_t d = 0; d < 2; ++d)
        region[region.size() - 2 + d] = {IntConst(0), operand.region[operand.region.size() - 2 + d].extent};
      operand = {found->buffer, std::move(region)};
    }
    return Stmt::Make(std::move(placed));
  }

 private:
  Expr OnExpr(const Expr& e) const {
    const Expr mapped = MapChildren(e, [&](const Expr& child) { return OnExpr(child); });
    const Load* load = mapped.As<Load>();
    const LaidOut* found = load == nullptr ? nullptr : Find(load->buffer);
    return found == nullptr ? mapped : MakeLoad(found->buffer, InMatrices(load->indices, found->matrix), load->mask);
  }

  const LaidOut* Find(const Buffer& buffer) const {
    const auto found = laid_out_.find(buffer);
    return found == laid_out_.end() ? nullptr : &found->second;
  }

  std::map<Buffer, LaidOut> laid_out_;
};

}  // namespace

Stmt LayOutMatrices(const Stmt& body) {
  const std::map<Buffer, Matrix> matrices = FindMatrices(body);
  return matrices.empty() ? body : LayOut(matrices).OnStmt(body);
}

}  // namespace hone
