#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/checks/block_conflicts.h"
#include "compiler/lower/checks/own_registers.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

bool IsOverBlocks(const For& loop) { return loop.thread.starts_with("blockIdx"); }
bool IsOverThreads(const For& loop) { return loop.thread.starts_with("threadIdx"); }
bool IsBound(const For& loop) { return IsOverBlocks(loop) || IsOverThreads(loop); }

template <class... Pieces>
absl::Status CannotRun(const Pieces&... pieces) {
  return absl::FailedPreconditionError(absl::StrCat("threads cannot run this program: ", pieces...));
}

// ---- Who shares what

// The loops over axes around an access, from the outside.
using Chain = std::vector<const For*>;

// The accesses of the buffers of one launch, and what they allow.
class Sharing {
 public:
  // `own`: what the launch allocates, filled in. `threads`: those of a block.
  Sharing(std::set<Buffer>& own, const ThreadExtents& threads) : own_(own), threads_(threads) {}

  void Visit(const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    if (loop != nullptr && IsBound(*loop)) chain_.push_back(loop);
    if (const Alloc* alloc = stmt.As<Alloc>()) own_.insert(alloc->buffer);
    if (const Store* store = stmt.As<Store>()) Note(store->buffer, true);
    if (const TileOp* op = stmt.As<TileOp>()) {
      for (size_t i = 0; i < op->operands.size(); ++i) {
        if (i == 0) Note(op->operands[i].buffer, true);
        if (i > 0 || op->accumulates) Note(op->operands[i].buffer, false);
      }
    }
    if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      if (const std::optional<struct Store> update = EffectStore(*evaluate)) Note(update->buffer, true);
    }
    ForEachChild(
        stmt, [&](const Stmt& s) { Visit(s); },
        [&](const Expr& root) {
          ForEachExpr(root, [&](const Expr& e) {
            if (const Load* load = e.As<Load>()) Note(load->buffer, false);
            return true;
          });
        });
    if (loop != nullptr && IsBound(*loop)) chain_.pop_back();
  }

  absl::Status Check(const Stmt& nest) const {
    for (const auto& [buffer, uses] : uses_) {
      if (uses.writes) HONE_RETURN_IF_ERROR(Check(nest, buffer, uses));
    }
    return absl::OkStatus();
  }

 private:
  struct Uses {
    bool reads = false, writes = false;
    Chain common;  // loops around all accesses
    bool started = false;
    const For* blocks = nullptr;  // a loop over an axis of blocks, of threads, around some accesses but not all
    const For* threads = nullptr;
    const For* warps = nullptr;  // the same of an axis along which there are several
  };

  void Note(const Buffer& buffer, bool writes) {
    Uses& uses = uses_[buffer];
    (writes ? uses.writes : uses.reads) = true;
    if (!uses.started) {
      uses.started = true;
      uses.common = chain_;
      return;
    }
    size_t same = 0;
    while (same < uses.common.size() && same < chain_.size() && uses.common[same] == chain_[same]) ++same;
    for (const Chain* chain : {&uses.common, &chain_}) {
      for (size_t i = same; i < chain->size(); ++i) {
        const For* loop = (*chain)[i];
        (IsOverBlocks(*loop) ? uses.blocks : uses.threads) = loop;
        if (IsOverThreads(*loop) && WarpAxisOf(threads_, ThreadAxisNumber(loop->thread)) != WarpAxis::kLanes)
          uses.warps = loop;
      }
    }
    uses.common.resize(same);
  }

  absl::Status Check(const Stmt& nest, const Buffer& buffer, const Uses& uses) const {
    const bool own = own_.contains(buffer);
    const std::string name = absl::StrCat("buffer ", buffer.name(), ", in scope ", std::string(ToText(buffer.scope())));
    if (!own && buffer.scope() != Scope::kGlobal) {
      return CannotRun(
          name,
          ", is used outside of the launch too, and what blocks and threads keep ends with it; give it the "
          "scope global");
    }
    if (uses.blocks != nullptr && (own || uses.reads)) {
      return CannotRun(name, ", is made and used by several blocks of one launch (loop ", uses.blocks->var.name(),
                       " over ", uses.blocks->thread, "), which nothing orders; put both under one loop over ",
                       uses.blocks->thread);
    }
    if (uses.warps != nullptr && own && buffer.scope() == Scope::kWarp) {
      return CannotRun(name, ", is made and used under several loops over threads of several warps (loop ",
                       uses.warps->var.name(), " over ", uses.warps->thread,
                       "), and a warp sees only its own; put both under one loop over ", uses.warps->thread,
                       ", with a divisor of ", kWarpThreads,
                       " threads along the axes before it, or give it the scope shared");
    }
    if (uses.threads != nullptr && own && !IsSharedByThreads(buffer.scope()) && !IsOwnOfEachThread(nest, buffer)) {
      return CannotRun(name, ", is made and used under several loops over threads (loop ", uses.threads->var.name(),
                       " over ", uses.threads->thread, "), and a thread sees only its own; give it the scope shared");
    }
    return absl::OkStatus();
  }

  std::set<Buffer>& own_;
  const ThreadExtents threads_;
  std::map<Buffer, Uses> uses_;
  Chain chain_;
};

