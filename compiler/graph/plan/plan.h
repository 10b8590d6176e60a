// A plan: a model cut into kernels.
//
// Every fused group of the graph is one TensorIR function (a task); equal functions are one task with a weight. The
// steps say in which order the tasks run and on which tensors. This is what is tuned (tasks), packaged (all of it) and
// executed. Nothing here changes once made; constants are shared, not copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/graph/plan/size_polynomial.h"
#include "compiler/ir/stmt.h"

namespace hone {

// A dimension whose size the caller of the model chooses in each run (ir/symbolic_sizes.h).
struct PlanSize {
  std::string name;  // the model's: "batch"
  SizeRange range;
};

struct PlanTensor {
  enum Kind : uint8_t { kInput, kOutput, kConstant, kIntermediate };
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;           // empty for a scalar; where sizes are symbolic, the greatest
  Kind kind = kIntermediate;            // what it is to the outside; an output is never a view
  std::shared_ptr<const NdArray> data;  // of constants alone
  std::string element;                  // of an input or output: GraphValue::element
  int alias_of = -1;                    // a view: same bytes as that tensor under another shape; never a view itself
  // Of a plan with symbolic sizes: the dimensions over them. A constant of which smaller sizes use a part has none.
  std::vector<SizePolynomial> extents = {};
};

// A run of a task, or a call of a function that only the program that runs the model has.
struct PlanStep {
  int task = 0;              // -1: a call
  std::vector<int> tensors;  // one for each param of the task's function, in its order; inputs, then outputs
  std::string packed = {};   // of a call: the name of the function
  int outputs = 0;           // of a call: how many of the tensors it writes, the last ones
  bool is_call() const { return task < 0; }
};

struct PlanTask {
  PrimFunc func;                // unscheduled
  std::string name;             // for people, unique in the plan: "conv2d_3x3_s2_112x112x64_add_relu"
  double weight = 0;            // how many steps run it
  double flop = 0;              // of one run: a multiply-add is 2
  double bytes = 0;             // of one run: every param read or written once
  std::vector<int> sizes = {};  // of Plan::sizes: the values of func.dims. Flop and bytes are at the greatest
};

struct Plan {
  std::string model_name;
  std::vector<PlanTensor> tensors;
  std::vector<PlanStep> steps;  // in an order in which they may run
  std::vector<PlanTask> tasks;
  std::vector<int> inputs, outputs;  // tensors, in the model's order
  std::vector<PlanSize> sizes = {};  // symbolic ones
};

// The tensor whose memory that one is: itself, where it is no view.
int RootOf(const Plan& plan, int tensor);
// Of its elements; where sizes are symbolic, at the greatest.
int64_t BytesOf(const PlanTensor& tensor);
// What a step runs: the name of its task or of the function that it calls.
const std::string& NameOf(const Plan& plan, const PlanStep& step);
// The functions that the program has to have which runs the model, each once, by name.
std::vector<std::string> CalledFunctions(const Plan& plan);

}  // namespace hone
