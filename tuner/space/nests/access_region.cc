#include "tuner/space/nests/access_region.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"

namespace hone {
namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line

}  // namespace

std::vector<JoinedDimension> JoinDimensions(const BlockInfo& block, const BlockInfo::Access& access) {
  std::vector<Var> vars;
  VarRanges ranges;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    vars.push_back(block.iters[i].var);
    ranges.emplace(vars.back(), Range{IntConst(0, vars.back().type()), IntConst(block.extents[i], vars.back().type())});
  }
  const auto extent = [&](size_t d) { return ConstantValue(access.buffer.shape()[d]).value_or(1); };
  std::vector<JoinedDimension> all;
  for (size_t d = 0; d < access.indices.size(); d = all.back().last) {
    JoinedDimension joined{d, d + 1, access.indices[d], extent(d)};
    all.push_back(joined);
    while (!DetectLinear(joined.index, vars).has_value() && joined.last < access.indices.size()) {
      const int64_t more = extent(joined.last);
      joined.index = Simplify(joined.index * IntConst(more, joined.index.type()) + access.indices[joined.last], ranges);
      joined.extent *= more;
      ++joined.last;
    }
    if (DetectLinear(joined.index, vars).has_value()) all.back() = joined;
  }
  return all;
}

AccessRegion::AccessRegion(const BlockInfo& block, const BlockInfo::Access& access)
    : quotient_(access.steps), bytes_(access.buffer.type().bytes()) {
  std::vector<Var> vars;
  for (const IterVar& iter : block.iters) vars.push_back(iter.var);
  const size_t divided = static_cast<size_t>(std::max(quotient_.iter, 0));
  const Var quotient("quotient", vars.empty() ? kInt32 : vars[divided].type());
  vars.push_back(quotient);
  for (const JoinedDimension& joined : JoinDimensions(block, access)) {
    const std::optional<LinearForm> form = DetectLinear(
        quotient_.iter < 0 ? joined.index : WithQuotient(joined.index, vars[divided], quotient_.period, quotient),
        vars);
    Dimension& dimension = dimensions_.emplace_back();
    dimension.extent = joined.extent;
    dimension.linear = form.has_value();
    for (size_t i = 0; form.has_value() && i < form->coefficients.size(); ++i) {
      const int64_t step = std::abs(form->coefficients[i]);
      const int iter = i < block.iters.size() ? static_cast<int>(i) : kQuotient;
      if (step != 0 && (iter != kQuotient || quotient_.iter >= 0)) dimension.terms.push_back({step, iter});
    }
    std::ranges::sort(dimension.terms, {}, &Term::step);
  }
}

int64_t AccessRegion::BoxSize(const Dimension& dimension, std::span<const int64_t> sizes) const {
  if (!dimension.linear) return dimension.extent;
  int64_t size = 1;
  for (const Term& term : dimension.terms) {
    if (term.iter != kQuotient) {
      size += term.step * (sizes[static_cast<size_t>(term.iter)] - 1);
    } else {
      const int64_t iterations = sizes[static_cast<size_t>(quotient_.iter)];
      size += term.step * ((iterations + quotient_.period - 1) / quotient_.period - 1);
    }
  }
  return std::min(size, dimension.extent);
}

// Different values of a sum of multiples of the iterations, the least multiple first: of values that lie without gaps,
// a multiple no larger than their number leaves none, a larger one repeats them.
int64_t AccessRegion::IndicesRead(const Dimension& dimension, std::span<const int64_t> sizes) const {
  if (!dimension.linear || quotient_.iter >= 0) return BoxSize(dimension, sizes);
  int64_t unit = 0, box = 1;
  for (const Term& term : dimension.terms) {
    const int64_t iterations = sizes[static_cast<size_t>(term.iter)];
    if (iterations == 1) continue;
    if (unit != 1) unit = std::gcd(unit, term.step);
    box += term.step * (iterations - 1);
  }
  int64_t values = 1, reach = 1;  // reach: of the least to the largest, in units
  for (const Term& term : dimension.terms) {
    const int64_t iterations = sizes[static_cast<size_t>(term.iter)];
    if (iterations == 1) continue;
    const int64_t step = term.step / unit;
    const bool leaves_no_gaps = values == reach && step <= reach;
    reach += step * (iterations - 1);
    values = leaves_no_gaps ? reach : std::min(reach, values * iterations);
  }
  return std::min({values, box, dimension.extent});
}

double AccessRegion::Elements(std::span<const int64_t> sizes) const {
  double elements = 1;
  for (const Dimension& dimension : dimensions_) {
    const bool last = &dimension == &dimensions_.back();
    elements *= static_cast<double>(last ? BoxSize(dimension, sizes) : IndicesRead(dimension, sizes));
  }
  return elements;
}

double AccessRegion::ElementsAlone(std::span<const int64_t> sizes) const {
  double elements = 1;
  for (const Dimension& dimension : dimensions_) elements *= static_cast<double>(IndicesRead(dimension, sizes));
  return elements;
}

double AccessRegion::BoxElements(std::span<const int64_t> sizes) const {
  double elements = 1;
  for (const Dimension& dimension : dimensions_) elements *= static_cast<double>(BoxSize(dimension, sizes));
  return elements;
}

int64_t AccessRegion::RunBytes(std::span<const int64_t> sizes) const {
  int64_t run = bytes_;
  for (size_t d = dimensions_.size(); d-- > 0;) {
    const int64_t size = BoxSize(dimensions_[d], sizes);
    run *= size;
    if (size < dimensions_[d].extent) break;
  }
  return run;
}

double AccessRegion::SetShare(std::span<const int64_t> sizes, std::span<const int64_t> buffer, int64_t period) const {
  // From the last dimension on: the run that lies in one piece, then the distances between runs.
  int64_t stride = bytes_, run = bytes_, apart = period;
  bool in_one_piece = true;
  for (size_t d = dimensions_.size(); d-- > 0;) {
    const Dimension& dimension = dimensions_[d];
    const int64_t size = BoxSize(dimension, sizes);
    const int64_t extent = buffer.empty() ? dimension.extent : BoxSize(dimension, buffer);
    if (in_one_piece) {
      run = stride * size;
      in_one_piece = size == extent;
    } else if (size > 1) {
      apart = std::gcd(apart, stride);
    }
    stride *= extent;
  }
  const int64_t lines = std::max<int64_t>(1, (run + kLine - 1) / kLine);
  const int64_t starts = std::max<int64_t>(1, period / std::max(apart, kLine));  // places at which runs begin
  return std::min(1.0, static_cast<double>(starts * lines) * kLine / static_cast<double>(period));
}

}  // namespace hone
