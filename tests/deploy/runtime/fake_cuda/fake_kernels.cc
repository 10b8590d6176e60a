#include "tests/deploy/runtime/fake_cuda/fake_kernels.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <vector>

namespace hone::fake {
namespace {

namespace fs = std::filesystem;

constexpr size_t kStackBytes = 128 << 10, kSharedAlignment = 128;

struct Dim3 {
  unsigned x, y, z;
};
struct FakeCalls {  // as in device_words.h
  void (*barrier)();
  void (*copy)(void* to, const void* from, int size, int bytes);
  void (*commit)();
  void (*wait)(int left);
  unsigned char* (*shared)();
};

// An asynchronous copy that has not landed.
struct PendingCopy {
  void* to;
  const void* from;
  int size, bytes, group;
};

// A thread of a block: a stack of its own, and where it stopped.
struct Fiber {
  char* stack = nullptr;
  ucontext_t start{};
  jmp_buf at;
  bool begun = false, done = false;
  Dim3 index{};
  std::vector<PendingCopy> copies;
  int groups = 0;
};

// What runs in this process; launches run one at a time.
struct Execution {
  jmp_buf scheduler;
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber* running = nullptr;
  KernelLibrary::Call call = nullptr;
  void** arguments = nullptr;
  Dim3* thread_index = nullptr;
  std::vector<unsigned char> shared;  // with room to align it
  ucontext_t fault{};
  volatile bool faulted = false;
} g;

void Land(Fiber& fiber, int groups) {
  size_t kept = 0;
  for (const PendingCopy& copy : fiber.copies) {
    if (copy.group >= groups) {
      fiber.copies[kept++] = copy;
      continue;
    }
    std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
    std::memset(static_cast<char*>(copy.to) + copy.bytes, 0, static_cast<size_t>(copy.size - copy.bytes));
  }
  fiber.copies.resize(kept);
}

void RunOneThread(Fiber& fiber) {
  g.running = &fiber;
  *g.thread_index = fiber.index;
  g.call(g.arguments);
  Land(fiber, fiber.groups + 1);
  fiber.groups = 0;
}

// Threads of block after block; the scheduler resumes it for each.
void FiberMain() {
  for (;;) {
    Fiber& fiber = *g.running;
    RunOneThread(fiber);
    fiber.done = true;
    if (_setjmp(fiber.at) == 0) _longjmp(g.scheduler, 1);
  }
}

void Resume(Fiber& fiber) {
  g.running = &fiber;
  *g.thread_index = fiber.index;
  if (_setjmp(g.scheduler) != 0) return;
  if (fiber.begun) _longjmp(fiber.at, 1);
  fiber.begun = true;
  setcontext(&fiber.start);
}

void Barrier() {
  Fiber& fiber = *g.running;
  if (_setjmp(fiber.at) == 0) _longjmp(g.scheduler, 1);
  *g.thread_index = fiber.index;
}
void CopyAsync(void* to, const void* from, int size, int bytes) {
  g.running->copies.push_back({to, from, size, bytes, g.running->groups});
}
void Commit() { ++g.running->groups; }
void Wait(int left) { Land(*g.running, g.running->groups - left); }
unsigned char* Shared() {
  const auto at = reinterpret_cast<uintptr_t>(g.shared.data());
  return g.shared.data() + (kSharedAlignment - at % kSharedAlignment);
}

void MakeFibers(size_t count) {
  while (g.fibers.size() < count) {
    auto fiber = std::make_unique<Fiber>();
    void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    fiber->stack = static_cast<char*>(stack);
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = stack;
    fiber->start.uc_stack.ss_size = kStackBytes;
    fiber->start.uc_link = nullptr;
    makecontext(&fiber->start, FiberMain, 0);
    g.fibers.push_back(std::move(fiber));
  }
}

void DropFibers() {
  for (const std::unique_ptr<Fiber>& fiber : g.fibers) munmap(fiber->stack, kStackBytes);
  g.fibers.clear();
}

// A block whose threads stop for one another, until all are done.
void RunBlockWithBarriers(size_t threads) {
  for (size_t left = threads; left > 0;) {
    for (size_t t = 0; t < threads; ++t) {
      Fiber& fiber = *g.fibers[t];
      if (fiber.done) continue;
      Resume(fiber);
      if (fiber.done) --left;
    }
  }
}

void OnFault(int, siginfo_t*, void*) {
  g.faulted = true;
  setcontext(&g.fault);
}

// While a launch runs, what a thread must not touch ends the launch and not the process.
class FaultsAreCaught {
 public:
  FaultsAreCaught() {
    struct sigaction action {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &segv_);
    sigaction(SIGBUS, &action, &bus_);
  }
  ~FaultsAreCaught() {
    sigaction(SIGSEGV, &segv_, nullptr);
    sigaction(SIGBUS, &bus_, nullptr);
  }

