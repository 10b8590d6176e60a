// ONNX models as graphs.
//
// libonnx parses; shapes, types and meanings are inferred here (operators.h). Everything static is folded away on the
// way: the result has static shapes only, and no control flow. Operator sets 1 to 28, of elements of every type but
// strings and complex numbers. A shape that would follow from values that come at run time is the one the model
// declares. A sequence of tensors is an input or output for each of its elements, "NAME[0]" and so on; an optional
// value is there or not when the model is imported.
//
// The model's metadata may say which values an input of integers takes: key "domain.NAME", value "int[LOW,HIGH)".
//
// External data is read from the model's own folder or below it, never through a symbolic link or a path that climbs
// out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace hone {

struct ImportOptions {
  // Sizes of symbolic dimensions by name ("batch" -> 1); a name that the model does not have is refused. A dimension to
  // which the model gives no name has that of its input and place, "x.0".
  std::map<std::string, int64_t> dims;
  // Dimensions whose sizes the caller of the compiled model chooses, by name: what is imported at one size alone
  // refuses them.
  std::map<std::string, SizeRange> ranges;
  // Shapes of inputs by name, for the dimensions that the model leaves open. Where neither says anything a dimension is
  // refused, except that the first one of an input is taken as 1, which Graph::notes says.
  // Those of outputs too, where the model does not say them: a shape that would follow from the data.
  std::map<std::string, std::vector<int64_t>> shapes;
  // Values of inputs by name, in C order: the graph computes with them, whatever it is given when it runs. For inputs
  // from which shapes follow.
  std::map<std::string, std::vector<double>> values;
  // The shapes of the elements of inputs that are sequences. The graph has an input for each element, "NAME[0]" and so
  // on.
  std::map<std::string, std::vector<std::vector<int64_t>>> sequences;
  std::set<std::string> absent;  // inputs of an optional type that are not given
  // Of a module of the text dialect: the value of the parameter of this name, which is a constant then, or of the
  // constant kept outside of the text that has this number; nullptr where there is none. Absent: there are none.
  std::function<absl::StatusOr<std::shared_ptr<const NdArray>>(const std::string& name)> constants;
  bool sizes_are_open = false;  // Graph::sizes_are_open; ImportOnnxAtSizes sets it
};

// A model at several sizes of its dimensions: hands `take` the graph of each of `sizes`, which are added to
// options.dims, in order; its failure ends the import. The file is read once, and the graphs share its constants.
//
// Any failure satisfies IsImportError: the file cannot be read (NotFound, ...), is not ONNX or is truncated, or holds
// what is malformed or not supported (InvalidArgument: one line for each such node, by name and reason, all of them at
// once).
absl::Status ImportOnnxAtSizes(const std::string& path, const ImportOptions& options,
                               std::span<const std::map<std::string, int64_t>> sizes,
                               const std::function<absl::Status(Graph)>& take);
// A model from the bytes of its file; `folder` is where external data lies ("": external data is refused).
absl::StatusOr<Graph> ImportOnnxBytes(std::string_view bytes, const std::string& folder,
                                      const ImportOptions& options = {});

// Whether the status says that a model could not be imported, as opposed to a failure later on.
bool IsImportError(const absl::Status& status);

}  // namespace hone
