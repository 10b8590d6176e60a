#include "tests/bench/prototypes/prototype.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::prototypes {
namespace {

// Floats in [-1, 1), always the same.
void Fill(const Floats& floats, uint32_t seed) {
  for (int64_t i = 0; i < floats.size(); ++i) {
    seed = seed * 1664525U + 1013904223U;
    floats.data()[i] = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31F;
  }
}

// The sums of one output pixel, over what of its window lies in the image.
void Pixel(const Layer& layer, int64_t n, int64_t y, int64_t x, float* out) {
  const LayerSize& size = layer.size;
  std::fill(out, out + size.out_channels, 0.0F);
  for (int64_t ky = 0; ky < size.kernel_h; ++ky) {
    for (int64_t kx = 0; kx < size.kernel_w; ++kx) {
      const int64_t in_y = y * size.stride_h + ky - size.pad_top, in_x = x * size.stride_w + kx - size.pad_left;
      if (in_y < 0 || in_y >= size.height || in_x < 0 || in_x >= size.width) continue;
      const float* const in = layer.input.data() + ((n * size.height + in_y) * size.width + in_x) * size.channels;
      const int64_t tap = (ky * size.kernel_w + kx) * size.channels;
      if (size.depthwise) {
        for (int64_t c = 0; c < size.channels; ++c) out[c] += in[c] * layer.weights.data()[tap + c];
        continue;
      }
      for (int64_t c = 0; c < size.channels; ++c) {
        const float* const weights = layer.weights.data() + (tap + c) * size.out_channels;
        for (int64_t f = 0; f < size.out_channels; ++f) out[f] += in[c] * weights[f];
      }
    }
  }
  for (int64_t f = 0; f < size.out_channels; ++f) out[f] = std::max(out[f], 0.0F);
}

}  // namespace

Layer::Layer(const LayerSize& of)
    : size(of),
      input(size.batch * size.height * size.width * size.channels),
      weights(size.terms() * size.out_channels),
      expected(size.outputs()) {
  Fill(input, 1);
  Fill(weights, 2);
  float* out = expected.data();
  for (int64_t n = 0; n < size.batch; ++n) {
    for (int64_t y = 0; y < size.out_height; ++y) {
      for (int64_t x = 0; x < size.out_width; ++x, out += size.out_channels) Pixel(*this, n, y, x, out);
    }
  }
}

void Prototype::Check() {
  std::fill_n(output_.data(), output_.size(), std::numeric_limits<float>::quiet_NaN());  // what is not written shows
  Run();
  // Winograd's F(4x4, 3x3) rounds about ten times as much as the sum; a term too few or too many is a tenth or more.
  const double bound = 1e-4 * std::sqrt(static_cast<double>(size().terms()));
  for (int64_t i = 0; i < output_.size(); ++i) {
    const double wanted = layer_->expected.data()[i], found = output_.data()[i];
    HONE_CHECK(std::abs(wanted - found) <= bound)
        << "prototype " << name_ << ": output " << i << " is " << found << ", by a plain loop " << wanted;
  }
}

std::vector<int64_t> AllOr(int64_t all, std::initializer_list<int64_t> values) {
  std::vector<int64_t> kept = {all};
  for (const int64_t value : values) {
    if (value < all) kept.push_back(value);
  }
  return kept;
}

}  // namespace hone::prototypes