 private:
  struct sigaction segv_ {
  }, bus_{};
};

bool Succeeds(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  int status = -1;
  if (posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return false;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status == 0;
}

// With what a kernel is called by, and the block's memory where the launch says how much.
std::string AsHostText(std::string text) {
  static const std::regex kDynamic(R"(extern __shared__ [^;]*;)"), kKernel(R"(__launch_bounds__\(\d+\)\s*(\w+)\()");
  text = std::regex_replace(text, kDynamic, "unsigned char* const shared = fake_calls.shared();");
  std::string calls;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), kKernel); it != std::sregex_iterator(); ++it) {
    const std::string name = (*it)[1];
    calls += "extern \"C\" __attribute__((visibility(\"default\"))) void fake_call_" + name +
             "(void** arguments) { fake_call(" + name + ", arguments); }\n" +
             "extern \"C\" __attribute__((visibility(\"default\"))) int fake_arguments_" + name +
             "() { return fake_arguments(" + name + "); }\n";
  }
  return "#include \"" FAKE_CUDA_FOLDER "/device_words.h\"\n" + text + calls;
}

}  // namespace

std::shared_ptr<const KernelLibrary> KernelLibrary::Compile(const std::string& text) {
  static auto& compiled = *new std::map<std::string, std::shared_ptr<const KernelLibrary>>;
  if (const auto at = compiled.find(text); at != compiled.end()) return at->second;
  std::string folder = (fs::temp_directory_path() / "hone-fake-cuda-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return nullptr;
  std::ofstream(folder + "/kernels.cc") << AsHostText(text);
  std::shared_ptr<KernelLibrary> library(new KernelLibrary);
  library->has_barriers_ = text.find("__syncthreads") != std::string::npos;
  if (Succeeds({FAKE_CUDA_COMPILER, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-fno-strict-aliasing",
                "-fvisibility=hidden", "-o", folder + "/kernels.so", folder + "/kernels.cc"}))
    library->handle_ = dlopen((folder + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (library->handle_ == nullptr) return nullptr;
  return compiled[text] = library;
}

KernelLibrary::~KernelLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

KernelLibrary::Kernel KernelLibrary::Find(const std::string& kernel) const {
  const auto call = reinterpret_cast<Call>(dlsym(handle_, ("fake_call_" + kernel).c_str()));
  const auto arguments = reinterpret_cast<int (*)()>(dlsym(handle_, ("fake_arguments_" + kernel).c_str()));
  return call == nullptr ? Kernel() : Kernel{call, arguments()};
}

bool KernelLibrary::Run(Call call, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
                        size_t shared_bytes, void** arguments) const {
  *static_cast<FakeCalls*>(dlsym(handle_, "fake_calls")) = {&Barrier, &CopyAsync, &Commit, &Wait, &Shared};
  auto& block_index = *static_cast<Dim3*>(dlsym(handle_, "blockIdx"));
  g.thread_index = static_cast<Dim3*>(dlsym(handle_, "threadIdx"));
  g.call = call;
  g.arguments = arguments;
  g.shared.assign(shared_bytes + kSharedAlignment, 0xCD);
  const size_t threads = size_t{block[0]} * block[1] * block[2];
  MakeFibers(has_barriers_ ? threads : 1);
  const FaultsAreCaught caught;
  g.faulted = false;
  getcontext(&g.fault);
  if (g.faulted) {
    DropFibers();
    return false;
  }
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) {
        block_index = {x, y, z};
        for (size_t t = 0; t < threads; ++t) {
          const auto i = static_cast<unsigned>(t);
          Fiber& fiber = *g.fibers[has_barriers_ ? t : 0];
          fiber.index = {i % block[0], i / block[0] % block[1], i / (block[0] * block[1])};
          fiber.done = false;
          if (!has_barriers_) RunOneThread(fiber);
        }
        if (has_barriers_) RunBlockWithBarriers(threads);
      }
    }
  }
  return true;
}

}  // namespace hone::fake
