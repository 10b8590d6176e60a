// The intrinsics that tile operations (stmt.h, TileOp) apply. Each is data: what it means as TensorIR, how its operands
// lie in memory, how many threads take part, what tells that it is done, and how a back end emits it. A new one is a
// row in thread_operations.cc, warp_products.cc, warp_loads.cc or async_copies.cc.
//
//   T.tile_op("fma_tile_f32", C[i:i + 6, j:j + 16], A[i:i + 6, 0:64], B[0:64, j:j + 16], params={"lanes": 16})
//
// Operands are regions, the output first; an operation that does not read its output says accumulates=False. A region
// may have more dimensions in front than the intrinsic's operand, each of one element; it may also be a single run of
// as many elements as the operand has, in row-major order. Registers of an operation by a warp may be any piece of
// their buffer that is in one. The sizes that the meaning leaves open (m, n, k) are the extents of the regions, which
// need not be constants: a tile at the edge is one with smaller extents.
//
// Params, all optional:
//   "m", "n", ..  the largest extent along that axis: lets a back end keep the tile in registers where the extent is no
//                 constant, or less
//   "lanes"       elements of a vector; the whole vectorised axis when absent
//   "unroll"      steps of the innermost serial loop that are written out
//   "size_m", ..  what the meaning leaves open, by its name there, where no operand says it any more
//   "row_0", ..   of operand 0, which is a run with gaps: elements from one row (its first dimension) to the next
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// The registers of matrix instructions (Intel SDM volume 1, chapter 18: AMX). An operand lies in one with its first
// dimension along the rows and the others, row-major, along the bytes of a row:
//   A[m, k] of bytes: row m, byte k
//   B[k // 4, n, 4] of bytes: row k // 4, byte 4 * n + k % 4
//   C[m, n] of 32 bits: row m, byte 4 * n
inline constexpr int64_t kTileRegisters = 8, kTileRows = 16, kTileRowBytes = 64;

// Of a row of a matrix that the threads of a warp load together, ldmatrix.
inline constexpr int64_t kMatrixRowBytes = 16;

// A machine instruction that does it, by the name that LLVM or PTX gives it: (operand 0, operand 1, ..) -> operand 0.
struct TileInstruction {
  struct Operand {
    DType type;  // of the vector's elements as they are passed: integers may stand for several narrower ones
    int lanes = 0;
    int splat_bits = 0;  // so many bits of memory are read and repeated to fill the vector; 0: the whole vector is read
    bool widens = false;  // elements in memory are narrower integers, which are extended
    int rows = 1;         // of a matrix: each is one piece of memory, and they fill the vector one behind the other
  };
  std::string feature;                     // of the target, by LLVM's name or FeaturesOf(GpuTarget)
  std::string function;                    // "llvm.x86.avx512.vpdpbusd.512"
  std::map<std::string, int64_t> extents;  // of the axes the meaning leaves open
  std::vector<Operand> operands;
  bool adds = false;  // the function is (operand 1, ..) -> what is then added to operand 0
  // Operands are tile registers in place of vectors: `operands` is empty, and `extents` are the largest. The function
  // takes their numbers; what it writes to memory comes last, by address and bytes between rows.
  bool in_tiles = false;
  // From one to the next, and to its result, of the unit that does it; 0: as a fused multiply-add of vectors.
  double cycles = 0, latency = 0;
  // There is no function: operands 1 and 2 are extended to the type of operand 0 and multiplied, and of that and the
  // addition LLVM makes the instruction that `function` names, "smlal".
  bool multiplies = false;
};

// How the intrinsic is emitted where no instruction fits: its axes as loops, outermost first.
struct TileLoop {
  std::string axis;
  ForKind kind = ForKind::kSerial;
};

// What tells that an operation is done, where it goes on beside what follows it.
enum class AsyncToken {
  kNone,     // the next one begins when it is done
  kGroup,    // its thread has waited for the group that it was committed with (ir/effects.h)
  kBarrier,  // a barrier in shared memory has come to its next phase, as after a copy of a tensor's box by the TMA
};

struct TileIntrinsic {
  std::string name;
  PrimFunc meaning;  // inputs first, the output last; one block: output = f(output, inputs)
  // How many threads take part in one operation. More than one: all threads of a warp come to it together, operands are
  // registers of each of them, and the dimension of lanes, the first of those in the meaning, is none of the operands'.
  // An operand in shared memory is a row that a thread names, its first element a multiple of kMatrixRowBytes from the
  // start of its buffer; those of threads beyond the rows of the meaning do not count.
  int threads = 1;
  AsyncToken token = AsyncToken::kNone;  // rows of another are no tile operations: CheckTileOp refuses them
  std::vector<TileLoop> loops;
  std::vector<TileInstruction> instructions;  // the first that fits is taken

  // Read off the meaning.
  std::vector<Buffer> operands;  // in the order of TileOp::operands
  std::vector<IterVar> axes;     // the block's variables; their domains start at 0
  Stmt update;                   // its Store, over `axes`
  bool accumulates = false;      // the update reads what it writes

