// Walking and rewriting, written once over `Fields()`.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

// Calls `visit` on every expression (statement) under the root, parents before children; a visitor that returns false
// keeps the walk out of that node's children. Expressions in regions, domains, shapes of allocations and predicates
// count.
void ForEachExpr(const Expr& root, const std::function<bool(const Expr&)>& visit);
void ForEachExpr(const Stmt& root, const std::function<bool(const Expr&)>& visit);
void ForEachStmt(const Stmt& root, const std::function<bool(const Stmt&)>& visit);

// The direct statement and expression children of a node, in order; the node itself is not visited: the step of a
// hand-written walk.
void ForEachChild(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
                  const std::function<void(const Expr&)>& on_expr);
void ForEachChild(const Expr& expr, const std::function<void(const Expr&)>& on_expr);

// Bottom-up: children first, then `rewrite` on the rebuilt node; nullopt leaves it as it is. Only the path that changed
// is rebuilt and the same handle comes back otherwise, so "did this do anything?" is SameAs.
using ExprRewrite = std::function<std::optional<Expr>(const Expr&)>;
using StmtRewrite = std::function<std::optional<Stmt>(const Stmt&)>;
Expr RewriteBottomUp(const Expr& root, const ExprRewrite& rewrite);
Stmt RewriteBottomUp(const Stmt& root, const StmtRewrite& rewrite);  // statements alone
Stmt RewriteExprs(const Stmt& root, const ExprRewrite& rewrite);     // the expressions in statements alone
// Rewrites the statement and expression children of this one node, not the node itself: the step of a hand-written
// top-down rewrite.
Stmt MapChildren(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& on_stmt,
                 const std::function<Expr(const Expr&)>& on_expr);
Expr MapChildren(const Expr& expr, const std::function<Expr(const Expr&)>& on_expr);

using VarMap = std::function<std::optional<Expr>(const Var&)>;
Expr Substitute(const Expr& root, const VarMap& map);
Stmt Substitute(const Stmt& root, const VarMap& map);
Expr Substitute(const Expr& root, const Var& var, const Expr& value);
Stmt Substitute(const Stmt& root, const Var& var, const Expr& value);
// Replaces uses of buffers in loads, stores, regions, allocations and tile operations.
Stmt ReplaceBuffers(const Stmt& root, const std::function<std::optional<Buffer>(const Buffer&)>& map);
// A copy in which every variable, and every buffer defined inside, is new: for a body that will be there twice.
Stmt RenewDefinitions(const Stmt& root);

bool UsesVar(const Expr& e, const Var& var);
bool UsesVar(const Stmt& s, const Var& var);
std::set<Var> FreeVars(const Expr& e);
bool HasLoad(const Expr& e);  // of any buffer
bool LoadsFrom(const Expr& e, const Buffer& buffer);

}  // namespace hone
