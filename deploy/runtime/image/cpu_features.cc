#include "deploy/runtime/image/cpu_features.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__riscv) && __riscv_xlen == 64
#include <signal.h>
#include <ucontext.h>
#endif

namespace hone {
namespace {

#if defined(__x86_64__)

// Parts of the processor state that the operating system must save before an extension may be used: bits of XCR0.
enum State : uint32_t { kNone = 0, kAvx = 0x6, kAvx512 = 0xE6, kAmx = 0x60000 };
enum Register { kEax, kEbx, kEcx, kEdx };

struct Feature {
  const char* name;
  uint32_t leaf, subleaf;
  Register reg;
  int bit;
  State state;
};

// Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E.
constexpr Feature kFeatures[] = {
    {"sse", 1, 0, kEdx, 25, kNone},
    {"sse2", 1, 0, kEdx, 26, kNone},
    {"sse3", 1, 0, kEcx, 0, kNone},
    {"pclmul", 1, 0, kEcx, 1, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kAvx},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4.1", 1, 0, kEcx, 19, kNone},
    {"sse4.2", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"aes", 1, 0, kEcx, 25, kNone},
    {"avx", 1, 0, kEcx, 28, kAvx},
    {"f16c", 1, 0, kEcx, 29, kAvx},
    {"rdrnd", 1, 0, kEcx, 30, kNone},
    {"bmi", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kAvx},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"avx512f", 7, 0, kEbx, 16, kAvx512},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512},
    {"rdseed", 7, 0, kEbx, 18, kNone},
    {"adx", 7, 0, kEbx, 19, kNone},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512},
    {"sha", 7, 0, kEbx, 29, kNone},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512},
    {"avx512vbmi2", 7, 0, kEcx, 6, kAvx512},
    {"gfni", 7, 0, kEcx, 8, kNone},
    {"vaes", 7, 0, kEcx, 9, kAvx},
    {"vpclmulqdq", 7, 0, kEcx, 10, kAvx},
    {"avx512vnni", 7, 0, kEcx, 11, kAvx512},
    {"avx512bitalg", 7, 0, kEcx, 12, kAvx512},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kAvx512},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kAvx512},
    {"amx-bf16", 7, 0, kEdx, 22, kAmx},
    {"avx512fp16", 7, 0, kEdx, 23, kAvx512},
    {"amx-tile", 7, 0, kEdx, 24, kAmx},
    {"amx-int8", 7, 0, kEdx, 25, kAmx},
    {"avxvnni", 7, 1, kEax, 4, kAvx},
    {"avx512bf16", 7, 1, kEax, 5, kAvx512},
    {"avxifma", 7, 1, kEax, 23, kAvx},
    {"avxvnniint8", 7, 1, kEdx, 4, kAvx},
    {"avxneconvert", 7, 1, kEdx, 5, kAvx},
    {"avxvnniint16", 7, 1, kEdx, 10, kAvx},
    {"sahf", 0x80000001, 0, kEcx, 0, kNone},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNone},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNone},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNone},
};

uint64_t SavedState() {
  uint32_t r[4] = {};
  if (!__get_cpuid_count(1, 0, &r[0], &r[1], &r[2], &r[3]) || (r[kEcx] >> 27 & 1) == 0) return 0;  // OSXSAVE
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | uint64_t{high} << 32;
}

