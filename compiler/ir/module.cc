#include "compiler/ir/module.h"

#include <atomic>

#include "compiler/ir/comparer.h"
#include "compiler/ir/structural.h"

namespace hone {
namespace {

std::atomic<uint64_t> next_id{1};

template <class T>
struct IsPair : std::false_type {};
template <class A, class B>
struct IsPair<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

class GraphComparer {
 public:
  bool Same(const GraphFunc& a, const GraphFunc& b) {
    if (a.is_private != b.is_private || a.is_pure != b.is_pure || a.dims.size() != b.dims.size() ||
        a.params.size() != b.params.size() || a.blocks.size() != b.blocks.size() || !SameAttrs(a.attrs, b.attrs)) {
      return false;
    }
    for (size_t i = 0; i < a.dims.size(); ++i) {
      if (!exprs_.Define(a.dims[i], b.dims[i])) return false;
    }
    for (size_t i = 0; i < a.params.size(); ++i) {
      if (!Define(a.params[i], b.params[i])) return false;
    }
    for (size_t i = 0; i < a.blocks.size(); ++i) {
      if (!SameBlock(a.blocks[i], b.blocks[i])) return false;
    }
    return Same(a.returns, b.returns) && Same(a.result, b.result);
  }

 private:
  bool Define(const GraphVar& a, const GraphVar& b) {
    if (!Same(a.type(), b.type())) return false;
    vars_[a] = b;
    back_[b] = a;
    return true;
  }
  bool SameBlock(const BindingBlock& a, const BindingBlock& b) {
    if (a.is_dataflow != b.is_dataflow || a.bindings.size() != b.bindings.size()) return false;
    for (size_t i = 0; i < a.bindings.size(); ++i) {
      if (!Same(a.bindings[i].value, b.bindings[i].value)) return false;
      if (!Define(a.bindings[i].var, b.bindings[i].var)) return false;
    }
    return Same(a.outputs, b.outputs);
  }

  template <class T>
  bool Same(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, GraphExpr>) {
      if (!a || !b) return !a && !b;
      if (a.node().kind.index() != b.node().kind.index()) return false;
      return std::visit([&](const auto& node) { return Same(node, *b.template As<std::decay_t<decltype(node)>>()); },
                        a.node().kind);
    } else if constexpr (std::is_same_v<T, GraphVar>) {
      const auto to = vars_.find(a);
      const auto from = back_.find(b);
      if (to == vars_.end() && from == back_.end()) return a == b;
      return to != vars_.end() && from != back_.end() && to->second == b && from->second == a;
    } else if constexpr (std::is_same_v<T, Expr>) {
      return exprs_.Same(a, b);
    } else if constexpr (std::is_same_v<T, Literal>) {
      const double* x = std::get_if<double>(&a.value);
      const double* y = std::get_if<double>(&b.value);
      if (x != nullptr && y != nullptr) return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*y);
      return a.value == b.value;
    } else if constexpr (HasFields<T>) {
      bool same = true;
      ForEachFieldPair(a, b, [&](const auto& x, const auto& y) { same = same && Same(x, y); });
      return same;
    } else if constexpr (IsVector<T>::value) {
      if (a.size() != b.size()) return false;
      for (size_t i = 0; i < a.size(); ++i) {
        if (!Same(a[i], b[i])) return false;
      }
      return true;
    } else if constexpr (IsOptional<T>::value) {
      return a.has_value() == b.has_value() && (!a.has_value() || Same(*a, *b));
    } else if constexpr (IsPair<T>::value) {
      return Same(a.first, b.first) && Same(a.second, b.second);
    } else {
      return a == b;
    }
  }

  Comparer exprs_;
  absl::flat_hash_map<GraphVar, GraphVar> vars_, back_;
};

}  // namespace

GraphVar::GraphVar(std::string name, std::optional<GraphType> type) {
  Node* node = new Node;
  node->name = std::move(name);
  node->type = std::move(type);
  node->id = next_id.fetch_add(1, std::memory_order_relaxed);
  node_ = Ref<const Node>(node);
}

const std::string& NameOf(const std::variant<PrimFunc, GraphFunc>& function) {
  return std::visit([](const auto& f) -> const std::string& { return f.name; }, function);
}

bool StructuralEqual(const GraphFunc& a, const GraphFunc& b) { return GraphComparer().Same(a, b); }

bool StructuralEqual(const IrModule& a, const IrModule& b) {
  if (a.functions.size() != b.functions.size() || !SameAttrs(a.attrs, b.attrs)) return false;
  for (size_t i = 0; i < a.functions.size(); ++i) {
    if (a.functions[i].index() != b.functions[i].index() || NameOf(a.functions[i]) != NameOf(b.functions[i])) {
      return false;
    }
    const bool same = std::visit(
        [&](const auto& f) { return StructuralEqual(f, std::get<std::decay_t<decltype(f)>>(b.functions[i])); },
        a.functions[i]);
    if (!same) return false;
  }
  return true;
}

}  // namespace hone
