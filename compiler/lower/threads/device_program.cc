#include "compiler/lower/threads/device_program.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/threads/assign_shared.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

constexpr int64_t kMostUnrolled = 1024;  // statements that a nest of unrolled loops may become

template <class... Pieces>
absl::Status CannotLaunch(const Pieces&... pieces) {
  return absl::FailedPreconditionError(absl::StrCat("this program has no launches: ", pieces...));
}

bool IsBound(const For& loop) { return loop.kind == ForKind::kThreadBinding; }

// ---- What a thread runs, in the form of DeviceKernel

// A loop that chooses which registers a tile operation takes is written out, as UnrollRegisterLoops does of loads.
Stmt UnrollTileOps(const Stmt& body) {
  std::set<Var> chooses;
  ForEachStmt(body, [&](const Stmt& s) {
    const TileOp* op = s.As<TileOp>();
    for (size_t i = 0; op != nullptr && i < op->operands.size(); ++i) {
      if (op->operands[i].buffer.scope() != Scope::kRegister) continue;
      for (const Range& range : op->operands[i].region) chooses.merge(FreeVars(range.min));
    }
    return true;
  });
  return RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    if (loop == nullptr || loop->kind != ForKind::kSerial || !chooses.contains(loop->var)) return std::nullopt;
    For unrolled = *loop;
    unrolled.kind = ForKind::kUnrolled;
    return Stmt::Make(std::move(unrolled));
  });
}

// A vectorised loop over an asynchronous copy, which is no vector that is computed, becomes a serial one that says so.
Stmt MarkCopiedRuns(const Stmt& body) {
  return RewriteBottomUp(body, [](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    const Evaluate* evaluate = loop == nullptr ? nullptr : loop->body.As<Evaluate>();
    if (evaluate == nullptr || loop->kind != ForKind::kVectorized) return std::nullopt;
    const std::optional<Store> copy = AsyncCopy(*evaluate);
    if (!copy.has_value() || !ConstantValue(loop->extent).has_value()) return std::nullopt;
    const IfThenElseExpr* choice = copy->value.As<IfThenElseExpr>();
    const Load& from = *(choice == nullptr ? copy->value : choice->yes).As<Load>();
    const bool neighbours = StrideOf(copy->indices[0], loop->var) == 1 && StrideOf(from.indices[0], loop->var) == 1;
    if (!neighbours || (choice != nullptr && UsesVar(choice->condition, loop->var))) return std::nullopt;
    For run = *loop;
    run.kind = ForKind::kSerial;
    run.annotations[kCopiesRun] = int64_t{1};
    return Stmt::Make(std::move(run));
  });
}

// Loops that were written out leave barriers behind one another: one of them is enough.
Stmt JoinBarriers(const Stmt& body) {
  const auto is_barrier = [](const Stmt& s) {
    const Evaluate* evaluate = s.As<Evaluate>();
    return evaluate != nullptr && IsBarrier(*evaluate);
  };
  return RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Seq* seq = s.As<Seq>();
    if (seq == nullptr) return std::nullopt;
    std::vector<Stmt> stmts;
    for (const Stmt& part : seq->stmts) {
      if (stmts.empty() || !is_barrier(stmts.back()) || !is_barrier(part)) stmts.push_back(part);
    }
    return stmts.size() == seq->stmts.size() ? std::nullopt : std::optional(MakeSeq(std::move(stmts)));
  });
}

absl::StatusOr<PrimFunc> MakeLanes(PrimFunc func, const DeviceOptions& options) {
  func.body = FlattenBuffers(func.body, func.params);
  func.body = Simplify(func.body);
  func.body = UnrollRegisterLoops(UnrollTileOps(func.body));
  func.body = MarkCopiedRuns(func.body);
  HONE_ASSIGN_OR_RETURN(func, VectorizeLoops(std::move(func), {.vector_bits = options.vector_bits}));
  func.body = ShareFragments(JoinBarriers(Simplify(UnrollLoops(func.body, kMostUnrolled))));
  return func;
}

// ---- The parts of a kernel

// Takes the loops over axes off a nest.
Stmt TakeAxes(Stmt body, Launch& launch, DeviceKernel& kernel) {
  while (const For* loop = body.As<For>()) {
    if (!IsBound(*loop)) break;
    const int64_t extent = ConstantValue(loop->extent).value_or(1);
    for (size_t axis = 0; axis < kBlockAxes.size(); ++axis) {
      if (loop->thread == kBlockAxes[axis]) kernel.block_index[axis] = loop->var, launch.grid[axis] = extent;
      if (loop->thread == kThreadAxes[axis]) kernel.thread_index[axis] = loop->var, launch.block[axis] = extent;
    }
    body = Stmt(loop->body);
  }
  return body;
}

