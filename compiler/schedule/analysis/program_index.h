// Where every statement of a program is: parents, children, and the way back from a node to the root.
//
// A primitive finds its node here, builds what takes its place, and Replace rebuilds the path to the root alone;
// everything else stays shared with the program before. An index is built for one body in one walk over its statements
// (not their expressions); it is thrown away with that body.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

class ProgramIndex {
 public:
  // Nodes in program order, parents before children; node 0 is the root block. A block's init is not indexed.
  struct Node {
    Stmt stmt;
    int parent = -1;
    int end = 0;   // one past its last descendant
    int slot = 0;  // which child of its parent it is
  };

  explicit ProgramIndex(const Stmt& body);

  int size() const { return static_cast<int>(nodes_.size()); }
  const Node& node(int n) const { return nodes_[n]; }
  const Stmt& stmt(int n) const { return nodes_[n].stmt; }
  int parent(int n) const { return nodes_[n].parent; }
  const For& loop(int n) const { return *nodes_[n].stmt.As<For>(); }
  const BlockRealize& realize(int n) const { return *nodes_[n].stmt.As<BlockRealize>(); }
  const Block& block(int n) const { return nodes_[n].stmt.As<BlockRealize>()->block; }
  bool IsLoop(int n) const { return nodes_[n].stmt.As<For>() != nullptr; }
  bool IsBlock(int n) const { return nodes_[n].stmt.As<BlockRealize>() != nullptr; }

  int FindLoop(const Var& var) const;  // -1 when there is none
  int FindBlock(std::string_view name) const;
  bool Contains(int outer, int inner) const { return outer <= inner && inner < nodes_[outer].end; }

  // The block a node lies in; -1 for the root block.
  int EnclosingBlock(int n) const;
  // Loops between a node and the block it lies in, outermost first; without the node itself.
  std::vector<int> LoopsAbove(int n) const;
  // Loops strictly between `outer` (a loop or block) and `inner`, outermost first.
  std::vector<int> LoopsBetween(int outer, int inner) const;
  // The nearest blocks below a node, in program order; without the node itself.
  std::vector<int> BlocksBelow(int n) const;
  // The ancestor of `n` (or `n` itself) whose parent is `ancestor`.
  int ChildTowards(int ancestor, int n) const;
  // Every block but the root.
  std::vector<int> AllBlocks() const;

  // The whole body with one statement replaced; an absent one is removed, and with it what would be left empty above it
  // (up to the enclosing block, which keeps an empty Seq).
  Stmt Replace(int n, Stmt with) const;
  // The body with `before` put in front of, and `after` put behind, the statement; either may be absent.
  Stmt InsertBeside(int n, Stmt before, Stmt after) const;

 private:
  void Add(const Stmt& stmt, int parent, int slot);
  std::vector<Node> nodes_;
};

}  // namespace hone