// Linux lets a process use the tile registers once it has asked (Documentation/arch/x86/xstate.rst); all its threads
// and children have the permission then. Refused, as by a sandbox or where an alternate signal stack is too small to
// save them on, the machine has no AMX for this process.
bool TilesArePermitted() {
  static const bool permitted = [] {
    constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return permitted;
}

bool Has(const Feature& feature) {
  uint32_t r[4] = {};
  if (!__get_cpuid_count(feature.leaf, feature.subleaf, &r[0], &r[1], &r[2], &r[3])) return false;
  if (feature.leaf == 7 && feature.subleaf > 0) {
    uint32_t top[4] = {};  // leaf 7 states its highest subleaf in eax of subleaf 0
    if (!__get_cpuid_count(7, 0, &top[0], &top[1], &top[2], &top[3]) || top[kEax] < feature.subleaf) return false;
  }
  if ((r[feature.reg] >> feature.bit & 1) == 0 || (SavedState() & feature.state) != feature.state) return false;
  return feature.state != kAmx || TilesArePermitted();
}

#elif defined(__aarch64__)

struct Feature {
  const char* name;
  unsigned long hwcap, hwcap2;
};

constexpr Feature kFeatures[] = {
    {"neon", HWCAP_ASIMD, 0},      {"fp-armv8", HWCAP_FP, 0},      {"fullfp16", HWCAP_ASIMDHP, 0},
    {"dotprod", HWCAP_ASIMDDP, 0}, {"fp16fml", HWCAP_ASIMDFHM, 0}, {"lse", HWCAP_ATOMICS, 0},
    {"rdm", HWCAP_ASIMDRDM, 0},    {"aes", HWCAP_AES, 0},          {"sha2", HWCAP_SHA2, 0},
    {"crc", HWCAP_CRC32, 0},       {"sve", HWCAP_SVE, 0},          {"sve2", 0, HWCAP2_SVE2},
    {"i8mm", 0, HWCAP2_I8MM},      {"bf16", 0, HWCAP2_BF16},
};

bool Has(const Feature& feature) {
  return (getauxval(AT_HWCAP) & feature.hwcap) == feature.hwcap &&
         (getauxval(AT_HWCAP2) & feature.hwcap2) == feature.hwcap2;
}

#elif defined(__riscv) && __riscv_xlen == 64

// Systems before Linux 6.4 tell of extensions of one letter alone, none tells how long vectors are: instructions are
// tried. One that is not there raises SIGILL, whose handler steps over it.
thread_local volatile bool trying = false, refused = false;
struct sigaction handler_before;

void StepOver(int signal_number, siginfo_t* info, void* context) {
  if (!trying) {  // a true fault, of another thread: it is raised again
    sigaction(signal_number, &handler_before, nullptr);
    return;
  }
  refused = true;
  static_cast<ucontext_t*>(context)->uc_mcontext.__gregs[REG_PC] += 4;
}

// By their code, since the assembler accepts the names of extensions that the runtime is compiled for.
#define HONE_TRY(instructions) __asm__ volatile(instructions : : : "t0", "ft0", "memory")
void TryVectors() { HONE_TRY(".4byte 0xCD00F057"); }          // vsetivli x0, 1, e32, m1, ta, ma
#define HONE_TRY_HALVES(code) HONE_TRY(".4byte 0xCCF0F057\n\t.4byte " code)  // vsetivli x0, 1, e16, mf2, ta, ma
void TryVectorsFromHalf() { HONE_TRY_HALVES("0x4A861257"); }  // vfwcvt.f.f.v v4, v8
void TryVectorsOfHalf() { HONE_TRY_HALVES("0x02841257"); }    // vfadd.vv v4, v8, v8
void TryAddresses() { HONE_TRY(".4byte 0x2052A2B3"); }        // sh1add t0, t0, t0
void TryBits() { HONE_TRY(".4byte 0x4052F2B3"); }             // andn t0, t0, t0
void TrySingleBits() { HONE_TRY(".4byte 0x285292B3"); }       // bset t0, t0, t0
void TryFromHalf() { HONE_TRY(".4byte 0x40200053"); }         // fcvt.s.h ft0, ft0
void TryHalf() { HONE_TRY(".4byte 0x04007053"); }             // fadd.h ft0, ft0, ft0
void TryConditions() { HONE_TRY(".4byte 0x0E52D2B3"); }       // czero.eqz t0, t0, t0
#undef HONE_TRY_HALVES
#undef HONE_TRY

struct Feature {
  const char* name;
  void (*attempt)();
  int vector_bits = 0;  // at least
};

constexpr Feature kFeatures[] = {
    {"v", TryVectors, 128},     {"zvl256b", TryVectors, 256}, {"zba", TryAddresses}, {"zbb", TryBits},
    {"zbs", TrySingleBits},     {"zfhmin", TryFromHalf},      {"zfh", TryHalf},      {"zvfhmin", TryVectorsFromHalf},
    {"zvfh", TryVectorsOfHalf}, {"zicond", TryConditions},
};

bool Runs(const Feature& feature) {
  refused = false;
  feature.attempt();
  if (refused || feature.vector_bits == 0) return !refused;
  unsigned long bytes = 0;
  __asm__ volatile("csrr %0, 0xC22" : "=r"(bytes));  // vlenb
  return bytes * 8 >= static_cast<unsigned long>(feature.vector_bits);
}

// Bits in the order of the table.
uint32_t TryAll() {
  struct sigaction action = {};
  action.sa_sigaction = StepOver;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (sigaction(SIGILL, &action, &handler_before) != 0) return 0;
  trying = true;
  uint32_t found = 0;
  for (const Feature& feature : kFeatures) found |= uint32_t{Runs(feature)} << (&feature - kFeatures);
  trying = false;
  sigaction(SIGILL, &handler_before, nullptr);
  return found;
}

bool Has(const Feature& feature) {
  static const uint32_t found = TryAll();
  return (found >> (&feature - kFeatures) & 1) != 0;
}

#else
#error "the runtime knows x86-64, AArch64 and 64-bit RISC-V"
#endif

const Feature* FindFeature(std::string_view name) {
  const auto* at =
      std::find_if(std::begin(kFeatures), std::end(kFeatures), [&](const Feature& f) { return name == f.name; });
  return at == std::end(kFeatures) ? nullptr : at;
}

void AppendName(std::string* list, std::string_view name) {
  if (!list->empty()) *list += ", ";
  *list += name;
}

}  // namespace

