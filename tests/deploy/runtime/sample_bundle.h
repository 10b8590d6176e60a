// A small bundle made by hand: y = (a + w) + a over 16 int32, with the constant w = 0, 100, 200 ... and the first sum
// kept in the arena; z is a copy of the input. The first sum is a parallel loop.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/bundle/bundle.h"
#include "tests/deploy/runtime/archive_of.h"
#include "tests/deploy/runtime/machine_code.h"

namespace hone {

inline BundleGraph SampleGraph() {
  BundleGraph graph;
  graph.model = "sample";
  graph.target = "cpu:x86-64";
  graph.features = "sse2";
  graph.threads = 2;
  graph.arena_bytes = 256;
  graph.tensors = {{"a", BundleTensor::kArena, 0, 64},
                   {"w", BundleTensor::kParams, 0, 64},
                   {"sum", BundleTensor::kArena, 64, 64},
                   {"y", BundleTensor::kArena, 128, 64},
                   {"z", BundleTensor::kArena, 192, 64}};
  graph.inputs = {{"a", "int32", {4, 4}, 0}};
  graph.outputs = {{"y", "int32", {16}, 3}, {"z", "int32", {2, 8}, 4}};
  graph.kernels = {{"add_w", 0, "k0", {64, 64, 64}, 100, 10, "r-17", 1.5},
                   {"add_a", 1, "k0", {64, 64, 64}, 0, 0, "", 0}};
  graph.steps = {{0, {0, 1, 2}}, {1, {2, 0, 3}}};
  graph.copies = {{0, 4}};
  return graph;
}

// The bundle with these members; a test changes one of them.
struct SampleMembers {
  std::string manifest = "{\"model\":\"sample\"}";
  std::string graph = ToJson(SampleGraph());
  std::string image = ImageOf({{"k0", ParallelAddKernel(16)}});
  std::string image1 = ImageOf({{"k0", AddKernel(16)}});
  std::string params = Params();

  static std::string Params() {
    std::string bytes;
    for (int i = 0; i < 16; ++i) bytes += Int32(100 * i);
    return bytes;
  }
  std::string Archive() const {
    const std::vector<ArchiveMember> members = {
        {"manifest.json", manifest}, {"graph.json", graph}, {"image", image}, {"image1", image1}, {"params", params}};
    return ArchiveOf(members);
  }
};

}  // namespace hone
