// Small functions held against the interpreter on emulated boards, many in one start of an emulator, which takes longer
// than the functions do: they are collected, and those of a board become one function that runs there.
//
//   BoardChecks checks;
//   checks.Add(func, tolerance, InputKind::kUniform, "int8 abs");   // .. and others
//   checks.Run();
#pragma once

#include <string>
#include <vector>

#include "compiler/array/ndarray.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/stmt.h"

namespace hone {

class BoardChecks {
 public:
  // Checks a function with no intermediates, whose parameters and blocks have names of their own among those added: on
  // one of two boards, drawn by the number of the check, so that every operator has both over its types.
  // HONE_THOROUGH=1 checks it on both. Fails at once where the interpreter or the compiler refuses it. What stops an
  // emulator (StopsEmulator) is compiled and not run.
  void Add(const PrimFunc& func, double tolerance, InputKind kind, const std::string& what);

  // Runs what was added since the last call, some at a time. Fails as ExpectOutputsNear does, with `what`.
  void Run();

 private:
  struct Check {
    PrimFunc func;
    std::vector<NdArray> arguments;  // inputs, and outputs as the interpreter makes them
    double tolerance;
    std::string what;
  };
  static PrimFunc Join(const std::vector<Check>& checks);
  static void RunTogether(const std::vector<Check>& checks, const std::string& cpu);

  static constexpr const char* kBoards[] = {"cortex-a76", "generic-rv64"};
  std::vector<Check> waiting_[2];  // of each board
};

}  // namespace hone
