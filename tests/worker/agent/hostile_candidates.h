// Candidates that mean harm, as x86-64 machine code of a kernel (deploy/runtime/kernel_abi.h), and what has to become
// of each: none may be taken for right.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace hone {

struct HostileCandidate {
  std::string name;
  std::string code;
  const char* outcome;  // "crash", "timeout", "wrong_result"; "": one of them, as the runner's own code takes it
  int threads = 1;      // that it is run with
};

inline std::string Code(std::initializer_list<int> bytes) {
  std::string code;
  for (const int byte : bytes) code += static_cast<char>(byte);
  return code;
}
inline std::string Word(int64_t value, int bytes) {
  std::string word;
  for (int i = 0; i < bytes; ++i) word += static_cast<char>(value >> (8 * i));
  return word;
}
// mov eax, number; mov rdi, a; mov rsi, b; mov rdx, c; xor r10d, r10d; syscall; xor eax, eax; ret: whatever the system
// says, the kernel claims to have done its work, and has not.
inline std::string SystemCallThenReturn(int number, int64_t a = 0, int64_t b = 0, int64_t c = 0) {
  return Code({0xB8}) + Word(number, 4) + Code({0x48, 0xBF}) + Word(a, 8) + Code({0x48, 0xBE}) + Word(b, 8) +
         Code({0x48, 0xBA}) + Word(c, 8) + Code({0x45, 0x31, 0xD2, 0x0F, 0x05, 0x31, 0xC0, 0xC3});
}
// The same with a pointer to 64 bytes of the stack as argument `which` (0 or 1).
inline std::string SystemCallOnStack(int number, int which, int64_t other = 0) {
  const std::string call = SystemCallThenReturn(number, which == 1 ? other : 0, which == 0 ? other : 0);
  // lea rdi or rsi, [rsp - 64], after the moves and before the system call
  return call.substr(0, 35) +
         (which == 0 ? Code({0x48, 0x8D, 0x7C, 0x24, 0xC0}) : Code({0x48, 0x8D, 0x74, 0x24, 0xC0})) + call.substr(35);
}

// parallel_for of that code, which gets no closure, over 64 iterations.
inline std::string InEveryThread(const std::string& code) {
  return Code({0x48, 0x8D, 0x35, 2, 0, 0, 0, 0xEB, static_cast<int>(code.size())}) + code +  // lea rsi, [rip + 2]; jmp
         Code({0x48, 0x8B, 0x47, 0x30, 0x48, 0x8B, 0x7F, 0x38,  // mov rax, [rdi + 48]; mov rdi, [rdi + 56]
               0x31, 0xD2, 0x6A, 0x40, 0x59, 0xFF, 0xE0});      // xor edx, edx; push 64; pop rcx; jmp rax
}

// FUTEX_WAIT for a word of the stack that nobody wakes.
inline std::string WaitOnFutex() {
  return Code({0x6A, 0,    0x48, 0x89, 0xE7, 0x31, 0xF6, 0x31, 0xD2, 0x45, 0x31, 0xD2,  // push 0; rdi, rsi, rdx, r10
               0xB8, 0xCA, 0,    0,    0,    0x0F, 5,    0x58, 0x31, 0xC0, 0xC3});      // mov eax, 202; syscall; ...
}

// Those, and one for each signal, which raises it by tgkill.
inline std::vector<HostileCandidate> WithSignals(std::vector<HostileCandidate> candidates) {
  for (int signal = 1; signal < 32; ++signal) {
    candidates.push_back({"raises_" + std::to_string(signal), SystemCallThenReturn(234, 1, 1, signal), "crash"});
  }
  return candidates;
}

