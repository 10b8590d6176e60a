// Hand-written kernels as yardsticks of what tuning finds: what a programmer reaches with templates over the tile and a
// handful of sizes to try. They know nothing of Hone's programs, schedules or code generator.
//
// A layer is a convolution over images whose channels are last. Products are such layers as well: of a kernel of 1 x 1,
// with the rows of the product as pixels. In place of what a model computes behind a layer there is a ReLU. Constant
// weights are packed beforehand; what else a kernel needs (padding, transforms of the input) it does in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "deploy/runtime/run/thread_pool.h"
#include "tests/bench/prototypes/floats.h"

namespace hone::prototypes {

struct LayerSize {
  int64_t batch = 1, height = 1, width = 1, channels = 1;  // of the input, without padding
  int64_t out_height = 1, out_width = 1, out_channels = 1;
  int64_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0;  // zeros; what the last windows need behind the image is zeros, too
  bool depthwise = false;             // one kernel a channel

  int64_t terms() const { return kernel_h * kernel_w * (depthwise ? 1 : channels); }
  bool pads() const {
    return pad_top > 0 || pad_left > 0 || (out_height - 1) * stride_h + kernel_h > height ||
           (out_width - 1) * stride_w + kernel_w > width;
  }
  int64_t outputs() const { return batch * out_height * out_width * out_channels; }
};

// A layer with numbers, and what comes out by a plain loop.
struct Layer {
  explicit Layer(const LayerSize& size);

  LayerSize size;
  Floats input;     // [batch, height, width, channels]
  Floats weights;   // [kernel_h, kernel_w, channels, out_channels], [kernel_h, kernel_w, channels] when depthwise
  Floats expected;  // [batch, out_height, out_width, out_channels]
};

class Prototype {
 public:
  // What can be chosen: the default first.
  struct Knob {
    std::string name;
    std::vector<int64_t> values;
  };

  // `pool` must outlive it.
  Prototype(std::string name, std::shared_ptr<const Layer> layer, ThreadPool& pool)
      : layer_(std::move(layer)), pool_(pool), output_(layer_->size.outputs()), name_(std::move(name)) {}
  virtual ~Prototype() = default;
  Prototype(const Prototype&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<Knob>& knobs() const { return knobs_; }

  // Packs the weights as runs with these values read them, one for each knob.
  virtual void Prepare(std::span<const int64_t> choice) = 0;
  virtual void Run() = 0;

  // The packed weights.
  std::span<const char> constants() const {
    return {reinterpret_cast<const char*>(packed_.data()), static_cast<size_t>(packed_.size()) * sizeof(float)};
  }
  // Runs once. Ends the process when the results are not those of the plain loop.
  void Check();

 protected:
  const LayerSize& size() const { return layer_->size; }

  std::shared_ptr<const Layer> layer_;
  ThreadPool& pool_;
  Floats packed_, output_;
  std::vector<Knob> knobs_;

 private:
  std::string name_;
};

// Those of `values` that are below `all`, behind `all` itself.
std::vector<int64_t> AllOr(int64_t all, std::initializer_list<int64_t> values);

}  // namespace hone::prototypes
