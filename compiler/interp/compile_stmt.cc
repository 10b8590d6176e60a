#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/compiler.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/structural.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone::interp {

absl::Status Compiler::Statement(const Stmt& stmt) {
  if (!stmt) return absl::OkStatus();
  if (++depth_ > 5000) return Error("statements nest deeper than 5000");
  const int mark = next_;
  const Stmt outer = std::exchange(statement_, stmt);
  const absl::Status status = std::visit([&](const auto& node) { return Do(node); }, stmt.node().kind);
  statement_ = outer;
  next_ = mark;
  --depth_;
  return status;
}

absl::Status Compiler::Do(const For& n) {
  HONE_ASSIGN_OR_RETURN(const int min, Expression(n.min));
  int end;
  if (ConstantValue(n.min).has_value() && ConstantValue(n.extent).has_value()) {
    end = IntSlot(static_cast<int64_t>(static_cast<uint64_t>(*ConstantValue(n.min)) +
                                       static_cast<uint64_t>(*ConstantValue(n.extent))));
  } else {
    HONE_ASSIGN_OR_RETURN(const int extent, Expression(n.extent));
    end = NewSlots(1);
    Emit(Op::kAddI64, 1, end, min, extent);
  }
  const bool launches = StartsLaunch(n);
  if (launches) {
    HONE_RETURN_IF_ERROR(CountWarps(n));
    Emit(Op::kLaunch);
    in_launch_ = true;
  }
  const int var = NewSlots(1);
  vars_[n.var.id()] = var;
  loops_[n.var.id()] = {n.min, n.extent};
  if (in_launch_ && n.thread.starts_with("threadIdx")) {
    HONE_RETURN_IF_ERROR(ForkThreads(n, min, var, end));
  } else {
    HONE_RETURN_IF_ERROR(Loop(n, min, var, end));
  }
  if (launches) {
    Emit(Op::kLaunchEnd);
    in_launch_ = false;
  }
  return absl::OkStatus();
}

absl::Status Compiler::Loop(const For& n, int min, int var, int end) {
  Emit(Op::kMove, 1, var, min);
  const int test = Emit(Op::kLoopTest, 1, 0, var, end);
  const int body = Here();
  if (in_launch_ && n.thread.starts_with("blockIdx")) {
    if (!open_forks_.empty()) {
      return Error(absl::StrCat("loop ", n.var.name(), " is bound to ", n.thread, " inside a loop over ",
                                code_.forks[static_cast<size_t>(open_forks_.back())].thread,
                                "; blocks are made of threads, so its place is outside"));
    }
    Emit(Op::kBlockIndex, 1, 0, var);
    code_.instrs.back().aux = Place(n.thread);
  }
  loops_around_.push_back({var, n.var.name()});
  HONE_RETURN_IF_ERROR(Statement(n.body));
  loops_around_.pop_back();
  Emit(Op::kLoopNext, 1, 0, var, end, body);
  Land(test);
  return absl::OkStatus();
}

absl::Status Compiler::Do(const BlockRealize& n) {
  const Block& block = n.block;
  if (n.values.size() != block.iters.size()) {
    return Error(
        absl::StrCat("block ", block.name, " binds ", n.values.size(), " of ", block.iters.size(), " variables"));
  }
  const std::string outer = std::exchange(block_, block.name);
  int skip = -1;
  if (n.predicate && !IsConst(n.predicate, 1)) {
    HONE_ASSIGN_OR_RETURN(const int predicate, Expression(n.predicate));
    skip = Emit(Op::kJumpIfZero, 1, 0, predicate);
  }
  for (size_t i = 0; i < block.iters.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const int value, Expression(n.values[i]));
    vars_[block.iters[i].var.id()] = value;
    HONE_RETURN_IF_ERROR(CheckDomain(block.iters[i], n.values[i], value));
  }
  HONE_RETURN_IF_ERROR(BlockInside(block, true));
  if (skip >= 0) Land(skip);
  block_ = outer;
  return absl::OkStatus();
}

absl::Status Compiler::CheckDomain(const IterVar& iter, const Expr& value, int slot) {
  if (!options_.check_bounds) return absl::OkStatus();
  if (const VarRef* ref = value.As<VarRef>()) {
    const auto loop = loops_.find(ref->var.id());
    const bool whole = loop != loops_.end() && StructuralEqual(loop->second.min, iter.domain.min) &&
                       StructuralEqual(loop->second.extent, iter.domain.extent);
    if (whole) return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const int min, Expression(iter.domain.min));
  HONE_ASSIGN_OR_RETURN(const int extent, Expression(iter.domain.extent));
  Emit(Op::kCheckDomain, 1, 0, slot, min, extent);
  code_.instrs.back().aux = Place(absl::StrCat(block_, ": ", iter.var.name()));
  return absl::OkStatus();
}

