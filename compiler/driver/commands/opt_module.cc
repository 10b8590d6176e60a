#include "compiler/driver/commands/opt_module.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {

absl::StatusOr<IrModule> ReadModule(const std::string& file, const std::string& func) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  absl::StatusOr<IrModule> module = ParseIrModule(text);
  if (!module.ok()) return Annotate(module.status(), file);
  if (module->functions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": no function; a program begins with @T.prim_func or @R.function, then `def`"));
  }
  if (func.empty()) return module;
  std::string names;
  for (auto& function : module->functions) {
    if (NameOf(function) == func) {
      IrModule one;
      one.functions.push_back(std::move(function));
      return one;
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", NameOf(function));
  }
  return absl::InvalidArgumentError(absl::StrCat(file, ": no function ", func, "; there are: ", names));
}

absl::StatusOr<PrimFunc> OnlyTensorFunction(const std::string& file, const IrModule& module) {
  std::vector<const PrimFunc*> found;
  std::string names;
  for (const auto& function : module.functions) {
    const PrimFunc* f = std::get_if<PrimFunc>(&function);
    if (f == nullptr) continue;
    found.push_back(f);
    absl::StrAppend(&names, names.empty() ? "" : ", ", f->name);
  }
  if (found.size() == 1) return *found[0];
  if (found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": graph functions are read and printed; only a tensor function can be scheduled or run"));
  }
  return absl::InvalidArgumentError(absl::StrCat(file, ": choose a function with --func: ", names));
}

}  // namespace hone
