#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

Stmt Visit(const Stmt& stmt, bool inside) {
  const For* loop = stmt.As<For>();
  const bool parallel = loop != nullptr && loop->kind == ForKind::kParallel;
  const Stmt mapped = MapChildren(
      stmt, [&](const Stmt& s) { return Visit(s, inside || parallel); }, [](const Expr& e) { return e; });
  if (!parallel) return mapped;
  For changed = *mapped.As<For>();
  if (inside) {
    changed.kind = ForKind::kSerial;
  } else if (!IsConst(changed.min, 0)) {
    changed.body = Substitute(changed.body, changed.var, changed.min + changed.var);
    changed.min = IntConst(0, changed.var.type());
  } else {
    return mapped;
  }
  return Stmt::Make(std::move(changed));
}

}  // namespace

Stmt KeepOuterParallel(const Stmt& body) { return Visit(body, false); }

}  // namespace hone
