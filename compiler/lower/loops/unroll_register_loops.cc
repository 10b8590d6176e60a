#include <set>

#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

constexpr int64_t kMostCopies = 256;  // of a statement, by all loops marked here

// Variables in the indices of register buffers.
std::set<Var> RegisterIndexVars(const Stmt& body) {
  std::set<Var> vars;
  const auto add = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer.scope() != Scope::kRegister) return;
    for (const Expr& index : indices) vars.merge(FreeVars(index));
  };
  ForEachExpr(body, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) add(load->buffer, load->indices);
    return true;
  });
  ForEachStmt(body, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) add(store->buffer, store->indices);
    return true;
  });
  return vars;
}

Stmt Visit(const Stmt& stmt, const std::set<Var>& vars, int64_t copies) {
  const For* loop = stmt.As<For>();
  bool unroll = false;
  if (loop != nullptr && vars.count(loop->var) != 0) {
    const std::optional<int64_t> extent = ConstantValue(loop->extent);
    if (loop->kind == ForKind::kUnrolled) copies *= extent.value_or(1);
    unroll = loop->kind == ForKind::kSerial && extent.has_value() && copies * *extent <= kMostCopies;
    if (unroll) copies *= *extent;
  }
  const Stmt mapped = MapChildren(
      stmt, [&](const Stmt& s) { return Visit(s, vars, copies); }, [](const Expr& e) { return e; });
  if (!unroll) return mapped;
  For changed = *mapped.As<For>();
  changed.kind = ForKind::kUnrolled;
  return Stmt::Make(std::move(changed));
}

}  // namespace

Stmt UnrollRegisterLoops(const Stmt& body) { return Visit(body, RegisterIndexVars(body), 1); }

}  // namespace hone
