#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/leading_index.h"
#include "compiler/lower/threads/lower_threads.h"

namespace hone {
namespace {

// The number of the thread's warp; the loops over axes of threads are around.
Expr WarpNumber(const std::vector<For>& axes, const ThreadExtents& threads) {
  Analyzer known;
  Expr number = IntConst(0);
  for (size_t axis = threads.size(); axis-- > 0;) {
    number = number * IntConst(threads[axis]);
    for (const For& loop : axes) {
      if (ThreadAxisNumber(loop.thread) != axis) continue;
      known.Bind(loop.var, Range{loop.min, loop.extent});
      number = number + MakeCast(kInt32, Expr(loop.var));
    }
  }
  return known.Simplify(FloorDiv(number, IntConst(kWarpThreads)));
}

Stmt ShareWarpsOfLaunch(const std::vector<For>& axes, const Stmt& inside) {
  ThreadExtents threads = {1, 1, 1};
  for (const For& loop : axes) {
    const size_t axis = ThreadAxisNumber(loop.thread);
    if (axis < threads.size()) threads[axis] = *ConstantValue(loop.extent);
  }
  std::map<Buffer, Buffer> shared;
  const int64_t warps = NumWarps(threads);
  ForEachStmt(inside, [&](const Stmt& s) {
    const Alloc* alloc = s.As<Alloc>();
    if (alloc == nullptr || alloc->buffer.scope() != Scope::kWarp) return true;
    std::vector<Expr> shape = alloc->buffer.shape();
    if (warps > 1) shape.insert(shape.begin(), IntConst(warps));
    shared[alloc->buffer] = Buffer(alloc->buffer.name(), alloc->buffer.type(), std::move(shape), Scope::kShared);
    return true;
  });
  if (shared.empty()) return inside;
  Stmt body = inside;
  if (warps > 1) {
    const Expr warp = WarpNumber(axes, threads);
    body = WithLeadingIndex(body, shared, [&](const Buffer&) { return warp; });
  }
  return ReplaceBuffers(body, [&](const Buffer& buffer) -> std::optional<Buffer> {
    const auto found = shared.find(buffer);
    return found == shared.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

absl::StatusOr<Stmt> ShareWarps(const Stmt& body) { return RewriteLaunches(body, ShareWarpsOfLaunch); }

}  // namespace hone
