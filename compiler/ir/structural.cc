#include "compiler/ir/structural.h"

#include <algorithm>
#include <bit>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/comparer.h"

namespace hone {
namespace {

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
    if (!v.range().has_value()) return;
    Mix(static_cast<uint64_t>(v.range()->min));
    Mix(static_cast<uint64_t>(v.range()->max));
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
