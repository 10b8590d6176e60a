// The parts of structural equality; others use StructuralEqual (structural.h, module.h).
#pragma once

#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/fields.h"

namespace hone {

inline bool SameAttr(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(std::get<double>(b));
  return a == b;
}
inline bool SameAttrs(const Attrs& a, const Attrs& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.first == y.first && SameAttr(x.second, y.second); });
}

class Comparer {
 public:
  bool Same(const Expr& a, const Expr& b) {
    if (a.SameAs(b) && vars_.empty() && buffers_.empty()) return true;
    if (!a || !b) return !a && !b;
    return a.type() == b.type() && SameKind(a.node().kind, b.node().kind);
  }
  bool Same(const Stmt& a, const Stmt& b) {
    if (!a || !b) return !a && !b;
    return SameKind(a.node().kind, b.node().kind);
  }

  // Both are definitions at the same place: from here on they stand for each other.
  bool Define(const Var& a, const Var& b) {
    vars_[a] = b;
    vars_back_[b] = a;
    return a.type() == b.type() && a.range() == b.range();
  }
  bool Define(const Buffer& a, const Buffer& b) {
    if (a.type() != b.type() || a.scope() != b.scope() || a.shape().size() != b.shape().size()) return false;
    for (size_t i = 0; i < a.shape().size(); ++i) {
      if (!Same(a.shape()[i], b.shape()[i])) return false;
    }
    buffers_[a] = b;
    buffers_back_[b] = a;
    return true;
  }

 private:
  template <class Kind>
  bool SameKind(const Kind& a, const Kind& b) {
    if (a.index() != b.index()) return false;
    return std::visit(
        [&](const auto& node) {
          using Node = std::decay_t<decltype(node)>;
          return SameNode(node, *std::get_if<Node>(&b));
        },
        a);
  }
  template <class Node>
  bool SameNode(const Node& a, const Node& b) {
    bool same = true;
    ForEachFieldPair(a, b, [&](const auto& x, const auto& y) { same = same && SameField<Node>(x, y); });
    return same;
  }

  template <class Node, class T>
  bool SameField(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, Expr> || std::is_same_v<T, Stmt>) {
      return Same(a, b);
    } else if constexpr (std::is_same_v<T, Var>) {
      if constexpr (kDefines<Node>) return Define(a, b);
      else return SameUse(a, b, vars_, vars_back_);
    } else if constexpr (std::is_same_v<T, Buffer>) {
      if constexpr (kDefines<Node>) return Define(a, b);
      else return SameUse(a, b, buffers_, buffers_back_);
    } else if constexpr (HasFields<T>) {
      return SameNode(a, b);
    } else if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
    } else if constexpr (std::is_same_v<T, Attrs>) {
      return SameAttrs(a, b);
    } else if constexpr (IsVector<T>::value) {
      if (a.size() != b.size()) return false;
      for (size_t i = 0; i < a.size(); ++i) {
        if (!SameField<Node>(a[i], b[i])) return false;
      }
      return true;
    } else {
      return a == b;  // names, numbers, enumerations
    }
  }

  template <class T, class Map>
  static bool SameUse(const T& a, const T& b, const Map& there, const Map& back) {
    const auto to = there.find(a);
    const auto from = back.find(b);
    if (to == there.end() && from == back.end()) return a == b;  // free in both
    return to != there.end() && from != back.end() && to->second == b && from->second == a;
  }

  absl::flat_hash_map<Var, Var> vars_, vars_back_;
  absl::flat_hash_map<Buffer, Buffer> buffers_, buffers_back_;
};

}  // namespace hone