// ---- The host's part: a walk over what stands around launches

class Splitter {
 public:
  Splitter(const PrimFunc& func, const DeviceOptions& options) : name_(func.name), options_(options) {
    for (const Buffer& param : func.params) AddMemory(param);
    program_.params = program_.buffers.size();
    program_.serial_loops = SerialLoops(func);
  }

  absl::StatusOr<DeviceProgram> Split(const Stmt& body) {
    HONE_RETURN_IF_ERROR(Visit(body));
    return std::move(program_);
  }

 private:
  static bool ContainsLaunch(const Stmt& root) {
    bool found = false;
    ForEachStmt(root, [&](const Stmt& s) {
      const For* loop = s.As<For>();
      found = found || (loop != nullptr && IsBound(*loop));
      return !found;
    });
    return found;
  }

  absl::Status Visit(const Stmt& stmt) {
    if (const Seq* seq = stmt.As<Seq>()) {
      for (const Stmt& s : seq->stmts) HONE_RETURN_IF_ERROR(Visit(s));
      return absl::OkStatus();
    }
    const For* loop = stmt.As<For>();
    if ((loop != nullptr && IsBound(*loop)) || !ContainsLaunch(stmt)) return AddLaunch(stmt);
    if (const Alloc* alloc = stmt.As<Alloc>()) {
      AddMemory(alloc->buffer);
      return Visit(alloc->body);
    }
    const std::string text = ToText(stmt);
    return CannotLaunch("`", text.substr(0, text.find('\n')),
                        "` stands around loops over threads; launches are a plain list, so put it inside of them");
  }

  void AddMemory(const Buffer& buffer) {
    program_.buffers.push_back({buffer, *buffer.NumElements() * buffer.type().bytes()});
  }

  absl::Status AddLaunch(const Stmt& nest) {
    Launch launch{.kernel = absl::StrCat(name_, "_", program_.launches.size())};
    DeviceKernel kernel;
    kernel.body = TakeAxes(nest, launch, kernel);
    AssignShared(launch, kernel, options_.shared_apart);
    const TouchedBuffers touched = BuffersTouchedBy(kernel.body);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i].buffer;
      const bool written = touched.writes.contains(buffer);
      if (!written && !touched.reads.contains(buffer)) continue;
      launch.buffers.push_back(i);
      kernel.arguments.push_back({buffer, written});
    }
    program_.launches.push_back(std::move(launch));
    program_.kernels.push_back(std::move(kernel));
    return absl::OkStatus();
  }

  std::string name_;
  const DeviceOptions& options_;
  DeviceProgram program_;
};

absl::Status CheckSizes(const PrimFunc& func) {
  absl::Status status;
  const auto check = [&](const Buffer& buffer) {
    if (status.ok() && !buffer.NumElements().has_value())
      status = CannotLaunch("buffer ", buffer.name(), " has a symbolic size; fix the sizes first");
  };
  for (const Buffer& param : func.params) check(param);
  ForEachStmt(func.body, [&](const Stmt& s) {
    if (const Alloc* alloc = s.As<Alloc>()) check(alloc->buffer);
    return true;
  });
  return status;
}

}  // namespace

absl::StatusOr<DeviceProgram> LowerToDevice(const PrimFunc& scheduled, const DeviceOptions& options) {
  HONE_ASSIGN_OR_RETURN(PrimFunc lowered, LowerThreads(scheduled));
  HONE_RETURN_IF_ERROR(CheckSizes(lowered));
  HONE_ASSIGN_OR_RETURN(lowered, MakeLanes(std::move(lowered), options));
  return Splitter(lowered, options).Split(lowered.body);
}

std::string ToText(const DeviceProgram& program) {
  std::string text;
  for (const Launch& launch : program.launches) {
    std::vector<std::string> names;
    for (const size_t buffer : launch.buffers) names.push_back(program.buffers[buffer].buffer.name());
    absl::StrAppend(&text, launch.kernel, " over ", absl::StrJoin(launch.grid, " x "), " blocks of ",
                    absl::StrJoin(launch.block, " x "), " threads, ", launch.shared_bytes,
                    " bytes shared: ", absl::StrJoin(names, ", "), "\n");
  }
  return text;
}

}  // namespace hone
