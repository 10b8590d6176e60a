#include "compiler/driver/commands/opt_check.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "compiler/arith/prove_bounds.h"
#include "compiler/driver/exit_code.h"
#include "compiler/interp/random_input.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status ProveBounds(const PrimFunc& func) {
  std::map<Buffer, Bounds> values;
  const auto domains = func.attrs.find("domains");
  if (domains != func.attrs.end()) {
    const auto* texts = std::get_if<std::vector<std::string>>(&domains->second);
    for (size_t i = 0; texts != nullptr && i < texts->size() && i < func.params.size(); ++i) {
      const absl::StatusOr<Domain> domain = ParseDomain((*texts)[i]);
      if (!domain.ok() || domain->kind != Domain::Kind::kInt) continue;
      values[func.params[i]] = {.min = domain->low, .max = domain->high - 1};
    }
  }
  return WithExitCode(ExitCode::kProgramFault, Annotate(ProveInBounds(func, values), func.name));
}

absl::Status ProveBounds(const ScheduledProgram& program) {
  HONE_RETURN_IF_ERROR(ProveBounds(program.main));
  for (const Prepare& prepare : program.prepares) HONE_RETURN_IF_ERROR(ProveBounds(prepare.func));
  return absl::OkStatus();
}

}  // namespace hone
