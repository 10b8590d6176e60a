#include "compiler/interp/interpreter.h"

#include "absl/strings/str_cat.h"
#include "compiler/interp/machine.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status Interpret(const PrimFunc& f, std::span<NdArray> args, const InterpretOptions& options) {
  HONE_ASSIGN_OR_RETURN(const interp::Code code, interp::Compile(f, options));
  interp::Machine machine(f, code, options);
  HONE_RETURN_IF_ERROR(machine.Bind(args));
  HONE_RETURN_IF_ERROR(machine.Run(code.entry));
  return machine.Finish(args);
}

absl::StatusOr<std::vector<double>> InterpretElements(const PrimFunc& f, std::span<const NdArray> inputs, int output,
                                                      std::span<const std::vector<int64_t>> where,
                                                      const InterpretOptions& options) {
  const InterpretOptions counting = {.double_accumulation = options.double_accumulation,
                                     .max_steps = options.max_steps};
  const int outputs = f.num_outputs();
  if (inputs.size() + static_cast<size_t>(outputs) != f.params.size() || output < 0 || output >= outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat("interpreting ", f.name, ": found ", inputs.size(), " inputs and output ", output, ", expected ",
                     f.params.size() - static_cast<size_t>(outputs), " inputs and one of ", outputs, " outputs"));
  }
  std::vector<NdArray> args(inputs.begin(), inputs.end());
  for (size_t i = inputs.size(); i < f.params.size(); ++i) {
    std::vector<int64_t> shape;
    for (const Expr& extent : f.params[i].shape()) {
      const std::optional<int64_t> n = ConstantValue(extent);
      if (!n.has_value())
        return absl::UnimplementedError(absl::StrCat("elements of an output of symbolic shape, ", f.params[i].name()));
      shape.push_back(*n);
    }
    args.emplace_back(f.params[i].type(), std::move(shape));
  }
  const int param = static_cast<int>(inputs.size()) + output;
  std::vector<double> values;
  bool complete = false;
  const absl::StatusOr<interp::Code> code = interp::CompileElements(f, counting, complete);
  if (code.ok() && complete) {
    interp::Machine machine(f, *code, counting);
    HONE_RETURN_IF_ERROR(machine.Bind(args));
    HONE_RETURN_IF_ERROR(machine.Run(code->entry));
    for (const std::vector<int64_t>& index : where) {
      HONE_ASSIGN_OR_RETURN(const double value, machine.Element(param, index));
      values.push_back(value);
    }
    return values;
  }
  // A program in another form is run as a whole.
  HONE_RETURN_IF_ERROR(Interpret(f, args, counting));
  for (const std::vector<int64_t>& index : where) {
    const NdArray& result = args[static_cast<size_t>(param)];
    if (index.size() != result.shape.size())
      return absl::InvalidArgumentError("an index of another rank than the output");
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (index[d] < 0 || index[d] >= result.shape[d]) return absl::OutOfRangeError("an index outside of the output");
      offset = offset * result.shape[d] + index[d];
    }
    values.push_back(result.Get(offset));
  }
  return values;
}

}  // namespace hone
