#include "compiler/lower/lower.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/status_macros.h"
#include "compiler/tile/tile_intrinsic.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

// Integers have few of the functions, floats all but one.
bool HasCode(const std::string& function, DType type) {
  if (type.is_float()) return function != "popcount";
  static const std::set<std::string> of_integers = {"prefetch", "abs",   "popcount", "isnan", "isinf",
                                                    "fma",      "floor", "ceil",     "round", "trunc"};
  return of_integers.count(function) != 0;
}

// What only another back end, or a later stage, can do.
absl::Status CheckSupported(const PrimFunc& func) {
  absl::Status status;
  ForEachStmt(func.body, [&](const Stmt& s) {
    if (const For* loop = s.As<For>()) {
      for (const auto& [key, value] : loop->annotations) {
        if (!key.starts_with(kPipelinePrefix)) continue;
        status = absl::FailedPreconditionError(absl::StrCat("loop ", loop->var.name(), " has the annotation ", key,
                                                            ", which is for the threads of a GPU; unannotate it"));
      }
    }
    if (const For* loop = s.As<For>(); loop != nullptr && loop->kind == ForKind::kThreadBinding) {
      status = absl::FailedPreconditionError(absl::StrCat("loop ", loop->var.name(), " is bound to ", loop->thread,
                                                          ", which a CPU does not have; use parallel"));
    } else if (const BlockRealize* realize = s.As<BlockRealize>()) {
      for (const Buffer& b : realize->block.allocs) {
        if (IsSharedByThreads(b.scope())) {
          status = absl::FailedPreconditionError(absl::StrCat("buffer ", b.name(), " is in ",
                                                              b.scope() == Scope::kWarp ? "a warp's" : "shared",
                                                              " memory, which a CPU does not have"));
        }
      }
    }
    if (const TileOp* op = s.As<TileOp>(); op != nullptr && FindTileIntrinsic(op->intrinsic)->threads > 1) {
      status = absl::FailedPreconditionError(
          absl::StrCat(op->intrinsic, " is done by the threads of a GPU's warp together, which a CPU does not have"));
    }
    if (const Evaluate* evaluate = s.As<Evaluate>()) {
      if (IsBarrier(*evaluate)) {
        status =
            absl::FailedPreconditionError("a barrier stands between threads of a GPU block, which a CPU does not have");
      } else if (AsyncCopy(*evaluate) || IsCommitGroup(*evaluate) || WaitGroup(*evaluate)) {
        status = absl::FailedPreconditionError(
            "an asynchronous copy is made by the threads of a GPU block, which a CPU "
            "does not have; store the element");
      } else if (AtomicUpdate(*evaluate).has_value()) {
        status = absl::FailedPreconditionError(absl::StrCat("there is no code for ", evaluate->value.As<Call>()->name,
                                                            " on a CPU; use rfactor in place of an atomic update"));
      }
    }
    return status.ok();
  });
  ForEachExpr(func.body, [&](const Expr& e) {
    const Call* call = e.As<Call>();
    if (call != nullptr && !HasCode(call->name, call->args[0].type())) {
      status = absl::FailedPreconditionError(absl::StrCat("there is no code for ", call->name, " of ",
                                                          ToText(call->args[0].type()),
                                                          "; cast the argument to another type"));
    }
    return status.ok();
  });
  return status;
}

LoweringPass OnBody(const char* name, Stmt (*pass)(const Stmt&)) {
  return {name, [pass](PrimFunc func, const LowerOptions&) {
            func.body = pass(func.body);
            return func;
          }};
}

}  // namespace

std::span<const LoweringPass> LoweringPasses() {
  static const auto* passes = new std::vector<LoweringPass>{
      {"order_plain",
       [](PrimFunc func, const LowerOptions& options) {
         if (options.plain) func.body = OrderPlain(func.body);
         return func;
       }},
      {"expand_vector_ops", ExpandVectorOps},
      {"check_initialised",
       [](PrimFunc func, const LowerOptions&) -> absl::StatusOr<PrimFunc> {
         HONE_RETURN_IF_ERROR(CheckInitialised(func));
         return func;
       }},
      {"check_bounds",
       [](PrimFunc func, const LowerOptions&) -> absl::StatusOr<PrimFunc> {
         HONE_RETURN_IF_ERROR(CheckBounds(func));
         return func;
       }},
      {"expand_tile_ops",
       [](PrimFunc func, const LowerOptions& options) {
         func.body = ExpandTileOps(func.body, options);
         return func;
       }},
      {"note_alignment", [](PrimFunc func, const LowerOptions&) { return NoteAlignment(std::move(func)); }},
      {"note_streams", [](PrimFunc func, const LowerOptions&) { return NoteStreams(std::move(func)); }},
      OnBody("lower_init", LowerInit),
      OnBody("place_allocations", PlaceAllocations),
      OnBody("convert_blocks", ConvertBlocks),
      OnBody("inline_lets", InlineLets),
      OnBody("simplify", Simplify),
      OnBody("compact_allocations", CompactAllocations),
      {"align_storage", [](PrimFunc func, const LowerOptions&) { return AlignStorage(std::move(func)); }},
      OnBody("tighten_loops", TightenLoops),
      OnBody("lay_out_matrices", LayOutMatrices),
      {"flatten_buffers",
       [](PrimFunc func, const LowerOptions&) {
         func.body = FlattenBuffers(func.body, func.params);
         return func;
       }},
      OnBody("keep_outer_parallel", KeepOuterParallel),
      OnBody("simplify_again", Simplify),
      OnBody("unroll_register_loops", UnrollRegisterLoops),
      {"reduce_in_tree",
       [](PrimFunc func, const LowerOptions& options) {
         if (!options.plain) func.body = ReduceInTree(func.body, options);
         return func;
       }},
      OnBody("split_tails", SplitTails),
      OnBody("split_borders", SplitBorders),
      {"vectorize_loops", VectorizeLoops},
      {"unroll_loops",
       [](PrimFunc func, const LowerOptions& options) {
         func.body = UnrollLoops(func.body, options.max_unrolled);
         return func;
       }},
      OnBody("keep_tile_registers", KeepTileRegisters),
      OnBody("unmask_registers", UnmaskRegisters),
  };
  return *passes;
}

LowerOptions LowerOptionsFor(const Target& target) {
  LowerOptions options;
  options.features.assign(target.features.begin(), target.features.end());
  options.vector_bits = target.vector_bits;
  options.masked_bits = target.masked_bits();
  return options;
}

absl::StatusOr<LoweredFunc> Lower(const PrimFunc& scheduled, const LowerOptions& options) {
  HONE_RETURN_IF_ERROR(Verify(scheduled));
  HONE_RETURN_IF_ERROR(CheckSupported(scheduled));
  PrimFunc func = scheduled;
  for (const LoweringPass& pass : LoweringPasses()) { HONE_ASSIGN_OR_RETURN(func, pass.run(std::move(func), options)); }
  return AssignMemory(std::move(func));
}

}  // namespace hone
