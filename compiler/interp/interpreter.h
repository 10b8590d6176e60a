// The interpreter defines what a program means: it runs any function, scheduled or not, without a code generator.
//
// A function is first compiled to a compact code over numbered slots, then run on one thread. Parallel, vectorised and
// unrolled loops run in order, one iteration after the other. Floating values are rounded to their declared type after
// every operation, 16-bit types included.
//
// Loops bound to blockIdx and threadIdx are a launch where nothing but barriers orders their iterations: where a
// barrier stands in them, or no blocks are left. Its threads run from barrier to barrier, each with registers of its
// own, and FailedPrecondition names a barrier that some thread of the block does not reach, a data race (two threads
// that touch one element of shared or global memory, one of them writing, with no barrier between), or a touch of what
// an asynchronous copy is about to write or still has to read (ir/effects.h). In other programs blocks say what needs
// what, lowering (lower_threads.h) has yet to put barriers in, and such loops run in order as well.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/ir/stmt.h"

namespace hone {

// The bytes of memory that no store has written, in the interpreter and in the outputs that RandomArguments makes: no
// number in floating tensors, -1 in integer ones, so that what reads them does not get a right result by chance.
inline constexpr unsigned char kUnwrittenByte = 0xFF;

// When an asynchronous copy reads its source and writes its destination: as soon as it is begun, only when its thread
// waits for it, or at a random moment between.
enum class Landing : uint8_t { kEarliest, kLatest, kRandom };

struct InterpretOptions {
  // All floating arithmetic, and every floating buffer, in double; rounded at the end, and where a cast to a narrower
  // type says so.
  bool double_accumulation = false;
  bool check_bounds = true;         // OutOfRange names the buffer, the index and the block
  bool check_uninitialised = true;  // FailedPrecondition when an element is read before it is written, or an output
                                    // element is never written
  // With check_uninitialised: such an element may be read all the same, as lanes that are off are read with a vector,
  // and may lie in intermediates; FailedPrecondition when an index, a condition, a mask or an output is made of it.
  bool follow_undefined = false;
  bool check_races = true;  // among threads, and with asynchronous copies
  Landing landing = Landing::kLatest;
  uint64_t seed = 0;                      // of random moments
  int64_t max_rounds = int64_t{1} << 27;  // of one while, after which it gives up with DeadlineExceeded; 0: no limit
  int64_t max_steps = 0;                  // loop iterations after which it gives up with DeadlineExceeded; 0: no limit
};

// Runs `f` on `args`, one for each of f.params in order; outputs are written in place. Symbolic sizes are taken from
// the shapes of the arguments. InvalidArgument when the arguments do not fit the function.
absl::Status Interpret(const PrimFunc& f, std::span<NdArray> args, const InterpretOptions& options = {});

// The values of chosen elements of one output (0 is the first) of an unscheduled function, computing only what they
// need. `inputs` are the arguments before the outputs; each of `where` is an index of the output. Of the options
// double_accumulation counts, and max_steps, which are those of all of them together.
absl::StatusOr<std::vector<double>> InterpretElements(const PrimFunc& f, std::span<const NdArray> inputs, int output,
                                                      std::span<const std::vector<int64_t>> where,
                                                      const InterpretOptions& options = {});

}  // namespace hone
