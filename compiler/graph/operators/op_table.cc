#include "compiler/graph/op.h"

#include <map>

#include "compiler/graph/op_groups.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

const std::map<std::string_view, OpInfo>& Table() {
  static const auto* table = [] {
    auto* t = new std::map<std::string_view, OpInfo>();
    for (std::vector<OpInfo> group : {ElementwiseOps(), MatrixOps(), ImageOps(), ReduceOps(), MoveOps()}) {
      for (OpInfo& op : group) {
        const std::string_view name = op.name;
        HONE_CHECK(t->emplace(name, std::move(op)).second) << "two operators are called " << name;
      }
    }
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

}  // namespace hone
