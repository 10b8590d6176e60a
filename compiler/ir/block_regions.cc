#include "compiler/ir/block_regions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/ir/block_accesses.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/sum.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

// One dimension of a region while it grows: [min, min + extent), or everything.
struct Extent {
  bool whole = false;
  Sum min;
  int64_t extent = 1;
  Expr written;  // min as the program has it; absent where no access starts there
  Expr length;   // in place of `extent` where that is no constant
};

// The range that one access covers of a dimension while the loops run, innermost first: the start of an inner one may
// depend on an outer one.
Extent ExtentOf(const Range& range, const std::vector<std::pair<Var, Range>>& loops) {
  const Extent whole{.whole = true};
  if (HasLoad(range.min) || HasLoad(range.extent)) return whole;
  Extent dim{.min = SumOf(range.min), .written = range.min};
  if (const std::optional<int64_t> extent = ConstantValue(range.extent)) dim.extent = *extent;
  else dim.length = range.extent;
  for (size_t l = loops.size(); l-- > 0;) {
    const auto& [var, domain] = loops[l];
    if (dim.length && UsesVar(dim.length, var)) return whole;
    const Term* term = FindTerm(dim.min, Term{.atom = var});
    if (term != nullptr) {
      const std::optional<int64_t> trips = ConstantValue(domain.extent);
      if (!trips.has_value() || dim.length) return whole;
      const int64_t coefficient = term->coefficient, reach = coefficient * (*trips - 1);
      AddTerm(dim.min, Term{.atom = var}, -coefficient);
      AddScaled(dim.min, SumOf(domain.min), coefficient);
      dim.extent += std::abs(reach);
      dim.min.constant += std::min<int64_t>(reach, 0);
      dim.written = Expr();
    }
    for (const Term& other : dim.min.terms) {
      if (UsesVar(other.atom, var)) return whole;
    }
  }
  return dim;
}

// What lies in both; `a` where it is not known how they lie to each other.
Extent Intersected(const Extent& a, const Extent& b) {
  if (b.whole || b.length || a.length) return a;
  if (a.whole) return b;
  const Sum apart = Difference(b.min, a.min);
  if (!apart.is_constant()) return a;
  const int64_t first = std::max<int64_t>(0, apart.constant);
  const int64_t end = std::min(a.extent, apart.constant + b.extent);
  if (end <= first) return a;  // the access is never made
  Extent both = apart.constant > 0 ? b : a;
  both.extent = end - first;
  return both;
}

// The same for every dimension of an access. A nested block runs only where its variables lie in their domains: it
// touches no more than it does there, whatever values the loops would give them.
std::vector<Extent> ExtentsOf(const BlockAccess& access) {
  std::vector<Extent> dims;
  for (const Range& range : access.region.region) dims.push_back(ExtentOf(range, access.loops));
  if (access.nested == nullptr) return dims;
  const std::vector<std::pair<Var, Range>> loops = access.LoopsAndDomains();
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = Intersected(dims[d], ExtentOf(access.in_nested[d], loops));
  return dims;
}

// a becomes the hull of both.
void Join(Extent& a, const Extent& b) {
  if (a.whole) return;
  const Sum apart = Difference(b.min, a.min);
  const bool same_length = a.length && b.length && StructuralEqual(a.length, b.length);
  const bool joins = !b.whole && apart.is_constant() && (same_length ? apart.constant == 0 : !a.length && !b.length);
  if (!joins) {
    a = {.whole = true};
    return;
  }
  if (same_length) return;
  const int64_t low = std::min<int64_t>(0, apart.constant);
  a.extent = std::max(a.extent, apart.constant + b.extent) - low;
  if (low < 0) {
    a.min = b.min;
    a.written = b.written;
  }
}

Range ToRange(const Extent& dim, const Expr& size) {
  if (dim.whole) return {IntConst(0, size.type()), size};
  const Expr min = dim.written ? dim.written : ToExpr(dim.min, size.type());
  return {min, dim.length ? dim.length : IntConst(dim.extent, min.type())};
}

// The accesses of every buffer, joined.
class Hulls {
 public:
  void Add(const BlockAccess& access) {
    const Buffer& buffer = access.region.buffer;
    std::vector<Extent> dims = ExtentsOf(access);
    const auto [entry, is_new] = place_.emplace(buffer, hulls_.size());
    if (is_new) {
      hulls_.emplace_back(buffer, std::move(dims));
      return;
    }
    std::vector<Extent>& hull = hulls_[entry->second].second;
    for (size_t d = 0; d < hull.size() && d < dims.size(); ++d) Join(hull[d], dims[d]);
  }
  std::vector<BufferRegion> Regions() const {
    std::vector<BufferRegion> regions;
    for (const auto& [buffer, dims] : hulls_) {
      BufferRegion region{buffer, {}};
      for (size_t d = 0; d < dims.size(); ++d) region.region.push_back(ToRange(dims[d], buffer.shape()[d]));
      regions.push_back(std::move(region));
    }
    return regions;
  }

 private:
  std::vector<std::pair<Buffer, std::vector<Extent>>> hulls_;  // in order of first access
  std::map<Buffer, size_t> place_;
};

}  // namespace

bool SameRegion(const BufferRegion& a, const BufferRegion& b) {
  return a.buffer == b.buffer && std::ranges::equal(a.region, b.region, [](const Range& x, const Range& y) {
           return StructuralEqual(x.min, y.min) && StructuralEqual(x.extent, y.extent);
         });
}

AccessedRegions InferRegions(const Block& block) {
  Hulls reads, writes;
  ForEachAccess(block, [&](const BlockAccess& access) { (access.write ? writes : reads).Add(access); });
  AccessedRegions regions{reads.Regions(), writes.Regions()};
  if (block.init) {
    const auto is_written = [&](const BufferRegion& read) {
      return std::ranges::any_of(regions.writes, [&](const BufferRegion& write) { return SameRegion(read, write); });
    };
    std::erase_if(regions.reads, is_written);
  }
  return regions;
}

void DeclareRegions(Block& block) {
  const auto in_old_order = [](const std::vector<BufferRegion>& old, std::vector<BufferRegion> found) {
    std::ranges::stable_sort(found, {}, [&](const BufferRegion& region) {
      return std::ranges::find(old, region.buffer, &BufferRegion::buffer) - old.begin();
    });
    return found;
  };
  AccessedRegions found = InferRegions(block);
  block.reads = in_old_order(block.reads, std::move(found.reads));
  block.writes = in_old_order(block.writes, std::move(found.writes));
}

}  // namespace hone
