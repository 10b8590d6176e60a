// cp.async: a thread begins to copy 4, 8 or 16 bytes from global to shared memory and goes on; they are there when it
// has waited for the group that it committed them with (PTX ISA 8.5, section 9.7.8.24, "Data Movement and Conversion
// Instructions: cp.async"). A last operand of the instruction says how many bytes are read, 0 where nothing is: zeros
// take the place of the others. `T.async_copy` begins one (ir/effects.h), and no tile operation does.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/tile/tile_intrinsic_rows.h"

namespace hone {
namespace {

// Bytes are those of elements of any type.
constexpr char kCopy[] = R"(
@T.prim_func
def copy_async(S: T.Buffer((BYTES,), "uint8"), D: T.Buffer((BYTES,), "uint8", scope="shared")):
    for j in range(BYTES):
        with T.block("copy_async"):
            vn = T.axis.spatial(BYTES, j)
            D[vn] = S[vn]
)";

TileIntrinsic CopyAsync(int bytes, const char* function) {
  TileIntrinsic row =
      MakeTileIntrinsic(absl::StrCat("copy_async_", bytes),
                        absl::StrReplaceAll(kCopy, {{"BYTES", absl::StrCat(bytes)}}), {{"n", ForKind::kVectorized}});
  row.token = AsyncToken::kGroup;
  row.instructions.push_back({.feature = kAsyncCopyFeature,
                              .function = function,
                              .operands = {{DType::UInt(8), bytes}, {DType::UInt(8), bytes}}});
  return row;
}

}  // namespace

std::vector<TileIntrinsic> AsyncCopies() {
  std::vector<TileIntrinsic> rows;
  for (const int bytes : {4, 8}) rows.push_back(CopyAsync(bytes, "cp.async.ca.shared.global"));
  // Past the first-level cache, which copies of 16 bytes alone can: a block finds what it has read in shared memory.
  rows.push_back(CopyAsync(16, "cp.async.cg.shared.global"));
  return rows;
}

}  // namespace hone
