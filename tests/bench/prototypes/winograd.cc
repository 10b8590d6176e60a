#include "tests/bench/prototypes/winograd.h"

#include "tests/bench/prototypes/parts.h"
#include "tests/bench/prototypes/tile.h"
#include "tests/bench/prototypes/vector.h"

namespace hone::prototypes {
namespace {

constexpr int kKernel = 3;

// One dimension's transforms, of vectors or numbers: B^T d, G g and A^T m of the paper.
template <int m>
struct Transform;

template <>
struct Transform<2> {
  template <class T>
  static void Input(const T (&d)[4], T (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[1] - d[3];
  }
  static void Kernel(const float (&g)[3], float (&u)[4]) {
    u[0] = g[0];
    u[1] = 0.5F * (g[0] + g[1] + g[2]);
    u[2] = 0.5F * (g[0] - g[1] + g[2]);
    u[3] = g[2];
  }
  template <class T>
  static void Output(const T (&m)[4], T (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
};

template <>
struct Transform<4> {
  template <class T>
  static void Input(const T (&d)[6], T (&v)[6]) {
    const T far_even = d[4] - 4.0F * d[2], far_odd = d[3] - 4.0F * d[1];
    const T near_even = d[4] - d[2], near_odd = 2.0F * (d[3] - d[1]);
    v[0] = 4.0F * d[0] + (d[4] - 5.0F * d[2]);
    v[1] = far_even + far_odd;
    v[2] = far_even - far_odd;
    v[3] = near_even + near_odd;
    v[4] = near_even - near_odd;
    v[5] = 4.0F * d[1] + (d[5] - 5.0F * d[3]);
  }
  static void Kernel(const float (&g)[3], float (&u)[6]) {
    const float ends = g[0] + g[2], weighted_ends = g[0] + 4.0F * g[2];
    u[0] = g[0] / 4.0F;
    u[1] = -(ends + g[1]) / 6.0F;
    u[2] = -(ends - g[1]) / 6.0F;
    u[3] = (weighted_ends + 2.0F * g[1]) / 24.0F;
    u[4] = (weighted_ends - 2.0F * g[1]) / 24.0F;
    u[5] = g[2];
  }
  template <class T>
  static void Output(const T (&m)[6], T (&y)[4]) {
    const T near_sum = m[1] + m[2], near_difference = m[1] - m[2];
    const T far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    y[0] = m[0] + near_sum + far_sum;
    y[1] = near_difference + 2.0F * far_difference;
    y[2] = near_sum + 4.0F * far_sum;
    y[3] = near_difference + 8.0F * far_difference + m[5];
  }
};

template <int m>
class Winograd : public Prototype {
 public:
  Winograd(std::shared_ptr<const Layer> layer, ThreadPool& pool)
      : Prototype(m == 2 ? "winograd F(2x2,3x3)" : "winograd F(4x4,3x3)", std::move(layer), pool),
        tiles_h_(CeilDiv(size().out_height, m)),
        tiles_w_(CeilDiv(size().out_width, m)),
        tiles_(size().batch * tiles_h_ * tiles_w_),
        outside_(size().channels) {
    knobs_ = {{"vectors", BusyWidths(tiles_)},
              {"tiles", AllOr(tiles_, {96, 48, 24, 18, 12, 6})},
              {"phases", {0, 1}},
              {"ahead", {0, 1}}};
    TransformWeights();
  }

  void Prepare(std::span<const int64_t> choice) override {
    panels_ = {size().out_channels, choice[0]};
    block_ = choice[1];
    phases_ = choice[2] == 1;
    fetches_ahead_ = choice[3] == 1;
    const int64_t of_position = size().channels * panels_.width();
    packed_ = Floats(kPositions * of_position);
    for (int p = 0; p < kPositions; ++p) {
      const float* const weights = weights_.data() + p * size().channels * size().out_channels;
      for (int64_t panel = 0; panel < panels_.count(); ++panel) {
        panels_.Pack(weights, 0, size().channels, panel,
                     packed_.data() + p * of_position + size().channels * panels_.first_column(panel));
      }
    }
    blocks_.clear();
    for (int t = 0; t < (phases_ ? 1 : pool_.threads()); ++t) blocks_.emplace_back(size(), block_);
  }

  // In phases the threads share out each block: its tiles, its products, its tiles again. Else they share out tiles.
  void Run() override {
    if (!phases_) {
      ParallelFor(pool_, tiles_, [&](int64_t begin, int64_t end, int thread) {
        Block& block = blocks_[static_cast<size_t>(thread)];
        ForEachPart(end - begin, CeilDiv(end - begin, block_), [&](int64_t first, int64_t next) {
          block.first = begin + first;
          block.tiles = next - first;
          for (int64_t t = 0; t < block.tiles; ++t) Input(block, t);
          for (int64_t product = 0; product < kPositions * panels_.count(); ++product) Product(block, product);
          for (int64_t t = 0; t < block.tiles; ++t) Output(block, t);
        });
      });
      return;
    }
    Block& block = blocks_.front();
    ForEachPart(tiles_, CeilDiv(tiles_, block_), [&](int64_t first, int64_t next) {
      block.first = first;
      block.tiles = next - first;
      ParallelFor(pool_, block.tiles, [&](int64_t begin, int64_t end, int) {
        for (int64_t t = begin; t < end; ++t) Input(block, t);
      });
      ParallelFor(pool_, kPositions * panels_.count(), [&](int64_t begin, int64_t end, int) {
        for (int64_t product = begin; product < end; ++product) Product(block, product);
      });
      ParallelFor(pool_, block.tiles, [&](int64_t begin, int64_t end, int) {
        for (int64_t t = begin; t < end; ++t) Output(block, t);
      });
    });
  }

 private:
  static constexpr int kSide = m + kKernel - 1;
  static constexpr int kPositions = kSide * kSide;
  // Between positions: where they are a power of two apart, all positions of a tile are in the same lines of a cache.
  static constexpr int64_t kLineFloats = 16;

  struct Block {
    Block(const LayerSize& size, int64_t most)
        : input_stride(most * size.channels + kLineFloats),
          product_stride(most * size.out_channels + kLineFloats),
          inputs(kPositions * input_stride),
          products(kPositions * product_stride) {}
    int64_t input_stride, product_stride;  // from one position to the next
    Floats inputs;                         // [position][tile][channel]
    Floats products;                       // [position][tile][output channel]
    int64_t first = 0, tiles = 0;          // of all tiles
  };

  // Where a tile lies.
  struct Place {
    int64_t image, y, x;  // of its first output
  };
  Place PlaceOf(int64_t tile) const {
    return {tile / (tiles_h_ * tiles_w_), tile / tiles_w_ % tiles_h_ * m, tile % tiles_w_ * m};
  }

  void TransformWeights() {
    const int64_t matrix = size().channels * size().out_channels;
    weights_ = Floats(kPositions * matrix);
    for (int64_t i = 0; i < matrix; ++i) {
      float columns[kSide][kKernel];
      for (int x = 0; x < kKernel; ++x) {
        float column[kKernel], transformed[kSide];
        for (int y = 0; y < kKernel; ++y) column[y] = layer_->weights.data()[(y * kKernel + x) * matrix + i];
        Transform<m>::Kernel(column, transformed);
        for (int y = 0; y < kSide; ++y) columns[y][x] = transformed[y];
      }
      for (int y = 0; y < kSide; ++y) {
        float row[kSide];
        Transform<m>::Kernel(columns[y], row);
        for (int x = 0; x < kSide; ++x) weights_.data()[(y * kSide + x) * matrix + i] = row[x];
      }
    }
  }

  // Tile `t` of the block. The last vector of channels begins early enough to end with them.
  void Input(Block& block, int64_t t) const {
    const Place place = PlaceOf(block.first + t);
    const float* pixels[kSide][kSide];
    for (int i = 0; i < kSide; ++i) {
      for (int j = 0; j < kSide; ++j) {
        const int64_t y = place.y + i - size().pad_top, x = place.x + j - size().pad_left;
        const bool inside = y >= 0 && y < size().height && x >= 0 && x < size().width;
        const int64_t pixel = (place.image * size().height + y) * size().width + x;
        pixels[i][j] = inside ? layer_->input.data() + pixel * size().channels : outside_.data();
      }
    }
    for (int64_t next = 0; next < size().channels; next += kLanes) {
      const int64_t c = std::min<int64_t>(next, size().channels - kLanes);
      Vector columns[kSide][kSide];  // transformed along y: [x][position in y]
#pragma GCC unroll 8
      for (int j = 0; j < kSide; ++j) {
        Vector column[kSide];
#pragma GCC unroll 8
        for (int i = 0; i < kSide; ++i) column[i] = Load(pixels[i][j] + c);
        Transform<m>::Input(column, columns[j]);
      }
      float* const to = block.inputs.data() + t * size().channels + c;
#pragma GCC unroll 8
      for (int i = 0; i < kSide; ++i) {
        Vector row[kSide], transformed[kSide];
#pragma GCC unroll 8
        for (int j = 0; j < kSide; ++j) row[j] = columns[j][i];
        Transform<m>::Input(row, transformed);
#pragma GCC unroll 8
        for (int j = 0; j < kSide; ++j) Store(to + (i * kSide + j) * block.input_stride, transformed[j]);
      }
    }
  }

  // One panel of one position's product, over all tiles of the block.
  void Product(Block& block, int64_t product) const {
    const int64_t position = product / panels_.count(), panel = product % panels_.count(), run = 0;
    const int64_t channels = size().channels, vectors = panels_.vectors_of(panel);
    TileOperands tile;
    tile.a_row = channels;
    tile.runs = {&run, 1};
    tile.run_length = channels;
    tile.b = packed_.data() + channels * (position * panels_.width() + panels_.first_column(panel));
    tile.c_row = size().out_channels;
    tile.columns = panels_.columns_of(panel);
    const int64_t most = MostRows(static_cast<int>(panels_.vectors));
    const float* const after = tile.b + channels * vectors * kLanes;
    const bool ahead = fetches_ahead_ && product + 1 < kPositions * panels_.count();
    const int64_t floats = ahead ? channels * panels_.vectors_of((panel + 1) % panels_.count()) * kLanes : 0;
    const int64_t parts = CeilDiv(block.tiles, most);
    int64_t part = 0;
    ForEachPart(block.tiles, parts, [&](int64_t t, int64_t next) {
      if (ahead) FetchAhead(after, floats, part++, parts, &tile);
      tile.a = block.inputs.data() + position * block.input_stride + t * channels;
      tile.c = block.products.data() + position * block.product_stride + t * size().out_channels +
               panels_.first_column(panel);
      FindTile(static_cast<int>(next - t), static_cast<int>(vectors))(tile);
    });
  }

  void Output(const Block& block, int64_t t) const {
    const Place place = PlaceOf(block.first + t);
    const int64_t channels = size().out_channels;
    float* const out =
        output_.data() + ((place.image * size().out_height + place.y) * size().out_width + place.x) * channels;
    const int64_t rows = std::min<int64_t>(m, size().out_height - place.y);
    const int64_t columns = std::min<int64_t>(m, size().out_width - place.x);
    for (int64_t next = 0; next < channels; next += kLanes) {
      const int64_t c = std::min<int64_t>(next, channels - kLanes);
      const float* const from = block.products.data() + t * channels + c;
      Vector summed[kSide][m];  // transformed along y: [x][y]
#pragma GCC unroll 8
      for (int j = 0; j < kSide; ++j) {
        Vector column[kSide];
#pragma GCC unroll 8
        for (int i = 0; i < kSide; ++i) column[i] = Load(from + (i * kSide + j) * block.product_stride);
        Transform<m>::Output(column, summed[j]);
      }
#pragma GCC unroll 4
      for (int y = 0; y < m; ++y) {
        Vector row[kSide], outputs[m];
#pragma GCC unroll 8
        for (int j = 0; j < kSide; ++j) row[j] = summed[j][y];
        Transform<m>::Output(row, outputs);
#pragma GCC unroll 4
        for (int x = 0; x < m; ++x) {
          if (y < rows && x < columns) Store(out + (y * size().out_width + x) * channels + c, Relu(outputs[x]));
        }
      }
    }
  }

  int64_t tiles_h_, tiles_w_, tiles_;
  Floats outside_;  // a pixel of zeros
  Floats weights_;  // transformed: [position][channel][output channel]
  Panels panels_;
  int64_t block_ = 1;  // tiles
  bool phases_ = false;
  bool fetches_ahead_ = false;  // the next panel, while one is multiplied
  std::vector<Block> blocks_;   // a thread's, or one of all
};

}  // namespace

bool IsForWinograd(const LayerSize& size) {
  return size.kernel_h == kKernel && size.kernel_w == kKernel && size.stride_h == 1 && size.stride_w == 1 &&
         !size.depthwise && size.channels >= kLanes && size.out_channels >= kLanes;
}

std::unique_ptr<Prototype> MakeWinograd(std::shared_ptr<const Layer> layer, ThreadPool& pool, int m) {
  HONE_CHECK(m == 2 || m == 4) << "winograd F(" << m << "x" << m << ",3x3) is not written";
  if (m == 2) return std::make_unique<Winograd<2>>(std::move(layer), pool);
  return std::make_unique<Winograd<4>>(std::move(layer), pool);
}

}  // namespace hone::prototypes
