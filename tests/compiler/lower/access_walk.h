// The accesses of a lowered program in the order in which they are made. A condition counts as met, and loops have two
// iterations.
#pragma once

#include "compiler/ir/visit.h"

namespace hone::testing {

class AccessWalk {
 protected:
  ~AccessWalk() = default;
  virtual void OnAccess(const Buffer& buffer) = 0;
  virtual bool OnStmt(const Stmt&) { return false; }  // true: nothing is left to do for it

  void Walk(const Stmt& stmt) {
    if (!stmt || OnStmt(stmt)) return;
    if (const For* loop = stmt.As<For>()) {
      for (int iteration = 0; iteration < 2; ++iteration) Walk(loop->body);
    } else if (const Store* store = stmt.As<Store>()) {
      Loads(stmt);
      OnAccess(store->buffer);
    } else if (const TileOp* op = stmt.As<TileOp>()) {
      for (int time = 0; time < 2; ++time) {  // all of its operands are in use together
        for (const BufferRegion& operand : op->operands) OnAccess(operand.buffer);
      }
    } else {
      ForEachChild(
          stmt, [this](const Stmt& child) { Walk(child); }, [this](const Expr& e) { Loads(e); });
    }
  }
  template <class Root>
  void Loads(const Root& root) {
    ForEachExpr(root, [this](const Expr& e) {
      if (const Load* load = e.As<Load>()) OnAccess(load->buffer);
      return true;
    });
  }
};

}  // namespace hone::testing
