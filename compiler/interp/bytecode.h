// The interpreter's code: instructions over numbered slots, made by compiler.h and run by machine.h.
//
// A slot holds one scalar: integers and bool as int64, wrapped to their type, floats as the double that equals the
// value. A vector takes as many neighbouring slots as it has lanes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/stmt.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone::interp {

union Slot {
  int64_t i;
  double f;
};

enum class Op : uint16_t {
  kMove,   // dst = a
  kSplat,  // every lane of dst = a
  kRamp,   // dst[l] = a + l * b, wrapped to type c
  // Integers: 64-bit, of 32 bits with the sign, and any other type by number c
  kAddI64,
  kSubI64,
  kMulI64,
  kAddI32,
  kSubI32,
  kMulI32,
  kFloorDivI,
  kFloorModI,
  kMinI,
  kMaxI,
  kEqI,
  kNeI,
  kLtI,
  kLeI,
  kGtI,
  kGeI,
  kAnd,
  kOr,
  kNot,
  kAnyInt,  // aux: BinaryOp and type
  // Floats: in double, and rounded to float32
  kAddF64,
  kSubF64,
  kMulF64,
  kDivF64,
  kAddF32,
  kSubF32,
  kMulF32,
  kDivF32,
  kMinF,
  kMaxF,
  kEqF,
  kNeF,
  kLtF,
  kLeF,
  kGtF,
  kGeF,
  kAnyFloat,  // aux: BinaryOp and type
  kRound,     // dst = a rounded to type c
  kCall1,
  kCall2,
  kFma,
  kFmaF32,
  kIsNan,
  kIsInf,
  // Conversions, and what a bit pattern says
  kPopcount,
  kAbsI,
  kIntToFloat,
  kFloatToInt,
  kFloatToBool,
  kWrap,    // from or to type c
  kSelect,  // dst = a ? b : c; the lanes of the condition in aux2
  // Memory
  kLoad,
  kStore,  // access a; dst is the value
  // Control. `c` is the instruction to go to.
  kJump,
  kJumpIfZero,
  kJumpIfNotEqual,
  kLoopTest,     // leave when a >= b
  kLoopNext,     // ++a, back while a < b; counts steps
  kWhileNext,    // ++a, which counts the rounds of a while, and back; counts steps
  kCheckDomain,  // a within [b, b + c): a block's variable
  kAlloc,        // buffer a, its shape in dims
  // A launch: blocks one after the other, the threads of each side by side. The code between kFork and its kThreadEnd
  // is run by threads of their own.
  kLaunch,      // the launch begins
  kLaunchEnd,   // and is over
  kBlockIndex,  // the block's index on the axis places[aux] is a
  kFork,        // aux: the fork; a its variable, b the end of it; `c` is where the parent goes on
  kThreadEnd,   // the end of one thread
  kBarrier,     // aux: the barrier
  kAsyncCopy,   // to access a, from access b; of the value dst where b is -1
  kCommitGroup,
  kWaitGroup,   // a: how many groups may stay under way
  kCollective,  // aux: the operation of a warp
  kReturn,
};

struct Instr {
  Op op;
  uint16_t lanes = 1;
  int32_t dst = 0, a = 0, b = 0, c = 0;
  uint16_t aux = 0, aux2 = 0;
};

// One load or store.
struct Access {
  int buffer = 0;
  int mask = -1;  // a slot, one for each lane
  int lanes = 1;
  std::vector<int> indices;  // slots
  std::vector<int> strides;  // 0: the index is one for all lanes, 1: one for each
  std::string place;         // "block C": for messages
  Stmt statement;            // the one it is part of, for messages
  bool atomic = false;       // the element of an atomic update
};

struct BufferInfo {
  Buffer buffer;
  DType storage;          // the element type in memory: float64 for floats in double accumulation
  std::vector<int> dims;  // slots of the sizes; first the number of warps where each has an instance of its own
  int param = -1;
  bool written = false;  // by any code: elements of others cannot be raced for
};

// A part of the code that computes single elements of one buffer (compile_elements.cc).
struct ElementCode {
  int entry = -1;
  std::vector<int> index_slots;  // one for each dimension of the buffer; where the index goes
};

// A loop over threadIdx in a launch.
struct ForkCode {
  std::string thread;        // "threadIdx.x"
  std::vector<int> buffers;  // those that are allocated inside: every thread has its own
};
struct BarrierCode {
  std::string place;  // "block C": for messages
  std::vector<int>
      loops;  // slots of the loops between the outermost fork and the barrier: threads meet in one iteration
  std::vector<std::string> names;
};

// A tile operation by all threads of a warp.
struct CollectiveCode {
  struct Operand {
    int access;                    // its first element
    std::vector<int64_t> extents;  // of the region
  };
  const TileIntrinsic* intrinsic = nullptr;
  std::vector<Operand> operands;  // outputs first
  BarrierCode meeting;            // where its threads meet
};

struct Code {
  std::vector<CollectiveCode> collectives;
  std::vector<ForkCode> forks;
  std::vector<BarrierCode> barriers;
  std::vector<Instr> instrs;
  std::vector<Slot> constants;  // placed behind `num_slots`
  int num_slots = 0;
  std::vector<Access> accesses;
  std::vector<BufferInfo> buffers;
  std::vector<DType> types;
  std::vector<double (*)(double)> calls1;
  std::vector<double (*)(double, double)> calls2;
  std::vector<int> dim_slots;                     // of f.dims
  std::vector<std::string> places;                // for kCheckDomain: "block C: vi"
  std::unordered_map<int, ElementCode> elements;  // by buffer
  int entry = 0;
};

// InvalidArgument or Unimplemented when the function is not one the interpreter can run.
absl::StatusOr<Code> Compile(const PrimFunc& f, const InterpretOptions& options);
// As well code for single elements of every buffer that an unscheduled block computes from its index alone. `complete`
// says whether that holds for every buffer a block writes.
absl::StatusOr<Code> CompileElements(const PrimFunc& f, const InterpretOptions& options, bool& complete);

}  // namespace hone::interp
