// Loops that transpose: each iteration takes a vector of elements that lie apart, and the next iteration their
// neighbours.
//
//   for b: C[.., ramp(c, 1)] = f(A[ramp(b, stride)])
//     =>  for blocks of as many b as a vector has lanes:
//           rows = A[b .. b + lanes, one vector a lane];  columns = transpose(rows);  C[..] = f(column), one store a b
//         the b that are left as they were
//
// The rows hold exactly what the iterations of the block read.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "compiler/arith/linear.h"
#include "compiler/codegen/emitter.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

// The mask's lanes, where they are constants: the first of several, the rest off. nullopt: they are not.
std::optional<int> LeadingLanes(const Expr& mask, int lanes) {
  if (!mask) return lanes;
  const Binary* compare = mask.As<Binary>();
  if (compare == nullptr || (compare->op != BinaryOp::kLe && compare->op != BinaryOp::kLt)) return std::nullopt;
  const Ramp* ramp = compare->a.As<Ramp>();
  const Broadcast* bound = compare->b.As<Broadcast>();
  if (ramp == nullptr || bound == nullptr || !IsConst(ramp->stride, 1)) return std::nullopt;
  const std::optional<int64_t> first = ConstantValue(ramp->base), end = ConstantValue(bound->value);
  if (!first.has_value() || !end.has_value()) return std::nullopt;
  const int64_t on = *end - *first + (compare->op == BinaryOp::kLe ? 1 : 0);
  return static_cast<int>(std::clamp<int64_t>(on, 0, lanes));
}

// Rows into columns, by exchanging blocks of 1, 2, 4, .. elements (J. O. Eklundh, A fast computer method for matrix
// transposing, 1972).
void Transpose(llvm::IRBuilder<>& b, std::vector<llvm::Value*>& rows) {
  const int lanes = static_cast<int>(rows.size());
  for (int size = 1; size < lanes; size *= 2) {
    llvm::SmallVector<int> low, high;
    for (int lane = 0; lane < lanes; ++lane) {
      const bool from_second = (lane & size) != 0;
      low.push_back(from_second ? lanes + lane - size : lane);
      high.push_back(from_second ? lanes + lane : lane + size);
    }
    for (int i = 0; i < lanes; ++i) {
      if ((i & size) != 0) continue;
      llvm::Value*& first = rows[static_cast<size_t>(i)];
      llvm::Value*& second = rows[static_cast<size_t>(i + size)];
      llvm::Value* both = b.CreateShuffleVector(first, second, low);
      second = b.CreateShuffleVector(first, second, high);
      first = both;
    }
  }
}

}  // namespace

// The loads that are transposed in such a loop, with their lanes that are read; empty: it is none.
std::vector<Emitter::TransposedLoad> Emitter::TransposedLoads(const For& loop) const {
  const Store* store = loop.body.As<Store>();
  if (store == nullptr || loop.kind != ForKind::kSerial || store->indices.size() != 1) return {};
  const int lanes = store->indices[0].type().lanes;
  if (lanes < 4 || (lanes & (lanes - 1)) != 0 || ConstantValue(loop.extent).value_or(lanes) < lanes) return {};
  if (LoadsFrom(store->value, store->buffer)) return {};
  std::vector<TransposedLoad> found;
  ForEachExpr(store->value, [&](const Expr& e) {
    // What is read under a condition alone may lie outside of its buffer elsewhere.
    if (const auto* choice = e.As<IfThenElseExpr>(); choice != nullptr && choice->condition.type().is_scalar())
      return false;
    const Load* load = e.As<Load>();
    if (load == nullptr) return true;
    const Ramp* ramp = load->indices[0].As<Ramp>();
    const std::optional<int64_t> stride = ramp == nullptr ? std::nullopt : ConstantValue(ramp->stride);
    const std::optional<int> on = LeadingLanes(load->mask, lanes);
    if (!stride.has_value() || std::abs(*stride) < lanes || !on.has_value() || e.type().lanes != lanes) return true;
    if (e.type().bits < 8 || StrideOf(ramp->base, loop.var) != 1) return true;
    found.push_back({e, ramp->base, *stride, *on});
    return true;
  });
  return found;
}

bool Emitter::EmitTransposed(const For& loop, llvm::Value* begin, llvm::Value* end) {
  const std::vector<TransposedLoad> loads = TransposedLoads(loop);
  if (loads.empty()) return false;
  const int lanes = loads[0].load.type().lanes;
  Store store = *loop.body.As<Store>();
  std::vector<Var> columns;
  for (const TransposedLoad& load : loads) columns.emplace_back("column", load.load.type());
  store.value = RewriteBottomUp(store.value, [&](const Expr& e) -> std::optional<Expr> {
    for (size_t i = 0; i < loads.size(); ++i) {
      if (e.SameAs(loads[i].load)) return Expr(columns[i]);
    }
    return std::nullopt;
  });
  // The iterations of whole blocks, then the rest.
  llvm::Value* blocks = b_.CreateSDiv(b_.CreateNSWSub(end, begin), Int64(lanes));
  llvm::Value* rest = b_.CreateNSWAdd(begin, b_.CreateNSWMul(blocks, Int64(lanes)));
  EmitCounting(loop, begin, rest, lanes, true, [&] {
    llvm::Value* first = frame_.vars.at(loop.var);
    std::vector<std::vector<llvm::Value*>> transposed;
    for (const TransposedLoad& load : loads) {
      const Load& from = *load.load.As<Load>();
      llvm::Type* type = MemoryTypeOf(load.load.type());
      std::vector<llvm::Value*> rows;
      for (int lane = 0; lane < lanes; ++lane) {
        if (lane >= load.lanes_on) {
          rows.push_back(llvm::Constant::getNullValue(type));
          continue;
        }
        const Address at = AddressOf(from.buffer, load.base + IntConst(load.stride * lane, load.base.type()));
        llvm::LoadInst* row = b_.CreateAlignedLoad(type, at.pointer, llvm::Align(at.align));
        Annotate(row, frame_.buffers.at(from.buffer));
        rows.push_back(row);
      }
      Transpose(b_, rows);
      transposed.push_back(std::move(rows));
    }
    for (int i = 0; i < lanes; ++i) {
      frame_.vars[loop.var] = b_.CreateNSWAdd(first, Int64(i));
      for (size_t c = 0; c < columns.size(); ++c) frame_.vars[columns[c]] = transposed[c][static_cast<size_t>(i)];
      EmitStore(store);
    }
  });
  EmitCounting(loop, rest, end, 1, true, [&] { EmitStmt(loop.body); });
  return true;
}

}  // namespace hone
