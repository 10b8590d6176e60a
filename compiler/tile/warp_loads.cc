// ldmatrix: the 32 threads of a warp load matrices of 8 x 8 elements of 16 bits from shared memory. A thread names the
// first element of a row, thread 8 * i + r that of row r of matrix i, and takes two neighbours of every matrix: thread
// t has elements 2 * (t % 4) and 2 * (t % 4) + 1 of row t / 4, or of column t / 4 where the matrix is transposed on the
// way (PTX ISA 8.5, section 9.7.14.5.15, "Warp-level matrix load instruction: ldmatrix"). Elements of 8 bits are moved
// in pairs, of which none is torn apart.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic_rows.h"

namespace hone {
namespace {

// GROUP: neighbours that a thread holds together, in one 32-bit register.
constexpr char kLoadMatrix[] = R"(
@T.prim_func
def ldmatrix(S: T.Buffer((ROWS, LENGTH), "TYPE"), D: T.Buffer((32, REGS), "TYPE")):
    for i, j, l in T.grid(COUNT, 8, LENGTH):
        with T.block("ldmatrix"):
            vi, vr, vc = T.axis.remap("SSS", [i, j, l])
            D[FIRST * 4 + SECOND // GROUP, vi * GROUP + SECOND % GROUP] = S[vi * 8 + vr, vc]
)";

TileIntrinsic LoadMatrix(const char* type, const char* suffix, int count, bool transposed) {
  const int bytes = ParseDType(type)->bytes(), group = 4 / bytes, length = kMatrixRowBytes / bytes;
  const std::string variant = absl::StrCat("x", count, transposed ? "_trans" : "");
  TileIntrinsic row = MakeTileIntrinsic(absl::StrCat("ldmatrix_", variant, "_", suffix),
                                        absl::StrReplaceAll(kLoadMatrix, {{"ROWS", absl::StrCat(8 * count)},
                                                                          {"COUNT", absl::StrCat(count)},
                                                                          {"LENGTH", absl::StrCat(length)},
                                                                          {"REGS", absl::StrCat(count * group)},
                                                                          {"FIRST", transposed ? "vc" : "vr"},
                                                                          {"SECOND", transposed ? "vr" : "vc"},
                                                                          {"GROUP", absl::StrCat(group)},
                                                                          {"TYPE", type}}),
                                        {});
  row.threads = kWarpThreads;
  const DType element = *ParseDType(type);
  row.operands = {Buffer("D", element, {IntConst(count * group)}, Scope::kRegister),
                  Buffer("S", element, {IntConst(length)}, Scope::kShared)};
  // A matrix is read in a cycle where its rows lie in banks of their own.
  row.instructions.push_back(
      {.feature = kMatrixLoadFeature,
       .function = absl::StrCat("ldmatrix.sync.aligned.m8n8.x", count, transposed ? ".trans" : "", ".shared.b16"),
       .extents = {{"i", count}},
       .operands = {{element, count * group}, {element, length}},
       .cycles = static_cast<double>(count)});
  return row;
}

}  // namespace

std::vector<TileIntrinsic> WarpLoads() {
  std::vector<TileIntrinsic> rows;
  for (const int count : {1, 2, 4}) {
    rows.push_back(LoadMatrix("float16", "f16", count, false));
    rows.push_back(LoadMatrix("float16", "f16", count, true));
    rows.push_back(LoadMatrix("bfloat16", "bf16", count, false));
    rows.push_back(LoadMatrix("bfloat16", "bf16", count, true));
    rows.push_back(LoadMatrix("int8", "s8", count, false));
  }
  return rows;
}

}  // namespace hone
