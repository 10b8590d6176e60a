#include "tuner/model/feature_groups.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hone {
namespace {

constexpr size_t kBuffers = 5;
constexpr int kIntensitySamples = 10;
constexpr double kLineBytes = 64;

// clang-format off
constexpr std::array<std::string_view, kOperations> kOperationNames = {
    "float_mad", "float_addsub", "float_mul", "float_divmod", "float_cmp", "float_math", "float_other",
    "int_mad", "int_addsub", "int_mul", "int_divmod", "int_cmp", "int_math", "int_other",
    "bool_other", "select",
};
// clang-format on

// Where an annotated loop stands among the loops of its kind.
enum Position {
  kNone,
  kInnerSpatial,
  kMiddleSpatial,
  kOuterSpatial,
  kInnerReduce,
  kMiddleReduce,
  kOuterReduce,
  kMixed
};
constexpr std::array<std::string_view, 8> kPositionNames = {"none",          "inner_spatial", "middle_spatial",
                                                            "outer_spatial", "inner_reduce",  "middle_reduce",
                                                            "outer_reduce",  "mixed"};

struct Annotated {
  double count = 0;
  double product = 1;
  double innermost = 1;
  Position position = kNone;
};

void Write(std::string_view prefix, const Annotated& annotated, FeatureSink* sink) {
  sink->set_prefix(prefix);
  sink->Log("count", annotated.count);
  sink->Log("product", annotated.product);
  sink->Log("innermost", annotated.innermost);
  for (size_t p = 0; p < kPositionNames.size(); ++p)
    sink->Flag(kPositionNames[p], annotated.position == static_cast<Position>(p));
  sink->set_prefix("");
}

Position PositionOf(const StoreNest& nest, size_t loop) {
  const bool reduce = nest.loops[loop].reduce;
  bool outside = false, inside = false;
  for (size_t l = 0; l < nest.loops.size(); ++l) {
    if (nest.loops[l].reduce != reduce) continue;
    outside = outside || l < loop;
    inside = inside || l > loop;
  }
  if (!outside) return reduce ? kOuterReduce : kOuterSpatial;
  if (!inside) return reduce ? kInnerReduce : kInnerSpatial;
  return reduce ? kMiddleReduce : kMiddleSpatial;
}

// One buffer of a nest, its accesses together.
struct BufferUse {
  Buffer buffer;
  bool read = false, write = false;
  double bytes = 0, unique_bytes = 0, lines = 0, unique_lines = 0;
  double stride = 0;
  double reuse_iterations = 0, reuse_bytes = 0, reuse_count = 0;
  int reuse = 0;  // 0: none, 1: by a loop, 2: by an earlier statement
};

std::vector<BufferUse> UsesOf(const StoreNest& nest, const NestLevels& levels, const EarlierUses& earlier) {
  std::vector<BufferUse> uses;
  for (size_t a = 0; a < nest.accesses.size(); ++a) {
    const NestAccess& access = nest.accesses[a];
    auto found =
        std::find_if(uses.begin(), uses.end(), [&](const BufferUse& use) { return use.buffer.SameAs(access.buffer); });
    const bool fresh = found == uses.end();
    if (fresh) {
      found = uses.insert(uses.end(), BufferUse{});
      found->buffer = access.buffer;
    }
    const double element = static_cast<double>(access.buffer.type().bytes());
    const Footprint all = levels.of_access[a][0];
    found->read = found->read || !access.write;
    found->write = found->write || access.write;
    found->bytes += levels.iterations[0] * access.repeats * access.lanes * element;
    found->unique_bytes = std::max(found->unique_bytes, all.elements * element);
    found->lines += levels.iterations[0] * levels.of_access[a][nest.loops.size()].lines;
    found->unique_lines = std::max(found->unique_lines, all.lines);
    if (!fresh) continue;
    for (size_t l = nest.loops.size(); l-- > 0;) {
      if (nest.loops[l].extent <= 1) continue;
      if (!MovesWith(access, l)) {
        found->reuse = 1;
        found->reuse_count = nest.loops[l].extent;
        found->reuse_iterations = levels.iterations[l + 1];
        found->reuse_bytes = levels.bytes[l + 1];
        break;
      }
    }
    for (size_t l = nest.loops.size(); l-- > 0 && found->stride == 0;) {
      for (const IndexTerm& term : access.terms) {
        if (term.loop == static_cast<int>(l)) found->stride = term.stride;
      }
    }
    if (const EarlierUses::Use* use = earlier.Find(access.buffer); found->reuse == 0 && use != nullptr) {
      found->reuse = 2;
      found->reuse_count = 1;
      found->reuse_bytes = earlier.bytes - use->at_bytes;
      found->reuse_iterations = earlier.iterations - use->at_iterations;
    }
  }
  std::stable_sort(uses.begin(), uses.end(), [](const BufferUse& x, const BufferUse& y) { return x.bytes > y.bytes; });
  return uses;
}

double FloatOperations(const StoreNest& nest) {
  double sum = nest.operations[kFloatMulAdd];
  for (int o = 0; o <= kFloatOther; ++o) sum += nest.operations[static_cast<size_t>(o)];
  return sum;
}

}  // namespace

