// Makes the interpreter's code (bytecode.h) of a function: an instruction after the other, in the order in which it
// will run. One walk over the program; its parts are files of their own:
//   compile.cc           slots, instructions, buffers, and the whole of a function
//   compile_expr.cc      expressions and accesses, each to the slot that its value will be in
//   compile_stmt.cc      loops, blocks, stores
//   compile_threads.cc   launches: threads, barriers, asynchronous copies, what a warp does together
//   compile_elements.cc  single elements of buffers
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/interp/bytecode.h"
#include "compiler/ir/thread_axes.h"

namespace hone::interp {

class Compiler {
 public:
  Compiler(const PrimFunc& f, const InterpretOptions& options) : f_(f), options_(options) {}
  absl::StatusOr<Code> Whole();
  absl::StatusOr<Code> Elements(bool& complete);

 private:
  // ---- Slots and instructions. Slots of a statement are used again behind it.
  int NewSlots(int n);
  // Constants have negative numbers until Finish knows where they go.
  int Constant(Slot value);
  int IntSlot(int64_t value) { return Constant({.i = value}); }
  int FloatSlot(double value) { return Constant({.f = value}); }
  // The number of the instruction.
  int Emit(Op op, int lanes = 1, int dst = 0, int a = 0, int b = 0, int c = 0);
  int Here() const { return static_cast<int>(code_.instrs.size()); }
  // The jump goes to what is emitted next.
  void Land(int jump) { code_.instrs[static_cast<size_t>(jump)].c = Here(); }
  int TypeIndex(DType type);
  // The type arithmetic is done in.
  DType Working(DType type) const;
  // The number of a text for messages; of the present block where it is empty.
  uint16_t Place(const std::string& what);
  absl::StatusOr<Code> Finish();

  // ---- Names
  absl::Status Parameters();
  int AddBuffer(const Buffer& buffer);
  // The sizes of a buffer as slots of their own, which stay.
  absl::Status Shape(int index);
  absl::Status Error(std::string_view message) const;

  // ---- Expressions: the slot of the value
  absl::StatusOr<int> Expression(const Expr& e);
  absl::StatusOr<int> Node(const IntImm& n, DType);
  absl::StatusOr<int> Node(const FloatImm& n, DType type);
  absl::StatusOr<int> Node(const VarRef& n, DType);
  absl::StatusOr<int> Node(const Binary& n, DType);
  static Op IntOp(BinaryOp op, DType type);
  absl::StatusOr<int> Node(const Not& n, DType type);
  absl::StatusOr<int> Node(const Cast& n, DType type);
  absl::StatusOr<int> Node(const Select& n, DType type);
  absl::StatusOr<int> Node(const IfThenElseExpr& n, DType type);
  absl::StatusOr<int> Node(const LetExpr& n, DType);
  absl::StatusOr<int> Node(const Ramp& n, DType type);
  absl::StatusOr<int> Node(const Broadcast& n, DType type);
  absl::StatusOr<int> Node(const Load& n, DType type);
  absl::StatusOr<int> Node(const Call& n, DType result);
  // The number of a new access.
  absl::StatusOr<int> AddAccess(const Buffer& named, const std::vector<Expr>& indices, const Expr& mask, int lanes);
  Buffer ResolveViews(const Buffer& named, Access& access);
  absl::Status MaskAccess(const Expr& mask, Access& access);

  // ---- Statements
  absl::Status Statement(const Stmt& stmt);
  absl::Status Do(const For& n);
  absl::Status Loop(const For& n, int min, int var, int end);
  absl::Status Do(const BlockRealize& n);
  absl::Status CheckDomain(const IterVar& iter, const Expr& value, int slot);
  absl::Status BlockInside(const Block& block, bool with_init);
  absl::Status Allocate(const Buffer& buffer);
  absl::Status Do(const Store& n);
  absl::Status Do(const Seq& n);
  absl::Status Do(const IfThen& n);
  absl::Status Do(const While& n);
  absl::Status Do(const Let& n);
  absl::Status Do(const Alloc& n);
  absl::Status Do(const TileOp& n);
  absl::Status Do(const Evaluate& n);

  // ---- Launches
  bool StartsLaunch(const For& n) const;
  // Notes how many threads a block of the launch has, where their warps have buffers of their own.
  absl::Status CountWarps(const For& launch);
  // Whether each of the launch's warps has an instance of the buffer.
  bool IsOfSeveralWarps(const Buffer& buffer) const;
  // The number of the warp whose instance of the buffer is accessed.
  absl::StatusOr<int> WarpOf(const Buffer& buffer);
  absl::Status ForkThreads(const For& n, int min, int var, int end);
  absl::Status AllocateShared(const Stmt& body);
  BarrierCode Meeting() const;
  absl::Status Collective(const TileOp& op);
  static bool ContainsCollective(const Stmt& root);
  absl::Status BeginCopy(const struct Store& copy);

  // ---- Single elements
  static bool ContainsBlock(const Stmt& stmt);
  // Returns whether the block computes one element from its own index, over whole loops.
  bool IsPointwise(const BlockRealize& n);
  const For* FindLoop(const Var& var);
  // The element that a block computes, when it is one of its own index and it reads no other of the buffer.
  struct ElementTarget {
    const Store* store = nullptr;
    std::map<uint64_t, size_t> dimension;  // of the buffer, by the spatial variable that is its index
  };
  std::optional<ElementTarget> TargetOf(const Block& block) const;
  absl::Status ElementBlock(const BlockRealize& n, bool& complete);
  absl::Status ElementLoops(const std::vector<const IterVar*>& reduce, const Stmt& body);

  struct View {  // a buffer that names a part of another
    Buffer source;
    std::vector<int> mins;  // slots
  };
  struct LoopAround {
    int slot;
    std::string name;
  };

  const PrimFunc& f_;
  const InterpretOptions options_;
  Code code_;
  int next_ = 0, high_ = 0, depth_ = 0;
  int guard_ = -1, guard_lanes_ = 1;  // lanes in which loads may run: inside a lane-wise if_then_else
  std::string block_;                 // being compiled, for messages
  std::unordered_map<uint64_t, size_t> constant_index_;
  std::unordered_map<uint64_t, int> vars_, buffers_;
  std::unordered_map<uint64_t, Range> loops_;
  std::unordered_map<uint64_t, View> views_;
  std::unordered_map<uint64_t, const For*> all_loops_;
  Stmt statement_;  // being compiled
  Buffer updated_;  // by the atomic update that is being compiled
  bool in_launch_ = false;
  std::vector<LoopAround> loops_around_;  // since the outermost fork
  std::vector<int> open_forks_;
  std::set<uint64_t> shared_;          // buffers that were allocated in front of the threads that share them
  ThreadExtents threads_ = {1, 1, 1};  // of a block of the launch
  std::array<int, 3> thread_slots_ = {-1, -1, -1};  // of the loops over threadIdx around; -1: there is none
  std::set<uint64_t> of_warps_;                     // buffers whose first dimension in memory is the warp
};

}  // namespace hone::interp
