// How far minimal filtering may be from the sum that it stands for: Winograd's algorithm for 3x3 windows of stride 1
// (compiler/schedule/primitives/winograd.h), which numeric levels other than strict allow.
//
// Of one channel with a tile d of the input and taps g, Y = A^T [(B^T d B) * (G g G^T)] A, the product in the middle
// elementwise. A sum of t products by coefficients, in any order and whatever parts it shares with other sums, is off
// by at most t u sum|products| (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1); by u of
// that less where the coefficients are powers of two, and by u more where float32 does not hold them. With b, g and a
// roundings in both dimensions of the three transforms and k of a sum over channels (oracle.h) with its products,
//   V = B^T d B        is off by  b u V'                                        V' = |B|^T |d| |B|
//   U = G g G^T                   g u U'                                        U' = |G| |g| |G|^T
//   M = sum_c V * U               u sum_c (k |V||U| + b V'|U| + g |V|U')
//   Y = A^T M A                   u |A|^T (sum_c ((k + a) |V||U| + b V'|U| + g |V|U')) |A|
//                          at most (k + a) u |A|^T (sum_c (|V| + V' b / (k + a)) (|U| + U' g / (k + a))) |A|
// to first order in u. The last form takes one multiplication for each of the algorithm's own. Bounds by norms of tile
// and taps (B. Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
// Networks", ACM Transactions on Mathematical Software 46(4), 2020) take less work and are too wide to tell a right
// kernel from a wrong one: they count no sign and take every tap for as large as the largest.
//
// Tiles are those of winograd.h: their first outputs are at multiples of m, of each phase where the taps are dilated.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/oracle/filter_window.h"

namespace hone::error_analysis {

// Statements that store to `loose`, for every element of y, the number of `error` and as much more as minimal filtering
// may be off by, over the constant of the level that allows it. `x` holds the window's input, in any float type, and
// `error` and `loose` are float64 buffers of y's shape. The buffers in between are added to `allocs`.
std::vector<Stmt> AddFilteringError(const FilterWindow& window, const Buffer& x, const Buffer& error,
                                    const Buffer& loose, std::vector<Buffer>& allocs);

}  // namespace hone::error_analysis
