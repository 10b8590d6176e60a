#include "compiler/lower/threads/assign_shared.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

// A buffer and the stretch of the program in which its bytes are used, counted in steps: statements that all threads
// come to one after the other, a loop being one.
struct Tenant {
  Buffer buffer;
  int64_t bytes = 0, offset = 0;
  int begin = std::numeric_limits<int>::max(), end = -1;

  bool Meets(const Tenant& other) const { return begin <= other.end && other.begin <= end; }
  bool Overlaps(const Tenant& other) const {
    return offset < other.offset + other.bytes && other.offset < offset + bytes;
  }
};

// Calls `at` for every step of a body, in order, with what it becomes.
template <typename At>
Stmt OnSteps(const Stmt& body, const At& at) {
  if (const Seq* seq = body.As<Seq>()) {
    std::vector<Stmt> stmts;
    for (const Stmt& s : seq->stmts) stmts.push_back(OnSteps(s, at));
    return MakeSeq(std::move(stmts));
  }
  if (const Alloc* alloc = body.As<Alloc>()) return Stmt::Make(Alloc{alloc->buffer, OnSteps(alloc->body, at)});
  if (const Let* let = body.As<Let>()) return Stmt::Make(Let{let->var, let->value, OnSteps(let->body, at)});
  return at(body);
}

std::vector<Tenant> TakeAllocations(DeviceKernel& kernel) {
  std::vector<Tenant> tenants;
  kernel.body = RewriteBottomUp(kernel.body, [&](const Stmt& s) -> std::optional<Stmt> {
    const Alloc* alloc = s.As<Alloc>();
    if (alloc == nullptr || alloc->buffer.scope() != Scope::kShared) return std::nullopt;
    tenants.push_back({alloc->buffer, *alloc->buffer.NumElements() * alloc->buffer.type().bytes()});
    return alloc->body;
  });
  return tenants;
}

bool CopiesAsynchronously(const Stmt& body) {
  bool found = false;
  ForEachStmt(body, [&](const Stmt& s) {
    const Evaluate* evaluate = s.As<Evaluate>();
    found = found || (evaluate != nullptr && AsyncCopy(*evaluate).has_value());
    return !found;
  });
  return found;
}

int64_t Aligned(int64_t offset) { return (offset + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment; }

// The lowest place beside those which are in use at the same time.
int64_t PlaceFor(const Tenant& tenant, const std::vector<Tenant>& placed) {
  std::vector<int64_t> places = {0};
  for (const Tenant& other : placed) {
    if (tenant.Meets(other)) places.push_back(Aligned(other.offset + other.bytes));
  }
  std::ranges::sort(places);
  const auto fits = [&](int64_t offset) {
    Tenant there = tenant;
    there.offset = offset;
    return std::ranges::none_of(placed,
                                [&](const Tenant& other) { return there.Meets(other) && there.Overlaps(other); });
  };
  return *std::ranges::find_if(places, fits);
}

}  // namespace

void AssignShared(Launch& launch, DeviceKernel& kernel, int64_t most_apart) {
  std::vector<Tenant> tenants = TakeAllocations(kernel);
  int steps = 0;
  OnSteps(kernel.body, [&](const Stmt& step) {
    const TouchedBuffers used = BuffersTouchedBy(step);
    for (Tenant& tenant : tenants) {
      if (!used.contains(tenant.buffer)) continue;
      tenant.begin = std::min(tenant.begin, steps);
      tenant.end = steps;
    }
    ++steps;
    return step;
  });
  int64_t apart = 0;
  for (const Tenant& tenant : tenants) apart = Aligned(apart) + tenant.bytes;
  if (apart <= most_apart) {
    for (Tenant& tenant : tenants) tenant.begin = 0, tenant.end = steps;
  }
  std::ranges::stable_sort(tenants, {}, &Tenant::begin);
  std::vector<Tenant> placed;
  std::set<int> behind_barriers;  // steps in front of which one is needed
  for (Tenant& tenant : tenants) {
    tenant.offset = PlaceFor(tenant, placed);
    if (std::ranges::any_of(placed, [&](const Tenant& other) { return tenant.Overlaps(other); }))
      behind_barriers.insert(tenant.begin);
    kernel.shared.push_back({tenant.buffer, tenant.offset});
    launch.shared_bytes = std::max(launch.shared_bytes, tenant.offset + tenant.bytes);
    placed.push_back(tenant);
  }
  if (behind_barriers.empty()) return;
  const bool waits = CopiesAsynchronously(kernel.body);
  int step_number = 0;
  kernel.body = OnSteps(kernel.body, [&](const Stmt& step) {
    if (!behind_barriers.contains(step_number++)) return step;
    return MakeSeq(waits ? std::vector<Stmt>{MakeWaitGroup(0), MakeBarrier(), step}
                         : std::vector<Stmt>{MakeBarrier(), step});
  });
}

}  // namespace hone
