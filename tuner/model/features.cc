#include "tuner/model/features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "compiler/ir/visit.h"

namespace hone {
namespace {

enum Feature {
  kDraft,
  kVectorArithmetic,
  kScalarArithmetic,
  kIndexArithmetic,
  kCalls,
  kDivisions,
  kSelects,
  kVectorLoads,
  kBroadcastLoads,
  kScalarLoads,
  kGathers,
  kMaskedLoads,
  kThreadLoads,
  kRegisterUses,
  kVectorStores,
  kScalarStores,
  kMaskedStores,
  kThreadStores,
  kBranches,
  kStatements,
  kLoops,
  kIterations,
  kInnermostTrips,
  kMaxDepth,
  kParallelLoops,
  kParallelExtent,
  kParallelImbalance,
  kRegisterBytes,
  kScratchBytes,
  kThreadScratchBytes,
  kBytesTouched,
  kLoadsPerArithmetic,
  kBroadcastsPerArithmetic,
  kArithmeticPerByte,
  kLanes,
  kScratchOverL2,
  kArithmeticTime,
  kMemoryTime,
  kCounted
};

constexpr std::array<std::string_view, kCounted> kNames = {
    "draft_us",
    "vector_arithmetic",
    "scalar_arithmetic",
    "index_arithmetic",
    "calls",
    "divisions",
    "selects",
    "vector_loads",
    "broadcast_loads",
    "scalar_loads",
    "gathers",
    "masked_loads",
    "thread_loads",
    "register_uses",
    "vector_stores",
    "scalar_stores",
    "masked_stores",
    "thread_stores",
    "branches",
    "statements",
    "loops",
    "iterations",
    "innermost_trips",
    "max_depth",
    "parallel_loops",
    "parallel_extent",
    "parallel_imbalance",
    "register_bytes",
    "scratch_bytes",
    "thread_scratch_bytes",
    "bytes_touched",
    "loads_per_arithmetic",
    "broadcasts_per_arithmetic",
    "arithmetic_per_byte",
    "lanes",
    "scratch_over_l2",
    "arithmetic_time",
    "memory_time",
};

// The names of the knobs' places are made once: "knob0" and so on.
const std::vector<std::string>& KnobNames() {
  static const auto* names = [] {
    auto* made = new std::vector<std::string>;
    for (int i = 0; i < kMaxKnobFeatures; ++i) made->push_back("knob" + std::to_string(i));
    return made;
  }();
  return *names;
}

class Counter {
 public:
  explicit Counter(int threads) : threads_(threads) {}

  void Visit(const Stmt& stmt) {
    if (!stmt) return;
    if (const For* loop = stmt.As<For>()) return VisitLoop(*loop);
    if (const Seq* seq = stmt.As<Seq>()) {
      for (const Stmt& child : seq->stmts) Visit(child);
      return;
    }
    ++at(kStatements);
    if (const IfThen* branch = stmt.As<IfThen>()) {
      at(kBranches) += times_;
      Count(branch->condition);
      Visit(branch->yes);
      Visit(branch->no);
    } else if (const Let* let = stmt.As<Let>()) {
      Count(let->value);
      Visit(let->body);
    } else if (const Alloc* alloc = stmt.As<Alloc>()) {
      const double bytes = static_cast<double>(alloc->buffer.NumElements().value_or(0) * alloc->buffer.type().bytes());
      if (alloc->buffer.scope() == Scope::kRegister) at(kRegisterBytes) = std::max(at(kRegisterBytes), bytes);
      Visit(alloc->body);
    } else if (const Store* store = stmt.As<Store>()) {
      VisitStore(*store);
    } else if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
      Count(evaluate->value);
    }
  }

  std::array<double, kCounted> counts{};

 private:
  double& at(Feature feature) { return counts[feature]; }

  void VisitLoop(const For& loop) {
    const double trips = static_cast<double>(ConstantValue(loop.extent).value_or(1));
    ++at(kLoops);
    if (loop.kind == ForKind::kParallel) {
      ++at(kParallelLoops);
      at(kParallelExtent) += trips;
      const double rounds = std::ceil(trips / threads_);
      at(kParallelImbalance) = std::max(at(kParallelImbalance), rounds * threads_ / std::max(trips, 1.0) - 1);
    }
    const double outer = times_;
    const double inner_before = innermost_;
    times_ *= trips;
    innermost_ = trips;
    at(kIterations) += times_;
    at(kMaxDepth) = std::max(at(kMaxDepth), static_cast<double>(++depth_));
    Visit(loop.body);
    --depth_;
    times_ = outer;
    innermost_ = inner_before;
  }

  void VisitStore(const Store& store) {
    Count(store.value);
    const bool vector = store.value.type().lanes > 1;
    at(kInnermostTrips) = std::max(at(kInnermostTrips), innermost_);
    switch (store.buffer.scope()) {
      case Scope::kRegister: at(kRegisterUses) += times_; return;
      case Scope::kThread: at(kThreadStores) += times_; break;
      default: at(vector ? kVectorStores : kScalarStores) += times_; break;
    }
    if (store.mask) at(kMaskedStores) += times_;
    Touch(store.buffer);
  }

