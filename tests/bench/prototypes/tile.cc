#include "tests/bench/prototypes/tile.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "compiler/support/check.h"
#include "tests/bench/prototypes/parts.h"
#include "tests/bench/prototypes/vector.h"

namespace hone::prototypes {
namespace {

constexpr int kHighestTile = 14;
constexpr int64_t kBusySums = 8;  // multiply-adds under way: 4 cycles on two units

constexpr int RowsThatFit(int vectors) {
  const int left = kRegisters - vectors - 1;  // without a row of b and an element of a
  return std::max(1, std::min(kHighestTile, left / vectors));
}

// The vector is in a register from here on: compilers would rather load it anew for every use.
inline void KeepInRegister(Vector& v) {
#if defined(__aarch64__)
  asm("" : "+w"(v));
#else
  asm("" : "+v"(v));
#endif
}

template <int kRows, int kVectors>
void Tile(const TileOperands& o) {
  constexpr int kWidth = kVectors * kLanes;
  const int64_t a_row = o.a_row;
  Vector sums[kRows][kVectors] = {};
  const float* b = o.b;
  const float* ahead = o.ahead == nullptr ? b : o.ahead;
  for (const int64_t run : o.runs) {
    const float* a = o.a + run;
    for (int64_t t = 0; t < o.run_length; ++t, ++a, b += kWidth, ahead += o.ahead_step) {
      __builtin_prefetch(ahead);
      Vector row[kVectors];
      Unrolled<kVectors>([&]<int j>() __attribute__((always_inline)) {
        row[j] = Load(b + j * kLanes);
        if (kRows > 1) KeepInRegister(row[j]);
      });
      Unrolled<kRows>([&]<int i>() __attribute__((always_inline)) {
        const float factor = a[i * a_row];
        Unrolled<kVectors>([&]<int j>() __attribute__((always_inline)) { sums[i][j] += factor * row[j]; });
      });
    }
  }
  const bool accumulate = o.accumulate, relu = o.relu;
  const auto finish = [&](float* to, int64_t to_row) __attribute__((always_inline)) {
    Unrolled<kRows>([&]<int i>() __attribute__((always_inline)) {
      Unrolled<kVectors>([&]<int j>() __attribute__((always_inline)) {
        float* const at = to + i * to_row + j * kLanes;
        const Vector sum = accumulate ? sums[i][j] + Load(at) : sums[i][j];
        Store(at, relu ? Relu(sum) : sum);
      });
    });
  };
  if (o.columns == kWidth) return finish(o.c, o.c_row);
  float edge[kRows * kWidth] = {};
  const size_t written = static_cast<size_t>(o.columns) * sizeof(float);
  for (int i = 0; i < kRows && accumulate; ++i) std::memcpy(edge + i * kWidth, o.c + i * o.c_row, written);
  finish(edge, kWidth);
  for (int i = 0; i < kRows; ++i) std::memcpy(o.c + i * o.c_row, edge + i * kWidth, written);
}

using TilesOfWidth = std::array<TileFunction, kHighestTile>;  // by rows; null where there are too few registers

template <int kVectors>
constexpr TilesOfWidth TilesOf() {
  TilesOfWidth tiles{};
  [&]<int... kRow>(std::integer_sequence<int, kRow...>) { ((tiles[kRow] = Tile<kRow + 1, kVectors>), ...); }
  (std::make_integer_sequence<int, RowsThatFit(kVectors)>());
  return tiles;
}

constexpr std::array<TilesOfWidth, kMostVectors> kTiles = {TilesOf<1>(), TilesOf<2>(), TilesOf<3>(), TilesOf<4>(),
                                                           TilesOf<5>(), TilesOf<6>(), TilesOf<7>(), TilesOf<8>()};

}  // namespace

int MostRows(int vectors) { return RowsThatFit(vectors); }

TileFunction FindTile(int rows, int vectors) {
  HONE_CHECK(vectors >= 1 && vectors <= kMostVectors && rows >= 1 && rows <= RowsThatFit(vectors))
      << "no tile of " << rows << " rows and " << vectors << " vectors";
  return kTiles[static_cast<size_t>(vectors) - 1][static_cast<size_t>(rows) - 1];
}

void FetchAhead(const float* next, int64_t floats, int64_t part, int64_t parts, TileOperands* tile) {
  tile->ahead = next + floats * part / parts;
  tile->ahead_step = CeilDiv(floats, parts * tile->run_length * static_cast<int64_t>(tile->runs.size()));
}

std::vector<int64_t> BusyWidths(int64_t rows) {
  std::vector<int64_t> widths;
  for (int vectors = 1; vectors <= kMostVectors; ++vectors) {
    const int64_t together = std::min<int64_t>(rows, RowsThatFit(vectors));
    if (together * vectors >= kBusySums) widths.push_back(vectors);
  }
  return widths;
}

int64_t Panels::count() const { return CeilDiv(columns, vectors * kLanes); }
int64_t Panels::first_column(int64_t panel) const { return panel * vectors * kLanes; }
int64_t Panels::columns_of(int64_t panel) const { return std::min(vectors * kLanes, columns - first_column(panel)); }
int64_t Panels::vectors_of(int64_t panel) const { return CeilDiv(columns_of(panel), kLanes); }
int64_t Panels::width() const { return CeilDiv(columns, kLanes) * kLanes; }

void Panels::Pack(const float* matrix, int64_t begin, int64_t end, int64_t panel, float* to) const {
  const int64_t floats = vectors_of(panel) * kLanes, valid = columns_of(panel);
  for (int64_t t = begin; t < end; ++t, to += floats) {
    std::copy_n(matrix + t * columns + first_column(panel), valid, to);
    std::fill(to + valid, to + floats, 0.0F);
  }
}

}  // namespace hone::prototypes
