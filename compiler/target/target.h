// What a program is compiled for: instruction set, core, vector registers, caches. No LLVM here.
//
// A target is a text, and the text says everything: ParseTarget(target.text) gives the same target on any machine, so a
// builder may compile for a device it has never seen.
//
//   cpu:native                              this machine
//   cpu:x86-64-v4                           a level or a core by LLVM's name, with the features LLVM gives it
//   cpu:znver5+avx512vnni-avx512bf16        features added and taken away
//   cpu:znver5,l1d=48K,l2=1M,l3=32M,cores=2 facts about the device; what is left out has a usual value
//   cpu:cortex-a76                          an AArch64 core; its vectors are NEON's 128 bits
//   cpu:generic-rv64+zvl256b                RISC-V with vectors, of 128 bits or, as here stated, of 256
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

struct Target {
  std::string text;                // canonical
  std::string arch;                // "x86_64", "aarch64" or "riscv64"
  std::string cpu;                 // LLVM's name: "znver5", "x86-64-v3", "cortex-a76"
  std::set<std::string> features;  // LLVM's names of those that matter to code or schedules: "avx2", "fma", "avx512f"
  int vector_bits = 256;           // widest vector a schedule should use
  int vector_registers = 16;
  int64_t l1d = 32 << 10;  // bytes: of one core,
  int64_t l2 = 1 << 20;    //        of one core,
  int64_t l3 = 32 << 20;   //        shared; 0 when there is none
  int cores = 1;

  bool has(std::string_view feature) const { return features.count(std::string(feature)) != 0; }
  // Elements of that many bits in a vector: 16 for float32 with AVX-512.
  int lanes(int bits = 32) const { return vector_bits / bits; }
  // The narrowest elements, in bits, of which a vector is loaded or stored under a mask by one instruction; 0 where
  // there are none, as with NEON.
  int masked_bits() const;
};

// InvalidArgument says which word is not known and lists what is.
absl::StatusOr<Target> ParseTarget(std::string_view text);

// The machine this runs on: cpuid (x86-64) or /proc/cpuinfo (AArch64, RISC-V), cache sizes and cores from /sys, cores
// limited to those this process may run on. Found once, then remembered.
Target HostTarget();

// The key under which measurements of like machines are kept: instruction set, core, cores and caches, such as
// "x86_64-znver5-avx512-c2-l1d48K-l2.1M-l3.32M".
std::string DeviceClass(const Target& target);

// What `have` lacks to run code made for `want`; empty when it can. For the message of a refusal.
std::string MissingFeatures(const Target& want, const Target& have);

}  // namespace hone
