// Operators by name: those of a graph, and those of ONNX.
#include <map>

#include "compiler/graph/op.h"
#include "compiler/graph/operators/graph_operator.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

const std::map<std::string_view, OpInfo>& Table() {
  static const auto* table = [] {
    auto* t = new std::map<std::string_view, OpInfo>();
    for (const Operator& entry : AllOperators()) {
      for (const OpInfo& op : entry.graph)
        HONE_CHECK(t->emplace(op.name, op).second) << "two operators are called " << op.name;
    }
    return t;
  }();
  return *table;
}

}  // namespace

const OpInfo* FindOp(std::string_view name) {
  const auto found = Table().find(name);
  return found == Table().end() ? nullptr : &found->second;
}

std::vector<std::string_view> OpNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, op] : Table()) names.push_back(name);
  return names;
}

const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view name, int64_t version) {
  if (domain == kGraphDomain) return FindGraphOperator(name);
  const OnnxOperator* best = nullptr;
  for (const Operator& entry : AllOperators()) {
    for (const OnnxOperator& op : entry.onnx) {
      if (op.name == name && op.domain == domain && op.since <= version && (best == nullptr || op.since > best->since))
        best = &op;
    }
  }
  return best == nullptr && domain == kModuleDomain ? FindElementwiseOperator(name) : best;
}

}  // namespace hone