// ---- One launch

struct Axis {
  Var var;
  const For* first = nullptr;
};

class Launch {
 public:
  absl::StatusOr<Stmt> Make(const Stmt& nest) {
    HONE_RETURN_IF_ERROR(CollectAxes(nest));
    Sharing sharing(own_, threads_);
    sharing.Visit(nest);
    HONE_RETURN_IF_ERROR(sharing.Check(nest));
    if (const std::optional<std::string> conflict = BlockConflict(nest)) {
      return CannotRun(*conflict, ", which nothing orders; put what writes it under a loop that is bound to no blocks");
    }
    Stmt made = Visit(nest);
    HONE_RETURN_IF_ERROR(status_);
    for (const auto& kind : {kThreadAxes, kBlockAxes}) {  // from the inside to the outside
      for (const std::string_view name : kind) made = AroundAxis(std::string(name), made);
    }
    return made;
  }

 private:
  absl::Status CollectAxes(const Stmt& nest) {
    absl::Status status;
    ForEachStmt(nest, [&](const Stmt& s) {
      const For* loop = s.As<For>();
      if (loop == nullptr || !IsBound(*loop) || !status.ok()) return status.ok();
      const std::optional<int64_t> extent = ConstantValue(loop->extent);
      Axis& axis = axes_[loop->thread];
      if (!extent.has_value() || !IsConst(loop->min, 0)) {
        status = CannotRun("loop ", loop->var.name(), " over ", loop->thread, " runs from ", ToText(loop->min),
                           " over ", ToText(loop->extent), "; an axis has a constant extent and starts at 0");
      } else if (axis.first == nullptr) {
        axis = {Var(absl::StrReplaceAll(loop->thread, {{".", "_"}}), loop->var.type()), loop};
        if (IsOverThreads(*loop)) threads_.at(ThreadAxisNumber(loop->thread)) = *extent;
      } else if (ConstantValue(axis.first->extent) != extent) {
        status = CannotRun("loop ", loop->var.name(), " over ", loop->thread, " has the extent ", *extent, ", loop ",
                           axis.first->var.name(), " of the same launch ", *ConstantValue(axis.first->extent),
                           "; split both by one factor");
      }
      return status.ok();
    });
    return status;
  }

  Stmt AroundAxis(const std::string& name, const Stmt& body) const {
    const auto axis = axes_.find(name);
    if (axis == axes_.end()) return body;
    const Expr extent = axis->second.first->extent;
    return Stmt::Make(
        For{axis->second.var, IntConst(0, extent.type()), extent, ForKind::kThreadBinding, name, {}, body});
  }

  // The loops over axes that an expression depends on, by way of loops and iteration variables: variable -> axis.
  using Loops = std::map<Var, std::string>;
  Loops DependsOn(const Expr& e) const {
    Loops loops;
    for (const Var& var : FreeVars(e)) {
      const auto found = depends_.find(var);
      if (found != depends_.end()) loops.insert(found->second.begin(), found->second.end());
    }
    return loops;
  }

  Stmt Visit(const Stmt& stmt) {
    if (const BlockRealize* realize = stmt.As<BlockRealize>()) return VisitBlock(*realize);
    const For* loop = stmt.As<For>();
    if (loop != nullptr && IsBound(*loop)) {
      depends_[loop->var] = {{loop->var, loop->thread}};
      const Var& axis = axes_.at(loop->thread).var;
      return Substitute(Visit(loop->body), loop->var, MakeCast(loop->var.type(), axis));
    }
    if (loop != nullptr) {
      depends_[loop->var] = DependsOn(loop->min);
      depends_[loop->var].merge(DependsOn(loop->extent));
    }
    if (const Let* let = stmt.As<Let>()) depends_[let->var] = DependsOn(let->value);
    const Stmt mapped = MapChildren(
        stmt, [&](const Stmt& s) { return Visit(s); }, [](const Expr& e) { return e; });
    if (loop == nullptr || loop->kind != ForKind::kThreadBinding) return mapped;
    For serial = *mapped.As<For>();  // a virtual thread
    serial.kind = ForKind::kSerial;
    serial.thread.clear();
    return Stmt::Make(std::move(serial));
  }

