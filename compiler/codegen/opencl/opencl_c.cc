#include "compiler/codegen/opencl/opencl_c.h"

#include <string>

namespace hone {
namespace {

std::string NameOfMath(const MathFunction& function) { return std::string(function.device.opencl); }

constexpr Dialect::Function kFunctions[] = {
    {"fma", "fma({0}, {1}, {2})"}, {"fmod", "fmod({0}, {1})"},    {"isnan", "isnan({0})"},
    {"isinf", "isinf({0})"},       {"popcount", "popcount({0})"},
};

// Section 6.12.7: of every device, whether it computes with half or not.
constexpr Dialect::Helper kHelpers[] = {
    {"f32_of_f16", "float f32_of_f16(ushort bits) { return vload_half(0, (const half*)&bits); }"},
    {"f16_of_f32",
     "ushort f16_of_f32(float x) {\n  ushort bits;\n  vstore_half_rte(x, 0, (half*)&bits);\n  return bits;\n}"},
};

constexpr Dialect kOpenClC = {
    .name = "OpenCL C",
    .kernel = "__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))\nvoid ",
    .helper = "static ",
    .global = "__global ",
    .shared = "__local ",
    .restricted = "restrict ",
    .shared_memory = "__local uchar shared[{bytes}] __attribute__((aligned(128)));",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    .block_index = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)"},
    .thread_index = {"get_local_id(0)", "get_local_id(1)", "get_local_id(2)"},
    .ints = {"char", "short", "int", "long"},
    .unsigned_ints = {"uchar", "ushort", "uint", "ulong"},
    .long_suffix = "l",
    .float_of_bits = "as_float({0})",
    .double_of_bits = "as_double({0})",
    .bits_of_float = "as_uint({0})",
    .vectors = {.most_lanes = 16,
                .ints = {"char", "short", "int", "long"},
                .unsigned_ints = {"uchar", "ushort", "uint", "ulong"},
                .load = "vload{lanes}(0, {pointer})",
                .store = "vstore{lanes}({value}, 0, {pointer})",
                .make = "({type}{lanes})({values})",
                .element = ".s",
                .elements = "0123456789abcdef"},
    .name_of_math = NameOfMath,
    .functions = kFunctions,
    .helpers = kHelpers,
};

}  // namespace

const Dialect& OpenClC() { return kOpenClC; }

}  // namespace hone
