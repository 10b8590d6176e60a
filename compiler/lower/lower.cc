#include "compiler/lower/lower.h"

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// What only another back end, or a later stage, can do.
absl::Status CheckSupported(const PrimFunc& func) {
  absl::Status status;
  ForEachStmt(func.body, [&](const Stmt& s) {
    if (const For* loop = s.As<For>(); loop != nullptr && loop->kind == ForKind::kThreadBinding) {
      status = absl::FailedPreconditionError(absl::StrCat("loop ", loop->var.name(), " is bound to ", loop->thread,
                                                          ", which a CPU does not have; use parallel"));
    } else if (const TileOp* op = s.As<TileOp>()) {
      status = absl::FailedPreconditionError(absl::StrCat("tile operation ", op->intrinsic, " has no code for a CPU"));
    } else if (const BlockRealize* realize = s.As<BlockRealize>()) {
      for (const Buffer& b : realize->block.allocs) {
        if (b.scope() == Scope::kShared) {
          status = absl::FailedPreconditionError(absl::StrCat("buffer ", b.name(), " is in shared memory, which a CPU does not have"));
        }
      }
    }
    return status.ok();
  });
  return status;
}

}  // namespace

absl::StatusOr<LoweredFunc> Lower(const PrimFunc& scheduled, const LowerOptions& options) {
  HONE_RETURN_IF_ERROR(CheckSupported(scheduled));
  PrimFunc func = scheduled;
  Stmt& body = func.body;
  if (options.plain) body = OrderPlain(body);
  body = LowerInit(body);
  body = PlaceAllocations(body);
  body = ConvertBlocks(body);
  body = InlineLets(body);
  body = Simplify(body);
  body = CompactAllocations(body);
  body = TightenLoops(body);
  body = FlattenBuffers(body, func.params);
  body = KeepOuterParallel(body);
  body = Simplify(body);
  body = UnrollRegisterLoops(body);
  body = SplitTails(body);
  body = VectorizeLoops(body);
  body = UnrollLoops(body, options.max_unrolled);
  return AssignMemory(std::move(func));
}

}  // namespace hone
