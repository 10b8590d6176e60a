// mma.sync: C[16, 8] += A[16, k] * B[k, 8] by the 32 threads of a warp, each of which holds a part of the three
// matrices in registers of its own. Which lane holds an element, and in which of its registers, is that of the PTX
// ISA 8.5, section 9.7.14.5, "Matrix Fragments for mma.m16n8k8" (.f16), "mma.m16n8k16 with floating point type" and
// "mma.m16n8k32" (.s8, .u8): there, groupID is lane / 4 and threadID_in_group lane % 4.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic_rows.h"

namespace hone {
namespace {

// GROUP: how many neighbours along k a lane holds together, in one 32-bit register.
constexpr char kMma[] = R"(
@T.prim_func
def mma(A: T.Buffer((32, A_REGS), "LEFT"), B: T.Buffer((32, B_REGS), "RIGHT"), C: T.Buffer((32, 4), "SUM")):
    for i, j, l in T.grid(16, 8, K):
        with T.block("mma"):
            vm, vn, vk = T.axis.remap("SSR", [i, j, l])
            C[vm % 8 * 4 + vn // 2, vm // 8 * 2 + vn % 2] = C[vm % 8 * 4 + vn // 2, vm // 8 * 2 + vn % 2] + T.Cast("SUM", A[vm % 8 * 4 + vk % HALF // GROUP, vk // HALF * TWICE + vm // 8 * GROUP + vk % GROUP]) * T.Cast("SUM", B[vn * 4 + vk % HALF // GROUP, vk // HALF * GROUP + vk % GROUP])
)";

// Which one: "bf16" for bfloat16.
std::string PtxType(const char* type) {
  const DType parsed = *ParseDType(type);
  return absl::StrCat(parsed == DType::BFloat16() ? "bf" : parsed.is_float() ? "f" : "s", parsed.bits);
}

// A matrix unit multiplies 256 pairs of 16 bits in a cycle, or twice as many of 8 (NVIDIA A100 Tensor Core GPU
// Architecture, 2020, table 1: 1,024 a processor, which has four of them).
constexpr double kBytesOfCycle = 512;

TileIntrinsic Mma(const char* name, int k, const char* left, const char* right, const char* sum) {
  const int bytes = ParseDType(left)->bytes(), group = 4 / bytes;
  const int left_registers = 16 * k / 32, right_registers = 8 * k / 32;
  const auto number = [](int n) { return absl::StrCat(n); };
  TileIntrinsic row = MakeTileIntrinsic(name,
                                        absl::StrReplaceAll(kMma, {{"A_REGS", number(left_registers)},
                                                                   {"B_REGS", number(right_registers)},
                                                                   {"LEFT", left},
                                                                   {"RIGHT", right},
                                                                   {"SUM", sum},
                                                                   {"HALF", number(4 * group)},
                                                                   {"TWICE", number(2 * group)},
                                                                   {"GROUP", number(group)},
                                                                   {"K", number(k)}}),
                                        {});
  row.threads = kWarpThreads;
  for (Buffer& operand : row.operands)
    operand = Buffer(operand.name(), operand.type(), {operand.shape()[1]}, Scope::kRegister);
  row.instructions.push_back(
      {.feature = kWarpProductFeature,
       .function = absl::StrCat("mma.sync.aligned.m16n8k", k, ".row.col.", PtxType(sum), ".", PtxType(left), ".",
                                PtxType(right), ".", PtxType(sum)),
       .extents = {{"m", 16}, {"n", 8}, {"k", k}},
       .operands = {{*ParseDType(sum), 4}, {*ParseDType(left), left_registers}, {*ParseDType(right), right_registers}},
       .cycles = 16 * 8 * k * bytes / kBytesOfCycle});
  return row;
}

}  // namespace

std::vector<TileIntrinsic> WarpProducts() {
  std::vector<TileIntrinsic> rows;
  rows.push_back(Mma("mma_m16n8k8_f16f16_f32", 8, "float16", "float16", "float32"));
  rows.push_back(Mma("mma_m16n8k16_f16f16_f32", 16, "float16", "float16", "float32"));
  rows.push_back(Mma("mma_m16n8k16_bf16bf16_f32", 16, "bfloat16", "bfloat16", "float32"));
  rows.push_back(Mma("mma_m16n8k32_s8s8_s32", 32, "int8", "int8", "int32"));
  return rows;
}

}  // namespace hone