ImageArch HostArch() {
#if defined(__x86_64__)
  return ImageArch::kX86_64;
#elif defined(__riscv)
  return ImageArch::kRiscV64;
#else
  return ImageArch::kAArch64;
#endif
}

std::string_view ToText(ImageArch arch) {
  switch (arch) {
    case ImageArch::kX86_64: return "x86-64";
    case ImageArch::kAArch64: return "AArch64";
    case ImageArch::kRiscV64: return "RISC-V";
  }
  return "an unknown architecture";
}

bool IsKnownCpuFeature(std::string_view name) { return FindFeature(name) != nullptr; }

bool HostHasCpuFeature(std::string_view name) {
  const Feature* feature = FindFeature(name);
  return feature != nullptr && Has(*feature);
}

std::vector<std::string> HostCpuFeatures() {
  std::vector<std::string> names;
  for (const Feature& feature : kFeatures) {
    if (Has(feature)) names.emplace_back(feature.name);
  }
  return names;
}

RuntimeError CheckCpuFeatures(std::string_view features) {
  std::string missing, unknown;
  while (!features.empty()) {
    const size_t comma = std::min(features.find(','), features.size());
    std::string_view name = features.substr(0, comma);
    features.remove_prefix(std::min(comma + 1, features.size()));
    if (name.starts_with('+')) name.remove_prefix(1);
    if (name.empty()) continue;
    if (!IsKnownCpuFeature(name)) {
      AppendName(&unknown, name);
    } else if (!HostHasCpuFeature(name)) {
      AppendName(&missing, name);
    }
  }
  if (!missing.empty()) {
    return {RuntimeCode::kUnsupported, "this machine's CPU or operating system lacks " + missing +
                                           ", which the kernels need; compile for this machine's target"};
  }
  if (!unknown.empty()) {
    return {RuntimeCode::kUnsupported, "the kernels need CPU features this runtime does not know: " + unknown +
                                           "; use a newer runtime, or compile for this machine's target"};
  }
  return {};
}

}  // namespace hone