// Candidates that lie about time are in check_winner_test.cc, steps over the edges of tensors in runner_test.cc, and
// wrong programs that a compiler made in mutants_test.cc.
inline const std::vector<HostileCandidate>& HostileCandidates() {
  // clang-format off
  static const std::vector<HostileCandidate> candidates = WithSignals({
      // ---- control ----
      {"does_nothing", Code({0x31, 0xC0, 0xC3}), "wrong_result"},
      {"fails", Code({0xB8, 1, 0, 0, 0, 0xC3}), "crash"},
      {"endless_loop", Code({0xEB, 0xFE}), "timeout"},
      {"yields_for_ever", Code({0xB8, 24, 0, 0, 0, 0x0F, 0x05, 0xEB, 0xF7}), "timeout"},
      {"ends_its_thread", SystemCallThenReturn(60), "crash"},
      {"blocks_signals_and_loops", SystemCallOnStack(14, 1).substr(0, 45) + Code({0xEB, 0xFE}), "timeout"},
      {"sleeps", SystemCallOnStack(35, 0), "crash"},
      {"pauses", SystemCallThenReturn(34), "crash"},
      {"exit", SystemCallThenReturn(231), "crash"},
      {"aborts", Code({0xF4}), "crash"},                                 // hlt
      {"breakpoint", Code({0xCC}), "crash"},
      {"jumps_to_null", Code({0x31, 0xC0, 0xFF, 0xE0}), "crash"},
      {"jumps_into_data", Code({0x48, 0x8B, 0x07, 0xFF, 0x20}), "crash"},  // mov rax, [rdi]; jmp [rax]
      {"returns_elsewhere", Code({0x48, 0xC7, 0x04, 0x24, 1, 0, 0, 0, 0xC3}), "crash"},  // mov qword [rsp], 1; ret
      {"loses_its_stack", Code({0x31, 0xE4, 0xC3}), "crash"},            // xor esp, esp; ret
      {"sets_a_timer", SystemCallOnStack(38, 1), "crash"},
      {"clobbers_registers", Code({0x31, 0xDB, 0x31, 0xED, 0x45, 0x31, 0xE4, 0x45, 0x31, 0xED, 0x45, 0x31, 0xF6,
                                   0x45, 0x31, 0xFF, 0x31, 0xC0, 0xC3}), ""},
      {"loops_in_every_thread", InEveryThread(Code({0xEB, 0xFE})), "timeout", 64},
      {"waits_on_a_futex", WaitOnFutex(), "timeout"},
      {"deadlock", InEveryThread(WaitOnFutex()), "timeout", 4},
      // ---- memory ----
      {"null_write", Code({0x31, 0xC0, 0x89, 0x00, 0xC3}), "crash"},
      {"null_read", Code({0x31, 0xC0, 0x8B, 0x00, 0xC3}), "crash"},
      {"writes_its_code", Code({0x48, 0x8D, 0x05, 0, 0, 0, 0, 0x89, 0x00, 0xC3}), "crash"},
      {"writes_an_input", Code({0x48, 0x8B, 0x07, 0x48, 0x8B, 0x30, 0xC6, 0x06, 1, 0x31, 0xC0, 0xC3}), "crash"},
      {"reads_kernel_memory", Code({0x48, 0xB8}) + Word(-4096, 8) + Code({0x8B, 0x00, 0xC3}), "crash"},
      {"leaves_addresses", Code({0x48, 0xB8}) + Word(int64_t{1} << 62, 8) + Code({0x89, 0x00, 0xC3}), "crash"},
      {"stack_bomb", Code({0x50, 0xEB, 0xFD}), "crash"},
      {"recursion", Code({0xE8, 0xFB, 0xFF, 0xFF, 0xFF}), "crash"},
      {"huge_local", Code({0x48, 0x81, 0xEC, 0, 0, 0, 0x40, 0x50, 0xC3}), "crash"},  // sub rsp, 1 GiB; push rax
      {"unaligned_vector", Code({0x0F, 0x28, 0x44, 0x24, 0x01, 0xC3}), "crash"},     // movaps xmm0, [rsp + 1]
      {"maps_memory", SystemCallThenReturn(9, 0, int64_t{1} << 40, 3), "wrong_result"},  // gets none
      {"makes_code_writable", SystemCallThenReturn(10, 0x1000, 4096, 7), "wrong_result"},
      {"unmaps_everything", SystemCallThenReturn(11, 0, int64_t{1} << 46), "wrong_result"},
      {"locks_memory", SystemCallThenReturn(151, 3), "crash"},
      {"brk_bomb", SystemCallThenReturn(12, int64_t{1} << 46), "wrong_result"},
      {"stack_bomb_in_every_thread", InEveryThread(Code({0x50, 0xEB, 0xFD})), "crash", 4},
      // rep stosd over 64 KiB from the list of tensors on, and from the call itself on
      {"smashes_the_heap", Code({0x48, 0x8B, 0x3F, 0xB8, 0x41, 0x41, 0x41, 0x41, 0xB9, 0, 0x40, 0, 0, 0xF3,
                                 0xAB, 0x31, 0xC0, 0xC3}), ""},
      {"smashes_the_call", Code({0xB9, 0, 0x40, 0, 0, 0x83, 0xC8, 0xFF, 0xF3, 0xAB, 0x31, 0xC0, 0xC3}), ""},
      // from the output upwards, to find what it is compared with: lodsb; jmp
      {"scans_memory", Code({0x48, 0x8B, 7, 0x48, 0x8B, 0x70, 0x10, 0xAC, 0xEB, 0xFD}), "crash"},
      // ---- arithmetic ----
      {"divides_by_zero", Code({0x31, 0xC9, 0x31, 0xD2, 0xF7, 0xF1, 0xC3}), "crash"},
      {"divides_the_least", Code({0xB8, 0, 0, 0, 0x80, 0x99, 0xB9, 0xFF, 0xFF, 0xFF, 0xFF, 0xF7, 0xF9, 0xC3}), "crash"},
      {"illegal_instruction", Code({0x0F, 0x0B}), "crash"},
      {"unmasks_float_traps", Code({0xC7, 0x44, 0x24, 0xF8, 0, 0, 0, 0, 0x0F, 0xAE, 0x54, 0x24, 0xF8,  // ldmxcsr 0
                                    0x0F, 0x57, 0xC0, 0x0F, 0x5E, 0xC0, 0x31, 0xC0, 0xC3}), "crash"},   // 0 / 0
      {"privileged_instruction", Code({0xFA, 0xC3}), "crash"},           // cli
      {"reads_a_port", Code({0xEC, 0xC3}), "crash"},                     // in al, dx
      // 100,000 products and sums of denormals
      {"denormals", Code({0xB9, 0xA0, 0x86, 1, 0, 0xC7, 0x44, 0x24, 0xF8, 1, 0, 0, 0, 0xF3, 0x0F, 0x10, 0x44,
                          0x24, 0xF8, 0x0F, 0x28, 0xC8, 0xF3, 0x0F, 0x59, 0xC8, 0xF3, 0x0F, 0x58, 0xC0, 0xFF,
                          0xC9, 0x75, 0xF1, 0x31, 0xC0, 0xC3}), "wrong_result"},
      // ldmxcsr: towards zero, FTZ and DAZ
      {"leaves_rounding_and_flushing", Code({0xC7, 0x44, 0x24, 0xF8, 0xC0, 0xFF, 0, 0, 0x0F, 0xAE, 0x54, 0x24,
                                             0xF8, 0x31, 0xC0, 0xC3}), ""},
      // another control word, and eight numbers on the stack
      {"leaves_the_x87_dirty", Code({0x66, 0xC7, 0x44, 0x24, 0xF8, 0x60, 0x0F, 0xD9, 0x6C, 0x24, 0xF8, 0xD9,
                                     0xE8, 0xD9, 0xE8, 0xD9, 0xE8, 0xD9, 0xE8, 0xD9, 0xE8, 0xD9, 0xE8, 0xD9,
                                     0xE8, 0xD9, 0xE8, 0x31, 0xC0, 0xC3}), "wrong_result"},
      // without an emms
      {"leaves_mmx", Code({0x0F, 0x76, 0xC0, 0x31, 0xC0, 0xC3}), "wrong_result"},
      {"leaves_the_direction_flag", Code({0xFD, 0x31, 0xC0, 0xC3}), ""},
      {"leaves_alignment_checks", Code({0x9C, 0x81, 0x0C, 0x24, 0, 0, 4, 0, 0x9D, 0x31, 0xC0, 0xC3}), ""},
      // the trap flag: SIGTRAP
      {"single_steps", Code({0x9C, 0x81, 0x0C, 0x24, 0, 1, 0, 0, 0x9D, 0x31, 0xC0, 0xC3}), "crash"},
      // all of zmm16, zmm0 and k1; where the CPU has none, an illegal instruction
      {"leaves_avx512_state", Code({0x62, 0xA3, 0x7D, 0x40, 0x25, 0xC0, 0xFF, 0x62, 0xF3, 0x7D, 0x48, 0x25,
                                    0xC0, 0xFF, 0xC5, 0xF4, 0x46, 0xC9, 0x31, 0xC0, 0xC3}), ""},
      // tilezero: nobody asked the kernel for tiles
      {"uses_amx", Code({0xC4, 0xE2, 0x7B, 0x49, 0xC0, 0x31, 0xC0, 0xC3}), "crash"},
      // ---- work that is not done; does_nothing, above, leaves what stood in the output ----
      // ones in all 64 elements of the output
      {"writes_constants", Code({0x48, 0x8B, 7, 0x48, 0x8B, 0x78, 0x10, 0xB8, 0, 0, 0x80, 0x3F, 0x6A, 0x40,
                                 0x59, 0xF3, 0xAB, 0x31, 0xC0, 0xC3}), "wrong_result"},
      {"copies_an_input", Code({0x48, 0x8B, 7, 0x48, 0x8B, 0x30, 0x48, 0x8B, 0x78, 0x10, 0x6A, 0x40, 0x59, 0xF3,
                                0xA5, 0x31, 0xC0, 0xC3}), "wrong_result"},
      // the product of two 8x8 matrices but for its last row
      {"right_in_a_prefix", Code({0x48, 0x8B, 7, 0x48, 0x8B, 0x30, 0x48, 0x8B, 0x50, 8, 0x48, 0x8B, 0x78, 0x10,
                                  0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9, 0x0F, 0x57, 0xC0, 0x31, 0xC9, 0x4E, 0x8D,
                                  0x14, 0x8A, 0x41, 0x8D, 4, 8, 0xF3, 0x0F, 0x10, 0x0C, 0x86, 0xF3, 0x41, 0x0F,
                                  0x59, 0x0A, 0xF3, 0x0F, 0x58, 0xC1, 0x49, 0x83, 0xC2, 0x20, 0xFF, 0xC1, 0x83,
                                  0xF9, 8, 0x75, 0xE3, 0x43, 0x8D, 4, 8, 0xF3, 0x0F, 0x11, 4, 0x87, 0x41, 0xFF,
                                  0xC1, 0x41, 0x83, 0xF9, 8, 0x75, 0xC8, 0x41, 0x83, 0xC0, 8, 0x41, 0x83, 0xF8,
                                  0x38, 0x75, 0xBB, 0x31, 0xC0, 0xC3}), "wrong_result"},
      // every thread adds one to every element, without a lock
      {"races_on_the_output", Code({0x48, 0x8B, 7, 0x48, 0x8B, 0x50, 0x10, 0x48, 0x8D, 0x35, 0x0F, 0, 0, 0,
                                    0x48, 0x8B, 0x47, 0x30, 0x48, 0x8B, 0x7F, 0x38, 0xB9, 0x40, 0, 0, 0, 0xFF,
                                    0xE0, 0xB8, 0x40, 0, 0, 0, 0xFF, 0x44, 0x87, 0xFC, 0xFF, 0xC8, 0x75, 0xF8,
                                    0xC3}), "wrong_result", 4},
      // ---- the channel to the worker ----
      // recvfrom on every descriptor below 64
      {"takes_the_next_request", Code({0x53, 0x6A, 0x40, 0x5B, 0x89, 0xDF, 0x48, 0x8D, 0x74, 0x24, 0x80, 0x6A,
                                       0x40, 0x5A, 0x45, 0x31, 0xD2, 0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9, 0x6A,
                                       0x2D, 0x58, 0x0F, 5, 0xFF, 0xCB, 0x75, 0xE4, 0x5B, 0x31, 0xC0, 0xC3}), "timeout"},
      // "done" as long as a RunnerReply without samples, on every descriptor below 64
      {"forges_a_reply", Code({0x53, 0x48, 0x81, 0xEC, 0, 2, 0, 0, 0x48, 0x89, 0xE7, 0x31, 0xC0, 0xB9, 0x40, 0,
                               0, 0, 0xF3, 0x48, 0xAB, 0xC7, 4, 0x24, 1, 0, 0, 0, 0xBB, 0x40, 0, 0, 0, 0x89,
                               0xDF, 0x48, 0x89, 0xE6, 0xBA, 0x18, 1, 0, 0, 0x41, 0xBA, 0, 0x40, 0, 0, 0x45,
                               0x31, 0xC0, 0x45, 0x31, 0xC9, 0xB8, 0x2C, 0, 0, 0, 0x0F, 5, 0xFF, 0xCB, 0x75,
                               0xDF, 0x48, 0x81, 0xC4, 0, 2, 0, 0, 0x5B, 0x31, 0xC0, 0xC3}), "wrong_result"},
      // the same with "the kernel failed" and a text of bytes that no message may have
      {"forges_a_text", Code({0x53, 0x48, 0x81, 0xEC, 0, 2, 0, 0, 0x48, 0x89, 0xE7, 0x31, 0xC0, 0xB9, 0x40, 0,
                              0, 0, 0xF3, 0x48, 0xAB, 0xC7, 4, 0x24, 2, 0, 0, 0, 0xC7, 0x44, 0x24, 0x18,
                              0xFF, 0xFF, 0xFF, 0xFF, 0xBB, 0x40, 0, 0, 0, 0x89, 0xDF, 0x48, 0x89, 0xE6, 0xBA,
                              0x18, 1, 0, 0, 0x41, 0xBA, 0, 0x40, 0, 0, 0x45, 0x31, 0xC0, 0x45, 0x31, 0xC9,
                              0xB8, 0x2C, 0, 0, 0, 0x0F, 5, 0xFF, 0xCB, 0x75, 0xDF, 0x48, 0x81, 0xC4, 0, 2, 0,
                              0, 0x5B, 0x31, 0xC0, 0xC3}), "crash"},
      // each of those over itself, with SCM_RIGHTS: what the worker reads as no reply, or what the system refuses while
      // more of the user's descriptors are on their way than the candidate may have (unix(7), ETOOMANYREFS), which
      // those of runners that start beside it are
      {"sends_its_descriptors", Code({0x53, 0x6A, 0x40, 0x5B, 0x48, 0x81, 0xEC, 0x80, 0, 0, 0, 0x48, 0x89, 0xE7,
                                      0x31, 0xC0, 0x6A, 0x10, 0x59, 0xF3, 0x48, 0xAB, 0x48, 0x8D, 0x44, 0x24,
                                      0x60, 0x48, 0x89, 0x44, 0x24, 0x10, 0xC6, 0x44, 0x24, 0x18, 1, 0x48, 0x89,
                                      0x64, 0x24, 0x60, 0xC6, 0x44, 0x24, 0x68, 8, 0x48, 0x8D, 0x44, 0x24, 0x40,
                                      0x48, 0x89, 0x44, 0x24, 0x20, 0xC6, 0x44, 0x24, 0x28, 0x18, 0xC6, 0x44,
                                      0x24, 0x40, 0x14, 0xC6, 0x44, 0x24, 0x48, 1, 0xC6, 0x44, 0x24, 0x4C, 1,
                                      0x89, 0x5C, 0x24, 0x50, 0x89, 0xDF, 0x48, 0x89, 0xE6, 0xBA, 0, 0x40, 0, 0,
                                      0x6A, 0x2E, 0x58, 0x0F, 5, 0x48, 0x81, 0xC4, 0x80, 0, 0, 0, 0xFF, 0xCB,
                                      0x75, 0x99, 0x5B, 0x31, 0xC0, 0xC3}), ""},
      // ---- system calls ----
      {"fork", SystemCallThenReturn(57), "crash"},
      {"vfork", SystemCallThenReturn(58), "crash"},
      {"clone", SystemCallThenReturn(56, 17), "crash"},
      {"clone3", SystemCallOnStack(435, 0, 64), "crash"},
      {"executes", SystemCallOnStack(59, 0), "crash"},
      {"opens", SystemCallOnStack(2, 0), "crash"},
      {"opens_at", SystemCallOnStack(257, 1, -100), "crash"},
      {"reads_descriptor_0", SystemCallOnStack(0, 1), "crash"},
      {"writes_to_standard_error", SystemCallOnStack(1, 1, 2), "crash"},
      {"opens_a_socket", SystemCallThenReturn(41, 2, 1), "crash"},
      {"connects", SystemCallOnStack(42, 1, 3), "crash"},
      {"kills_its_parent", SystemCallThenReturn(62, 1, 9), "crash"},
      {"kills_everybody", SystemCallThenReturn(62, -1, 9), "crash"},
      {"traces", SystemCallThenReturn(101), "crash"},
      {"reads_other_memory", SystemCallThenReturn(310, 1), "crash"},
      {"makes_a_memory_file", SystemCallOnStack(319, 0), "crash"},
      {"io_uring", SystemCallOnStack(425, 1, 4), "crash"},
      {"bpf", SystemCallOnStack(321, 1), "crash"},
      {"userfaultfd", SystemCallThenReturn(323), "crash"},
      {"keyctl", SystemCallThenReturn(250), "crash"},
      {"mounts", SystemCallThenReturn(165), "crash"},
      {"unshares", SystemCallThenReturn(272, 0x10000000), "crash"},
      {"changes_itself", SystemCallThenReturn(157, 4, 1), "crash"},       // prctl(PR_SET_DUMPABLE)
      {"changes_a_limit", SystemCallOnStack(160, 1, 1), "crash"},
      {"changes_signals", SystemCallThenReturn(13, 11), "crash"},
      {"shares_memory", SystemCallThenReturn(29, 0, 4096, 0600), "crash"},
      {"perf_events", SystemCallOnStack(298, 0), "crash"},
      {"advises_huge_pages", SystemCallThenReturn(28, 0, int64_t{1} << 46, 14), "wrong_result"},
      {"closes_its_channel", SystemCallThenReturn(3, 3), "crash"},
      {"shuts_its_channel_down", SystemCallThenReturn(48, 3, 2), "crash"},
      {"makes_a_folder", SystemCallOnStack(83, 0, 0700), "crash"},
      {"makes_a_symlink", SystemCallOnStack(88, 0), "crash"},
      {"lengthens_a_file", SystemCallThenReturn(77, 3, int64_t{1} << 30), "crash"},
      {"old_calls_of_32_bits", Code({0xB8, 1, 0, 0, 0, 0xCD, 0x80, 0x31, 0xC0, 0xC3}), "crash"},
      {"calls_of_x32", SystemCallThenReturn(0x40000000 | 39), "crash"},
  });
  // clang-format on
  return candidates;
}

}  // namespace hone
