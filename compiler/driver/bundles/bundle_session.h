// A bundle loaded and made ready through the runtime's C interface, as a user's program would.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "deploy/runtime/hone_runtime.h"

namespace hone {

class BundleSession {
 public:
  struct Tensor {
    std::string name;
    DType dtype;                          // of what holds an element: uint8 for float8
    std::string type_name;                // "float32", "float8_e4m3fn"
    std::vector<int64_t> shape;           // where sizes are symbolic, of the sizes chosen: at first the greatest
    std::vector<std::string> size_names;  // of each dimension, "" for one that is fixed
  };

  struct Step {
    std::string name, symbol, record;  // as HoneStepProfile has them
    double us = 0;
  };

  // threads 0: what the bundle was tuned for. Carries exit codes 9 (corrupt) and 10: FailedPrecondition on another
  // machine, or where it calls functions that only a program of the user's has.
  static absl::StatusOr<BundleSession> Load(const std::string& path, int threads);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  std::string manifest() const { return hone_module_manifest(module_.get()); }
  int threads() const { return hone_instance_threads(instance_.get()); }

  // What ChooseSizes takes: the names of the symbolic sizes.
  std::vector<std::string> SizeNames() const;
  // Seeded inputs are of these sizes from now on. InvalidArgument for a name that no dimension of an input has.
  absl::Status ChooseSizes(const std::map<std::string, int64_t>& sizes);

  // InvalidArgument that names the input, what the model wants and what was given.
  absl::Status SetInput(const std::string& name, const NdArray& value);
  // A seeded value for input `i`: integers small and not negative, so that they can be indices.
  NdArray RandomInput(size_t i, uint64_t seed) const;
  // Gives every input such a value.
  absl::Status SetRandomInputs(uint64_t seed);
  absl::Status Run();
  // Runs once, and says what each step took.
  absl::StatusOr<std::vector<Step>> RunProfiled();
  absl::StatusOr<NdArray> Output(const std::string& name) const;

 private:
  struct Free {
    void operator()(HoneModule* m) const { hone_module_free(m); }
    void operator()(HoneInstance* i) const { hone_instance_free(i); }
  };
  BundleSession() = default;
  std::unique_ptr<HoneModule, Free> module_;
  std::unique_ptr<HoneInstance, Free> instance_;  // declared after the module: freed before it
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace hone
