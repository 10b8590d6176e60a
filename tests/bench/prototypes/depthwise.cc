#include "tests/bench/prototypes/depthwise.h"

#include "tests/bench/prototypes/parts.h"
#include "tests/bench/prototypes/vector.h"

namespace hone::prototypes {
namespace {

// A tile of a row: its window's rows are [0, rows) from `in` on, of which it reads columns from `first` on.
struct RowOperands {
  const float* in = nullptr;       // column 0 of the first row that the window has in the image, at the channel
  const float* weights = nullptr;  // of that row of the window
  float* out = nullptr;            // of the tile's first pixel
  int64_t rows = 0, first = 0;
  int64_t width = 0, channels = 0;
};
using RowFunction = void (*)(const RowOperands&);

template <int kKernel, int kStride, int kPixels, int kVectors, bool kAtEdge>
void RowTile(const RowOperands& o) {
  constexpr int kColumns = (kPixels - 1) * kStride + kKernel;
  Vector sums[kPixels][kVectors] = {};
  for (int64_t ky = 0; ky < o.rows; ++ky) {
    const float* const row = o.in + ky * o.width * o.channels;
    const float* const weights = o.weights + ky * kKernel * o.channels;
    Vector taps[kKernel][kVectors];
    Unrolled<kKernel * kVectors>([&]<int t>() __attribute__((always_inline)) {
      taps[t / kVectors][t % kVectors] = Load(weights + t / kVectors * o.channels + t % kVectors * kLanes);
    });
    Unrolled<kColumns>([&]<int i>() __attribute__((always_inline)) {
      const int64_t x = o.first + i;
      if (kAtEdge && (x < 0 || x >= o.width)) return;
      Unrolled<kVectors>([&]<int v>() __attribute__((always_inline)) {
        const Vector in = Load(row + x * o.channels + v * kLanes);
        Unrolled<kKernel>([&]<int kx>() __attribute__((always_inline)) {
          constexpr int kPixel = (i - kx) / kStride;
          if constexpr (kx <= i && (i - kx) % kStride == 0 && kPixel < kPixels) sums[kPixel][v] += in * taps[kx][v];
        });
      });
    });
  }
  Unrolled<kPixels * kVectors>([&]<int s>() __attribute__((always_inline)) {
    Store(o.out + s / kVectors * o.channels + s % kVectors * kLanes, Relu(sums[s / kVectors][s % kVectors]));
  });
}

struct RowTiles {
  RowFunction inside = nullptr, at_edge = nullptr;
};

template <int kKernel, int kStride, int kPixels, int kVectors>
constexpr RowTiles TilesOf() {
  return {RowTile<kKernel, kStride, kPixels, kVectors, false>, RowTile<kKernel, kStride, kPixels, kVectors, true>};
}

template <int kKernel, int kStride>
RowTiles FindTiles(int64_t pixels, int64_t vectors) {
  switch (pixels * 10 + vectors) {
    case 11: return TilesOf<kKernel, kStride, 1, 1>();
    case 21: return TilesOf<kKernel, kStride, 2, 1>();
    case 22: return TilesOf<kKernel, kStride, 2, 2>();
    case 41: return TilesOf<kKernel, kStride, 4, 1>();
    case 42: return TilesOf<kKernel, kStride, 4, 2>();
    case 71: return TilesOf<kKernel, kStride, 7, 1>();
    case 81: return TilesOf<kKernel, kStride, 8, 1>();
    default: return {};
  }
}

RowTiles FindTiles(const LayerSize& size, int64_t pixels, int64_t vectors) {
  if (size.kernel_w == 3)
    return size.stride_w == 1 ? FindTiles<3, 1>(pixels, vectors) : FindTiles<3, 2>(pixels, vectors);
  return size.stride_w == 1 ? FindTiles<5, 1>(pixels, vectors) : FindTiles<5, 2>(pixels, vectors);
}

class Depthwise : public Prototype {
 public:
  Depthwise(std::shared_ptr<const Layer> layer, ThreadPool& pool)
      : Prototype("depthwise", std::move(layer), pool), rows_(size().batch * size().out_height) {
    knobs_ = {{"tile", {}},
              {"channels", AllOr(size().channels, {128, 64, 32})},
              {"rows", AllOr(size().out_height, {8, 4, 2, 1})},
              {"by_channels", {0, 1}}};
    for (const int64_t tile : {11, 21, 22, 41, 42, 71, 81}) {
      if (tile / 10 <= size().out_width && tile % 10 * kLanes <= size().channels) knobs_[0].values.push_back(tile);
    }
    packed_ = Floats(size().terms() * size().channels);
    std::copy_n(layer_->weights.data(), packed_.size(), packed_.data());
  }

