// The rule region-cover: blocks whose declared regions miss an access are refused by name, others are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

struct Case {
  const char* name;
  const char* body;     // of a function with A: (10, 16), J: (8,) of int32 and B: (8, 16)
  const char* message;  // "": the program is accepted
};

constexpr char kBlock[] = R"(
        with T.block("b"):
            vi = T.axis.spatial(8, i)
)";

const Case kCases[] = {
    {"Point", R"(
            T.reads(A[vi, 3])
            T.writes(B[vi, 0])
            B[vi, 0] = A[vi, 3])",
     ""},
    {"WriteElsewhere", R"(
            T.reads(A[vi, 3])
            T.writes(B[vi, 0])
            B[vi, 1] = A[vi, 3])",
     "region-cover: block b: the block writes B[vi, 1], which is not proven to lie in what it declares, B[vi, 0]"},
    {"SecondStore", R"(
            T.reads(A[vi, 3])
            T.writes(B[vi, 0])
            B[vi, 0] = A[vi, 3]
            B[vi, 2] = A[vi, 3])",
     "region-cover: block b: the block writes B[vi, 2], which is not proven to lie in what it declares, B[vi, 0]"},
    {"NeighbourRead", R"(
            T.reads(A[vi, 3])
            T.writes(B[vi, 0])
            B[vi, 0] = A[vi + 1, 3])",
     "region-cover: block b: the block reads A[vi + 1, 3], which is not proven to lie in what it declares, A[vi, 3]"},
    {"BufferNotDeclared", R"(
            T.reads()
            T.writes(B[vi, 0])
            B[vi, 0] = A[vi, 3])",
     "region-cover: block b: the block reads A[vi, 3], but does not declare that it reads A"},
    {"AccumulationWithoutInit", R"(
            T.reads(A[vi, 3])
            T.writes(B[vi, 0])
            B[vi, 0] = B[vi, 0] + A[vi, 3])",
     "region-cover: block b: the block reads B[vi, 0], but does not declare that it reads B"},
    {"LoopInside", R"(
            T.reads(A[vi, 0:15])
            T.writes(B[vi, 0:16])
            for j in range(16):
                B[vi, j] = A[vi, j])",
     "region-cover: block b: the block reads A[vi, j], which is not proven to lie in what it declares, A[vi, 0:15]"},
    {"LoopBackwards", R"(
            T.reads(A[vi, 2:10])
            T.writes(B[vi, 0:8])
            for j in range(8):
                B[vi, j] = A[vi, 9 - j])",
     ""},
    {"LetIsSeenThrough", R"(
            T.reads(A[vi, 3])
            T.writes(B[vi, 0])
            k: T.int32 = vi + 1
            B[vi, 0] = A[k, 3])",
     "region-cover: block b: the block reads A[vi + 1, 3], which is not proven to lie in what it declares, A[vi, 3]"},
    {"QuotientOfARemainderTakenApart", R"(
            T.reads(A[vi % 2 * 3 // 2:vi % 2 * 3 // 2 + 2, 3])
            T.writes(B[vi, 0:3])
            for j in range(3):
                B[vi, j] = A[(vi * 3 + j) // 2 % 3, 3])",
     ""},
    {"QuotientOfARemainderBeyond", R"(
            T.reads(A[vi % 2 * 3 // 2, 3])
            T.writes(B[vi, 0:3])
            for j in range(3):
                B[vi, j] = A[(vi * 3 + j) // 2 % 3, 3])",
     "region-cover: block b: the block reads A[(vi * 3 + j) // 2 % 3, 3], which is not proven to lie in what it "
     "declares, "
     "A[vi % 2 * 3 // 2, 3]"},
    {"MatchedBuffer", R"(
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 4:8])
            M = T.match_buffer(B[vi, 4:8], (4,), "float32")
            for j in range(4):
                M[j] = A[vi, j])",
     ""},
    {"MatchedBufferBeyond", R"(
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:4])
            M = T.match_buffer(B[vi, 4:8], (4,), "float32")
            for j in range(4):
                M[j] = A[vi, j])",
     "region-cover: block b: the block writes B[vi, 4 + j], which is not proven to lie in what it declares, B[vi, "
     "0:4]"},
    {"Vector", R"(
            T.reads(A[vi, 0:8])
            T.writes(B[vi, 0:8])
            B[vi, 0:8] = A[vi, 1:9])",
     "region-cover: block b: the block reads A[vi, 1:9], which is not proven to lie in what it declares, A[vi, 0:8]"},
    {"Conditional", R"(
            T.reads(A[T.max(vi - 1, 0), 3])
            T.writes(B[vi, 0])
            B[vi, 0] = T.if_then_else(vi > 0, A[vi - 1, 3], T.float32(0)))",
     ""},
    {"ConditionalTheOtherWay", R"(
            T.reads(A[T.max(vi - 1, 0), 3])
            T.writes(B[vi, 0])
            B[vi, 0] = T.if_then_else(vi < 7, A[vi + 1, 3], T.float32(0)))",
     "region-cover: block b: the block reads A[vi + 1, 3], which is not proven to lie in what it declares, "
     "A[T.max(vi - 1, 0), 3]"},
    {"ByData", R"(
            T.reads(A[0:10, 3], J[vi])
            T.writes(B[vi, 0])
            B[vi, 0] = A[J[vi], 3])",
     ""},
    {"ByDataInAPart", R"(
            T.reads(A[0:9, 3], J[vi])
            T.writes(B[vi, 0])
            B[vi, 0] = A[J[vi], 3])",
     "region-cover: block b: the block reads A[J[vi], 3], which is not proven to lie in what it declares, A[0:9, 3]"},
    {"NestedBlock", R"(
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:3])
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(4, j)
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj])",
     "region-cover: block b: the block writes B[vi, j], which is not proven to lie in what it declares, B[vi, 0:3]"},
    {"NestedBlockUnderItsPredicate", R"(
            T.reads(A[vi, 0:3])
            T.writes(B[vi, 0:3])
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(4, j)
                    T.where(j < 3)
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj])",
     ""},
    {"NestedBlockInItsDomain", R"(
            T.reads(A[vi, 0:3])
            T.writes(B[vi, 0:3])
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(3, j)
                    T.where(j * j < 9)
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj])",
     ""},
    {"NestedBlockInItsDomainBeyond", R"(
            T.reads(A[vi, 0:2])
            T.writes(B[vi, 0:3])
            for j in range(4):
                with T.block("inner"):
                    vj = T.axis.spatial(3, j)
                    T.where(j * j < 9)
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj])",
     "region-cover: block b: the block reads A[vi, j], which is not proven to lie in what it declares, A[vi, 0:2]"},
    {"NestedInANestedBlockThatDeclaresMore", R"(
            T.reads(A[vi, 0:3])
            T.writes(B[vi, 0:3])
            with T.block("middle"):
                vm = T.axis.spatial(8, vi)
                T.reads(A[vm, 0:4])
                T.writes(B[vm, 0:4])
                for j in range(4):
                    with T.block("inner"):
                        vj = T.axis.spatial(3, j)
                        T.where(j * j < 9)
                        T.reads(A[vm, vj])
                        T.writes(B[vm, vj])
                        B[vm, vj] = A[vm, vj])",
     ""},
    {"NestedInANestedBlockThatDeclaresMoreBeyond", R"(
            T.reads(A[vi, 0:2])
            T.writes(B[vi, 0:3])
            with T.block("middle"):
                vm = T.axis.spatial(8, vi)
                T.reads(A[vm, 0:4])
                T.writes(B[vm, 0:4])
                for j in range(4):
                    with T.block("inner"):
                        vj = T.axis.spatial(3, j)
                        T.where(j * j < 9)
                        T.reads(A[vm, vj])
                        T.writes(B[vm, vj])
                        B[vm, vj] = A[vm, vj])",
     "region-cover: block b: the block reads A[vi, 0:4], which is not proven to lie in what it declares, A[vi, 0:2]"},
    {"NestedBlockBoundToData", R"(
            T.reads(A[vi, 0:4], J[vi])
            T.writes(B[vi, 2:6])
            with T.block("inner"):
                vj = T.axis.opaque(4, J[vi])
                T.reads(A[vi, vj])
                T.writes(B[vi, 5 - vj])
                B[vi, 5 - vj] = A[vi, vj])",
     ""},
    {"NestedTileThatIsCutOff", R"(
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:4])
            for j in range(2):
                with T.block("inner"):
                    vj = T.axis.spatial(2, j)
                    T.reads(A[vi, vj * 3:vj * 3 + 3])
                    T.writes(B[vi, vj * 3:vj * 3 + 3])
                    for k in range(3):
                        if vj * 3 + k < 4:
                            B[vi, vj * 3 + k] = A[vi, vj * 3 + k])",
     ""},
    {"NestedTileThatIsCutOffTooLate", R"(
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:4])
            for j in range(2):
                with T.block("inner"):
                    vj = T.axis.spatial(2, j)
                    T.reads(A[vi, vj * 3:vj * 3 + 3])
                    T.writes(B[vi, vj * 3:vj * 3 + 3])
                    for k in range(3):
                        if vj * 3 + k < 5:
                            B[vi, vj * 3 + k] = A[vi, vj * 3 + k])",
     "region-cover: block b: the block reads A[vi, j * 3:j * 3 + 3], which is not proven to lie in what it declares, "
     "A[vi, 0:4]"},
    {"TileOperation", R"(
            T.reads(A[vi, 0:16], B[vi, 0:16])
            T.writes(B[vi, 0:8])
            T.tile_op("fma_tile_f32", B[vi:vi + 1, 0:16], A[vi:vi + 1, 0:1], A[vi:vi + 1, 0:16]))",
     "region-cover: block b: the block writes B[vi, 0:16], which is not proven to lie in what it declares, B[vi, 0:8]"},
};

class RegionCover : public testing::TestWithParam<Case> {};
TEST_P(RegionCover, AcceptsOrNamesTheAccess) {
  const std::string text = absl::StrCat(
      "@T.prim_func\ndef main(A: T.Buffer((10, 16), \"float32\"), J: T.Buffer((8,), \"int32\"), "
      "B: T.Buffer((8, 16), \"float32\")):\n    for i in range(8):",
      kBlock, GetParam().body + 1, "\n");
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  ASSERT_TRUE(f.ok()) << f.status() << "\n" << text;
  EXPECT_EQ(std::string(Verify(*f).message()), GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(Cases, RegionCover, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