  Stmt VisitBlock(const BlockRealize& realize) {
    Loops used = DependsOn(realize.predicate);
    for (size_t i = 0; i < realize.values.size(); ++i) {
      Loops of_value = DependsOn(realize.values[i]);
      depends_[realize.block.iters[i].var] = of_value;
      used.merge(of_value);
    }
    const Loops outer = used_;
    used_.merge(used);
    bool innermost = true;
    ForEachStmt(realize.block.body,
                [&](const Stmt& s) { return innermost = innermost && s.As<BlockRealize>() == nullptr; });
    BlockRealize made = realize;
    made.block.body = Visit(realize.block.body);
    if (made.block.init) {
      made.block.init = Visit(made.block.init);
      // Blocks inside, and threads that only those depend on, come after it.
      const Expr leaders = innermost ? True() : LeadersAlone(realize.block);
      if (!IsConst(leaders, 1)) made.block.init = Stmt::Make(IfThen{leaders, made.block.init});
    }
    if (innermost) made.predicate = And(LeadersAlone(realize.block), made.predicate);
    used_ = outer;
    return Stmt::Make(std::move(made));
  }

  // Of the axes that the block does not depend on, the first blocks and threads alone where others see what it writes.
  Expr LeadersAlone(const Block& block) {
    std::map<std::string, Var> of_axis;
    for (const auto& [loop, axis] : used_) {
      const auto [found, added] = of_axis.emplace(axis, loop);
      if (!added) {
        status_ = CannotRun("block ", block.name, " depends on loops ", found->second.name(), " and ", loop.name(),
                            ", both over ", axis, "; a thread has one place on it");
      }
    }
    CheckWarps(block, of_axis);
    Expr condition = True();
    for (const auto& [name, axis] : axes_) {
      const auto is_seen = [&, &axis_name = name](const BufferRegion& write) {
        return IsSeenAlong(axis_name, write.buffer);
      };
      if (of_axis.contains(name) || std::ranges::none_of(block.writes, is_seen)) continue;
      if (!std::ranges::all_of(block.writes, is_seen)) {
        status_ = CannotRun("block ", block.name, " does not depend on ", name,
                            ", and writes memory that all threads see "
                            "together with a thread's own; make it two blocks");
      }
      condition = And(condition, Eq(axis.var, IntConst(0, axis.var.type())));
    }
    return condition;
  }

  WarpAxis WarpAxisAlong(const std::string& axis) const { return WarpAxisOf(threads_, ThreadAxisNumber(axis)); }

  // Whether blocks, or threads, that differ in their place on the axis see what the others write there.
  bool IsSeenAlong(const std::string& axis, const Buffer& buffer) const {
    if (!own_.contains(buffer)) return true;
    if (axis.starts_with("blockIdx")) return false;
    const bool same_warp = buffer.scope() == Scope::kWarp && WarpAxisAlong(axis) == WarpAxis::kLanes;
    return buffer.scope() == Scope::kShared || same_warp;
  }

  // Each warp fills its own: the first lane alone where lanes would make the same, and no warp a part of a sum.
  void CheckWarps(const Block& block, const std::map<std::string, Var>& of_axis) {
    for (const BufferRegion& write : block.writes) {
      if (write.buffer.scope() != Scope::kWarp || !own_.contains(write.buffer)) continue;
      for (const auto& [name, axis] : axes_) {
        if (!name.starts_with("threadIdx") || WarpAxisAlong(name) == WarpAxis::kLanes) continue;
        const bool sums = std::ranges::any_of(block.iters, [&, &axis_name = name](const IterVar& iter) {
          const Loops& loops = depends_[iter.var];
          return iter.kind != IterKind::kSpatial &&
                 std::ranges::any_of(loops, [&](const auto& loop) { return loop.second == axis_name; });
        });
        if (!sums && (of_axis.contains(name) || WarpAxisAlong(name) == WarpAxis::kWarps)) continue;
        status_ = CannotRun("block ", block.name, sums ? " reduces over " : " does not depend on ", name,
                            ", along which threads are of several warps, and writes ", write.buffer.name(),
                            ", of which each warp has its own; give it the scope shared");
      }
    }
  }

  std::map<std::string, Axis> axes_;
  ThreadExtents threads_ = {1, 1, 1};
  std::set<Buffer> own_;
  std::map<Var, Loops> depends_;
  Loops used_;  // by the blocks around
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Stmt> MakeLaunches(const Stmt& body) {
  return RewriteOutermostLoops(body, IsBound, [](const Stmt& nest) { return Launch().Make(nest); });
}

}  // namespace hone
