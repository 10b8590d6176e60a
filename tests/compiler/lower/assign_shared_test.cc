// Where AssignShared puts buffers of shared memory: two that are alive at once never share bytes, and between two that
// do all threads meet at a barrier, with no copy still under way. What is alive is worked out here from the order of
// accesses alone, with every loop run twice.
#include "compiler/lower/threads/assign_shared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/text/text.h"
#include "tests/compiler/lower/access_walk.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/lower/thread_schedules.h"

namespace hone::testing {
namespace {

// What a thread does with shared memory, in the order in which it does it.
class SharedEvents : public AccessWalk {
 public:
  struct Life {
    int first = -1, last = -1;  // accesses, numbered from the start of the kernel
  };

  explicit SharedEvents(const DeviceKernel& kernel) {
    for (const DeviceKernel::Shared& shared : kernel.shared) lives_[shared.buffer];
    Walk(kernel.body);
  }

  const Life& LifeOf(const Buffer& buffer) const { return lives_.at(buffer); }
  // Whether all threads meet between two accesses, where all copies have landed.
  bool MeetsBetween(int from, int to, bool with_copies_under_way) const {
    return std::ranges::any_of(barriers_, [&](const Barrier& barrier) {
      return barrier.at > from && barrier.at <= to && (with_copies_under_way || !barrier.copies_under_way);
    });
  }

 private:
  struct Barrier {
    int at;  // in front of this access
    bool copies_under_way;
  };

  bool OnStmt(const Stmt& stmt) override {
    const Evaluate* evaluate = stmt.As<Evaluate>();
    if (evaluate != nullptr) Effect(*evaluate, stmt);
    return evaluate != nullptr;
  }
  void Effect(const Evaluate& evaluate, const Stmt& stmt) {
    if (IsBarrier(evaluate)) {
      barriers_.push_back({clock_, !open_.empty() || !groups_.empty()});
    } else if (IsCommitGroup(evaluate)) {
      groups_.push_back(std::exchange(open_, {}));
    } else if (const std::optional<int64_t> left = WaitGroup(evaluate)) {
      while (static_cast<int64_t>(groups_.size()) > *left) groups_.erase(groups_.begin());
      // A wait for all is one for copies of no group as well.
      if (*left == 0) open_.clear();
    } else {
      Loads(stmt);
      const std::optional<Store> store = EffectStore(evaluate);
      if (!store.has_value()) return;
      OnAccess(store->buffer);
      if (AsyncCopy(evaluate).has_value()) open_.push_back(store->buffer);
    }
  }
  void OnAccess(const Buffer& buffer) override {
    const auto found = lives_.find(buffer);
    if (found == lives_.end()) return;
    if (found->second.first < 0) found->second.first = clock_;
    found->second.last = clock_++;
  }

