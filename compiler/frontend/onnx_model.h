// A model as plain structs, in ONNX's terms: what is left of a file once its messages are decoded and its tensors are
// loaded, or of a module of the text dialect once it is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/operators/onnx_node.h"
#include "compiler/ir/stmt.h"

namespace google::protobuf::io {
class ZeroCopyInputStream;
}

namespace hone {

struct OnnxDim {
  int64_t size = -1;  // -1: symbolic or unknown
  std::string symbol;
};
struct OnnxInput {
  std::string name;
  DType dtype;
  std::string element;                            // of a narrow type: its name (graph/operators/narrow_types.h)
  bool is_sequence = false, is_optional = false;  // the rest is of an element
  bool has_shape = false;
  std::vector<OnnxDim> dims;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxInput> inputs;  // those without an initial value
  std::vector<std::string> outputs;
  std::map<std::string, std::shared_ptr<const NdArray>> initializers;
  std::map<std::string, std::string> elements;  // the narrow types of initializers
  std::vector<OnnxNode> nodes;                  // in the file's order
  std::map<std::string, std::vector<int64_t>>
      shapes;  // what is declared of values and outputs, where all of it is known
};

// What a node of the model's own kind stands for.
struct OnnxFunction {
  std::vector<std::string> inputs;                // of which a node may leave out the last
  std::map<std::string, OnnxAttribute> defaults;  // of attributes that a node may leave out
  std::map<std::string, int64_t> opsets;          // version by domain, which need not be the model's
  OnnxGraph body;                                 // nodes and outputs
};

struct OnnxModel {
  std::map<std::string, int64_t> opsets;                                                // version by domain
  std::map<std::tuple<std::string, std::string, std::string>, OnnxFunction> functions;  // by domain, name and overload
  std::string producer;
  std::map<std::string, std::string> metadata;
  OnnxGraph graph;
  // ---- Of a module (module_model.h) alone.
  std::map<std::string, PrimFunc> tensor_functions;  // by name
  std::vector<std::string> output_elements;          // narrow types of outputs, or none
};

// Decodes a file of that many bytes, 0 where it is not known; no second copy of it is held in memory. InvalidArgument
// when it is not an ONNX model or is cut off; malformed parts (an initializer whose data does not fill its shape, an
// attribute without a value) are added to `problems`, a line each.
absl::StatusOr<OnnxModel> DecodeOnnx(google::protobuf::io::ZeroCopyInputStream& file, int64_t bytes,
                                     const std::string& folder, std::vector<std::string>& problems);

}  // namespace hone
