// What the command line says of a model's inputs: sizes that the model leaves open, values that are fixed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/frontend/onnx_import.h"

namespace CLI {
class App;
}

namespace hone {

struct ImportFlags {
  std::vector<std::string> dims;       // --dim batch=4, --dim batch=1..64
  std::vector<std::string> shapes;     // --shape y=4x2: of an output whose shape follows from the data
  std::vector<std::string> values;     // --value size=2,3,5,6
  std::vector<std::string> sequences;  // --sequence x=2x3,4x3: the shapes of the elements
  std::vector<std::string> absent;     // --absent x
  std::string constants;               // --constants FOLDER: of a module, NAME.npy and 0.npy

  void AddTo(CLI::App& command);
  std::string AsFlags() const;  // as they would be given again, each with a space before it
};

// InvalidArgument for what is not of the flag's form.
absl::StatusOr<ImportOptions> ImportOptionsOf(const ImportFlags& flags);

}  // namespace hone
