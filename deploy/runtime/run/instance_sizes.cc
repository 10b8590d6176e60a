// Symbolic sizes of a run: from the shapes of the inputs to those of the outputs, and to the kernels that are called.
#include <algorithm>
#include <functional>
#include <string>

#include "deploy/runtime/run/instance.h"

namespace hone {
namespace {

// "batch from 1 to 64, seq from 1 to 512"
std::string RangesText(const std::vector<BundleSize>& sizes) {
  std::string text;
  for (const BundleSize& size : sizes) {
    text += (text.empty() ? "" : ", ") + size.name + " from " + std::to_string(size.min) + " to " +
            std::to_string(size.max);
  }
  return text;
}

}  // namespace

std::string Instance::InputMismatch(int i, std::span<const int64_t> shape) const {
  const BundleGraph& graph = bundle_->graph();
  const BundlePort& port = graph.inputs[i];
  bool fits = shape.size() == port.shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    const int size = port.extents.empty() ? -1 : port.extents[d].size();
    fits = size < 0 ? port.extents.empty() ? shape[d] == port.shape[d] : shape[d] >= 0 && shape[d] <= port.shape[d]
                    : shape[d] >= graph.sizes[size].min && shape[d] <= graph.sizes[size].max;
  }
  if (fits) return "";
  if (port.extents.empty()) {
    return "the model has shape " + ShapeText(port.shape) + ", the tensor " + ShapeText(shape);
  }
  return "the model has shape " + ToText(port.extents, graph.sizes) + " with " + RangesText(graph.sizes) +
         ", the tensor " + ShapeText(shape);
}

RuntimeError Instance::Resolve() {
  if (resolved_) return {};
  const BundleGraph& graph = bundle_->graph();
  for (size_t i = 0; i < input_set_.size(); ++i) {
    if (!input_set_[i]) {
      return {RuntimeCode::kInvalidArgument,
              "input `" + graph.inputs[i].name + "` has not been set; set or bind it before the run"};
    }
  }
  if (!graph.sizes.empty()) {
    if (RuntimeError error = FindSizes()) return error;
    if (RuntimeError error = FindOutputShapes()) return error;
    ChooseCalls();
  }
  resolved_ = true;
  return {};
}

// Each size from the first dimension of an input that is it alone; then every input has to have the shape that follows.
RuntimeError Instance::FindSizes() {
  const BundleGraph& graph = bundle_->graph();
  for (size_t s = 0; s < graph.sizes.size(); ++s) {
    bool found = false;
    for (size_t i = 0; i < graph.inputs.size() && !found; ++i) {
      const std::vector<BundleExtent>& extents = graph.inputs[i].extents;
      for (size_t d = 0; d < extents.size() && !found; ++d) {
        found = extents[d].size() == static_cast<int>(s);
        if (found) sizes_[s] = input_shapes_[i][d];
      }
    }
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const BundlePort& port = graph.inputs[i];
    for (size_t d = 0; d < port.extents.size(); ++d) {
      const int64_t follows = port.extents[d].At(sizes_);
      if (follows == input_shapes_[i][d]) continue;
      return {RuntimeCode::kInvalidArgument, "input `" + port.name + "` has shape " + ShapeText(input_shapes_[i]) +
                                                 " where the model has " + ToText(port.extents, graph.sizes) +
                                                 ": the other inputs make dimension " + std::to_string(d) + " " +
                                                 std::to_string(follows)};
    }
  }
  return {};
}

RuntimeError Instance::FindOutputShapes() {
  const BundleGraph& graph = bundle_->graph();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const BundlePort& port = graph.outputs[i];
    int64_t bytes = DTypeBytes(port.dtype);
    for (size_t d = 0; d < port.extents.size(); ++d) {
      const int64_t extent = port.extents[d].At(sizes_);
      if (extent < 0 || extent > port.shape[d]) {
        return {RuntimeCode::kCorrupt, "output `" + port.name + "` would be larger than its memory"};
      }
      output_shapes_[i][d] = extent;
    }
    for (const int64_t extent : output_shapes_[i]) bytes *= extent;
    for (size_t c = 0; c < graph.copies.size(); ++c) {
      if (graph.copies[c].to == port.tensor) copy_bytes_[c] = bytes;
    }
  }
  return {};
}

RuntimeError Instance::CheckBoundOutputs() const {
  const BundleGraph& graph = bundle_->graph();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const bool bound = data_[graph.outputs[i].tensor] != own_[graph.outputs[i].tensor];
    if (!bound || bound_shapes_[i] == output_shapes_[i]) continue;
    return {RuntimeCode::kInvalidArgument, "output `" + graph.outputs[i].name + "` is bound to memory of shape " +
                                               ShapeText(bound_shapes_[i]) + ", the inputs give it shape " +
                                               ShapeText(output_shapes_[i]) + "; bind other memory"};
  }
  return {};
}

void Instance::ChooseCalls() {
  const BundleGraph& graph = bundle_->graph();
  for (size_t s = 0; s < steps_.size(); ++s) {
    const std::vector<BundleCase>& cases = graph.steps[s].cases;
    const auto fits = std::ranges::find_if(cases, [&](const BundleCase& c) {
      return std::equal(sizes_.begin(), sizes_.end(), c.most.begin(), std::less_equal<>());
    });
    steps_[s].chosen = steps_[s].first + (fits == cases.end() ? 0 : 1 + static_cast<size_t>(fits - cases.begin()));
    const Call& call = calls_[steps_[s].chosen];
    int64_t* dims = dims_.data() + (call.call.dims - dims_.data());
    for (const int size : graph.kernels[call.kernel].sizes) *dims++ = sizes_[size];
  }
}

}  // namespace hone
