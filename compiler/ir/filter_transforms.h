// The transforms of minimal filtering in one dimension: m outputs of a filter of three taps from m + 2 products, for m
// of 2 and 4 (S. Winograd, Arithmetic Complexity of Computations, 1980; the matrices are those of A. Lavin and S. Gray,
// "Fast Algorithms for Convolutional Neural Networks", arXiv 1509.09308). Of a piece d of the input and taps g,
//   y = A^T [(G g) * (B^T d)],   y[i] = sum_k d[i + k] g[k],   * elementwise.
//
// Each function applies one matrix to a vector. Of expressions it gives what is computed: sums that several rows share
// are written alike, so that they are computed once where the rows are unrolled. Of the unit vectors of doubles it
// gives the matrix. In two dimensions the columns are transformed, then the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone::filtering {

inline constexpr int64_t kTaps = 3;

inline double Times(double factor, double x) { return factor * x; }
inline Expr Times(double factor, const Expr& x) { return Const(factor, x.type()) * x; }

// B^T d, of m + 2 numbers. Here and below `m` is 2 or 4.
template <class T>
std::vector<T> TransformInput(int m, const std::vector<T>& d) {
  if (m == 2) return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
  const T even = d[4] - Times(4, d[2]), odd = d[3] - Times(4, d[1]);
  const T even2 = d[4] - d[2], odd2 = Times(2, d[3] - d[1]);
  return {Times(4, d[0]) + (d[4] - Times(5, d[2])), even + odd, even - odd, even2 + odd2, even2 - odd2,
          Times(4, d[1]) + (d[5] - Times(5, d[3]))};
}

// G g, of the taps.
template <class T>
std::vector<T> TransformTaps(int m, const std::vector<T>& g) {
  const T outer = g[0] + g[2];
  if (m == 2) return {g[0], Times(0.5, outer + g[1]), Times(0.5, outer - g[1]), g[2]};
  const T outer2 = g[0] + Times(4, g[2]), middle2 = Times(2, g[1]);
  return {Times(0.25, g[0]),
          Times(-1.0 / 6, outer + g[1]),
          Times(-1.0 / 6, outer - g[1]),
          Times(1.0 / 24, outer2 + middle2),
          Times(1.0 / 24, outer2 - middle2),
          g[2]};
}

// A^T p, of m + 2 products.
template <class T>
std::vector<T> TransformOutput(int m, const std::vector<T>& p) {
  const T sum = p[1] + p[2], difference = p[1] - p[2];
  if (m == 2) return {p[0] + sum, difference - p[3]};
  const T sum2 = p[3] + p[4], difference2 = p[3] - p[4];
  return {p[0] + sum + sum2, difference + Times(2, difference2), sum + Times(4, sum2),
          difference + Times(8, difference2) + p[5]};
}

}  // namespace hone::filtering
