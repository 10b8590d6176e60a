#include "compiler/codegen/cuda/cuda_cpp.h"

#include <string>

#include "compiler/codegen/cuda/intrinsic_helper.h"

namespace hone {
namespace {

std::string NameOfMath(const MathFunction& function) { return std::string(function.device.cuda); }

constexpr Dialect::Function kFunctions[] = {
    {"fma", "fma{f}({0}, {1}, {2})"}, {"fmod", "fmod{f}({0}, {1})"}, {"isnan", "isnan({0})"},
    {"isinf", "isinf({0})"},          {"popcount", "__popc({0})"},
};

// PTX ISA 8.5, section 9.7.9.21.
constexpr Dialect::Helper kHelpers[] = {
    {"f32_of_f16", R"(float f32_of_f16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
})"},
    {"f16_of_f32", R"(unsigned short f16_of_f32(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
})"},
};

// PTX ISA 8.5, section 9.7.8.24.
constexpr char kCommitCopies[] = R"(void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); })";
constexpr char kWaitForCopies[] =
    R"(void wait_for_copies_{left}() { asm volatile("cp.async.wait_group {left};" ::: "memory"); })";

constexpr Dialect kCudaCpp = {
    .name = "CUDA C++",
    .kernel = "extern \"C\" __global__ void __launch_bounds__({threads})\n",
    .helper = "static __device__ __forceinline__ ",
    .restricted = "__restrict__ ",
    .shared_memory = "__shared__ __align__(128) unsigned char shared[{bytes}];",
    .dynamic_shared_memory = "extern __shared__ __align__(128) unsigned char shared[];  // {bytes} bytes",
    .most_static_shared = 48 << 10,
    .barrier = "__syncthreads();",
    .block_index = {"blockIdx.x", "blockIdx.y", "blockIdx.z"},
    .thread_index = {"threadIdx.x", "threadIdx.y", "threadIdx.z"},
    .ints = {"signed char", "short", "int", "long long"},
    .unsigned_ints = {"unsigned char", "unsigned short", "unsigned int", "unsigned long long"},
    .long_suffix = "ll",
    .float_suffix = "f",
    .float_of_bits = "__uint_as_float({0})",
    .double_of_bits = "__longlong_as_double({0})",
    .bits_of_float = "__float_as_uint({0})",
    .vectors = {.most_lanes = 4,
                .aligned = true,
                .ints = {"char", "short", "int", "longlong"},
                .unsigned_ints = {"uchar", "ushort", "uint", "ulonglong"},
                .load = "*{pointer}",
                .store = "*{pointer} = {value}",
                .make = "make_{type}{lanes}({values})",
                .element = ".",
                .elements = "xyzw"},
    .name_of_math = NameOfMath,
    .functions = kFunctions,
    .helpers = kHelpers,
    .intrinsic_helper = IntrinsicHelper,
    .commit_copies = kCommitCopies,
    .wait_for_copies = kWaitForCopies,
};

}  // namespace

const Dialect& CudaCpp() { return kCudaCpp; }

}  // namespace hone
