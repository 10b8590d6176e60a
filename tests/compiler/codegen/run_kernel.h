// Compiles, links, loads and runs a function on arrays, as worker and bundle do; and compares with the interpreter.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/array/ndarray.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "deploy/runtime/image/image.h"
#include "deploy/runtime/run/invoke.h"
#include "tests/compiler/interp/expect_outputs_near.h"
#include "tests/compiler/text/parse_or_die.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {

// Memory that ends at an unreadable page: reading or writing past a tensor's last 64-byte line ends the test, and the
// bytes between the tensor's end and the line's are watched.
class GuardedCopy {
 public:
  explicit GuardedCopy(NdArray& array) : array_(array) {
    const size_t bytes = array.data.size(), page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t lines = (bytes + 63) / 64 * 64;
    mapped_ = (lines + page - 1) / page * page + page;
    base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    HONE_CHECK(base_ != MAP_FAILED);
    HONE_CHECK(mprotect(base_ + mapped_ - page, page, PROT_NONE) == 0);
    start_ = base_ + mapped_ - page - lines;
    std::memset(start_, kCanary, lines);
    std::memcpy(start_, array.data.data(), bytes);
    slack_ = lines - bytes;
  }
  ~GuardedCopy() { munmap(base_, mapped_); }
  GuardedCopy(const GuardedCopy&) = delete;
  char* start() { return start_; }
  // Copies the result back; false when bytes behind the end were written.
  bool Finish() {
    const char* end = start_ + array_.data.size();
    std::memcpy(array_.data.data(), start_, array_.data.size());
    return std::all_of(end, end + slack_, [](char c) { return c == kCanary; });
  }

 private:
  static constexpr char kCanary = 0x5A;
  NdArray& array_;
  char *base_, *start_;
  size_t mapped_, slack_;
};

// Runs the compiled kernel on `args` in place, its symbolic sizes being these.
inline absl::Status RunCompiled(const CompiledKernel& kernel, std::vector<NdArray>& args, int threads = 2,
                                const std::vector<int64_t>& sizes = {}) {
  const absl::StatusOr<std::string> image_bytes = LinkImage({&kernel.object, 1});
  if (!image_bytes.ok()) return image_bytes.status();
  RuntimeResult<Image> image = Image::Load(*image_bytes);
  if (!image.ok()) return absl::InternalError(image.error().message());
  RuntimeResult<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(threads);
  if (!pool.ok()) return absl::InternalError(pool.error().message());
  RuntimeResult<Invocation> invocation = Invocation::Create(*image, kernel.set, **pool);
  if (!invocation.ok()) return absl::InternalError(invocation.error().message());
  std::deque<GuardedCopy> guarded;
  std::vector<void*> tensors;
  for (NdArray& arg : args) tensors.push_back(guarded.emplace_back(arg).start());
  if (RuntimeError error = invocation->Prepare(tensors)) return absl::InternalError(error.message());
  invocation->Bind(tensors);
  invocation->BindSizes(sizes);
  for (const std::span<char> memory : invocation->scratch())
    std::ranges::fill(memory, static_cast<char>(kUnwrittenByte));
  const int32_t code = invocation->Run();
  for (GuardedCopy& copy : guarded) {
    if (!copy.Finish()) return absl::InternalError("the kernel wrote past the end of a tensor");
  }
  return code == 0 ? absl::OkStatus() : absl::InternalError("the kernel returned " + std::to_string(code));
}

struct X86Way {
  const char *name, *target;
  bool optimize, fuse;
};
inline constexpr X86Way kX86Ways[] = {
    {"this machine", "cpu:native", true, true}, {"this machine, not optimized", "cpu:native", false, true},
    {"AVX2", "cpu:x86-64-v3", true, true},      {"AVX2, not fused", "cpu:x86-64-v3", true, false},
    {"AVX-512", "cpu:x86-64-v4", true, true},   {"AVX-512, not fused", "cpu:x86-64-v4", true, false}};

// A scheduled function, compiled for this machine and for those with AVX2 and AVX-512 alone, with multiply-adds fused
// and not, against the interpreter running it. AVX-512 is left out, which is said, where this machine has none: Debian
// 12's emulator has none either.
inline void ExpectCompiledAgrees(const PrimFunc& func, double tolerance = 0, InputKind kind = InputKind::kInteger,
                                 int threads = 2) {
  EXPECT_EQ(ReadBackError(func), "");
  std::vector<NdArray> want = RandomArguments(func, 7, kind);
  const absl::Status interpreted = Interpret(func, want);
  ASSERT_TRUE(interpreted.ok()) << interpreted << "\n" << ToText(func);
  for (const X86Way& way : kX86Ways) {
    SCOPED_TRACE(way.name);
    const absl::StatusOr<Target> target = ParseTarget(way.target);
    ASSERT_TRUE(target.ok()) << target.status();
    if (!MissingFeatures(*target, HostTarget()).empty()) {
      std::printf("not run, this machine lacks %s: %s\n", MissingFeatures(*target, HostTarget()).c_str(), way.name);
      continue;
    }
    std::vector<NdArray> got = RandomArguments(func, 7, kind);
    const absl::StatusOr<CompiledKernel> kernel =
        CompileKernel(ScheduledProgram{func, {}}, *target, {.optimize = way.optimize, .fuse = way.fuse});
    ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(func);
    const absl::Status ran = RunCompiled(*kernel, got, threads);
    ASSERT_TRUE(ran.ok()) << ran;
    ExpectOutputsNear(func, got, want, tolerance);
  }
}

// An unscheduled function through the plain build.
inline void ExpectPlainAgrees(const PrimFunc& func, double tolerance = 0, InputKind kind = InputKind::kInteger) {
  EXPECT_EQ(ReadBackError(func), "");
  std::vector<NdArray> want = RandomArguments(func, 7, kind), got = RandomArguments(func, 7, kind);
  const absl::Status interpreted = Interpret(func, want);
  ASSERT_TRUE(interpreted.ok()) << interpreted << "\n" << ToText(func);
  const absl::StatusOr<CompiledKernel> kernel = CompilePlain(func, HostTarget());
  ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(func);
  const absl::Status ran = RunCompiled(*kernel, got, 1);
  ASSERT_TRUE(ran.ok()) << ran;
  ExpectOutputsNear(func, got, want, tolerance);
}

}  // namespace hone
