#include "compiler/schedule/primitives/sample_partitioned_tile.h"

#include <string>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct Request {
  int64_t extent = 0;
  std::string where;
};
absl::StatusOr<Request> Check(const Schedule& schedule, LoopRef ref, int n, int partition_pos, int64_t factor) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "sample_partitioned_tile"));
  const For& loop = schedule.index().loop(node);
  Request request{0, Message("sample_partitioned_tile(", loop.var, ")")};
  const std::optional<int64_t> extent = ConstantValue(loop.extent);
  if (!extent.has_value() || *extent < 1)
    return Refused(request.where, ": the extent ", loop.extent, " is not a number above 0");
  if (n < 1 || n > 64) return Invalid(request.where, ": n is ", n, ", not between 1 and 64");
  if (partition_pos < 0 || partition_pos >= n) {
    return Invalid(request.where, ": partition_pos is ", partition_pos, ", not one of the ", n, " factors");
  }
  if (factor < 1) return Invalid(request.where, ": innerpart_factor is ", factor, ", below 1");
  if (*extent % factor != 0) {
    return Refused(request.where, ": the extent ", *extent, " is not a multiple of innerpart_factor ", factor,
                   "; pad the loop first (pad_einsum), or choose a factor of the extent");
  }
  request.extent = *extent;
  return request;
}

}  // namespace

absl::StatusOr<std::vector<ValueRef>> SamplePartitionedTile(Schedule& schedule, LoopRef loop, int n, int partition_pos,
                                                            int64_t innerpart_factor, std::vector<int64_t> decision) {
  HONE_ASSIGN_OR_RETURN(const Request request, Check(schedule, loop, n, partition_pos, innerpart_factor));
  if (static_cast<int>(decision.size()) != n) {
    return Invalid(request.where, ": the decision has ", decision.size(), " factors, n is ", n);
  }
  int64_t product = 1, inner = 1;
  for (int i = 0; i < n; ++i) {
    if (decision[i] < 1 || decision[i] > request.extent / product) {
      return Invalid(request.where, ": the decision does not multiply to the extent ", request.extent, ": factor ", i,
                     " is ", decision[i]);
    }
    product *= decision[i];
    if (i >= partition_pos) inner *= decision[i];
  }
  if (product != request.extent) {
    return Invalid(request.where, ": the decision multiplies to ", product, ", the extent is ", request.extent);
  }
  if (inner % innerpart_factor != 0) {
    return Invalid(request.where, ": the factors from number ", partition_pos, " on multiply to ", inner,
                   ", which is not a multiple of innerpart_factor ", innerpart_factor);
  }
  // ---- nothing below fails ----
  Schedule::Outputs outputs;
  for (const int64_t factor : decision) outputs.push_back(Schedule::Output::Number(factor));
  const int number = schedule.Record(SamplePartitionedTileStep{.loop = loop,
                                                               .n = n,
                                                               .partition_pos = partition_pos,
                                                               .innerpart_factor = innerpart_factor,
                                                               .decision = std::move(decision)},
                                     std::move(outputs));
  std::vector<ValueRef> refs;
  for (int k = 0; k < n; ++k) refs.push_back({number, k});
  return refs;
}

absl::StatusOr<std::vector<ValueRef>> SamplePartitionedTile(Schedule& schedule, LoopRef loop, int n, int partition_pos,
                                                            int64_t innerpart_factor, Random& random) {
  HONE_ASSIGN_OR_RETURN(const Request request, Check(schedule, loop, n, partition_pos, innerpart_factor));
  // Every prime factor goes to a place of its own: those of the granularity to the inner part, the others anywhere.
  std::vector<int64_t> decision(n, 1);
  const auto spread = [&](int64_t rest, int first) {
    for (int64_t prime = 2; rest > 1; ++prime) {
      if (prime * prime > rest) prime = rest;
      for (; rest % prime == 0; rest /= prime) decision[first + random.Below(n - first)] *= prime;
    }
  };
  spread(innerpart_factor, partition_pos);
  spread(request.extent / innerpart_factor, 0);
  return SamplePartitionedTile(schedule, loop, n, partition_pos, innerpart_factor, std::move(decision));
}

absl::Status Apply(Schedule& schedule, const SamplePartitionedTileStep& step) {
  return SamplePartitionedTile(schedule, step.loop, AsIndex(step.n), AsIndex(step.partition_pos), step.innerpart_factor,
                               step.decision)
      .status();
}

HONE_PRIMITIVES(sample_partitioned_tile, SamplePartitionedTileStep)

}  // namespace hone
