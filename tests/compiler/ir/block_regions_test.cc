// Regions inferred for blocks that a text gives none.
#include "compiler/ir/block_regions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

struct Case {
  const char* name;
  const char* body;     // of block b, which has a variable vi in [0, 8); A: (10, 16), J: (8,) of int32, B: (8, 16)
  const char* regions;  // as the printer writes them
};

const Case kCases[] = {
    {"Hull", R"(
            B[vi, 0] = A[vi, 3] + A[vi + 2, 3] + A[vi + 1, 3])",
     "T.reads(A[vi:vi + 3, 3]) T.writes(B[vi, 0])"},
    {"LoopInside", R"(
            for j in range(4):
                B[vi, j * 2] = A[vi, 9 - j])",
     "T.reads(A[vi, 6:10]) T.writes(B[vi, 0:7])"},
    {"LoopThatDependsOnALoop", R"(
            for j in range(4):
                for k in range(j, j + 3):
                    B[vi, k] = A[vi, k])",
     "T.reads(A[vi, 0:6]) T.writes(B[vi, 0:6])"},
    {"NotAffine", R"(
            for j in range(4):
                B[vi, j] = A[vi, j // 2])",
     "T.reads(A[vi, 0:16]) T.writes(B[vi, 0:4])"},
    {"ByData", R"(
            B[vi, 0] = A[J[vi], 3])",
     "T.reads(A[0:10, 3], J[vi]) T.writes(B[vi, 0])"},
    {"Let", R"(
            k: T.int32 = vi + 2
            B[vi, 0] = A[k, 3])",
     "T.reads(A[vi + 2, 3]) T.writes(B[vi, 0])"},
    {"MatchedBufferThatIsOnlyWritten", R"(
            M = T.match_buffer(B[vi, 4:8], (4,), "float32")
            for j in range(4):
                M[j] = A[vi, j])",
     "T.reads(A[vi, 0:4]) T.writes(B[vi, 4:8])"},
    {"SeveralStores", R"(
            B[vi, 1] = A[vi, 0]
            if vi < 4:
                B[vi, 5] = A[vi, 1])",
     "T.reads(A[vi, 0:2]) T.writes(B[vi, 1:6])"},
    {"Vector", R"(
            B[vi, 0:8] = A[vi, T.Ramp(1, 2, 8)])",
     "T.reads(A[vi, 1:16]) T.writes(B[vi, 0:8])"},
    {"MaskedByData", R"(
            B.vstore([vi, T.Ramp(0, 1, 8)], A[vi, 0:8], predicate=T.Broadcast(J[vi], 8) < T.Broadcast(3, 8)))",
     "T.reads(A[vi, 0:8], J[vi]) T.writes(B[vi, 0:8])"},
    {"TileOperation", R"(
            T.tile_op("fma_tile_f32", B[vi:vi + 1, 0:16], A[vi:vi + 1, 0:1], A[vi:vi + 1, 0:16]))",
     "T.reads(B[vi, 0:16], A[vi, 0:16]) T.writes(B[vi, 0:16])"},
    {"ReadsOfTheAccumulationAreLeftOut", R"(
            with T.init():
                B[vi, 0] = T.float32(0)
            B[vi, 0] = B[vi, 0] + A[vi, 3])",
     "T.reads(A[vi, 3]) T.writes(B[vi, 0])"},
    {"ReadsOfOtherElementsAreNot", R"(
            with T.init():
                B[vi, 0] = T.float32(0)
            B[vi, 0] = B[vi, 0] + B[vi - 1, 0])",
     "T.reads(B[vi - 1:vi - 1 + 2, 0]) T.writes(B[vi, 0])"},
    {"NestedBlockThatRunsItsDomainAlone", R"(
            for j in range(5):
                with T.block("inner"):
                    vj = T.axis.spatial(13, j * 3)
                    B[vi, vj] = A[vi, vj + 1])",
     "T.reads(A[vi, 1:14]) T.writes(B[vi, 0:13])"},
    {"NestedBlockThatDoesNotRunAllLoops", R"(
            for j in range(20):
                with T.block("inner"):
                    vj = T.axis.spatial((2, 14), j - 1)
                    T.where(3 <= j and j < 15)
                    B[vi, vj] = A[vi, 15 - vj])",
     "T.reads(A[vi, 2:14]) T.writes(B[vi, 2:14])"},
    {"NestedBlockBoundToNoSumOfLoops", R"(
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial(4, j // 2)
                    B[vi, vj + 3] = A[vi, vj])",
     "T.reads(A[vi, 0:4]) T.writes(B[vi, 3:7])"},
    {"NestedDomainThatDependsOnALet", R"(
            k: T.int32 = vi + 2
            for j in range(8):
                with T.block("inner"):
                    vj = T.axis.spatial((k, k + 4), k + j)
                    T.where(j < 4)
                    B[vi, vj] = A[vi, vj])",
     "T.reads(A[vi, vi + 2:vi + 2 + 4]) T.writes(B[vi, vi + 2:vi + 2 + 4])"},
    {"NestedDomainBesideTheLoops", R"(
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(30, vi * 4 + j)
                    B[vi, vj // 2] = A[vi, vj])",
     "T.reads(A[vi, vi * 4:vi * 4 + 4]) T.writes(B[vi, 0:16])"},
};

class BlockRegions : public testing::TestWithParam<Case> {};
TEST_P(BlockRegions, AreInferred) {
  const std::string text = absl::StrCat(
      "@T.prim_func\ndef main(A: T.Buffer((10, 16), \"float32\"), J: T.Buffer((8,), \"int32\"), "
      "B: T.Buffer((8, 16), \"float32\")):\n    for i in range(8):\n        with T.block(\"b\"):\n"
      "            vi = T.axis.spatial(8, i)\n",
      GetParam().body + 1, "\n");
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  ASSERT_TRUE(f.ok()) << f.status() << "\n" << text;
  const std::string printed = ToText(*f);
  const size_t reads = printed.find("T.reads"), writes = printed.find("T.writes");
  ASSERT_NE(writes, std::string::npos) << printed;
  EXPECT_EQ(absl::StrReplaceAll(printed.substr(reads, printed.find('\n', writes) - reads), {{"\n            ", " "}}),
            GetParam().regions);
}
INSTANTIATE_TEST_SUITE_P(Cases, BlockRegions, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