  bool adds_once() const;  // to each element of its output: no axis is summed up
  bool in_tiles() const { return !instructions.empty() && instructions[0].in_tiles; }
  bool in_rows() const;                                  // an instruction takes operands whose rows may lie apart
  const IterVar* FindAxis(std::string_view name) const;  // nullptr when it has none of that name
};

std::span<const TileIntrinsic> TileIntrinsics();
const TileIntrinsic* FindTileIntrinsic(std::string_view name);  // nullptr when unknown

// InvalidArgument when the operation does not fit its intrinsic: "fma_tile_f32 takes 3 operands, not 2".
absl::Status CheckTileOp(const TileOp& op);
absl::Status CheckTileOp(const TileIntrinsic& intrinsic, const TileOp& op);  // that it is said to apply

// Names of params: of a size that the meaning leaves open, and of the distance of an operand's rows.
std::string SizeParam(const Var& size);
std::string RowParam(size_t operand);

// For an operation that CheckTileOp lets through, by one thread:
// the operation with its sizes and the distances of its rows as params, so that its operands may become runs, where
// FindInstruction has one for it that takes operands in rows;
TileOp StateLayout(const TileOp& op);
// how far each axis runs, in the order of `axes`;
std::vector<Expr> TileExtents(const TileIntrinsic& intrinsic, const TileOp& op);
// the update with its operands replaced by the regions and its axes by `at`;
Stmt TileUpdate(const TileIntrinsic& intrinsic, const TileOp& op, std::span<const Expr> at);
// what it does, as serial loops around a store. Every definition is new.
Stmt TileMeaning(const TileOp& op);

// The instruction that does the whole operation on a target with these features; nullptr when there is none, or when an
// operand does not lie in memory in one piece. Of a matrix in registers that is true of each row; sums in tile
// registers are in register scope.
const TileInstruction* FindInstruction(const TileOp& op, const std::vector<std::string>& features);

// What a row makes of a product C[m, n] += A[m, k] * B[k, n], n last: `depth` products are added to each of `rows` x
// `lanes` sums, and B has `group` of them side by side.
//   dot4:  C[n] += A[group] * B[n, group]             rows = 1, depth = group
//   mma4:  C[m, n] += A[m, k] * B[k // 4, n, k % 4]   in tile registers
//   mma8:  C[m, n] += A[m, k] * B[n, k]               rows = 2, depth = group: small matrices in vector registers
struct DotProduct {
  const TileIntrinsic* intrinsic = nullptr;
  const TileInstruction* instruction = nullptr;
  int64_t group = 1, lanes = 1, rows = 1, depth = 1;

  bool in_tiles() const { return instruction->in_tiles; }
  int64_t products() const { return rows * lanes * depth; }
};
struct ProductShape {
  DType sum, left, right;
  int64_t rows = 1, columns = 1, depth = 1;  // of which the instruction's extents must be divisors
};
// The one whose instruction adds most products on a target with these features; nullopt when there is none.
std::optional<DotProduct> FindDotProduct(const ProductShape& shape, const std::set<std::string>& features);
// The rows that add products of this type to the lanes of a vector, C[n] += A * B[n] and C[n] += A[n] * B[n], in the
// order in which they are to be tried; none for other types.
std::vector<const TileIntrinsic*> VectorProducts(DType type);
// The features of targets whose warps have the products of warp_products.cc, and the loads of warp_loads.cc, and of
// those whose threads have the copies of async_copies.cc.
inline constexpr char kWarpProductFeature[] = "mma.sync", kMatrixLoadFeature[] = "ldmatrix",
                      kAsyncCopyFeature[] = "cp.async";
// Of the products that a warp does, the one with most terms for operands and sums of these types; nullptr when there is
// none.
const TileIntrinsic* FindWarpProduct(DType left, DType right, DType sum, const std::set<std::string>& features);
// The load that takes so many elements of a matrix to each thread of a warp, by rows or by columns of what lies in
// memory; nullptr when there is none.
const TileIntrinsic* FindMatrixLoad(DType type, int64_t registers, bool transposed,
                                    const std::set<std::string>& features);
// The asynchronous copies from global to shared memory that threads of a target with these features have, by their
// bytes.
std::map<int64_t, const TileIntrinsic*> FindAsyncCopies(const std::set<std::string>& features);
// The rows that set the sums of an intrinsic in tile registers to 0, and write them to memory.
const TileIntrinsic& ZeroTile(const TileIntrinsic& product);
const TileIntrinsic& StoreTile(const TileIntrinsic& product);

// Which operand of an operation in tile registers is sums, that no other instruction reaches: store_tile has (memory,
// sums), others the sums first.
size_t SumOperand(const TileIntrinsic& intrinsic);

// The number of elements of a region that is one piece of its buffer; nullopt when it is not.
std::optional<int64_t> ContiguousElements(const BufferRegion& region);
// The elements from one row of an operand, its first dimension, to the next, where each row is one piece; nullopt where
// it is not. `rank`: of the operand.
std::optional<int64_t> RowStride(const BufferRegion& region, int rank);

}  // namespace hone
