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
    shape_.push_back(joined.extent);
    const std::optional<LinearForm> form = DetectLinear(
        quotient_.iter < 0 ? joined.index : WithQuotient(joined.index, vars[divided], quotient_.period, quotient),
        vars);
    steps_.push_back(form.has_value() ? form->coefficients : std::vector<int64_t>());
  }
}

int64_t AccessRegion::BoxSize(size_t dimension, std::span<const int64_t> sizes) const {
  const std::vector<int64_t>& steps = steps_[dimension];
  if (steps.empty()) return shape_[dimension];
  int64_t size = 1;
  for (size_t i = 0; i + 1 < steps.size(); ++i) size += std::abs(steps[i]) * (sizes[i] - 1);
  if (quotient_.iter >= 0) {
    const int64_t iterations = sizes[static_cast<size_t>(quotient_.iter)];
    size += std::abs(steps.back()) * ((iterations + quotient_.period - 1) / quotient_.period - 1);
  }
  return std::min(size, shape_[dimension]);
}

// Different values of a sum of multiples of the iterations, the least multiple first: of values that lie without gaps,
// a multiple no larger than their number leaves none, a larger one repeats them.
int64_t AccessRegion::IndicesRead(size_t dimension, std::span<const int64_t> sizes) const {
  if (steps_[dimension].empty() || quotient_.iter >= 0) return BoxSize(dimension, sizes);
  std::vector<std::pair<int64_t, int64_t>> multiples;  // with their iterations
  int64_t unit = 0;
  for (size_t i = 0; i + 1 < steps_[dimension].size(); ++i) {
    const int64_t step = std::abs(steps_[dimension][i]);
    if (step == 0 || sizes[i] == 1) continue;
    multiples.emplace_back(step, sizes[i]);
    unit = std::gcd(unit, step);
  }
  std::ranges::sort(multiples);
  int64_t values = 1, reach = 1;  // reach: of the least to the largest, in units
  for (const auto& [step, iterations] : multiples) {
    const bool leaves_no_gaps = values == reach && step / unit <= reach;
    reach += step / unit * (iterations - 1);
    values = leaves_no_gaps ? reach : std::min(reach, values * iterations);
  }
  return std::min(values, BoxSize(dimension, sizes));
}

double AccessRegion::Elements(std::span<const int64_t> sizes) const {
  double elements = 1;
  for (size_t d = 0; d < steps_.size(); ++d) {
    elements *= static_cast<double>(d + 1 < steps_.size() ? IndicesRead(d, sizes) : BoxSize(d, sizes));
  }
  return elements;
}

double AccessRegion::ElementsAlone(std::span<const int64_t> sizes) const {
  double elements = 1;
  for (size_t d = 0; d < steps_.size(); ++d) elements *= static_cast<double>(IndicesRead(d, sizes));
  return elements;
}

double AccessRegion::BoxElements(std::span<const int64_t> sizes) const {
  double elements = 1;
  for (size_t d = 0; d < steps_.size(); ++d) elements *= static_cast<double>(BoxSize(d, sizes));
  return elements;
}

int64_t AccessRegion::RunBytes(std::span<const int64_t> sizes) const {
  int64_t run = bytes_;
  for (size_t d = steps_.size(); d-- > 0;) {
    const int64_t size = BoxSize(d, sizes);
    run *= size;
    if (size < shape_[d]) break;
  }
  return run;
}

double AccessRegion::SetShare(std::span<const int64_t> sizes, std::span<const int64_t> buffer, int64_t period) const {
  // From the last dimension on: the run that lies in one piece, then the distances between runs.
  int64_t stride = bytes_, run = bytes_, apart = period;
  bool in_one_piece = true;
  for (size_t d = steps_.size(); d-- > 0;) {
    const int64_t size = BoxSize(d, sizes), extent = buffer.empty() ? shape_[d] : BoxSize(d, buffer);
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
