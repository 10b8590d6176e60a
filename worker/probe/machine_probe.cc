#include "worker/probe/machine_probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/support/check.h"
#include "compiler/support/monotonic_clock.h"
#include "deploy/runtime/run/thread_pool.h"
#include "worker/probe/probe_kernels.h"
#include "worker/probe/together.h"

namespace hone {
namespace {

// Of one probe: long beside a reading of the clock, and so short that most are not interrupted on a busy machine.
constexpr int64_t kProbeCycles = 100000;
constexpr int kBursts = 8;  // of each kind in a round
// Forks in a batch, of which the median counts, and pieces in a loop of many. A batch is given up after so long:
// somebody else has the processor of a thread.
constexpr int kForks = 31;
constexpr int64_t kPieces = 4096;
constexpr double kForkSeconds = 0.002;
// A fork that takes longer waited for a thread that others kept from running.
constexpr double kSlowestForkUs = 100;
// Of a block beyond the caches, timed at once: some tens of microseconds.
constexpr int64_t kPieceBytes = int64_t{1} << 19;

// By the wall clock: processor time as a virtual machine counts it is at times less than was used.
template <class Work>
double SecondsOf(const Work& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::max(SecondsSince(start), 1e-9);
}

double MedianOf(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Memory of its own pages, large ones where the system has them; written once, so that it is there.
class Block {
 public:
  explicit Block(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      bytes_ = 0;
      return;
    }
    ::madvise(at, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<char*>(at);
    std::memset(data_, 1, bytes_);
  }
  ~Block() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Block(const Block&) = delete;

  char* data() const { return data_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

int64_t Granules(int64_t bytes) { return std::max(kProbeGranule, bytes / kProbeGranule * kProbeGranule); }

// Three digits are more than any of it holds from one minute to the next.
double Rounded(double value) { return std::strtod(absl::StrFormat("%.3g", value).c_str(), nullptr); }

// Cores start whole numbers of operations in a cycle, or half as many where two cycles make one.
double RoundedToHalves(double value) {
  const double halves = std::round(value * 2) / 2;
  return halves > 0 && std::abs(value - halves) <= 0.1 * halves ? halves : Rounded(value);
}

int32_t TouchPieces(void*, int64_t begin, int64_t end, int32_t) {
  for (int64_t i = begin; i < end; ++i) {
    volatile int64_t piece = i;  // as a kernel works out where its piece lies
    (void)piece;
  }
  return 0;
}

class Prober {
 public:
  Prober(const Target& target, const ProbeOptions& options)
      : target_(target), options_(options), kernels_(ProbeKernelsFor(target)) {
    auto pool = ThreadPool::Create({.threads = std::max(1, options.threads), .pin_workers = true, .pin_caller = true});
    if (pool.ok()) pool_ = std::move(*pool);
    // Parts of one block, one for each thread, twice as large as the last cache if that may be.
    const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    int64_t want = std::min({std::max(2 * target.l3, int64_t{32} << 20), options.most_bytes, memory / 8});
    do {
      block_ = std::make_unique<Block>(want);
      want /= 2;
    } while (!ready() && want > kProbeGranule * threads());
    part_ = Granules(block_->bytes() / threads());
    bytes_[kL1] = Granules(target.l1d / 2);
    bytes_[kL2] = Granules(std::max(target.l2 / 2, target.l1d * 2));
    bytes_[kL3] = Granules(std::min(target.l2 * 4, target.l3 > 0 ? target.l3 * 3 / 4 / threads() : target.l2 * 4));
    bytes_[kMemory] = part_;
    for (int64_t& bytes : bytes_) bytes = std::min(bytes, part_);
    best_fma_.resize(kernels_.size());
    best_ghz_.resize(kernels_.size());
  }

  int threads() const { return pool_ == nullptr ? 1 : pool_->threads(); }
  bool ready() const { return block_->data() != nullptr; }

  // What one thread does is probed in every round, the rest while there is time: threads that others keep from running
  // make all wait.
  void Round(Clock::time_point start) {
    const auto in_time = [&] { return SecondsSince(start) < options_.seconds; };
    for (size_t k = 0; k < kernels_.size(); ++k) ProbeWidth(k);
    for (const MemoryLevel level : {kL1, kL2, kL3, kMemory}) ProbeLevel(level);
    if (threads() == 1) return;
    if (in_time()) ProbeForks();
    if (in_time()) ProbeAllInRegisters();
    for (const MemoryLevel level : {kMemory, kL3, kL2, kL1}) {
      if (in_time()) ProbeAll(level);
    }
  }

  MachineProbe Result() const {
    const size_t widest = kernels_.size() - 1;
    const double ghz = best_ghz_[widest];
    MachineProbe result;
    Machine& machine = result.machine;
    machine.ghz = Rounded(ghz);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      double& rate = kernels_[k].bits == 128   ? machine.fma128
                     : kernels_[k].bits == 256 ? machine.fma256
                                               : machine.fma512;
      rate = RoundedToHalves(best_fma_[k] / (best_ghz_[k] * 1e9));
      result.gflops_1 = std::max(result.gflops_1, best_fma_[k] * kernels_[k].bits / 32 * 2 / 1e9);
    }
    machine.fma_latency = RoundedToHalves(ghz * 1e9 / best_chain_);
    machine.l1 = Rounded(read_1_[kL1] / ghz / 1e9);
    machine.l2 = Rounded(std::min(read_1_[kL2] / ghz / 1e9, machine.l1));
    machine.l3 = Rounded(std::min(read_1_[kL3] / ghz / 1e9, machine.l2));
    machine.memory = Rounded(std::min(read_1_[kMemory] / ghz / 1e9, machine.l3));
    // What there was no time for is in proportion to what one thread does, as usual on such a core.
    const Machine usual = UsualMachine(target_);
    const auto all = [&](MemoryLevel level, double alone, double share) {
      return Rounded(read_all_[level] > 0 ? std::max(read_all_[level] / ghz / 1e9, alone) : alone * share);
    };
    machine.l3_all = all(kL3, machine.l3, std::max(1.0, usual.l3_all / usual.l3));
    machine.memory_all = all(kMemory, machine.memory, std::max(1.0, usual.memory_all / usual.memory));
    const bool forks = best_fork_us_ <= kSlowestForkUs && best_many_us_ < kNever;
    machine.fork_us = forks ? Rounded(best_fork_us_) : usual.fork_us;
    machine.piece_us =
        forks ? Rounded(std::max(best_many_us_ - best_fork_us_, 0.0) / static_cast<double>(kPieces)) : usual.piece_us;
    // Threads that were not probed together are taken to be in nobody's way: a limit may be too high, never too low.
    const auto together = [&](double all, double one) { return all > 0 ? std::max(all, one) : one * threads(); };
    result.gflops_all = together(best_flop_all_ / 1e9, result.gflops_1);
    for (const MemoryLevel level : {kL1, kL2, kL3, kMemory}) {
      result.gbps_1[level] = std::max(read_1_[level], copy_1_[level]) / 1e9;
      result.gbps_all[level] = together(std::max(read_all_[level], copy_all_[level]) / 1e9, result.gbps_1[level]);
    }
    return result;
  }

 private:
  // Runs `work(thread)` on every thread at once, after all have come together, and adds up what it returns.
  double OnAllThreads(const std::function<double(int)>& work) {
    if (pool_ == nullptr) return work(0);
    std::vector<double> rates(static_cast<size_t>(threads()));
    RunTogether(*pool_, [&](int thread) { rates[static_cast<size_t>(thread)] = work(thread); });
    double sum = 0;
    for (const double rate : rates) sum += rate;
    return sum;
  }

  void ProbeWidth(size_t k) {
    const ProbeKernels& kernels = kernels_[k];
    for (int burst = 0; burst < kBursts; ++burst) {
      Keep(best_ghz_[k], kProbeCycles / SecondsOf([&] { kernels.cycles(kProbeCycles); }) / 1e9);
      for (const ProbeKernels::Fma& fma : kernels.fma) {
        const double rate = FmaRate(fma);
        Keep(best_fma_[k], rate);
        if (k + 1 == kernels_.size() && fma.sums == 1) Keep(best_chain_, rate);
      }
    }
  }
  void ProbeAllInRegisters() {
    for (const ProbeKernels::Fma& fma : kernels_.back().fma) {
      if (fma.sums == 1) continue;
      const double rate = OnAllThreads([&](int) {
        double best = 0;
        for (int burst = 0; burst < kBursts; ++burst) Keep(best, FmaRate(fma));
        return best;
      });
      Keep(best_flop_all_, rate * kernels_.back().bits / 32 * 2);
    }
  }
  // Multiply-adds a second by one thread.
  static double FmaRate(const ProbeKernels::Fma& fma) {
    const int64_t steps = kProbeCycles / (fma.sums == 1 ? 4 : fma.sums / 2);
    return static_cast<double>(steps * fma.sums) / SecondsOf([&] { fma.run(steps); });
  }

  // Bytes a second by one thread. The whole is read in pieces timed one by one: in the first caches the best piece
  // counts, since each is read alike; further out the median, since some lie nearer by chance, and some are
  // interrupted.
  template <class Piece>
  static double Rate(MemoryLevel level, int64_t bytes, const Piece& piece) {
    const int64_t step = level <= kL2 ? bytes : std::min(bytes, kPieceBytes);
    const int64_t times = level <= kL2 ? std::max<int64_t>(1, kProbeCycles * 40 / bytes) : 1;
    std::vector<double> rates;
    for (int burst = 0; burst < (level <= kL2 ? kBursts : 1); ++burst) {
      for (int64_t at = 0; at + step <= bytes; at += step) {
        const double seconds = SecondsOf([&] {
          for (int64_t i = 0; i < times; ++i) piece(at, step);
        });
        rates.push_back(static_cast<double>(step * times) / seconds);
      }
    }
    return level <= kL2 ? *std::max_element(rates.begin(), rates.end()) : MedianOf(rates);
  }
  double ReadRate(MemoryLevel level, int thread) const {
    const char* from = block_->data() + thread * part_;
    const auto read = [&](int64_t at, int64_t bytes) { kernels_.back().read(from + at, bytes); };
    if (level == kL3) read(0, bytes_[kL3]);  // so that it is there
    return Rate(level, bytes_[level], read);
  }
  double CopyRate(MemoryLevel level, int thread) const {
    char* from = block_->data() + thread * part_;
    const int64_t half = Granules(bytes_[level] / 2);
    return 2 * Rate(level, half,
                    [&](int64_t at, int64_t bytes) { kernels_.back().copy(from + half + at, from + at, bytes); });
  }

  static void Keep(double& best, double rate) { best = std::max(best, rate); }
  void ProbeLevel(MemoryLevel level) {
    Keep(read_1_[level], ReadRate(level, 0));
    Keep(copy_1_[level], CopyRate(level, 0));
  }
  void ProbeAll(MemoryLevel level) {
    Keep(read_all_[level], OnAllThreads([&](int thread) { return ReadRate(level, thread); }));
    Keep(copy_all_[level], OnAllThreads([&](int thread) { return CopyRate(level, thread); }));
  }

  // By the wall clock, since waiting is what they cost.
  void ProbeForks() {
    const auto median_us = [&](int64_t extent) {
      const Clock::time_point begin = Clock::now();
      std::vector<double> us;
      while (us.size() < kForks && SecondsSince(begin) < kForkSeconds) {
        const Clock::time_point start = Clock::now();
        pool_->Run(TouchPieces, nullptr, extent);
        us.push_back(SecondsSince(start) * 1e6);
      }
      return MedianOf(us);
    };
    best_fork_us_ = std::min(best_fork_us_, median_us(threads()));
    best_many_us_ = std::min(best_many_us_, median_us(kPieces * threads()));
  }

  const Target& target_;
  ProbeOptions options_;
  std::vector<ProbeKernels> kernels_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Block> block_;
  int64_t part_ = 0;                            // of the block, a thread's
  std::array<int64_t, kMemoryLevels> bytes_{};  // of the part, what is read at a level
  // A second, of each width: multiply-adds, and cycles in units of 10^9.
  std::vector<double> best_fma_, best_ghz_;
  double best_chain_ = 1, best_flop_all_ = 0;  // multiply-adds of one sum; operations of all threads
  std::array<double, kMemoryLevels> read_1_{}, copy_1_{}, read_all_{}, copy_all_{};  // bytes a second
  static constexpr double kNever = 1e9;
  double best_fork_us_ = kNever, best_many_us_ = kNever;
};

}  // namespace

MachineProbe ProbeMachine(const Target& target, const ProbeOptions& options) {
  Prober prober(target, options);
  const Clock::time_point start = Clock::now();
  if (!prober.ready()) return {.machine = UsualMachine(target)};  // no memory to read
  double longest = 0;
  for (double spent = 0; longest == 0 || spent + longest <= options.seconds;) {
    prober.Round(start);
    const double now = SecondsSince(start);
    longest = std::max(longest, now - spent);
    spent = now;
  }
  return prober.Result();
}

}  // namespace hone
