// Where AssignMemory puts buffers: two that are alive at once never share bytes. What is alive is worked out here from
// the order of accesses alone, with every loop run twice.
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/visit.h"
#include "tests/compiler/lower/access_walk.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

// One life of a buffer: from an Alloc that is entered to its end, or less: from its first access to its last.
struct Life {
  Buffer buffer;
  int first = -1, last = -1;  // in accesses since the start of the program
};

class Lives : public AccessWalk {
 public:
  explicit Lives(const Stmt& body) { Walk(body); }
  const std::vector<Life>& all() const { return all_; }

 private:
  bool OnStmt(const Stmt& stmt) override {
    const Alloc* alloc = stmt.As<Alloc>();
    if (alloc == nullptr) return false;
    current_[alloc->buffer] = all_.size();
    all_.push_back({alloc->buffer});
    Walk(alloc->body);
    return true;
  }
  void OnAccess(const Buffer& buffer) override {
    const auto found = current_.find(buffer);
    if (found == current_.end()) return;  // a param
    Life& life = all_[found->second];
    if (life.first < 0) life.first = clock_;
    life.last = clock_++;
  }

  std::map<Buffer, size_t> current_;
  std::vector<Life> all_;
  int clock_ = 0;
};

struct Findings {
  std::string overlap;  // "" when there is none
  int shared = 0;       // pairs of buffers that share bytes at different times
};

Findings Check(const LoweredFunc& lowered) {
  struct Place {
    bool thread;
    int64_t begin, end;
  };
  const auto place_of = [&](const Buffer& buffer) -> std::optional<Place> {
    const auto found = lowered.places.find(buffer);
    if (found == lowered.places.end()) return std::nullopt;
    const int64_t offset = found->second.offset;
    return Place{found->second.thread, offset, offset + *buffer.NumElements() * buffer.type().bytes()};
  };
  Findings findings;
  const Lives lives(lowered.func.body);
  for (size_t i = 0; i < lives.all().size(); ++i) {
    const Life& a = lives.all()[i];
    const std::optional<Place> at = place_of(a.buffer);
    if (!at.has_value()) continue;
    const int64_t room = at->thread ? lowered.thread_scratch_bytes : lowered.scratch_bytes;
    if (at->begin % 64 != 0 || at->end > room)
      findings.overlap = absl::StrCat(a.buffer.name(), " lies outside its area");
    for (size_t j = 0; j < i; ++j) {
      const Life& b = lives.all()[j];
      const std::optional<Place> other = place_of(b.buffer);
      if (!other.has_value() || a.buffer == b.buffer || at->thread != other->thread) continue;
      if (at->begin >= other->end || other->begin >= at->end) continue;
      const bool both_alive = a.first >= 0 && b.first >= 0 && a.first <= b.last && b.first <= a.last;
      if (both_alive) findings.overlap = absl::StrCat(a.buffer.name(), " and ", b.buffer.name(), " share bytes");
      else ++findings.shared;
    }
  }
  return findings;
}

// Too large to be put side by side (kMostUnshared in assign_memory.cc). They are lowered, not run.
std::vector<PrimFunc> LargeWorkloads() {
  return {ThreeStages(80, 96),   ConvBiasResidualRelu({28, 28, 16, 32}),
          DenseRelu(64, 96, 80), Softmax(96, 128),
          Blur(8000, 3),         TwoElementwise(100, 100)};
}

TEST(AssignMemory, BuffersThatAreAliveAtOnceShareNoBytes) {
  int shared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const std::vector<PrimFunc> workloads = LargeWorkloads();
    Player player(workloads[random.Below(workloads.size())], random);
    player.PlayChanges(static_cast<int>(random.Below(15)));
    const absl::StatusOr<LoweredFunc> lowered = Lower(player.schedule().Program().main);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const Findings findings = Check(*lowered);
    ASSERT_EQ(findings.overlap, "") << ToText(lowered->func);
    shared += findings.shared;
  }
  EXPECT_GE(shared, 20) << "nothing shares memory: the check has nothing to check";
}

// Planted: one of two buffers that are alive at once is put where the other is.
TEST(AssignMemory, AnOverlapIsFound) {
  int planted = 0;
  for (const PrimFunc& workload : LargeWorkloads()) {
    LoweredFunc lowered = *Lower(workload, {.plain = true});
    const Lives lives(lowered.func.body);
    for (const Life& a : lives.all()) {
      for (const Life& b : lives.all()) {
        if (a.buffer == b.buffer || !lowered.places.contains(a.buffer) || !lowered.places.contains(b.buffer)) continue;
        if (a.first > b.last || b.first > a.last) continue;
        LoweredFunc wrong = lowered;
        wrong.places[a.buffer] = wrong.places[b.buffer];
        EXPECT_NE(Check(wrong).overlap, "") << a.buffer.name() << " at the place of " << b.buffer.name();
        ++planted;
      }
    }
  }
  EXPECT_GE(planted, 4);
}

}  // namespace
}  // namespace hone::testing
