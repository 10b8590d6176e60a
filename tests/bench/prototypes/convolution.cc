#include "tests/bench/prototypes/convolution.h"

#include "tests/bench/prototypes/parts.h"
#include "tests/bench/prototypes/tile.h"
#include "tests/bench/prototypes/vector.h"

namespace hone::prototypes {
namespace {

class Convolution : public Prototype {
 public:
  Convolution(std::shared_ptr<const Layer> layer, ThreadPool& pool)
      : Prototype("convolution", std::move(layer), pool),
        rows_(size().batch * size().out_height),
        pitch_((size().pads() ? (size().out_width - 1) * size().stride_w + size().kernel_w : size().width) *
               size().channels) {
    knobs_ = {{"vectors", BusyWidths(size().out_width)},
              {"by_channels", {0, 1}},
              {"rows", AllOr(size().out_height, {14, 8, 4, 2, 1})},
              {"depth", AllOr(size().channels, {256, 128, 64, 32})},
              {"ahead", {0, 1}}};
  }

  void Prepare(std::span<const int64_t> choice) override {
    const int64_t taps = size().kernel_h * size().kernel_w, channels = size().channels;
    panels_ = {size().out_channels, choice[0]};
    by_channels_ = choice[1] == 1;
    block_rows_ = choice[2];
    depths_ = CeilDiv(channels, choice[3]);
    fetches_ahead_ = choice[4] == 1;
    packed_ = Floats(size().terms() * panels_.width());
    for (int64_t p = 0; p < panels_.count(); ++p) {
      float* to = packed_.data() + size().terms() * panels_.first_column(p);
      for (int64_t d = 0; d < depths_; ++d) {
        const int64_t begin = PartBegin(channels, depths_, d), end = PartBegin(channels, depths_, d + 1);
        for (int64_t tap = 0; tap < taps; ++tap, to += (end - begin) * panels_.vectors_of(p) * kLanes)
          panels_.Pack(layer_->weights.data(), tap * channels + begin, tap * channels + end, p, to);
      }
    }
    runs_.clear();
    for (int64_t ky = 0; ky < size().kernel_h; ++ky) {
      for (int64_t kx = 0; kx < (depths_ == 1 ? 1 : size().kernel_w); ++kx)
        runs_.push_back(ky * pitch_ + kx * channels);
    }
    const int64_t strip_rows = (std::min(block_rows_, rows_) - 1) * size().stride_h + size().kernel_h;
    strips_.clear();
    for (int t = 0; t < pool_.threads(); ++t) strips_.emplace_back(size().pads() ? strip_rows * pitch_ : 0);
  }

  void Run() override {
    if (by_channels_) {
      ParallelFor(pool_, panels_.count(), [&](int64_t begin, int64_t end, int t) { Part(0, rows_, begin, end, t); });
    } else {
      ParallelFor(pool_, rows_, [&](int64_t begin, int64_t end, int t) { Part(begin, end, 0, panels_.count(), t); });
    }
  }

 private:
  // Rows [r0, r1) of all images' and panels [p0, p1), a block of rows after the other.
  void Part(int64_t r0, int64_t r1, int64_t p0, int64_t p1, int thread) {
    for (int64_t row = r0; row < r1;) {
      const int64_t image = row / size().out_height, y = row % size().out_height;
      const int64_t rows = std::min({block_rows_, size().out_height - y, r1 - row});
      const float* const source = Source(image, y, rows, strips_[static_cast<size_t>(thread)]);
      for (int64_t d = 0; d < depths_; ++d) {
        for (int64_t p = p0; p < p1; ++p) {
          for (int64_t i = 0; i < rows; ++i) Row(source + i * size().stride_h * pitch_, row + i, d, p, i, rows);
        }
      }
      row += rows;
    }
  }

  // What the windows of so many output rows from y on read, row by row of `pitch_`: the image itself, or where it needs
  // padding a copy.
  const float* Source(int64_t image, int64_t y, int64_t rows, const Floats& strip) const {
    const int64_t channels = size().channels, image_row = size().width * channels;
    const float* const from = layer_->input.data() + image * size().height * image_row;
    const int64_t first = y * size().stride_h - size().pad_top;
    if (!size().pads()) return from + first * image_row;
    const int64_t left = size().pad_left * channels, copied = std::min(image_row, pitch_ - left);
    float* to = strip.data();
    for (int64_t in_y = first; in_y < first + (rows - 1) * size().stride_h + size().kernel_h; ++in_y, to += pitch_) {
      if (in_y < 0 || in_y >= size().height) {
        std::fill(to, to + pitch_, 0.0F);
        continue;
      }
      std::fill(to, to + left, 0.0F);
      std::copy_n(from + in_y * image_row, copied, to + left);
      std::fill(to + left + copied, to + pitch_, 0.0F);
    }
    return strip.data();
  }

  // One output row's pixels of one panel, over a block of input channels; the `part`th of `parts` rows of the panel.
  void Row(const float* source, int64_t row, int64_t d, int64_t panel, int64_t part, int64_t parts) {
    const int64_t begin = PartBegin(size().channels, depths_, d), end = PartBegin(size().channels, depths_, d + 1);
    const int64_t vectors = panels_.vectors_of(panel), step = size().stride_w * size().channels;
    TileOperands tile;
    tile.a_row = step;
    tile.runs = runs_;
    tile.run_length = depths_ == 1 ? size().kernel_w * size().channels : end - begin;
    tile.b = packed_.data() + size().terms() * panels_.first_column(panel) +
             size().kernel_h * size().kernel_w * begin * vectors * kLanes;
    tile.c_row = size().out_channels;
    tile.columns = panels_.columns_of(panel);
    tile.accumulate = d > 0;
    tile.relu = d == depths_ - 1;
    float* const out = output_.data() + row * size().out_width * size().out_channels + panels_.first_column(panel);
    const int64_t most = MostRows(static_cast<int>(panels_.vectors));
    const int64_t tiles = CeilDiv(size().out_width, most);
    int64_t t = part * tiles;
    const bool ahead = fetches_ahead_ && panel + 1 < panels_.count();
    const int64_t next_width = ahead ? panels_.vectors_of(panel + 1) * kLanes : 0;
    const float* const next_panel = packed_.data() + size().terms() * panels_.first_column(panel + 1) +
                                    size().kernel_h * size().kernel_w * begin * next_width;
    ForEachPart(size().out_width, tiles, [&](int64_t x, int64_t next) {
      if (ahead) {
        const int64_t floats = size().kernel_h * size().kernel_w * (end - begin) * next_width;
        FetchAhead(next_panel, floats, t++, parts * tiles, &tile);
      }
      tile.a = source + x * step + begin;
      tile.c = out + x * size().out_channels;
      FindTile(static_cast<int>(next - x), static_cast<int>(vectors))(tile);
    });
  }

  int64_t rows_;   // of the output, of all images
  int64_t pitch_;  // floats of a row that windows are read from
  Panels panels_;
  bool by_channels_ = false;  // how threads share the work: by panels, else by rows
  int64_t block_rows_ = 1, depths_ = 1;
  bool fetches_ahead_ = false;  // the next panel, while one is multiplied
  std::vector<int64_t> runs_;
  std::vector<Floats> strips_;  // a thread's rows with their padding
};

}  // namespace

std::unique_ptr<Prototype> MakeConvolution(std::shared_ptr<const Layer> layer, ThreadPool& pool) {
  return std::make_unique<Convolution>(std::move(layer), pool);
}

}  // namespace hone::prototypes
