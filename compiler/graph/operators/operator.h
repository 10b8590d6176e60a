// An operator in one place: a file of the rooms below says what it computes (formula, shape function, how it may be
// fused: an OpInfo) and which ONNX operators it serves, from which operator set on, and how they become nodes of the
// graph. What the text dialect's graph functions call it (compiler/text/README.md) is a row beside them.
//
// To add one: a file NAME.cc, in the room it belongs to, that defines HONE_OPERATORS(NAME), returning the Operators it
// holds. Nothing else knows its name: the build makes the list of all from the names of the files.
//
//   HONE_OPERATORS(swish) {
//     return {{.onnx = {{.name = "Swish", .since = 24, .import = [](NodeContext& c) -> Outputs {
//       const Value x = Input(c, 0);
//       return Results({x * Sigmoid(x * c.FloatAttr("alpha", 1))});
//     }}}}};
//   }
//
// What can be said with other operators is said so (expressions.h), and the passes fuse it; what cannot has an OpInfo.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/op.h"

namespace hone {

class NodeContext;

// The outputs' values; those beyond the list are not supported.
using Outputs = absl::StatusOr<std::vector<int>>;
// Those of an operator with one.
Outputs One(absl::StatusOr<int> value);
// Appends what computes the node. InvalidArgument with the reason when the node is malformed or asks for what is not
// supported.
using ImportFn = Outputs (*)(NodeContext&);

// What an operator does with elements of a narrow type (narrow_types.h): refuses them, hands its first input's on as
// they are, or knows what they stand for.
enum class NarrowElements : uint8_t { kRefuses, kMoves, kConverts };

// Domains of operators that ONNX does not have: those of the text dialect's graph functions ("R.nn.relu"), whose rows
// stand beside ONNX's, and those of the graph itself ("R.hone.dense"), which need none.
inline constexpr std::string_view kModuleDomain = "R", kGraphDomain = "R.hone";

struct OnnxOperator {
  std::string_view name;
  int since;  // the operator set this row is for, up to that of the next row
  ImportFn import;
  std::string_view domain = "";
  // Inputs of float16 and bfloat16 are computed with as float32, and results of type float32 rounded to the type of the
  // first of them: one rounding, as the standard's reference has it, whatever the steps are.
  bool in_float32 = false;
  NarrowElements narrow = NarrowElements::kRefuses;
  bool keeps_shape = false;      // the output has the shape of the first input, whatever that is
  bool takes_sequences = false;  // inputs may be sequences, or optional values that are not there (sequences.h)
};

struct Operator {
  std::vector<OpInfo> graph;  // what it is in a graph; none where it is made of others
  std::vector<OnnxOperator> onnx;
};
using Operators = std::vector<Operator>;

#define HONE_OPERATORS(file) Operators OperatorsOf_##file()

// Those of every file.
const Operators& AllOperators();
// The row with the greatest `since` not beyond the version; nullptr when there is none. Operators of the graph itself,
// and element-wise ones of the text dialect, have rows of their own (graph_operator.h).
const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view name, int64_t version);

// InvalidArgument in the importer's words.
absl::Status Unsupported(const std::string& message);

}  // namespace hone
