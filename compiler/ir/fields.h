// Generic iteration over the fields of nodes: what walking, rewriting, equality and hashing are written with.
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

// Calls f(field) for every field of the node, in the order of Fields().
template <class Node, class F>
void ForEachField(Node& node, F&& f) {
  std::apply([&](auto... member) { (f(node.*member), ...); }, std::remove_const_t<Node>::Fields());
}
// The same over the same field of two nodes at once.
template <class Node, class F>
void ForEachFieldPair(const Node& a, const Node& b, F&& f) {
  std::apply([&](auto... member) { (f(a.*member, b.*member), ...); }, Node::Fields());
}

// Variables and buffers that are fields of these nodes are defined there; in all other nodes they are uses. A
// definition comes before its uses in the order of Fields().
template <class Node>
inline constexpr bool kDefines =
    std::is_same_v<Node, For> || std::is_same_v<Node, IterVar> || std::is_same_v<Node, Let> ||
    std::is_same_v<Node, LetExpr> || std::is_same_v<Node, Block> || std::is_same_v<Node, MatchBuffer> ||
    std::is_same_v<Node, Alloc>;

// A struct with Fields(): a node, or a part of one.
template <class T>
concept HasFields = requires {
  T::Fields();
};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace hone
