// Lowered functions into LLVM IR. For the .cc files of this folder alone: it needs LLVM's headers.
//
// Loop variables are 64-bit inside: index arithmetic does not overflow (expr.h), so a 32-bit index needs no sign
// extension in an address. float16 values are `half` and every operation on them is done in float and rounded, which
// LLVM makes one operation in half where the target has it: the result is the same. bfloat16 values are their 16 bits.
// A bool is i1 in a register and a byte in memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/sum.h"
#include "compiler/lower/buffers/tile_registers.h"
#include "compiler/lower/lower.h"
#include "compiler/tile/tile_intrinsic.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace hone {

struct EmitOptions {
  std::string symbol;
  bool contract = true;               // multiplications and additions may be fused
  bool precise = false;               // mathematical functions to the last place
  bool serial = false;                // parallel loops are run by the calling thread
  std::vector<std::string> features;  // of the target: which instructions there are for tile operations and functions
};

// Adds the function `int32_t symbol(const HoneCall*)` and what it calls to the module.
void EmitKernel(const LoweredFunc& lowered, const EmitOptions& options, llvm::Module& module);

// A buffer as the code of one function sees it.
struct BufferMemory {
  llvm::Value* pointer = nullptr;
  uint64_t align = 1;               // bytes
  llvm::MDNode* scope = nullptr;    // of loads and stores: what they touch,
  llvm::MDNode* noalias = nullptr;  // and what they never touch
  bool read_only = false;           // never written while the kernel runs
};

// What the tile registers hold, as far as the code of one function knows.
struct TileState {
  std::optional<TileShapes> shapes;  // all products of the function have these, and the registers are set up for them
  bool in_use = false;               // registers are set up somewhere in the function
  std::map<Buffer, TileRegisters> sums;
  // Factors that were loaded into registers, as long as nothing was stored and no other block began.
  struct Factor {
    Buffer buffer;
    Expr first;
    int number = 0;
  };
  std::vector<Factor> factors;
  llvm::BasicBlock* loaded_in = nullptr;
  int next_left = 0, next_right = 0;  // in turn
};

// A place in memory as a sum that has its own name in the code: so many elements from a pointer, at variables' values.
struct PlaceKey {
  llvm::Value* pointer = nullptr;
  llvm::Type* element = nullptr;
  absl::InlinedVector<std::pair<llvm::Value*, int64_t>, 2> terms;  // value, and by what it is multiplied
  int64_t constant = 0;
  bool operator==(const PlaceKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const PlaceKey& key) {
    return H::combine(std::move(state), key.pointer, key.element, key.terms, key.constant);
  }
};

struct ByStructure {
  bool operator()(const Expr& a, const Expr& b) const { return CompareExprs(a, b) < 0; }
};

// A piece of the code in which what was computed stays known: a function, the body of a loop, a branch. What a loop's
// variable decides is computed at the head of its body, once for everything that is emitted there.
struct CodeRegion {
  llvm::BasicBlock* block = nullptr;       // with a head; absent: a branch, which has no variable
  llvm::Instruction* head = nullptr;       // the last instruction there, phis aside; absent: none
  absl::flat_hash_set<llvm::Value*> here;  // what the head computes, and the loop's variable
  absl::flat_hash_map<PlaceKey, llvm::Value*> places;
  std::map<Expr, llvm::Value*, ByStructure> values;
  // Of a loop: its variable, and the pointers that go along.
  llvm::PHINode* variable = nullptr;
  std::vector<std::pair<llvm::PHINode*, PlaceKey>> along;
};

class Emitter {
 public:
  Emitter(const LoweredFunc& lowered, const EmitOptions& options, llvm::Module& module);
  void Run();