absl::Status Compiler::BlockInside(const Block& block, bool with_init) {
  for (const Buffer& b : block.allocs) HONE_RETURN_IF_ERROR(Allocate(b));
  for (const MatchBuffer& match : block.matches) {
    View view{match.source.buffer, {}};
    for (const Range& range : match.source.region) {
      HONE_ASSIGN_OR_RETURN(const int min, Expression(range.min));
      view.mins.push_back(min);
    }
    if (match.buffer.rank() > static_cast<int>(view.mins.size()))
      return Error("a matched buffer of more dimensions than its source");
    views_[match.buffer.id()] = std::move(view);
  }
  if (block.init && with_init) {
    std::vector<int> skips;
    for (const IterVar& iter : block.iters) {
      if (iter.kind != IterKind::kReduce) continue;
      HONE_ASSIGN_OR_RETURN(const int min, Expression(iter.domain.min));
      skips.push_back(Emit(Op::kJumpIfNotEqual, 1, 0, vars_[iter.var.id()], min));
    }
    HONE_RETURN_IF_ERROR(Statement(block.init));
    for (const int jump : skips) Land(jump);
  }
  return Statement(block.body);
}

absl::Status Compiler::Allocate(const Buffer& buffer) {
  if (shared_.contains(buffer.id())) return absl::OkStatus();
  const int index = AddBuffer(buffer);
  if (!open_forks_.empty()) {
    std::vector<int>& own = code_.forks[static_cast<size_t>(open_forks_.back())].buffers;
    if (std::find(own.begin(), own.end(), index) == own.end()) own.push_back(index);
  }
  HONE_RETURN_IF_ERROR(Shape(index));
  Emit(Op::kAlloc, 1, 0, index);
  code_.instrs.back().aux = Place("");
  return absl::OkStatus();
}

absl::Status Compiler::Do(const Store& n) {
  HONE_ASSIGN_OR_RETURN(const int value, Expression(n.value));
  HONE_ASSIGN_OR_RETURN(const int access, AddAccess(n.buffer, n.indices, n.mask, n.value.type().lanes));
  code_.buffers[static_cast<size_t>(code_.accesses[static_cast<size_t>(access)].buffer)].written = true;
  Emit(Op::kStore, n.value.type().lanes, value, access);
  return absl::OkStatus();
}

absl::Status Compiler::Do(const Seq& n) {
  for (const Stmt& s : n.stmts) HONE_RETURN_IF_ERROR(Statement(s));
  return absl::OkStatus();
}

absl::Status Compiler::Do(const IfThen& n) {
  HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
  const int to_no = Emit(Op::kJumpIfZero, 1, 0, condition);
  HONE_RETURN_IF_ERROR(Statement(n.yes));
  if (!n.no) {
    Land(to_no);
    return absl::OkStatus();
  }
  const int to_end = Emit(Op::kJump);
  Land(to_no);
  HONE_RETURN_IF_ERROR(Statement(n.no));
  Land(to_end);
  return absl::OkStatus();
}

absl::Status Compiler::Do(const While& n) {
  const int rounds = NewSlots(1);
  Emit(Op::kMove, 1, rounds, IntSlot(0));
  const int test = Here();
  const int mark = next_;
  HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
  const int to_end = Emit(Op::kJumpIfZero, 1, 0, condition);
  next_ = mark;
  loops_around_.push_back({rounds, "the rounds of its while"});
  HONE_RETURN_IF_ERROR(Statement(n.body));
  loops_around_.pop_back();
  Emit(Op::kWhileNext, 1, 0, rounds, 0, test);
  code_.instrs.back().aux = Place("");
  Land(to_end);
  return absl::OkStatus();
}

absl::Status Compiler::Do(const Let& n) {
  HONE_ASSIGN_OR_RETURN(vars_[n.var.id()], Expression(n.value));
  return Statement(n.body);
}

absl::Status Compiler::Do(const Alloc& n) {
  HONE_RETURN_IF_ERROR(Allocate(n.buffer));
  return Statement(n.body);
}

absl::Status Compiler::Do(const TileOp& n) {
  HONE_RETURN_IF_ERROR(CheckTileOp(n));
  if (FindTileIntrinsic(n.intrinsic)->threads > 1) return Collective(n);
  return Statement(TileMeaning(n));
}

absl::Status Compiler::Do(const Evaluate& n) {
  if (IsBarrier(n)) {
    Emit(Op::kBarrier);
    code_.instrs.back().aux = static_cast<uint16_t>(code_.barriers.size());
    code_.barriers.push_back(Meeting());
    return absl::OkStatus();
  }
  if (IsCommitGroup(n)) {
    Emit(Op::kCommitGroup);
    return absl::OkStatus();
  }
  if (const std::optional<int64_t> groups = WaitGroup(n)) {
    Emit(Op::kWaitGroup, 1, 0, static_cast<int>(std::min<int64_t>(*groups, 1 << 20)));
    return absl::OkStatus();
  }
  if (const std::optional<struct Store> copy = AsyncCopy(n)) return BeginCopy(*copy);
  if (const std::optional<struct Store> update = AtomicUpdate(n)) {
    updated_ = update->buffer;  // threads are switched at barriers alone, so no access of another comes between
    const absl::Status status = Do(*update);
    updated_ = Buffer();
    return status;
  }
  return Expression(n.value).status();
}

}  // namespace hone::interp