  void Prepare(std::span<const int64_t> choice) override {
    pixels_ = choice[0] / 10;
    vectors_ = choice[0] % 10;
    tiles_ = FindTiles(size(), pixels_, vectors_);
    block_channels_ = std::max(choice[1], vectors_ * kLanes);
    block_rows_ = choice[2];
    by_channels_ = choice[3] == 1;
  }

  void Run() override {
    const int64_t blocks = CeilDiv(size().channels, block_channels_);
    if (by_channels_) {
      ParallelFor(pool_, blocks, [&](int64_t begin, int64_t end, int) { Part(0, rows_, begin, end); });
    } else {
      ParallelFor(pool_, rows_, [&](int64_t begin, int64_t end, int) { Part(begin, end, 0, blocks); });
    }
  }

 private:
  // Rows [r0, r1) of all images' and blocks [b0, b1) of channels, a block of rows after the other.
  void Part(int64_t r0, int64_t r1, int64_t b0, int64_t b1) {
    for (int64_t rows = r0; rows < r1; rows += block_rows_) {
      for (int64_t b = b0; b < b1; ++b) {
        for (int64_t row = rows; row < std::min(r1, rows + block_rows_); ++row) Row(row, b * block_channels_);
      }
    }
  }

  // Of one row a block of channels from c0 on. The last tile of the row and the last of the channels begin early enough
  // to end with them.
  void Row(int64_t row, int64_t c0) {
    const int64_t channels = size().channels, tile_channels = vectors_ * kLanes;
    const int64_t image = row / size().out_height, y = row % size().out_height;
    const int64_t top = y * size().stride_h - size().pad_top;
    const int64_t begin = std::max<int64_t>(0, -top), end = std::min(size().kernel_h, size().height - top);
    const int64_t columns = (pixels_ - 1) * size().stride_w + size().kernel_w;
    const float* const in = layer_->input.data() + (image * size().height + top + begin) * size().width * channels;
    const float* const weights = packed_.data() + begin * size().kernel_w * channels;
    float* const out = output_.data() + row * size().out_width * channels;
    RowOperands tile{.rows = end - begin, .width = size().width, .channels = channels};
    for (int64_t next = 0; next < size().out_width; next += pixels_) {
      const int64_t x = std::min(next, size().out_width - pixels_);
      tile.first = x * size().stride_w - size().pad_left;
      const bool inside = tile.first >= 0 && tile.first + columns <= size().width;
      for (int64_t at = c0; at < std::min(channels, c0 + block_channels_); at += tile_channels) {
        const int64_t c = std::min(at, channels - tile_channels);
        tile.in = in + c;
        tile.weights = weights + c;
        tile.out = out + x * channels + c;
        (inside ? tiles_.inside : tiles_.at_edge)(tile);
      }
    }
  }

  int64_t rows_;  // of the output, of all images
  RowTiles tiles_;
  int64_t pixels_ = 1, vectors_ = 1;  // of a tile
  int64_t block_channels_ = 1, block_rows_ = 1;
  bool by_channels_ = false;  // how threads share the work: by blocks of channels, else by rows
};

}  // namespace

bool IsForDepthwise(const LayerSize& size) {
  return size.depthwise && size.kernel_h == size.kernel_w && (size.kernel_w == 3 || size.kernel_w == 5) &&
         size.stride_h == size.stride_w && (size.stride_w == 1 || size.stride_w == 2) && size.channels >= kLanes;
}

std::unique_ptr<Prototype> MakeDepthwise(std::shared_ptr<const Layer> layer, ThreadPool& pool) {
  return std::make_unique<Depthwise>(std::move(layer), pool);
}

}  // namespace hone::prototypes
