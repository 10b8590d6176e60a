// What a workload does, block by block: the facts that templates, sketch rules and the draft model decide by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// One block of an unscheduled function, with constant extents.
struct BlockInfo {
  // How a buffer that the block reads moves with each iteration variable: the stride in elements, 0 when it does not.
  struct Access {
    Buffer buffer;
    std::vector<Expr> indices;     // over the iteration variables
    std::vector<int64_t> strides;  // one for each iteration variable
    bool affine = true;            // false: strides are those that could be found, the rest are 0
    // The one variable without a stride, where the buffer moves by `stride` elements every `period` iterations of it,
    // as the input channels of a group do with the output channel.
    struct Steps {
      int iter = -1;  // -1: there is none
      int64_t period = 1, stride = 0;
    };
    Steps steps;
    bool constant = false;  // a param that holds constants
    bool cold = false;      // and comes from memory in every call (kColdConstants)
    int places = 1;         // of the buffer that one instance reads
    int64_t elements = 0;   // of the whole buffer
  };
  std::string name;
  std::vector<IterVar> iters;
  std::vector<int64_t> extents;
  std::vector<Access> reads;  // one for each distinct buffer: its first access; the written one excluded
  Buffer output;
  std::vector<int> output_iters;  // for every dimension of the output: the iteration variable, -1: another form
  bool reduces = false;
  // By which iteration variables the body chooses among forms (if_then_else(i == 0, .., if_then_else(i == 1, ..))): for
  // each the number of iterations after which the choices repeat, 0 for one that chooses nothing. A loop of so many
  // iterations is best unrolled.
  std::vector<int64_t> forms;
  bool pads = false;      // moves elements, and a constant where there is none
  bool converts = false;  // elements to another type
  bool writes_param = false;
  bool output_cold = false;  // and that goes to memory in the end (kColdOutputs)
  bool splits = false;       // a reduction x = x + v, x * v, min(x, v), max(x, v): see rfactor
  bool is_product = false;   // a reduction x = x + a * b of what two reads give, in the type of x
  bool single_store = true;  // the body is one store (templates take no other)
  double operations = 0;     // arithmetic operations of one instance

  int64_t instances() const;
  bool chooses() const {
    for (const int64_t period : forms) {
      if (period > 0) return true;
    }
    return false;
  }
  double flop() const { return operations * static_cast<double>(instances()); }
  bool spatial(int iter) const { return iters[static_cast<size_t>(iter)].kind == IterKind::kSpatial; }
  // The iteration variable of the output's last dimension, -1 when that is not one variable.
  int last_iter() const { return output_iters.empty() ? -1 : output_iters.back(); }
  int last_reduce_iter() const;     // the innermost; -1 when it reduces nothing
  int longest_reduce_iter() const;  // the innermost of the greatest extent; -1 when it reduces nothing
};

struct WorkloadInfo {
  std::vector<BlockInfo> blocks;  // in program order
  int heaviest = 0;               // the block with most operations

  int Find(const std::string& name) const;  // -1: none
  // The block that writes the buffer; -1: none.
  int Producer(const Buffer& buffer) const;
  // Blocks that read what block i writes.
  std::vector<int> Consumers(int i) const;
};

// The expression with `var // period` as `quotient`.
Expr WithQuotient(const Expr& e, const Var& var, int64_t period, const Var& quotient);

// FailedPrecondition when a size is symbolic or the function is scheduled already.
absl::StatusOr<WorkloadInfo> AnalyzeWorkload(const PrimFunc& func);

}  // namespace hone
