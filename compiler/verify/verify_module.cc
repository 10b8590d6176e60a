// The rules that a module keeps beyond those of its tensor functions (verify.h).
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/module.h"
#include "compiler/support/status_macros.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

class ModuleVerifier {
 public:
  explicit ModuleVerifier(const IrModule& module) {
    for (const auto& function : module.functions) {
      if (const PrimFunc* f = std::get_if<PrimFunc>(&function)) tensor_functions_.emplace(f->name, f);
      names_.insert(NameOf(function));
    }
  }

  absl::Status Function(const GraphFunc& f) const {
    for (const BindingBlock& block : f.blocks) {
      for (const GraphBinding& binding : block.bindings) {
        const absl::Status status = Value(binding.value);
        if (!status.ok()) return Named(status, f, binding.var.name());
      }
    }
    return Named(Value(f.result), f, "return");
  }

 private:
  static absl::Status Named(const absl::Status& status, const GraphFunc& f, absl::string_view value) {
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat("function ", f.name, ", value ", value, ": ", std::string(status.message())));
  }

  absl::Status Value(const GraphExpr& value) const {
    if (const CallTir* call = value.As<CallTir>()) HONE_RETURN_IF_ERROR(Call(*call));
    if (const FunctionRef* ref = value.As<FunctionRef>(); ref != nullptr && names_.count(ref->name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the module has no function `", ref->name, "`"));
    }
    if (const GraphTuple* tuple = value.As<GraphTuple>()) return Values(tuple->items);
    if (const TupleItem* item = value.As<TupleItem>()) return Value(item->tuple);
    if (const CallTir* call = value.As<CallTir>()) return Values(call->args);
    if (const GraphCall* call = value.As<GraphCall>()) {
      if (call->callee) HONE_RETURN_IF_ERROR(Value(call->callee));
      return Values(call->args);
    }
    return absl::OkStatus();
  }
  absl::Status Values(const std::vector<GraphExpr>& values) const {
    for (const GraphExpr& value : values) HONE_RETURN_IF_ERROR(Value(value));
    return absl::OkStatus();
  }

  absl::Status Call(const CallTir& call) const {
    if (call.packed) return absl::OkStatus();
    const auto found = tensor_functions_.find(call.function);
    if (found == tensor_functions_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("R.call_tir of `", call.function, "`; the module has no tensor function of this name"));
    }
    const PrimFunc& f = *found->second;
    const size_t given = call.args.size() + call.outputs.size();
    if (given != f.params.size()) {
      return absl::InvalidArgumentError(absl::StrCat("`", f.name, "` takes ", f.params.size(), " tensors; found ",
                                                     call.args.size(), " arguments and ", call.outputs.size(),
                                                     " results"));
    }
    for (size_t i = 0; i < given; ++i) {
      const std::optional<GraphType> type =
          i < call.args.size() ? TypeOf(call.args[i]) : std::optional<GraphType>(call.outputs[i - call.args.size()]);
      if (type.has_value()) HONE_RETURN_IF_ERROR(Fits(f, f.params[i], *type));
    }
    return absl::OkStatus();
  }

  static std::optional<GraphType> TypeOf(const GraphExpr& value) {
    if (const GraphVarRef* ref = value.As<GraphVarRef>()) return ref->var.type();
    return std::nullopt;
  }

  static absl::Status Fits(const PrimFunc& f, const Buffer& param, const GraphType& type) {
    const auto refuse = [&](absl::string_view found, absl::string_view expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", f.name, "` takes ", expected, " as `", param.name(), "`; found ", found));
    };
    if (type.kind != GraphType::Kind::kTensor) return absl::OkStatus();
    if (type.dtype.has_value() && *type.dtype != param.type()) {
      return refuse(hone::ToText(*type.dtype), hone::ToText(param.type()));
    }
    if (!type.shape.has_value()) return absl::OkStatus();
    if (type.shape->size() != param.shape().size()) {
      return refuse(absl::StrCat(type.shape->size(), " dimensions"), absl::StrCat(param.shape().size(), " dimensions"));
    }
    for (size_t i = 0; i < type.shape->size(); ++i) {
      const std::optional<int64_t> a = ConstantValue(type.shape->at(i)), b = ConstantValue(param.shape()[i]);
      if (a.has_value() && b.has_value() && *a != *b) {
        return refuse(absl::StrCat("dimension ", i, " of ", *a), absl::StrCat("dimension ", i, " of ", *b));
      }
    }
    return absl::OkStatus();
  }

  std::map<std::string, const PrimFunc*> tensor_functions_;
  std::set<std::string> names_;
};

}  // namespace

absl::Status Verify(const IrModule& module) {
  const ModuleVerifier verifier(module);
  for (const auto& function : module.functions) {
    if (const PrimFunc* f = std::get_if<PrimFunc>(&function)) {
      const absl::Status status = Verify(*f);
      if (!status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("function ", f->name, ": ", std::string(status.message())));
      }
    } else {
      HONE_RETURN_IF_ERROR(verifier.Function(std::get<GraphFunc>(function)));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone
