#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/compiler.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone::interp {

// Whether the loop is the outermost of a launch: of a nest that is bound to blocks and threads and in which nothing
// but barriers orders these, or in which threads do something together. While it is made of blocks without a barrier,
// what blocks need of each other still orders them: lowering has to put the barriers in, and the iterations run one
// after the other.
bool Compiler::StartsLaunch(const For& n) const {
  if (in_launch_ || (!n.thread.starts_with("blockIdx") && !n.thread.starts_with("threadIdx"))) return false;
  return ContainsBarrier(n.body) || ContainsCollective(n.body) || (!ContainsBlock(n.body) && block_.empty());
}

absl::Status Compiler::CountWarps(const For& launch) {
  threads_ = {1, 1, 1};
  bool of_warps = false;
  std::string not_constant;
  const auto count = [&](const For& loop) {
    const size_t axis = ThreadAxisNumber(loop.thread);
    if (axis == threads_.size()) return;
    const std::optional<int64_t> extent = ConstantValue(loop.extent);
    if (extent.has_value() && IsConst(loop.min, 0)) threads_[axis] = std::max(threads_[axis], *extent);
    if (!extent.has_value() || !IsConst(loop.min, 0)) not_constant = loop.thread;
  };
  count(launch);
  ForEachStmt(launch.body, [&](const Stmt& s) {
    if (const For* loop = s.As<For>()) count(*loop);
    if (const Alloc* alloc = s.As<Alloc>()) of_warps |= alloc->buffer.scope() == Scope::kWarp;
    if (const BlockRealize* realize = s.As<BlockRealize>()) {
      of_warps |= std::ranges::any_of(realize->block.allocs, [](const Buffer& b) { return b.scope() == Scope::kWarp; });
    }
    return true;
  });
  if (!of_warps || not_constant.empty()) return absl::OkStatus();
  return Error(absl::StrCat("warps have memory of their own, and how many threads there are along ", not_constant,
                            " is not known"));
}

bool Compiler::IsOfSeveralWarps(const Buffer& buffer) const {
  return in_launch_ && buffer.scope() == Scope::kWarp && NumWarps(threads_) > 1;
}

absl::StatusOr<int> Compiler::WarpOf(const Buffer& buffer) {
  if (!of_warps_.contains(buffer.id())) {
    return Error(absl::StrCat("buffer ", buffer.name(),
                              ", in scope warp, is allocated outside of the launch that uses "
                              "it, where there are no warps"));
  }
  int number = IntSlot(0);
  for (size_t axis = threads_.size(); axis-- > 0;) {
    if (threads_[axis] == 1) continue;
    if (thread_slots_[axis] < 0) {
      return Error(absl::StrCat("buffer ", buffer.name(), ", in scope warp, is used outside of the loop over ",
                                std::string(kThreadAxes[axis]), ", where nobody is of one warp alone"));
    }
    const int outside = NewSlots(1), sum = NewSlots(1);
    Emit(Op::kMulI64, 1, outside, number, IntSlot(threads_[axis]));
    Emit(Op::kAddI64, 1, sum, outside, thread_slots_[axis]);
    number = sum;
  }
  const int warp = NewSlots(1);
  Emit(Op::kFloorDivI, 1, warp, number, IntSlot(kWarpThreads), TypeIndex(DType::Int(64)));
  return warp;
}

// The loop's iterations run side by side, from barrier to barrier.
absl::Status Compiler::ForkThreads(const For& n, int min, int var, int end) {
  for (const int open : open_forks_) {
    if (code_.forks[static_cast<size_t>(open)].thread == n.thread) {
      return Error(absl::StrCat("loop ", n.var.name(), " is bound to ", n.thread, " inside another loop over ",
                                n.thread, "; lowering makes one of the two"));
    }
  }
  if (open_forks_.empty()) HONE_RETURN_IF_ERROR(AllocateShared(n.body));
  Emit(Op::kMove, 1, var, min);
  const int fork = static_cast<int>(code_.forks.size());
  code_.forks.push_back({n.thread, {}});
  const std::vector<LoopAround> outside =
      open_forks_.empty() ? std::exchange(loops_around_, {}) : std::vector<LoopAround>();
  open_forks_.push_back(fork);
  thread_slots_.at(ThreadAxisNumber(n.thread)) = var;
  const int start = Emit(Op::kFork, 1, 0, var, end);
  code_.instrs.back().aux = static_cast<uint16_t>(fork);
  HONE_RETURN_IF_ERROR(Statement(n.body));
  Emit(Op::kThreadEnd);
  Land(start);
  open_forks_.pop_back();
  thread_slots_.at(ThreadAxisNumber(n.thread)) = -1;
  if (open_forks_.empty()) loops_around_ = outside;
  return absl::OkStatus();
}