  std::map<Buffer, Life> lives_;
  std::vector<Barrier> barriers_;
  std::vector<std::vector<Buffer>> groups_;  // of copies that may be under way, committed
  std::vector<Buffer> open_;                 // .. and not
  int clock_ = 0;
};

struct SharedFindings {
  std::string wrong;  // "" when nothing is
  int tenants = 0;    // pairs of buffers that have bytes in common, one after the other
};

SharedFindings CheckSharedPlaces(const Launch& launch, const DeviceKernel& kernel) {
  SharedFindings findings;
  const SharedEvents events(kernel);
  const auto end_of = [](const DeviceKernel::Shared& s) {
    return s.offset + *s.buffer.NumElements() * s.buffer.type().bytes();
  };
  for (size_t i = 0; i < kernel.shared.size(); ++i) {
    const DeviceKernel::Shared& a = kernel.shared[i];
    if (a.offset % kSharedAlignment != 0 || end_of(a) > launch.shared_bytes)
      findings.wrong = absl::StrCat(a.buffer.name(), " lies outside of the block's memory");
    for (size_t j = 0; j < kernel.shared.size(); ++j) {
      const DeviceKernel::Shared& b = kernel.shared[j];
      const SharedEvents::Life &of_a = events.LifeOf(a.buffer), &of_b = events.LifeOf(b.buffer);
      if (i == j || a.offset >= end_of(b) || b.offset >= end_of(a) || of_a.first > of_b.first) continue;
      const std::string pair = absl::StrCat(a.buffer.name(), " and then ", b.buffer.name());
      ++findings.tenants;
      if (of_a.last >= of_b.first) {
        findings.wrong = absl::StrCat(pair, " share bytes while both are in use");
      } else if (!events.MeetsBetween(of_a.last, of_b.first, true)) {
        findings.wrong = absl::StrCat(pair, " share bytes with no barrier in between");
      } else if (!events.MeetsBetween(of_a.last, of_b.first, false)) {
        findings.wrong = absl::StrCat(pair, " share bytes while copies may be under way");
      }
    }
  }
  return findings;
}

// Each kernel of the drawn programs, which need more than 32 KiB where buffers do not share.
void ForEachStagedKernel(const std::function<void(const Launch&, const DeviceKernel&)>& look) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const ThreadSchedule drawn = DrawStagedProduct(random);
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(drawn.schedule.Program().main);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << ToText(drawn.schedule.func());
    for (size_t i = 0; i < program->launches.size(); ++i) look(program->launches[i], program->kernels[i]);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(AssignShared, BuffersThatAreInUseAtOnceShareNoBytes) {
  int tenants = 0;
  ForEachStagedKernel([&](const Launch& launch, const DeviceKernel& kernel) {
    const SharedFindings findings = CheckSharedPlaces(launch, kernel);
    EXPECT_EQ(findings.wrong, "") << ToText(kernel.body);
    tenants += findings.tenants;
  });
  EXPECT_GE(tenants, 20) << "nothing shares bytes: the check has nothing to check";
}

TEST(AssignShared, SharesNothingOfAKernelThatNeedsLittle) {
  Random random(1);
  const PrimFunc scheduled = DrawStagedProduct(random).schedule.Program().main;
  const auto tenants_with = [&](int64_t apart) {
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(scheduled, {.shared_apart = apart});
    EXPECT_TRUE(program.ok()) << program.status();
    return CheckSharedPlaces(program->launches[0], program->kernels[0]).tenants;
  };
  EXPECT_GT(tenants_with(0), 0);
  EXPECT_EQ(tenants_with(int64_t{1} << 20), 0);
}

// ---- Planted faults

// The kernel without its n-th statement of a kind; nullopt when it has fewer.
std::optional<DeviceKernel> WithoutEffect(DeviceKernel kernel, const std::function<bool(const Evaluate&)>& is_it,
                                          int n) {
  int seen = 0;
  kernel.body = RewriteBottomUp(kernel.body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Evaluate* evaluate = s.As<Evaluate>();
    if (evaluate == nullptr || !is_it(*evaluate) || seen++ != n) return std::nullopt;
    return Stmt::Make(Seq{});
  });
  return seen > n ? std::optional(std::move(kernel)) : std::nullopt;
}

// How many of the kernels without one statement of a kind are found, by what is said of them.
int FoundWithout(const Launch& launch, const DeviceKernel& kernel, const std::function<bool(const Evaluate&)>& is_it,
                 const std::string& says) {
  int found = 0;
  for (int n = 0;; ++n) {
    const std::optional<DeviceKernel> less = WithoutEffect(kernel, is_it, n);
    if (!less.has_value()) return found;
    const std::string wrong = CheckSharedPlaces(launch, *less).wrong;
    EXPECT_TRUE(wrong.empty() || wrong.ends_with(says)) << wrong;
    found += !wrong.empty();
  }
}

TEST(AssignShared, AnOverlapIsFound) {
  int planted = 0;
  ForEachStagedKernel([&](const Launch& launch, const DeviceKernel& kernel) {
    const SharedEvents events(kernel);
    for (size_t i = 0; i < kernel.shared.size(); ++i) {
      for (size_t j = 0; j < kernel.shared.size(); ++j) {
        const SharedEvents::Life &a = events.LifeOf(kernel.shared[i].buffer),
                                 &b = events.LifeOf(kernel.shared[j].buffer);
        if (i == j || a.first > b.last || b.first > a.last) continue;
        DeviceKernel wrong = kernel;
        wrong.shared[i].offset = wrong.shared[j].offset;
        EXPECT_NE(CheckSharedPlaces(launch, wrong).wrong, "");
        ++planted;
      }
    }
  });
  EXPECT_GE(planted, 24);
}

TEST(AssignShared, ADroppedBarrierIsFound) {
  int kernels = 0, found = 0;
  ForEachStagedKernel([&](const Launch& launch, const DeviceKernel& kernel) {
    if (CheckSharedPlaces(launch, kernel).tenants == 0) return;
    ++kernels;
    found += FoundWithout(launch, kernel, IsBarrier, "with no barrier in between") > 0;
  });
  EXPECT_GE(kernels, 10);
  EXPECT_EQ(found, kernels);
}

// S is being filled when the last statement that names it is over; what follows writes there.
TEST(AssignShared, ADroppedWaitIsFound) {
  const DeviceProgram program = *LowerToDevice(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for t in T.thread_binding(64, thread="threadIdx.x"):
        S = T.allocate((64,), "float32", scope="shared")
        U = T.allocate((64,), "float32", scope="shared")
        T.evaluate(T.async_copy(S[t], A[t]))
        T.ptx_commit_group()
        U[t] = A[t]
        T.tvm_storage_sync("shared")
        B[t] = U[63 - t]
        T.ptx_wait_group(0)
)"),
                                               {.shared_apart = 0});
  const Launch& launch = program.launches[0];
  const DeviceKernel& kernel = program.kernels[0];
  ASSERT_EQ(CheckSharedPlaces(launch, kernel).tenants, 1) << ToText(kernel.body);
  EXPECT_EQ(CheckSharedPlaces(launch, kernel).wrong, "") << ToText(kernel.body);
  const auto is_wait = [](const Evaluate& evaluate) { return WaitGroup(evaluate).has_value(); };
  EXPECT_EQ(FoundWithout(launch, kernel, is_wait, "while copies may be under way"), 1) << ToText(kernel.body);
}

}  // namespace
}  // namespace hone::testing