 private:
  // State of the function being emitted; a parallel body starts a new one.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::Value* call = nullptr;            // const HoneCall*
    llvm::Value* thread_scratch = nullptr;  // this thread's area; absent until needed
    std::map<Var, llvm::Value*> vars;       // integers scalars of loops are i64, others have their own type
    std::map<Buffer, BufferMemory> buffers;
    std::vector<CodeRegion> regions;  // that are open, the innermost last
    TileState tiles;
    bool streams = false;  // stores past the caches were emitted
  };

  // ---- emitter.cc: functions, parallel loops
  void BindBuffers(const Stmt& body);  // pointers of the params that the body uses
  void BeginCode();                    // what was emitted of the function so far is at its head
  llvm::Function* NewFunction(const std::string& name, llvm::FunctionType* type, bool exported);
  llvm::Value* CallField(int field, llvm::Type* type);
  llvm::Value* ThreadScratch();
  void EmitParallel(const For& loop);
  llvm::Function* EmitTask(const For& loop, const std::vector<Var>& captured);
  BufferMemory Describe(const Buffer& buffer, llvm::Value* pointer, uint64_t align);
  void PrepareAliasScopes();
  void ReturnIfNonZero(llvm::Value* code);
  void FinishStreams();  // before another thread may read

  // ---- emit_stmt.cc
  void EmitStmt(const Stmt& stmt);
  void EmitLoop(const For& loop, llvm::Value* begin, llvm::Value* end, bool may_be_empty);
  // Counts from `begin` to `end` by `step`, with the loop's variable at each value.
  void EmitCounting(const For& loop, llvm::Value* begin, llvm::Value* end, int64_t step, bool may_be_empty,
                    llvm::function_ref<void()> body);
  void EmitFor(const For& loop);
  void EmitBranch(llvm::BasicBlock* block, llvm::function_ref<void()> body);
  void EmitIf(const IfThen& branch);
  void EmitWhile(const While& loop);
  void EmitAlloc(const Alloc& alloc);
  void EmitStore(const Store& store);
  // ---- emit_tile_op.cc
  void EmitTileOp(const TileOp& op);
  llvm::Value* TileOperand(const TileOp& op, size_t i, const TileInstruction::Operand& operand);
  void StoreTileResult(const TileOp& op, const TileInstruction::Operand& operand, llvm::Value* result);
  struct Address {
    llvm::Value* pointer = nullptr;
    uint64_t align = 1;
  };
  std::vector<Address> TileRows(const TileOp& op, size_t i, const TileInstruction::Operand& operand);
  static int64_t RowElements(const TileOp& op, size_t operand);  // from one row to the next
  // ---- emit_tile_registers.cc
  void SetUpTiles(const Stmt& body);  // in front of the body of a function
  void ReleaseTiles();                // at its end
  void LoadTileShapes(const TileShapes& shapes);
  bool EmitTileAlloc(const Alloc& alloc);  // false: these are no tile registers
  void EmitInTiles(const TileOp& op, const TileInstruction& instruction);
  int LoadFactor(const TileOp& op, size_t operand, const TileShapes& shapes);
  llvm::Value* RowBytes(const TileOp& op, size_t operand);
  void TileCall(const std::string& function, const std::vector<llvm::Value*>& args);

  // ---- emit_transpose.cc
  struct TransposedLoad {
    Expr load;
    Expr base;  // of the lanes' places, which lie `stride` apart; grows by one with the loop
    int64_t stride = 0;
    int lanes_on = 0;  // the others are masked
  };
  std::vector<TransposedLoad> TransposedLoads(const For& loop) const;
  bool EmitTransposed(const For& loop, llvm::Value* begin, llvm::Value* end);  // false: the loop does not transpose

  // ---- emit_expr.cc
  llvm::Value* EmitExpr(const Expr& e);
  llvm::Value* EmitBroadcast(const Broadcast& broadcast, int lanes);
  llvm::Value* EmitBinary(const Binary& binary, DType type);
  llvm::Value* EmitIndexArithmetic(BinaryOp op, llvm::Value* a, llvm::Value* b, bool non_negative);
  llvm::Value* EmitCall(const Call& call, DType type);
  llvm::Value* EmitIfThenElse(const IfThenElseExpr& e, DType type);
  // An integer scalar as i64.
  llvm::Value* EmitWide(const Expr& e);
  llvm::Value* EmitBound(const Var& var, const Expr& value);  // of a let
  static bool IsIndexType(DType type) { return type == kInt32 || type == kInt64; }
  bool IsIndexArithmetic(const Expr& e) const;  // made of variables and constants: may be computed in 64 bits
  bool NonNegative(const Expr& e) const;
  bool HasFeature(std::string_view feature) const;  // of the target
  llvm::Value* FloatArithmetic(BinaryOp op, llvm::Value* a, llvm::Value* b, const Expr& a_expr, const Expr& b_expr);
  llvm::Value* FloatModulo(llvm::Value* a, llvm::Value* b, bool floor);

  // ---- emit_memory.cc
  llvm::Value* EmitLoad(const Load& load, DType type);
  llvm::GlobalVariable* PlaceOfConstant(llvm::Constant* value, llvm::Align align);
  llvm::Value* EmitGuardedLoad(const IfThenElseExpr& e, DType type);
  void EmitPrefetch(const Load& element);
  void EmitMemoryStore(const Buffer& buffer, const Expr& index, llvm::Value* value, llvm::Value* mask, DType type);
  llvm::Value* Widened(llvm::Value* vector, int lanes);
  llvm::Value* VectorAddress(const Buffer& buffer, const Expr& index, int lanes);
  llvm::Value* EmitGather(const Load& load, DType type, llvm::Value* mask);  // `mask` may be absent
  void Annotate(llvm::Instruction* access, const BufferMemory& memory) const;
  bool GoesPastCaches(const Buffer& buffer, const Address& at, llvm::Type* type) const;
  llvm::Value* ToMemory(llvm::Value* value, DType type);
  llvm::Value* FromMemory(llvm::Value* value, DType type);

  // ---- emit_address.cc
  Address AddressOf(const Buffer& buffer, const Expr& index);
  // Where `emit` computes a value: at the head of the region, which all that it uses must allow.
  llvm::Value* AtHead(int region, llvm::function_ref<llvm::Value*()> emit);
  // The region at whose head the integer can be computed, however often that is not needed; negative: there is none.
  int RegionOf(const Expr& e) const;
  int RegionOf(llvm::Value* value) const;
  llvm::Value* EmitEarly(const Expr& e, int region);  // as EmitWide, there; a negative one is here
  llvm::Value* EmitEarly(const Expr& e) { return EmitEarly(e, RegionOf(e)); }
  struct Place;
  Place Moved(const Place& from, PlaceKey by, int region);
  llvm::Value* PointerAlong(const PlaceKey& by, int region);
  void AdvancePointers(int64_t step);

  // ---- emit_near_lanes.cc
  // Lanes at constant distances that a load or two cover; nullptr: they are not. `mask` may be absent.
  llvm::Value* EmitLoadOfNearLanes(const Load& load, DType type, llvm::Value* mask);
  struct NearLanes;
  Address PlaceOf(const NearLanes& near, int64_t offset);
  llvm::Value* VectorAt(const NearLanes& near, int64_t offset);
  llvm::Value* ChooseAmong(const NearLanes& near, const std::set<int64_t>& elements);

  // ---- emit_types.cc
  llvm::Type* TypeOf(DType type) const;
  llvm::Type* MemoryTypeOf(DType type) const;
  static bool IsUnsigned(DType type);  // what widens with zeros, bool as well
  static llvm::Type* WithLanesOf(llvm::Type* element, llvm::Value* like);
  llvm::Value* EmitCast(const Expr& from, DType to);
  llvm::Value* ToFloat(llvm::Value* value, DType type);    // floats of 16 and 8 bits to float, others as they are
  llvm::Value* FromFloat(llvm::Value* value, DType type);  // the inverse: rounds to nearest even
  llvm::Value* FloatToBFloat(llvm::Value* value);
  llvm::Value* Float8ToFloat(llvm::Value* value, DType type);
  llvm::Value* FloatToFloat8(llvm::Value* value, DType type);
  llvm::Value* FloatToNarrow(llvm::Value* value, DType to);  // integers of 8 and 16 bits
  llvm::Value* DoubleToFloatOdd(llvm::Value* value);         // rounds to odd, so that rounding again is right

  llvm::Constant* Int64(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }
  llvm::Value* Splat(llvm::Value* value, int lanes);

  const LoweredFunc& lowered_;
  const EmitOptions& options_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  std::map<llvm::Constant*, llvm::GlobalVariable*> constants_;  // of PlaceOfConstant
  llvm::IRBuilder<> b_;
  Frame frame_;
  std::map<Buffer, std::pair<llvm::MDNode*, llvm::MDNode*>> alias_;  // scope list, noalias list
  std::set<Buffer> written_, streamed_;
  std::set<Var> non_negative_;
  int tasks_ = 0;
};

}  // namespace hone