// What the threads share is there before they start.
absl::Status Compiler::AllocateShared(const Stmt& body) {
  std::vector<Buffer> shared;
  ForEachStmt(body, [&](const Stmt& s) {
    if (const Alloc* alloc = s.As<Alloc>()) shared.push_back(alloc->buffer);
    if (const BlockRealize* realize = s.As<BlockRealize>())
      shared.insert(shared.end(), realize->block.allocs.begin(), realize->block.allocs.end());
    return true;
  });
  std::erase_if(shared, [](const Buffer& b) { return !IsSharedByThreads(b.scope()); });
  for (const Buffer& b : shared) {
    HONE_RETURN_IF_ERROR(Allocate(b));
    shared_.insert(b.id());
  }
  return absl::OkStatus();
}

BarrierCode Compiler::Meeting() const {
  BarrierCode meeting{block_, {}, {}};
  for (const LoopAround& loop : loops_around_) {
    meeting.loops.push_back(loop.slot);
    meeting.names.push_back(loop.name);
  }
  return meeting;
}

absl::Status Compiler::Collective(const TileOp& op) {
  CollectiveCode collective{FindTileIntrinsic(op.intrinsic), {}, Meeting()};
  if (open_forks_.empty()) {
    return Error(absl::StrCat(op.intrinsic, " is done by ", collective.intrinsic->threads,
                              " threads of a launch together, and stands outside of them"));
  }
  const int outputs = collective.intrinsic->meaning.num_outputs();
  for (const BufferRegion& region : op.operands) {
    std::vector<Expr> first;
    std::vector<int64_t> extents;
    for (const Range& range : region.region) {
      first.push_back(range.min);
      extents.push_back(*ConstantValue(range.extent));
    }
    HONE_ASSIGN_OR_RETURN(const int access, AddAccess(region.buffer, first, Expr(), 1));
    if (static_cast<int>(collective.operands.size()) < outputs)
      code_.buffers[static_cast<size_t>(code_.accesses[static_cast<size_t>(access)].buffer)].written = true;
    collective.operands.push_back({access, std::move(extents)});
  }
  Emit(Op::kCollective);
  code_.instrs.back().aux = static_cast<uint16_t>(code_.collectives.size());
  code_.collectives.push_back(std::move(collective));
  return absl::OkStatus();
}

bool Compiler::ContainsCollective(const Stmt& root) {
  bool found = false;
  ForEachStmt(root, [&](const Stmt& s) {
    const TileOp* op = s.As<TileOp>();
    const TileIntrinsic* intrinsic = op == nullptr ? nullptr : FindTileIntrinsic(op->intrinsic);
    found = found || (intrinsic != nullptr && intrinsic->threads > 1);
    return !found;
  });
  return found;
}

absl::Status Compiler::BeginCopy(const struct Store& copy) {
  HONE_ASSIGN_OR_RETURN(const int to, AddAccess(copy.buffer, copy.indices, Expr(), 1));
  code_.buffers[static_cast<size_t>(code_.accesses[static_cast<size_t>(to)].buffer)].written = true;
  const IfThenElseExpr* choice = copy.value.As<IfThenElseExpr>();
  const Load& source = *(choice == nullptr ? copy.value : choice->yes).As<Load>();
  int to_fill = -1;
  if (choice != nullptr) {
    HONE_ASSIGN_OR_RETURN(const int condition, Expression(choice->condition));
    to_fill = Emit(Op::kJumpIfZero, 1, 0, condition);
  }
  HONE_ASSIGN_OR_RETURN(const int from, AddAccess(source.buffer, source.indices, Expr(), 1));
  Emit(Op::kAsyncCopy, 1, 0, to, from);
  if (choice == nullptr) return absl::OkStatus();
  const int to_end = Emit(Op::kJump);
  Land(to_fill);
  HONE_ASSIGN_OR_RETURN(const int fill, Expression(choice->no));
  Emit(Op::kAsyncCopy, 1, fill, to, -1);
  Land(to_end);
  return absl::OkStatus();
}

}  // namespace hone::interp
