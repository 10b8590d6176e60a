// Kernels written by hand in x86-64 machine code, so that the runtime is tested without a compiler.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/image.h"

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
