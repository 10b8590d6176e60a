// The passes of Lower; lower.cc has their order. Each is a function from a body to a body that computes the same, in a
// file of its own; what a pass may rely on is what those before it established.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/lower.h"

namespace hone {

// All passes but the last (AssignMemory), in order, by name: for tests and for `hone opt --pass`. What one cannot do is
// FailedPrecondition.
struct LoweringPass {
  const char* name;
  std::function<absl::StatusOr<PrimFunc>(PrimFunc, const LowerOptions&)> run;
};
std::span<const LoweringPass> LoweringPasses();

// For an unscheduled function, the order of a plain build: all loops serial, but that the loop of a block's last
// spatial variable goes inside its reductions and is vectorised where instances are independent, and the outermost loop
// is parallel where it then runs over elements. Every element is still computed by the same operations in the same
// order, so the numbers are those of the program as it stands.
//   for i, j, k: C[i, j] += ...   =>   for i in parallel: for k: for j in vectorized: C[i, j] += ...
Stmt OrderPlain(const Stmt& body);

// A block of one operation that adds a product to each element of a vector becomes, with what fills its fragments,
// loops around a block of one element; one for which the target has an instruction stays:
//   block (vj_o = j): F[0] = f(i); T.tile_op("axpy_f32", C[..8], F[0], B[..8])
//   =>  for n in vectorized(8): block (vj_o = j, vn = n): C += f(i) * B
PrimFunc ExpandVectorOps(PrimFunc func, const LowerOptions& options = {});

// Changes nothing. InvalidArgument when a buffer is written and every write of it needs what it held before: the
// first that runs, in any order, would read unwritten elements; and when an element is read that no write of the
// program starts (unwritten_reads.h). Proofs both, so no right program is refused. Operations on vectors are expanded
// before: of one that is not, which elements it reads and writes is not known, and none is refused for it.
absl::Status CheckInitialised(const PrimFunc& func);

// Changes nothing. InvalidArgument when a variable of a block leaves its domain or an index its buffer, in an instance
// that is sure to run: all but what is proven to stay inside is tried with numbers for the loops around it, at both
// ends of those that are long. What depends on memory is not known, nothing is refused for it, nor for an access by
// vectors or by a tile operation: so no right program is refused.
absl::Status CheckBounds(const PrimFunc& func);

// A tile operation becomes the loops its intrinsic is emitted as, around accumulators of its own; one for which the
// target has an instruction stays, to be that instruction:
//   T.tile_op("fma_tile_f32", C[..6, ..16], A[..6, ..K], B[..K, ..16])
//   =>  alloc acc[6, 16] in registers: acc = C;
//       for k: for m in unroll(6): for n in vectorized(16): acc += A * B;  C = acc
Stmt ExpandTileOps(const Stmt& body, const LowerOptions& options);

// What storage_align and kStorageSwizzle said of buffers, annotations of the blocks that write them, become attributes
// of the function: the blocks are gone when AlignStorage and SwizzleStorage come. Buffers concerned have names of their
// own afterwards.
PrimFunc NoteAlignment(PrimFunc func);

// What stream said of params, an annotation of the blocks that write them, becomes an attribute of the function.
PrimFunc NoteStreams(PrimFunc func);

// `init` moves into the body, run when every reduce variable is at the start of its domain:
//   with init: A; B   =>   if k == 0: A;  B
Stmt LowerInit(const Stmt& body);

// Allocations leave their blocks: each becomes an Alloc around the smallest part of the program that uses the buffer.
// An element that is accumulated over a loop lives outside that loop; what a vectorised loop touches lives outside it.
Stmt PlaceAllocations(const Stmt& body);

// Blocks become what they do: their variables are replaced by their values, a predicate becomes a condition, and a
// matched buffer the region that it names.
Stmt ConvertBlocks(const Stmt& body);

// A Let of index arithmetic is replaced by its value, which the passes below then see through.
Stmt InlineLets(const Stmt& body);

// An Alloc is shrunk to the region that is touched under it, in the coordinates of the loops around it:
//   for i: alloc T[100]: for j in [0, 4): T[i*4 + j]   =>   for i: alloc T[4]: for j: T[j]
Stmt CompactAllocations(const Stmt& body);

// Alignment that NoteAlignment noted is made: the dimension behind the axis is padded with unused elements, until
// a step along the axis is the least k * factor + offset elements.
//   B: (16, 32), axis 0, factor 32, offset 8   =>   B: (16, 40)
PrimFunc AlignStorage(PrimFunc func);

// Rows of buffers in shared memory that NoteAlignment noted have their pieces of 16 bytes in another order, of n pieces
// piece c of row r at c ^ (r // d % n), such that the pieces c of 8 neighbouring rows are in different banks. A buffer
// stays as it is where n would be 1, or where an access may touch several pieces at once.
//   bfloat16 A: (128, 32):  A[r, c * 8 + i]   =>   A[r, (c ^ (r // 2 % 4)) * 8 + i]
// Which elements threads have in common does not change: what is proven of accesses before holds behind it.
PrimFunc SwizzleStorage(PrimFunc func);

// Conditions move out of loops on which they do not depend, and a serial loop whose whole body is under a condition on
// its variable runs only where that holds:
//   for i in [0, 16): for j: if o*16 + i < 100: S   =>   for i in [0, max(min(16, 100 - o*16), 0)): for j: S
// A condition on the variable of a vectorised loop stays one, and becomes a mask: all lanes do as many iterations.
Stmt TightenLoops(const Stmt& body);

// Sums that an instruction takes as small matrices in vector registers lie matrix by matrix in their register buffer,
// so that each is one register from the first product to the last:
//   alloc C[4, 8] in registers: T.tile_op("mma8_s8s8_s32", C[i*2:+2, j*2:+2], ..)
//   =>  alloc C[2, 4, 2, 2]: T.tile_op("mma8_s8s8_s32", C[i, j, 0:2, 0:2], ..)
// Others than those whose every operation is on matrices of one size, side by side, stay as they are.
Stmt LayOutMatrices(const Stmt& body);

// Every buffer gets one dimension; params become new buffers of the same names. `params` is replaced.
Stmt FlattenBuffers(const Stmt& body, std::vector<Buffer>& params);

// A tile whose unrolled and vectorised part stands under a condition is written several times: for the tiles where the
// condition always holds, without it; for the tile at the edge, where often only one remainder is possible, with that
// known; nothing for tiles outside. The choice is made once a tile, outside the loops it contains:
//   for o: alloc R: for k: for i in unroll(14): if o*14 + i < 100: S
//   =>  for o: if o*14 <= 86: alloc R: for k: for i in unroll(14): S
//              else: alloc R: for k: for i in unroll(14): if i < 2: S
// Registers that nothing but the versions uses are each version's own: what one stores says nothing about another.
Stmt SplitTails(const Stmt& body);

// A tile in registers whose loads stand under conditions that hold everywhere but at the borders of an image (its
// padding) is written twice: for tiles inside, without them, and as it was.
//   for o: alloc R: for i in unroll(14): R[i] = A[o*14 + i - 1] if 0 < o*14 + i else 0
//   =>  for o: alloc R: if 0 < o: for i in unroll(14): R[i] = A[o*14 + i - 1]
//                       else: for i in unroll(14): R[i] = A[o*14 + i - 1] if 0 < o*14 + i else 0
Stmt SplitBorders(const Stmt& body);

// A serial loop whose variable indexes a register buffer is marked unrolled when it is short: registers have no
// addresses.
Stmt UnrollRegisterLoops(const Stmt& body);

// An unrolled or vectorised loop of 2^n steps that accumulates into one element combines its terms in a tree in place
// of a chain (+, *, min, max): vectors of the target in pairs, then halves of the one that is left:
//   for v in unroll(16): S[0] = S[0] + R[v]
//   =>  P8[0:8] = R[0:8] + R[8:16];  P4[0:4] = P8[0:4] + P8[4:8];  P2[0:2] = ...;  P1[0] = ...;  S[0] = S[0] + P1[0]
Stmt ReduceInTree(const Stmt& body, const LowerOptions& options);

// Vectorised loops become vector expressions, conditions on their variable masks:
//   for j in vectorized(16): if o*16 + j < n: A[o*16 + j] = x   =>   A[ramp(o*16, 1, 16)] = broadcast(x), masked
// One longer than four vectors of the target is cut into single ones, of as many lanes as the widest elements in it
// have there. FailedPrecondition where an iteration reads what another one writes: the message names both accesses. A
// loop with something inside that has no vector form is serial, and the attribute kSerialLoops of the function says so:
// a text for each, with the reason. A plain build, whose loops were not asked for, says nothing. On a target without
// masks for the elements (LowerOptions::has_masks) there are two versions where conditions can be taken out:
//   if o*16 + 15 < n: A[ramp(o*16, 1, 16)] = broadcast(x)   else: for j in unroll(16): if o*16 + j < n: A[o*16 + j] = x
// where they cannot, the attribute says so.
absl::StatusOr<PrimFunc> VectorizeLoops(PrimFunc func, const LowerOptions& options);
inline constexpr std::string_view kSerialLoops = "serial_loops";
// What the attribute says; nothing where there is none.
std::vector<std::string> SerialLoops(const PrimFunc& func);

// A fragment that the threads of a warp loaded from shared memory (ldmatrix) is not loaded again while no store can
// have written there: where a tile's loops are written out, rows and columns share theirs.
//   load a <- A[0]; load b <- B[0]; c0 += a * b;  load a <- A[0]; load b <- B[1]; c1 += a * b
//   =>  load a <- A[0]; load b <- B[0]; c0 += a * b;  load b1 <- B[1]; c1 += a * b1
Stmt ShareFragments(const Stmt& body);

// Unrolled loops become copies of their bodies, as long as the copies of a nest are at most `max_copies`; serial
// beyond.
Stmt UnrollLoops(const Stmt& body, int64_t max_copies);

// Sums that cannot stay in tile registers (tile_registers.h) have their operations expanded after all: what is left is
// code for matrix instructions.
Stmt KeepTileRegisters(const Stmt& body);

// A masked store to a register buffer writes all lanes where those that are off are elements that no store writes:
// no load may read them, and a register is written whole, while a mask would keep its old lanes beside the new ones.
//   R[ramp(16, 1, 16)] = x, masked by ramp(16, 1, 16) < 24   =>   R[ramp(16, 1, 16)] = x
Stmt UnmaskRegisters(const Stmt& body);

// At most one parallel loop on any path, from 0: inner ones become serial.
Stmt KeepOuterParallel(const Stmt& body);

// Decides where every allocation lives: in registers (kRegister) when it is small and all its indices are constant,
// else in scratch memory, of the thread when it is allocated inside a parallel loop. Allocations that are not in use at
// the same time share bytes. A symbolic size takes what its greatest value does; FailedPrecondition where that is too
// much.
absl::StatusOr<LoweredFunc> AssignMemory(PrimFunc func);

}  // namespace hone
