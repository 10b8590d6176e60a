#include "tests/bench/prototypes/product.h"

#include "tests/bench/prototypes/parts.h"
#include "tests/bench/prototypes/tile.h"
#include "tests/bench/prototypes/vector.h"

namespace hone::prototypes {
namespace {

class Product : public Prototype {
 public:
  Product(std::shared_ptr<const Layer> layer, ThreadPool& pool)
      : Prototype("product", std::move(layer), pool),
        m_(size().out_width),
        n_(size().out_channels),
        k_(size().channels) {
    knobs_ = {{"vectors", BusyWidths(m_)},
              {"by_columns", {0, 1}},
              {"depth", AllOr(k_, {768, 512, 384, 256, 128})},
              {"rows", AllOr(m_, {384, 192, 96, 48, 24, 6})},
              {"ahead", {0, 1}}};
  }

  void Prepare(std::span<const int64_t> choice) override {
    panels_ = {n_, choice[0]};
    by_columns_ = choice[1] == 1;
    depth_ = choice[2];
    block_rows_ = choice[3];
    fetches_ahead_ = choice[4] == 1;
    tile_rows_ = std::min<int64_t>(MostRows(static_cast<int>(panels_.vectors)), m_);
    packed_ = Floats(k_ * panels_.width());
    for (int64_t p = 0; p < panels_.count(); ++p)
      panels_.Pack(layer_->weights.data(), 0, k_, p, packed_.data() + k_ * panels_.first_column(p));
  }

  void Run() override {
    if (by_columns_) {
      ParallelFor(pool_, panels_.count(), [&](int64_t begin, int64_t end, int) { Part(0, m_, begin, end); });
    } else {
      const int64_t tiles = CeilDiv(m_, tile_rows_);
      ParallelFor(pool_, tiles, [&](int64_t begin, int64_t end, int) {
        Part(PartBegin(m_, tiles, begin), PartBegin(m_, tiles, end), 0, panels_.count());
      });
    }
  }

 private:
  // Rows [m0, m1) of panels [p0, p1): a block of terms after the other, in each a block of rows after the other, which
  // stays in a cache while all panels pass.
  void Part(int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    ForEachPart(k_, CeilDiv(k_, depth_), [&](int64_t k0, int64_t k1) {
      ForEachPart(m1 - m0, CeilDiv(m1 - m0, block_rows_), [&](int64_t begin, int64_t end) {
        for (int64_t p = p0; p < p1; ++p) Block(m0 + begin, m0 + end, k0, k1, p);
      });
    });
  }

  void Block(int64_t m0, int64_t m1, int64_t k0, int64_t k1, int64_t panel) {
    const int64_t run = 0, vectors = panels_.vectors_of(panel);
    TileOperands tile;
    tile.a_row = k_;
    tile.runs = {&run, 1};
    tile.run_length = k1 - k0;
    tile.b = packed_.data() + k_ * panels_.first_column(panel) + k0 * vectors * kLanes;
    tile.c_row = n_;
    tile.columns = panels_.columns_of(panel);
    tile.accumulate = k0 > 0;
    tile.relu = k1 == k_;
    const bool ahead = fetches_ahead_ && panel + 1 < panels_.count();
    const int64_t next_width = ahead ? panels_.vectors_of(panel + 1) * kLanes : 0;
    const float* const next = packed_.data() + k_ * panels_.first_column(panel + 1) + k0 * next_width;
    const int64_t tiles = CeilDiv(m1 - m0, tile_rows_);
    int64_t t = 0;
    ForEachPart(m1 - m0, tiles, [&](int64_t begin, int64_t end) {
      if (ahead) FetchAhead(next, (k1 - k0) * next_width, t++, tiles, &tile);
      tile.a = layer_->input.data() + (m0 + begin) * k_ + k0;
      tile.c = output_.data() + (m0 + begin) * n_ + panels_.first_column(panel);
      FindTile(static_cast<int>(end - begin), static_cast<int>(vectors))(tile);
    });
  }

  int64_t m_, n_, k_;
  Panels panels_;
  bool by_columns_ = false;  // how threads share the work: by panels, else by rows
  int64_t depth_ = 1, block_rows_ = 1, tile_rows_ = 1;
  bool fetches_ahead_ = false;  // the next panel, while one is multiplied
};

}  // namespace

std::unique_ptr<Prototype> MakeProduct(std::shared_ptr<const Layer> layer, ThreadPool& pool) {
  return std::make_unique<Product>(std::move(layer), pool);
}

}  // namespace hone::prototypes