void FeatureSink::Log(std::string_view name, double count) { Raw(name, std::log2(std::abs(count) + 1)); }
void FeatureSink::Ratio(std::string_view name, double ratio) {
  Raw(name, std::log2(std::clamp(ratio, 1.0 / 4096, 4096.0)));
}

const EarlierUses::Use* EarlierUses::Find(const Buffer& buffer) const {
  for (const Use& use : uses) {
    if (use.buffer.SameAs(buffer)) return &use;
  }
  return nullptr;
}

void EarlierUses::Note(const StoreNest& nest, const NestLevels& levels) {
  bytes += levels.bytes[0];
  iterations += levels.iterations[0];
  for (const NestAccess& access : nest.accesses) {
    Use* known = const_cast<Use*>(Find(access.buffer));
    if (known == nullptr) known = &uses.emplace_back(Use{access.buffer});
    known->at_bytes = bytes;
    known->at_iterations = iterations;
  }
}

void OperationFeatures(const StoreNest& nest, double iterations, FeatureSink* sink) {
  for (size_t o = 0; o < kOperations; ++o) sink->Log(kOperationNames[o], nest.operations[o] * iterations);
}

void AnnotationFeatures(const StoreNest& nest, FeatureSink* sink) {
  Annotated vector, unrolled, parallel;
  if (nest.widest > 1) { vector = {1, nest.widest, nest.widest, nest.lanes > 1 ? kInnerSpatial : kInnerReduce}; }
  if (nest.copies > 1) {
    unrolled = {1, nest.copies, nest.copies, kMixed};
    if (nest.targets == nest.copies) unrolled.position = kInnerSpatial;
    if (nest.targets == 1) unrolled.position = kInnerReduce;
  }
  for (size_t l = 0; l < nest.loops.size(); ++l) {
    if (!nest.loops[l].parallel) continue;
    const Position position = PositionOf(nest, l);
    parallel.position = parallel.count == 0 || parallel.position == position ? position : kMixed;
    ++parallel.count;
    parallel.product *= nest.loops[l].extent;
    parallel.innermost = nest.loops[l].extent;
  }
  Write("vector_", vector, sink);
  Write("unrolled_", unrolled, sink);
  Write("parallel_", parallel, sink);
}

void BufferFeatures(const StoreNest& nest, const NestLevels& levels, const EarlierUses& earlier, FeatureSink* sink) {
  constexpr std::array<std::string_view, kBuffers> kPrefixes = {"b0_", "b1_", "b2_", "b3_", "b4_"};
  const std::vector<BufferUse> uses = UsesOf(nest, levels, earlier);
  for (size_t b = 0; b < kBuffers; ++b) {
    const BufferUse use = b < uses.size() ? uses[b] : BufferUse{};
    const double count = std::max(1.0, use.reuse_count);
    sink->set_prefix(kPrefixes[b]);
    sink->Flag("read", use.read && !use.write);
    sink->Flag("write", use.write && !use.read);
    sink->Flag("read_write", use.read && use.write);
    sink->Log("bytes", use.bytes);
    sink->Log("unique_bytes", use.unique_bytes);
    sink->Log("lines", use.lines);
    sink->Log("unique_lines", use.unique_lines);
    sink->Flag("reuse_none", use.reuse == 0);
    sink->Flag("reuse_loop", use.reuse == 1);
    sink->Flag("reuse_serial", use.reuse == 2);
    sink->Log("reuse_iterations", use.reuse_iterations);
    sink->Log("reuse_bytes", use.reuse_bytes);
    sink->Log("reuse_count", use.reuse_count);
    sink->Log("bytes_per_reuse", use.bytes / count);
    sink->Log("unique_bytes_per_reuse", use.unique_bytes / count);
    sink->Log("lines_per_reuse", use.lines / count);
    sink->Log("unique_lines_per_reuse", use.unique_lines / count);
    sink->Log("stride", use.stride);
  }
  sink->set_prefix("");
}

// Float operations over distinct bytes as loops close from the inside outwards, at ten places equally far apart.
void IntensityFeatures(const StoreNest& nest, const NestLevels& levels, FeatureSink* sink) {
  constexpr std::array<std::string_view, kIntensitySamples> kNames = {
      "intensity0", "intensity1", "intensity2", "intensity3", "intensity4",
      "intensity5", "intensity6", "intensity7", "intensity8", "intensity9"};
  const double operations = FloatOperations(nest);
  const size_t depths = nest.loops.size() + 1;
  const auto at = [&](size_t closed) {  // loops closed
    const size_t depth = depths - 1 - closed;
    return std::log2(operations * levels.iterations[depth] / std::max(levels.bytes[depth], 1.0) + 1);
  };
  for (int s = 0; s < kIntensitySamples; ++s) {
    const double place = static_cast<double>(s) * static_cast<double>(depths - 1) / (kIntensitySamples - 1);
    const size_t low = static_cast<size_t>(place), high = std::min(low + 1, depths - 1);
    const double part = place - static_cast<double>(low);
    sink->Raw(kNames[static_cast<size_t>(s)], at(low) * (1 - part) + at(high) * part);
  }
}

