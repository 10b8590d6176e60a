// Programs that tile operations do, scheduled so that they do, for the tests of every instruction of the registry; and
// what those need to know of an instruction, read off the registry and the table of cores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone::testing {

Target TargetNamed(const std::string& text);
// What an instruction of this feature is compiled for: of the cores that have it the one that has least beside it,
// those first that this machine emulates. "" where no core of the table has it.
std::string TargetWith(const std::string& feature);
// What assemblers call the instruction of LLVM's function, on x86 without the v in front:
// "llvm.x86.avx512bf16.dpbf16ps.512" is "dpbf16ps".
std::string Mnemonic(const std::string& function);
int CountOf(const std::string& text, const std::string& part);

struct InstructionCase {
  const TileIntrinsic* row;
  const TileInstruction* instruction;

  const char* intrinsic() const { return row->name.c_str(); }
  int64_t lanes() const { return instruction->extents.at("n"); }
  int64_t depth() const { return instruction->extents.at("k"); }
  std::string target() const { return TargetWith(instruction->feature); }
};
// All instructions of rows for one thread that take vectors, or small matrices in them. Tile operations apply the rows.
std::vector<InstructionCase> InstructionsOnVectors(bool matrices);
// Those that multiply tile registers; with them go the rows that zero and store their sums.
std::vector<InstructionCase> ProductsInTiles();

// C[j] += as many products a lane as the intrinsic adds up, of its types.
PrimFunc DotOf(const char* intrinsic, int64_t columns, int64_t groups);
Schedule Tensorized(const PrimFunc& workload, int64_t lanes, const char* intrinsic);

// C[i, j] += A[i, k] * B[k // group, j, k % group], in the types and the group of the intrinsic.
PrimFunc GroupedProduct(const char* intrinsic, int64_t m, int64_t n, int64_t k);
// 6 x 16 sums in registers, four steps of k unrolled.
Schedule InVectorRegisters(const PrimFunc& workload, const char* intrinsic, int64_t lanes);
// Sums of 8 x 8 stay in vector registers along k, 2 x 2 in each; a copy writes them to memory.
Schedule InMatrixRegisters(const PrimFunc& workload, const char* intrinsic);

struct TileSizes {
  int64_t down = 2, across = 2;  // tiles held at once
  int64_t rows = 16, depth = 64;
};
// Sums of down x across tiles stay in registers along k; a copy writes them to memory.
Schedule InTileRegisters(const PrimFunc& workload, const char* intrinsic, const TileSizes& sizes,
                         bool parallel = false);

// Sums of float16 as the program has them: vectors that stay in float16 where the target adds and multiplies them
// there.
PrimFunc HalfProduct(int64_t m, int64_t n, int64_t k);
Schedule InHalfVectors(const PrimFunc& workload, int64_t lanes);

}  // namespace hone::testing
