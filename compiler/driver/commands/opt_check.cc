#include "compiler/driver/commands/opt_check.h"

#include <map>

#include "compiler/arith/prove_bounds.h"
#include "compiler/driver/exit_code.h"
#include "compiler/interp/random_input.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status ProveBounds(const PrimFunc& func) {
  std::map<Buffer, Bounds> values;
  for (size_t i = 0; i < func.params.size(); ++i) {
    const Domain domain = DomainOf(func, static_cast<int>(i));
    if (domain.kind == Domain::Kind::kInt) values[func.params[i]] = {.min = domain.low, .max = domain.high - 1};
  }
  return WithExitCode(ExitCode::kProgramFault, Annotate(ProveInBounds(func, values), func.name));
}

absl::Status ProveBounds(const ScheduledProgram& program) {
  HONE_RETURN_IF_ERROR(ProveBounds(program.main));
  for (const Prepare& prepare : program.prepares) HONE_RETURN_IF_ERROR(ProveBounds(prepare.func));
  return absl::OkStatus();
}

}  // namespace hone