  void Touch(const Buffer& buffer) {
    if (touched_.insert(buffer).second) {
      at(kBytesTouched) += static_cast<double>(buffer.NumElements().value_or(0) * buffer.type().bytes());
    }
  }

  void CountLoad(const Load& load, int lanes) {
    if (load.buffer.scope() == Scope::kRegister) {
      at(kRegisterUses) += times_;
      return;
    }
    Touch(load.buffer);
    if (load.buffer.scope() == Scope::kThread) at(kThreadLoads) += times_;
    if (load.mask) at(kMaskedLoads) += times_;
    if (lanes == 1) {
      at(kScalarLoads) += times_;
      return;
    }
    const Ramp* ramp = load.indices.empty() ? nullptr : load.indices.back().As<Ramp>();
    const bool contiguous = ramp != nullptr && IsConst(ramp->stride, 1);
    at(contiguous ? kVectorLoads : kGathers) += contiguous ? times_ : times_ * lanes;
    at(kLanes) = std::max(at(kLanes), static_cast<double>(lanes));
  }

  void Count(const Expr& root) {
    ForEachExpr(root, [&](const Expr& e) {
      const int lanes = e.type().lanes;
      if (const Load* load = e.As<Load>()) {
        CountLoad(*load, lanes);
        at(kIndexArithmetic) += times_ * static_cast<double>(load->indices.size());
        return false;
      }
      if (const Broadcast* broadcast = e.As<Broadcast>()) {
        if (broadcast->value.As<Load>() != nullptr) at(kBroadcastLoads) += times_;
        return true;
      }
      if (const Binary* binary = e.As<Binary>()) {
        if (!e.type().is_float()) {
          at(kIndexArithmetic) += times_;
        } else if (binary->op == BinaryOp::kDiv) {
          at(kDivisions) += times_;
        } else {
          at(lanes > 1 ? kVectorArithmetic : kScalarArithmetic) += times_;
        }
      }
      if (e.As<Call>() != nullptr) at(kCalls) += times_;
      if (e.As<Select>() != nullptr || e.As<IfThenElseExpr>() != nullptr) at(kSelects) += times_;
      return true;
    });
  }

  int threads_;
  double times_ = 1;  // how often what is visited runs
  double innermost_ = 1;
  int depth_ = 0;
  std::set<Buffer> touched_;
};

bool IsRatio(int feature) {
  return feature == kParallelImbalance || feature == kLoadsPerArithmetic || feature == kBroadcastsPerArithmetic ||
         feature == kScratchOverL2 || feature == kArithmeticTime || feature == kMemoryTime;
}

}  // namespace

int NumFeatures() { return kCounted + kMaxKnobFeatures; }

std::string_view FeatureName(int index) {
  if (index < kCounted) return kNames[static_cast<size_t>(index)];
  return KnobNames()[static_cast<size_t>(index - kCounted)];
}

std::vector<float> ExtractFeatures(const LoweredFunc& lowered, const Target& target, const Machine& machine,
                                   int threads, double draft_us, std::span<const int64_t> knob_values) {
  Counter counter(threads);
  counter.Visit(lowered.func.body);
  std::array<double, kCounted>& c = counter.counts;
  c[kDraft] = draft_us;
  c[kScratchBytes] = static_cast<double>(lowered.scratch_bytes);
  c[kThreadScratchBytes] = static_cast<double>(lowered.thread_scratch_bytes);
  c[kScratchOverL2] = c[kScratchBytes] / static_cast<double>(std::max<int64_t>(target.l2, 1));
  const double arithmetic = std::max(1.0, c[kVectorArithmetic] + c[kScalarArithmetic]);
  c[kLoadsPerArithmetic] = (c[kVectorLoads] + c[kScalarLoads] + c[kGathers]) / arithmetic;
  c[kBroadcastsPerArithmetic] = c[kBroadcastLoads] / arithmetic;
  // Parts of the draft that arithmetic alone, and reading everything once from memory, would take.
  const double cycles = std::max(draft_us, 1e-3) * machine.cycles_per_us();
  c[kArithmeticTime] = arithmetic / (machine.fma_per_cycle(target.vector_bits) * threads) / cycles;
  c[kMemoryTime] = c[kBytesTouched] / machine.memory_all / cycles;
  c[kArithmeticPerByte] = arithmetic * std::max(1.0, c[kLanes]) / std::max(1.0, c[kBytesTouched]);
  std::vector<float> features(static_cast<size_t>(NumFeatures()), 0.0f);
  for (int i = 0; i < kCounted; ++i) {
    const double value = c[static_cast<size_t>(i)];
    features[static_cast<size_t>(i)] = static_cast<float>(IsRatio(i) ? value : std::log2(value + 1));
  }
  for (size_t k = 0; k < knob_values.size() && k < kMaxKnobFeatures; ++k) {
    features[kCounted + k] = static_cast<float>(std::log2(static_cast<double>(knob_values[k]) + 1));
  }
  return features;
}

}  // namespace hone
