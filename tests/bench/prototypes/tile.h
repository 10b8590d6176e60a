// The innermost loops of the prototypes that multiply matrices: a tile of the product stays in registers while all
// terms of its sums are added.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone::prototypes {

// c[i, j] (+)= sum over runs r, over t in [0, run_length): a[i * a_row + runs[r] + t] * b[r * run_length + t, j]
// A product has one run of all its terms; a convolution whose channels are last one for every row of its window, since
// what two neighbouring pixels hold of it follows one another.
struct TileOperands {
  const float* a = nullptr;
  int64_t a_row = 0;
  std::span<const int64_t> runs;
  int64_t run_length = 0;
  const float* b = nullptr;  // a panel: rows of as many floats as the tile is wide
  float* c = nullptr;
  int64_t c_row = 0;
  int64_t columns = 0;      // that are written: the tile's width, or fewer at an edge
  bool accumulate = false;  // onto what c holds
  bool relu = false;
  const float* ahead = nullptr;  // from where on lines are fetched into the cache meanwhile, by so many floats a term
  int64_t ahead_step = 0;
};
using TileFunction = void (*)(const TileOperands&);

// The most rows of a tile so many vectors wide that its sums, a row of b and an element of a fit into the registers.
int MostRows(int vectors);

// Tiles are 1 to kMostVectors wide and have 1 to MostRows rows.
inline constexpr int kMostVectors = 8;
TileFunction FindTile(int rows, int vectors);

// Makes the tile fetch its share of a panel of `floats` that is read next, as the `part`th of `parts` tiles that do.
void FetchAhead(const float* next, int64_t floats, int64_t part, int64_t parts, TileOperands* tile);

// Widths, in vectors, of tiles that keep the multipliers busy on products of so many rows: as many sums at once as a
// multiply-add takes cycles, on two units.
std::vector<int64_t> BusyWidths(int64_t rows);

// A matrix [terms, columns] as tiles read it: panels one after the other, of `vectors` vectors of columns each, and the
// last as narrow as what is left, with zeros beyond the last column.
struct Panels {
  int64_t columns = 0, vectors = 0;

  int64_t count() const;
  int64_t vectors_of(int64_t panel) const;
  int64_t columns_of(int64_t panel) const;  // that are of the matrix
  int64_t first_column(int64_t panel) const;
  int64_t width() const;  // of all panels together, in floats: panel p of t terms begins at t * first_column(p)
  // Copies terms [begin, end) of a row-major matrix to where panel p of those terms alone is.
  void Pack(const float* matrix, int64_t begin, int64_t end, int64_t panel, float* to) const;
};

}  // namespace hone::prototypes