void AllocationFeatures(const StoreNest& nest, FeatureSink* sink) {
  double outer = 1;
  for (int l = 0; l < nest.allocated_at; ++l) outer *= nest.loops[static_cast<size_t>(l)].extent;
  double all = 1;
  for (const NestLoop& loop : nest.loops) all *= loop.extent;
  sink->Log("alloc_bytes", nest.allocated_bytes);
  sink->Log("alloc_bytes_times_outer", nest.allocated_bytes * outer);
  sink->Log("alloc_outer", nest.allocated_bytes > 0 ? outer : 0);
  sink->Log("alloc_inner", nest.allocated_bytes > 0 ? all / outer : 0);
}

void OuterFeatures(const StoreNest& nest, FeatureSink* sink) {
  sink->Log("outer_product", nest.Iterations());
  sink->Log("loops", static_cast<double>(nest.loops.size()));
  sink->Log("innermost_extent", nest.loops.empty() ? 1 : nest.loops.back().extent);
}

void MachineFeatures(const StoreNest& nest, const NestLevels& levels, const NestCosts& costs,
                     const NestMachine& machine, FeatureSink* sink) {
  constexpr std::array<std::string_view, kLevels> kFetched = {"l1_over_arithmetic", "l2_over_arithmetic",
                                                              "l3_over_arithmetic", "memory_over_arithmetic"};
  constexpr std::array<std::string_view, 3> kWhole = {"working_set_over_l1", "working_set_over_l2",
                                                      "working_set_over_l3"};
  constexpr std::array<std::string_view, 3> kInner = {"inner_set_over_l1", "inner2_set_over_l1", "inner3_set_over_l2"};
  const double arithmetic = std::max(costs.arithmetic_cycles, 1.0);
  for (size_t level = 0; level < kLevels; ++level)
    sink->Ratio(kFetched[level], costs.traffic_cycles[level] / arithmetic);
  sink->Ratio("ports_over_arithmetic", costs.port_cycles / arithmetic);
  for (size_t level = 0; level < 3; ++level) sink->Ratio(kWhole[level], levels.bytes[0] / machine.capacity[level]);
  // The working sets of the one, two and three innermost loops.
  for (size_t inner = 0; inner < 3; ++inner) {
    const size_t depth = nest.loops.size() > inner ? nest.loops.size() - 1 - inner : 0;
    sink->Ratio(kInner[inner], levels.bytes[depth] / machine.capacity[inner < 2 ? 0 : 1]);
  }
  // Of one thread, the whole of its parallel piece.
  size_t piece = 0;
  while (piece < nest.loops.size() && nest.loops[piece].parallel) ++piece;
  if (piece == nest.loops.size() || costs.parallel <= 1) piece = 0;
  sink->Ratio("piece_over_l2", levels.bytes[piece] / machine.capacity[1]);
  const bool in_registers = nest.target.scope() == Scope::kRegister;
  sink->Flag("in_registers", in_registers);
  sink->Flag("accumulates", nest.accumulates);
  sink->Raw("latency_factor", costs.latency_factor);
  const double lanes = std::max(1.0, nest.widest);
  sink->Raw("registers_used",
            in_registers ? nest.allocated_bytes / (machine.lanes * 4) / std::max(1.0, machine.registers) : 0);
  sink->Raw("lanes_used", lanes >= machine.lanes ? lanes / (machine.lanes * std::ceil(lanes / machine.lanes))
                                                 : lanes / machine.lanes);
  sink->Raw("threads_used", costs.speed_up / machine.threads);
  sink->Raw("fork_share", costs.parallel > 1 ? machine.fork_us / (machine.fork_us + costs.microseconds) : 0);
  sink->Raw("masked", nest.masked);
  double masked_loads = 0, loads = 0;
  for (const NestAccess& access : nest.accesses) {
    loads += access.write ? 0 : access.repeats;
    masked_loads += access.write ? 0 : access.repeats * access.masked;
  }
  sink->Raw("masked_loads", loads > 0 ? masked_loads / loads : 0);
  const double vectors = std::max(nest.vector_operations, 1.0);
  sink->Ratio("loads_per_operation", costs.loads / vectors);
  sink->Ratio("broadcasts_per_operation", costs.broadcasts / vectors);
  sink->Ratio("gathers_per_operation", costs.gathers / vectors);
  sink->Ratio("stores_per_operation", costs.stores / vectors);
  sink->Ratio("lines_per_byte_used", levels.bytes.back() / kLineBytes / std::max(1.0, costs.loads + costs.stores));
  sink->Log("nest_us", costs.microseconds);
}

}  // namespace hone
