// Kernels written by hand in x86-64 machine code, so that the runtime is tested without a compiler.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/image/image.h"

namespace hone {

inline std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

inline std::string Int32(int32_t value) { return std::string(reinterpret_cast<const char*>(&value), 4); }

// Returns `code`.
inline std::string ReturnKernel(int32_t code) { return Bytes({0xB8}) + Int32(code) + Bytes({0xC3}); }  // mov eax; ret

// tensors[to] = tensors[from], `bytes` of them.
inline std::string CopyKernel(int from, int to, int32_t bytes) {
  return Bytes({0x48, 0x8B, 0x07,            // mov rax, [rdi]
                0x48, 0x8B, 0x70, 8 * from,  // mov rsi, [rax + 8 * from]
                0x48, 0x8B, 0x78, 8 * to,    // mov rdi, [rax + 8 * to]
                0xB9}) +
         Int32(bytes) +                          // mov ecx, bytes
         Bytes({0xF3, 0xA4, 0x31, 0xC0, 0xC3});  // rep movsb; xor eax, eax; ret
}

// What AddKernel(1000) computes.
inline constexpr char kAddOfThousand[] = R"(
@T.prim_func
def main(A: T.Buffer((1000,), "int32"), B: T.Buffer((1000,), "int32"), C: T.Buffer((1000,), "int32")):
    for i in range(1000):
        with T.block("C"):
            vi = T.axis.spatial(1000, i)
            C[vi] = A[vi] + B[vi]
)";

// tensors[2][i] = tensors[0][i] + tensors[1][i] over int32.
inline std::string AddKernel(int32_t elements) {
  return Bytes({0x48, 0x8B, 0x07, 0x48, 0x8B, 0x30,              // mov rax, [rdi]; mov rsi, [rax]
                0x48, 0x8B, 0x50, 0x08, 0x48, 0x8B, 0x78, 0x10,  // mov rdx, [rax + 8]; mov rdi, [rax + 16]
                0xB9}) +
         Int32(elements) +               // mov ecx, elements
         Bytes({0x8B, 0x44, 0x8E, 0xFC,  // mov eax, [rsi + rcx * 4 - 4]
                0x03, 0x44, 0x8A, 0xFC,  // add eax, [rdx + rcx * 4 - 4]
                0x89, 0x44, 0x8F, 0xFC,  // mov [rdi + rcx * 4 - 4], eax
                0xFF, 0xC9, 0x75, 0xF0,  // dec ecx; jnz
                0x31, 0xC0, 0xC3});      // xor eax, eax; ret
}

// The same by a parallel loop over the elements.
inline std::string ParallelAddKernel(int32_t elements) {
  return Bytes({0x49, 0x89, 0xF8,                 // mov r8, rdi
                0x49, 0x8B, 0x78, 0x38,           // mov rdi, [r8 + 56], the pool
                0x48, 0x8D, 0x35, 0x0C, 0, 0, 0,  // lea rsi, [rip + 12], the task below
                0x4C, 0x89, 0xC2,                 // mov rdx, r8
                0xB9}) +
         Int32(elements) +                           // mov ecx, elements
         Bytes({0x41, 0xFF, 0x60, 0x30,              // jmp [r8 + 48], parallel_for
                0x48, 0x8B, 0x07, 0x4C, 0x8B, 0x00,  // mov rax, [rdi]; mov r8, [rax]
                0x4C, 0x8B, 0x48, 0x08,              // mov r9, [rax + 8]
                0x4C, 0x8B, 0x50, 0x10,              // mov r10, [rax + 16]
                0x48, 0x39, 0xD6, 0x7D, 0x11,        // cmp rsi, rdx; jge to the end
                0x41, 0x8B, 0x04, 0xB0,              // mov eax, [r8 + rsi * 4]
                0x41, 0x03, 0x04, 0xB1,              // add eax, [r9 + rsi * 4]
                0x41, 0x89, 0x04, 0xB2,              // mov [r10 + rsi * 4], eax
                0x48, 0xFF, 0xC6, 0xEB, 0xEA,        // inc rsi; jmp to the comparison
                0x31, 0xC0, 0xC3});                  // xor eax, eax; ret
}

// Never returns.
inline std::string LoopKernel() { return Bytes({0xEB, 0xFE}); }
// Writes to address 0.
inline std::string CrashKernel() { return Bytes({0x31, 0xC0, 0x89, 0x00, 0xC3}); }

inline ImageParts PartsOf(const std::vector<std::pair<std::string, std::string>>& kernels) {
  ImageParts parts;
  for (const auto& [name, code] : kernels) {
    parts.symbols.push_back({name, parts.code.size()});
    parts.code += code;
    parts.code.resize((parts.code.size() + 15) / 16 * 16, '\xCC');
  }
  return parts;
}
inline std::string ImageOf(const std::vector<std::pair<std::string, std::string>>& kernels) {
  return WriteImage(PartsOf(kernels));
}

}  // namespace hone
