#include "compiler/ir/structural.h"

#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/fields.h"

namespace hone {
namespace {

bool SameAttr(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const double* x = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(std::get<double>(b));
  return a == b;
}
bool SameAttrs(const Attrs& a, const Attrs& b) {
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
    return a.type() == b.type();
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
      return a == b;                                  // names, numbers, enumerations
    }
  }

  template <class T, class Map>
  static bool SameUse(const T& a, const T& b, const Map& there, const Map& back) {
    const auto to = there.find(a);
    const auto from = back.find(b);
    if (to == there.end() && from == back.end()) return a == b;      // free in both
    return to != there.end() && from != back.end() && to->second == b && from->second == a;
  }

  absl::flat_hash_map<Var, Var> vars_, vars_back_;
  absl::flat_hash_map<Buffer, Buffer> buffers_, buffers_back_;
};

// Definitions are numbered as they are met; free variables too, at their first use, since their ids mean nothing in
// another process.
class Hasher {
 public:
  uint64_t result() const { return state_; }

  void Add(const Expr& e) {
    if (!e) return Mix(kAbsent);
    Mix(e.node().kind.index() + 1);
    Add(e.type());
    std::visit([&](const auto& node) { AddNode(node); }, e.node().kind);
  }
  void Add(const Stmt& s) {
    if (!s) return Mix(kAbsent);
    Mix(s.node().kind.index() + 101);
    std::visit([&](const auto& node) { AddNode(node); }, s.node().kind);
  }
  void Add(DType t) { Mix((uint64_t{static_cast<uint8_t>(t.code)} << 32) | (uint64_t{t.bits} << 16) | t.lanes); }
  void Define(const Var& v) {
    vars_[v] = next_++;
    Add(v.type());
  }
  void Define(const Buffer& b) {
    buffers_[b] = next_++;
    Add(b.type());
    Mix(static_cast<uint64_t>(b.scope()));
    Mix(b.shape().size());
    for (const Expr& extent : b.shape()) Add(extent);
  }
  void Add(const Attrs& attrs) {
    Mix(attrs.size());
    for (const auto& [name, value] : attrs) {
      Add(name);
      Mix(value.index());
      std::visit([&](const auto& v) { AddField<PrimFunc>(v); }, value);
    }
  }
  void Add(const std::string& text) {
    Mix(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      for (size_t k = i; k < std::min(i + 8, text.size()); ++k)
        word |= uint64_t{static_cast<uint8_t>(text[k])} << (8 * (k - i));
      Mix(word);
    }
  }
  // A step of MurmurHash64's mixing.
  void Mix(uint64_t value) {
    value *= 0xFF51AFD7ED558CCDu;
    value ^= value >> 32;
    state_ = (state_ ^ value) * 0xC4CEB9FE1A85EC53u;
    state_ ^= state_ >> 29;
  }

 private:
  static constexpr uint64_t kAbsent = 0xA5;

  template <class Node>
  void AddNode(const Node& node) {
    ForEachField(node, [&](const auto& field) { AddField<Node>(field); });
  }
  template <class Node, class T>
  void AddField(const T& field) {
    if constexpr (std::is_same_v<T, Expr> || std::is_same_v<T, Stmt> || std::is_same_v<T, Attrs> ||
                  std::is_same_v<T, std::string>) {
      Add(field);
    } else if constexpr (std::is_same_v<T, Var>) {
      if constexpr (kDefines<Node>) Define(field);
      else Mix(NumberOf(field, vars_));
    } else if constexpr (std::is_same_v<T, Buffer>) {
      if constexpr (kDefines<Node>) Define(field);
      else Mix(NumberOf(field, buffers_));
    } else if constexpr (HasFields<T>) {
      AddNode(field);
    } else if constexpr (IsVector<T>::value) {
      Mix(field.size());
      for (const auto& item : field) AddField<Node>(item);
    } else if constexpr (std::is_same_v<T, double>) {
      Mix(std::bit_cast<uint64_t>(field));
    } else {
      Mix(static_cast<uint64_t>(field));
    }
  }

  template <class T>
  uint64_t NumberOf(const T& used, absl::flat_hash_map<T, uint64_t>& numbers) {
    const auto [place, is_new] = numbers.try_emplace(used, next_);
    next_ += is_new;
    return place->second;
  }

  uint64_t state_ = 0x9E3779B97F4A7C15u;
  uint64_t next_ = 0;
  absl::flat_hash_map<Var, uint64_t> vars_;
  absl::flat_hash_map<Buffer, uint64_t> buffers_;
};

}  // namespace

bool StructuralEqual(const Expr& a, const Expr& b) { return Comparer().Same(a, b); }
bool StructuralEqual(const Stmt& a, const Stmt& b) { return Comparer().Same(a, b); }
bool StructuralEqual(const PrimFunc& a, const PrimFunc& b) {
  if (a.params.size() != b.params.size() || a.dims.size() != b.dims.size() || !SameAttrs(a.attrs, b.attrs))
    return false;
  Comparer comparer;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (!comparer.Define(a.dims[i], b.dims[i])) return false;
  }
  for (size_t i = 0; i < a.params.size(); ++i) {
    if (!comparer.Define(a.params[i], b.params[i])) return false;
  }
  return comparer.Same(a.body, b.body);
}

uint64_t StructuralHash(const Expr& e) {
  Hasher hasher;
  hasher.Add(e);
  return hasher.result();
}
uint64_t StructuralHash(const Stmt& s) {
  Hasher hasher;
  hasher.Add(s);
  return hasher.result();
}
uint64_t StructuralHash(const PrimFunc& f) {
  Hasher hasher;
  hasher.Mix(f.dims.size());
  for (const Var& dim : f.dims) hasher.Define(dim);
  hasher.Mix(f.params.size());
  for (const Buffer& param : f.params) hasher.Define(param);
  hasher.Add(f.attrs);
  hasher.Add(f.body);
  return hasher.result();
}

}  // namespace hone
