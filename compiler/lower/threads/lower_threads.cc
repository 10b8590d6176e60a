#include "compiler/lower/threads/lower_threads.h"

#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/threads/pipeline.h"
#include "compiler/support/status_macros.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

ThreadPass OnBody(const char* name, Stmt (*pass)(const Stmt&)) {
  return {name, [pass](PrimFunc func) -> absl::StatusOr<PrimFunc> {
            func.body = pass(func.body);
            return func;
          }};
}

ThreadPass OnBodyOrRefused(const char* name, absl::StatusOr<Stmt> (*pass)(const Stmt&)) {
  return {name, [pass](PrimFunc func) -> absl::StatusOr<PrimFunc> {
            HONE_ASSIGN_OR_RETURN(func.body, pass(func.body));
            return func;
          }};
}

}  // namespace

std::span<const ThreadPass> ThreadPasses() {
  static const auto* passes = new std::vector<ThreadPass>{
      {"note_alignment", [](PrimFunc func) -> absl::StatusOr<PrimFunc> { return NoteAlignment(std::move(func)); }},
      OnBodyOrRefused("mark_pipelines", MarkPipelines),
      OnBody("place_allocations", PlaceAllocations),
      OnBodyOrRefused("make_launches", MakeLaunches),
      OnBodyOrRefused("reduce_across_threads", ReduceAcrossThreads),
      OnBody("lower_init", LowerInit),
      OnBody("convert_blocks", ConvertBlocks),
      OnBody("inline_lets", InlineLets),
      OnBody("simplify", Simplify),
      OnBody("compact_allocations", CompactAllocations),
      {"align_storage", [](PrimFunc func) -> absl::StatusOr<PrimFunc> { return AlignStorage(std::move(func)); }},
      OnBodyOrRefused("share_warps", ShareWarps),
      OnBodyOrRefused("pipeline_loops", PipelineLoops),
      OnBody("simplify_again", Simplify),
      OnBodyOrRefused("insert_barriers", InsertBarriers),
      {"swizzle_storage", [](PrimFunc func) -> absl::StatusOr<PrimFunc> { return SwizzleStorage(std::move(func)); }},
  };
  return *passes;
}

absl::StatusOr<Stmt> RewriteOutermostLoops(const Stmt& body, const std::function<bool(const For&)>& is_one,
                                           const std::function<absl::StatusOr<Stmt>(const Stmt&)>& rewrite) {
  if (const For* loop = body.As<For>(); loop != nullptr && is_one(*loop)) return rewrite(body);
  absl::Status status;
  Stmt made = MapChildren(
      body,
      [&](const Stmt& s) {
        absl::StatusOr<Stmt> inner = RewriteOutermostLoops(s, is_one, rewrite);
        if (!inner.ok()) status = inner.status();
        return inner.ok() ? *std::move(inner) : s;
      },
      [](const Expr& e) { return e; });
  HONE_RETURN_IF_ERROR(status);
  return made;
}

absl::StatusOr<Stmt> RewriteLaunches(
    const Stmt& body,
    const std::function<absl::StatusOr<Stmt>(const std::vector<For>& axes, const Stmt& inside)>& rewrite) {
  const auto is_axis = [](const For& loop) { return loop.kind == ForKind::kThreadBinding; };
  return RewriteOutermostLoops(body, is_axis, [&](const Stmt& launch) -> absl::StatusOr<Stmt> {
    std::vector<For> axes;
    Stmt inside = launch;
    for (const For* loop = inside.As<For>(); loop != nullptr && is_axis(*loop); loop = inside.As<For>()) {
      axes.push_back(*loop);
      inside = axes.back().body;
    }
    HONE_ASSIGN_OR_RETURN(Stmt made, rewrite(axes, inside));
    for (size_t i = axes.size(); i-- > 0;) {
      axes[i].body = made;
      made = Stmt::Make(axes[i]);
    }
    return made;
  });
}

absl::StatusOr<PrimFunc> LowerThreads(const PrimFunc& scheduled) {
  HONE_RETURN_IF_ERROR(Verify(scheduled));
  PrimFunc func = scheduled;
  for (const ThreadPass& pass : ThreadPasses()) { HONE_ASSIGN_OR_RETURN(func, pass.run(std::move(func))); }
  return func;
}

}  // namespace hone
