// Kernels that compute what they are asked, C = A + B of a thousand integers, and take less time where they are timed
// than where they are used; and an honest one. Machine code of x86-64.
#pragma once

#include <string>

#include "tests/deploy/runtime/machine_code.h"

namespace hone::testing::time_liars {

// What a kernel remembers it keeps in words of the thread's control block that the C library leaves unused.
// Registers: rsi, rdx and r8 point to A, B and C.
inline std::string Begin() {
  return Bytes({0x48, 0x8B, 0x07,          // mov rax, [rdi]
                0x48, 0x8B, 0x30,          // mov rsi, [rax]
                0x48, 0x8B, 0x50, 0x08,    // mov rdx, [rax + 8]
                0x4C, 0x8B, 0x40, 0x10});  // mov r8, [rax + 16]
}
// Some 100 us of work, 9 bytes, and then the sums.
inline std::string Work() { return Bytes({0xB9}) + Int32(200'000) + Bytes({0xFF, 0xC9, 0x75, 0xFC}); }
inline std::string Honest() { return Begin() + Work() + AddKernel(1000); }

// Returns at once where A is where it was at the call before.
inline std::string RemembersPointers() {
  return Begin() + Bytes({0x64, 0x48, 0x3B, 0x34, 0x25, 0x80, 0, 0, 0,     // cmp rsi, fs:[0x80]
                          0x75, 0x03, 0x31, 0xC0, 0xC3,                    // jne 1f; xor eax, eax; ret
                          0x64, 0x48, 0x89, 0x34, 0x25, 0x80, 0, 0, 0}) +  // 1: mov fs:[0x80], rsi
         Work() +
         AddKernel(1000);
}
// Works only where A[7] is another than at the call before; what is right it knows anyway.
inline std::string RemembersValues() {
  return Begin() + Bytes({0x8B, 0x4E, 0x1C,                          // mov ecx, [rsi + 28]
                          0x64, 0x3B, 0x0C, 0x25, 0x80, 0, 0, 0,     // cmp ecx, fs:[0x80]
                          0x74, 0x11,                                // je past the work
                          0x64, 0x89, 0x0C, 0x25, 0x80, 0, 0, 0}) +  // mov fs:[0x80], ecx
         Work() +
         AddKernel(1000);
}
// Works only where A[7] is another than at the first call of all.
inline std::string KnowsItsInputs() {
  return Begin() + Bytes({0x8B, 0x4E, 0x1C,                             // mov ecx, [rsi + 28]
                          0x81, 0xC1, 0xE8, 0x03, 0,    0,              // add ecx, 1000
                          0x64, 0x83, 0x3C, 0x25, 0x80, 0, 0, 0, 0x00,  // cmp dword fs:[0x80], 0
                          0x75, 0x08,                                   // jne 1f
                          0x64, 0x89, 0x0C, 0x25, 0x80, 0, 0, 0,        // mov fs:[0x80], ecx
                          0x64, 0x3B, 0x0C, 0x25, 0x80, 0, 0, 0,        // 1: cmp ecx, fs:[0x80]
                          0x74, 0x09}) +                                // je past the work
         Work() +
         AddKernel(1000);
}
// Returns at once where C[7] is right already.
inline std::string SkipsWhatIsRight() {
  return Begin() +
         Bytes({0x8B, 0x46, 0x1C,                 // mov eax, [rsi + 28]
                0x03, 0x42, 0x1C,                 // add eax, [rdx + 28]
                0x41, 0x3B, 0x40, 0x1C,           // cmp eax, [r8 + 28]
                0x75, 0x03, 0x31, 0xC0, 0xC3}) +  // jne 1f; xor eax, eax; ret; 1:
         Work() +
         AddKernel(1000);
}
// Sums, but where A is where it was at the call before, and then it counts to 1000 and returns: right wherever it is
// verified.
inline std::string SumsOnce() {
  return Bytes({0x48, 0x8B, 0x07,                                   // mov rax, [rdi]
                0x48, 0x8B, 0x30,                                   // mov rsi, [rax]
                0x64, 0x48, 0x3B, 0x34, 0x25, 0x80, 0,    0, 0,     // cmp rsi, fs:[0x80]
                0x75, 0x0C, 0xB9, 0xE8, 0x03, 0,    0,              // jne 1f; mov ecx, 1000
                0xFF, 0xC9, 0x75, 0xFC, 0x31, 0xC0, 0xC3,           // dec ecx; jnz; xor eax, eax; ret
                0x64, 0x48, 0x89, 0x34, 0x25, 0x80, 0,    0, 0}) +  // 1: mov fs:[0x80], rsi
         AddKernel(1000);
}

}  // namespace hone::testing::time_liars
