#include "compiler/schedule/analysis/program_index.h"

#include <algorithm>
#include <utility>

#include "compiler/support/check.h"

namespace hone {
namespace {

template <class Node, class Edit>
Stmt With(const Node& node, Edit edit) {
  Node copy = node;
  edit(copy);
  return Stmt::Make(std::move(copy));
}

bool IsEmpty(const Stmt& stmt) {
  if (!stmt) return true;
  const Seq* seq = stmt.As<Seq>();
  return seq != nullptr && seq->stmts.empty();
}

}  // namespace

ProgramIndex::ProgramIndex(const Stmt& body) {
  nodes_.reserve(64);
  Add(body, -1, 0);
}

void ProgramIndex::Add(const Stmt& stmt, int parent, int slot) {
  const int n = static_cast<int>(nodes_.size());
  nodes_.push_back(Node{stmt, parent, 0, slot});
  if (const For* loop = stmt.As<For>()) {
    Add(loop->body, n, 0);
  } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
    Add(realize->block.body, n, 0);
  } else if (const Seq* seq = stmt.As<Seq>()) {
    for (size_t i = 0; i < seq->stmts.size(); ++i) Add(seq->stmts[i], n, static_cast<int>(i));
  } else if (const IfThen* branch = stmt.As<IfThen>()) {
    Add(branch->yes, n, 0);
    if (branch->no) Add(branch->no, n, 1);
  } else if (const Let* let = stmt.As<Let>()) {
    Add(let->body, n, 0);
  } else if (const Alloc* alloc = stmt.As<Alloc>()) {
    Add(alloc->body, n, 0);
  }
  nodes_[n].end = static_cast<int>(nodes_.size());
}

int ProgramIndex::FindLoop(const Var& var) const {
  for (int n = 0; n < size(); ++n) {
    const For* loop = nodes_[n].stmt.As<For>();
    if (loop != nullptr && loop->var.SameAs(var)) return n;
  }
  return -1;
}

int ProgramIndex::FindBlock(std::string_view name) const {
  for (int n = 0; n < size(); ++n) {
    const BlockRealize* realize = nodes_[n].stmt.As<BlockRealize>();
    if (realize != nullptr && realize->block.name == name) return n;
  }
  return -1;
}

int ProgramIndex::EnclosingBlock(int n) const {
  for (n = parent(n); n >= 0 && !IsBlock(n);) n = parent(n);
  return n;
}

std::vector<int> ProgramIndex::LoopsAbove(int n) const {
  std::vector<int> loops;
  for (n = parent(n); n >= 0 && !IsBlock(n); n = parent(n)) {
    if (IsLoop(n)) loops.push_back(n);
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

std::vector<int> ProgramIndex::LoopsBetween(int outer, int inner) const {
  std::vector<int> loops;
  for (int n = parent(inner); n > outer; n = parent(n)) {
    if (IsLoop(n)) loops.push_back(n);
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

std::vector<int> ProgramIndex::BlocksBelow(int n) const {
  std::vector<int> blocks;
  for (int k = n + 1; k < nodes_[n].end;) {
    if (IsBlock(k)) {
      blocks.push_back(k);
      k = nodes_[k].end;
    } else {
      ++k;
    }
  }
  return blocks;
}

int ProgramIndex::ChildTowards(int ancestor, int n) const {
  while (parent(n) != ancestor) {
    n = parent(n);
    HONE_CHECK(n >= 0) << "not below the ancestor";
  }
  return n;
}

std::vector<int> ProgramIndex::AllBlocks() const {
  std::vector<int> blocks;
  for (int n = 1; n < size(); ++n) {
    if (IsBlock(n)) blocks.push_back(n);
  }
  return blocks;
}

Stmt ProgramIndex::Replace(int n, Stmt with) const {
  while (nodes_[n].parent >= 0) {
    const int up = nodes_[n].parent;
    const Stmt& stmt = nodes_[up].stmt;
    const int slot = nodes_[n].slot;
    if (const For* loop = stmt.As<For>()) {
      with = IsEmpty(with) ? Stmt() : With(*loop, [&](For& f) { f.body = std::move(with); });
    } else if (const BlockRealize* realize = stmt.As<BlockRealize>()) {
      if (!with) with = Stmt::Make(Seq{});
      with = With(*realize, [&](BlockRealize& r) { r.block.body = std::move(with); });
    } else if (const Seq* seq = stmt.As<Seq>()) {
      std::vector<Stmt> stmts;
      stmts.reserve(seq->stmts.size());
      for (size_t i = 0; i < seq->stmts.size(); ++i) {
        if (static_cast<int>(i) != slot) {
          stmts.push_back(seq->stmts[i]);
        } else if (with) {
          stmts.push_back(with);
        }
      }
      with = stmts.empty() ? Stmt() : MakeSeq(std::move(stmts));
    } else if (const IfThen* branch = stmt.As<IfThen>()) {
      if (slot == 0 && !with && !branch->no) {
        with = Stmt();
      } else {
        if (!with && slot == 0) with = Stmt::Make(Seq{});
        with = With(*branch, [&](IfThen& b) { (slot == 0 ? b.yes : b.no) = std::move(with); });
      }
    } else if (const Let* let = stmt.As<Let>()) {
      with = IsEmpty(with) ? Stmt() : With(*let, [&](Let& l) { l.body = std::move(with); });
    } else if (const Alloc* alloc = stmt.As<Alloc>()) {
      with = IsEmpty(with) ? Stmt() : With(*alloc, [&](Alloc& a) { a.body = std::move(with); });
    } else {
      HONE_UNREACHABLE() << "a leaf has no children";
    }
    n = up;
  }
  return with;
}

Stmt ProgramIndex::InsertBeside(int n, Stmt before, Stmt after) const {
  std::vector<Stmt> stmts;
  if (before) stmts.push_back(std::move(before));
  stmts.push_back(nodes_[n].stmt);
  if (after) stmts.push_back(std::move(after));
  return Replace(n, MakeSeq(std::move(stmts)));
}

}  // namespace hone
