#include "compiler/frontend/onnx_function.h"

#include "absl/strings/str_cat.h"

namespace hone {
namespace {

OnnxGraph WithReferences(const OnnxGraph& body, const std::map<std::string, OnnxAttribute>& values,
                         const std::string& prefix) {
  OnnxGraph bound = body;
  for (OnnxNode& node : bound.nodes) {
    node.name = absl::StrCat(prefix, "/", node.name);
    for (auto& [name, attribute] : node.attributes) {
      auto* inner = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute);
      if (inner != nullptr) *inner = std::make_shared<const OnnxGraph>(WithReferences(**inner, values, prefix));
    }
    for (const auto& [name, reference] : node.references) {
      const auto value = values.find(reference);
      if (value != values.end()) node.attributes[name] = value->second;
    }
    node.references.clear();
  }
  return bound;
}

}  // namespace

const OnnxFunction* FindFunction(const OnnxModel& model, const OnnxNode& node) {
  const auto found = model.functions.find({node.domain, node.op, node.overload});
  return found == model.functions.end() ? nullptr : &found->second;
}

OnnxGraph BodyOfCall(const OnnxFunction& function, const OnnxNode& call) {
  std::map<std::string, OnnxAttribute> values = call.attributes;
  values.insert(function.defaults.begin(), function.defaults.end());
  return WithReferences(function.body, values, call.name);
}

}  // namespace hone
