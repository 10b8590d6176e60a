#include "compiler/ir/visit.h"

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/fields.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/shared_results.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// ---- Walking -------------------------------------------------------------------------------------------------------

// Calls on_expr and on_stmt for the direct children of a node, looking through the parts that are neither (ranges,
// blocks, regions). Shapes are children where a buffer is defined, not where it is used.
template <class OnExpr, class OnStmt>
class Children {
 public:
  Children(OnExpr on_expr, OnStmt on_stmt) : on_expr_(on_expr), on_stmt_(on_stmt) {}

  template <class Node>
  void Of(const Node& node) {
    ForEachField(node, [&](const auto& field) { Field<Node>(field); });
  }

 private:
  template <class Node, class T>
  void Field(const T& field) {
    if constexpr (std::is_same_v<T, Expr>) {
      if (field) on_expr_(field);
    } else if constexpr (std::is_same_v<T, Stmt>) {
      if (field) on_stmt_(field);
    } else if constexpr (std::is_same_v<T, Buffer>) {
      if constexpr (kDefines<Node>) {
        for (const Expr& extent : field.shape()) on_expr_(extent);
      }
    } else if constexpr (HasFields<T>) {
      Of(field);
    } else if constexpr (IsVector<T>::value) {
      for (const auto& item : field) Field<Node>(item);
    }
  }
  OnExpr on_expr_;
  OnStmt on_stmt_;
};

template <class OnExpr, class OnStmt>
void VisitChildren(const Expr& e, OnExpr on_expr, OnStmt on_stmt) {
  std::visit([&](const auto& node) { Children<OnExpr&, OnStmt&>(on_expr, on_stmt).Of(node); }, e.node().kind);
}
template <class OnExpr, class OnStmt>
void VisitChildren(const Stmt& s, OnExpr on_expr, OnStmt on_stmt) {
  std::visit([&](const auto& node) { Children<OnExpr&, OnStmt&>(on_expr, on_stmt).Of(node); }, s.node().kind);
}

constexpr auto kNoStmts = [](const Stmt&) {};
constexpr auto kNoExprs = [](const Expr&) {};

// ---- Rewriting -----------------------------------------------------------------------------------------------------

// An expression from rebuilt parts. The makers fold constants and give the type that follows from the parts, which may
// have changed: a variable of another type, a vector in a scalar's place.
struct Rebuild {
  DType old_type;

  Expr operator()(Binary n) const {
    const DType a = n.a.type().element(), b = n.b.type().element();
    const bool ints = a.code == TypeCode::kInt && b.code == TypeCode::kInt;
    if (a == b || ints) return MakeBinary(n.op, std::move(n.a), std::move(n.b));
    const DType type = ResultType(n.op, n.a.type());
    return Expr::Make(std::move(n), type);  // ill-typed: the verifier says so
  }
  Expr operator()(Not n) const { return MakeNot(std::move(n.a)); }
  Expr operator()(Cast n) const {
    const DType type = old_type.element().with_lanes(n.a.type().lanes);
    return MakeCast(type, std::move(n.a));
  }
  Expr operator()(Select n) const { return Choice(std::move(n), MakeSelect); }
  Expr operator()(IfThenElseExpr n) const { return Choice(std::move(n), IfThenElse); }
  Expr operator()(LetExpr n) const {
    const DType type = n.body.type();
    return Expr::Make(std::move(n), type);
  }
  Expr operator()(Load n) const { return MakeLoad(std::move(n.buffer), std::move(n.indices), std::move(n.mask)); }
  Expr operator()(Call n) const {
    for (const Expr& arg : n.args) {
      if (arg.type().element() != n.args[0].type().element()) return Expr::Make(std::move(n), old_type);
    }
    return MakeCall(std::move(n.name), std::move(n.args));
  }
  Expr operator()(Ramp n) const { return MakeRamp(std::move(n.base), std::move(n.stride), old_type.lanes); }
  Expr operator()(Broadcast n) const { return MakeBroadcast(std::move(n.value), old_type.lanes); }
  template <class Leaf>
  Expr operator()(Leaf n) const {
    return Expr::Make(std::move(n), old_type);
  }

 private:
  template <class Node>
  static Expr Choice(Node n, Expr (*make)(Expr, Expr, Expr)) {
    const DType yes = n.yes.type(), no = n.no.type();
    const bool ints = yes.code == TypeCode::kInt && no.code == TypeCode::kInt;
    if (yes.element() == no.element() || ints) return make(std::move(n.condition), std::move(n.yes), std::move(n.no));
    return Expr::Make(std::move(n), yes);
  }
};

// Rebuilds a node's children with a `Policy`, which has
//   Expr OnExpr(const Expr&);  Stmt OnStmt(const Stmt&);
//   Var DefineVar(const Var&);  Var UseVar(const Var&);
//   Buffer DefineBuffer(const Buffer&);  Buffer UseBuffer(const Buffer&);
// each of which gives back the same handle for "no change". Fields are taken in order, so definitions come before uses.
template <class Policy>
class Mapper {
 public:
  explicit Mapper(Policy& policy) : policy_(policy) {}

  Expr Children(const Expr& e) {
    return std::visit(
        [&](const auto& node) {
          auto mapped = Map(node);
          return mapped ? Rebuild{e.type()}(*std::move(mapped)) : e;
        },
        e.node().kind);
  }
  Stmt Children(const Stmt& s) {
    return std::visit(
        [&](const auto& node) {
          auto mapped = Map(node);
          if (!mapped) return s;
          if constexpr (std::is_same_v<std::decay_t<decltype(node)>, Seq>) return MakeSeq(std::move(mapped->stmts));
          else return Stmt::Make(*std::move(mapped));
        },
        s.node().kind);
  }

 private:
  // The node with its fields mapped; nullopt when none changed.
  template <HasFields Node>
  std::optional<Node> Map(const Node& node) {
    std::optional<Node> copy;
    std::apply(
        [&](auto... member) {
          const auto one = [&](auto m) {
            if (auto mapped = Field<Node>(node.*m)) {
              if (!copy) copy = node;
              (*copy).*m = *std::move(mapped);
            }
          };
          (one(member), ...);
        },
        Node::Fields());
    return copy;
  }

  template <class T>
  static std::optional<T> Changed(const T& before, T after) {
    if (before.SameAs(after)) return std::nullopt;
    return after;
  }

  template <class Node, class T>
  std::optional<T> Field(const T& field) {
    if constexpr (std::is_same_v<T, Expr>) {
      return field ? Changed(field, policy_.OnExpr(field)) : std::nullopt;
    } else if constexpr (std::is_same_v<T, Stmt>) {
      return field ? Changed(field, policy_.OnStmt(field)) : std::nullopt;
    } else if constexpr (std::is_same_v<T, Var>) {
      if constexpr (kDefines<Node>) return Changed(field, policy_.DefineVar(field));
      else return Changed(field, policy_.UseVar(field));
    } else if constexpr (std::is_same_v<T, Buffer>) {
      if constexpr (kDefines<Node>) return Changed(field, policy_.DefineBuffer(field));
      else return Changed(field, policy_.UseBuffer(field));
    } else if constexpr (HasFields<T>) {
      return Map(field);
    } else if constexpr (IsVector<T>::value) {
      std::optional<T> copy;
      for (size_t i = 0; i < field.size(); ++i) {
        if (auto mapped = Field<Node>(field[i])) {
          if (!copy) copy = field;
          (*copy)[i] = *std::move(mapped);
        }
      }
      return copy;
    } else {
      return std::nullopt;  // names, numbers, annotations
    }
  }
  Policy& policy_;
};

// The shape of a buffer mapped; the buffer itself when it stays.
template <class OnExpr>
Buffer MapShape(const Buffer& buffer, OnExpr&& on_expr) {
  std::vector<Expr> shape;
  bool changed = false;
  for (const Expr& extent : buffer.shape()) {
    shape.push_back(on_expr(extent));
    changed |= !shape.back().SameAs(extent);
  }
  return changed ? Buffer(buffer.name(), buffer.type(), std::move(shape), buffer.scope()) : buffer;
}

// One level, by functions of the caller's. A buffer whose shape changes becomes another buffer, and its uses below
// follow.
template <class ExprMap, class StmtMap>
struct OneLevel {
  ExprMap on_expr;
  StmtMap on_stmt;
  absl::flat_hash_map<Buffer, Buffer> reshaped = {};

  Expr OnExpr(const Expr& e) { return on_expr(e); }
  Stmt OnStmt(const Stmt& s) {
    Stmt mapped = on_stmt(s);
    if (reshaped.empty()) return mapped;
    return ReplaceBuffers(mapped, [&](const Buffer& b) -> std::optional<Buffer> {
      const auto found = reshaped.find(b);
      return found == reshaped.end() ? std::nullopt : std::optional(found->second);
    });
  }
  Var DefineVar(const Var& v) { return v; }
  Var UseVar(const Var& v) { return v; }
  Buffer DefineBuffer(const Buffer& b) {
    Buffer mapped = MapShape(b, on_expr);
    if (!mapped.SameAs(b)) reshaped.emplace(b, mapped);
    return mapped;
  }
  Buffer UseBuffer(const Buffer& b) { return b; }
};

template <class T, class OnExpr, class OnStmt>
T MapOneLevel(const T& root, OnExpr on_expr, OnStmt on_stmt) {
  OneLevel<OnExpr, OnStmt> policy{std::move(on_expr), std::move(on_stmt)};
  return Mapper(policy).Children(root);
}

constexpr auto kSameExpr = [](const Expr& e) { return e; };
constexpr auto kSameStmt = [](const Stmt& s) { return s; };

// Variables to expressions, everywhere below. Shapes of buffers defined inside are rewritten too; the buffer is then a
// new one, and its uses follow.
class Substituter {
 public:
  explicit Substituter(const VarMap& map) : map_(map) {}

  Expr OnExpr(const Expr& e) {
    if (e.As<IntImm>() != nullptr || e.As<FloatImm>() != nullptr) return e;
    if (const VarRef* ref = e.As<VarRef>()) return map_(ref->var).value_or(e);
    return shared_.Of(e, [&] { return Mapper(*this).Children(e); });
  }
  Stmt OnStmt(const Stmt& s) { return Mapper(*this).Children(s); }
  Var DefineVar(const Var& v) { return v; }
  Var UseVar(const Var& v) { return v; }
  Buffer DefineBuffer(const Buffer& b) {
    Buffer mapped = MapShape(b, [&](const Expr& e) { return OnExpr(e); });
    if (!mapped.SameAs(b)) {
      reshaped_.emplace(b, mapped);
      shared_ = {};
    }
    return mapped;
  }
  Buffer UseBuffer(const Buffer& b) {
    if (reshaped_.empty()) return b;
    const auto found = reshaped_.find(b);
    return found == reshaped_.end() ? b : found->second;
  }

 private:
  const VarMap& map_;
  absl::flat_hash_map<Buffer, Buffer> reshaped_;
  SharedResults shared_;
};

class BufferReplacer {
 public:
  using BufferMap = std::function<std::optional<Buffer>(const Buffer&)>;
  explicit BufferReplacer(const BufferMap& map) : map_(map) {}

  Expr OnExpr(const Expr& e) {
    if (e.As<IntImm>() != nullptr || e.As<VarRef>() != nullptr) return e;
    return Mapper(*this).Children(e);
  }
  Stmt OnStmt(const Stmt& s) { return Mapper(*this).Children(s); }
  Var DefineVar(const Var& v) { return v; }
  Var UseVar(const Var& v) { return v; }
  Buffer DefineBuffer(const Buffer& b) { return map_(b).value_or(b); }
  Buffer UseBuffer(const Buffer& b) { return map_(b).value_or(b); }

 private:
  const BufferMap& map_;
};

class Renamer {
 public:
  Expr OnExpr(const Expr& e) { return Mapper(*this).Children(e); }
  Stmt OnStmt(const Stmt& s) { return Mapper(*this).Children(s); }
  Var DefineVar(const Var& v) { return vars_[v] = Var(v.name(), v.type()); }
  Var UseVar(const Var& v) {
    const auto found = vars_.find(v);
    return found == vars_.end() ? v : found->second;
  }
  Buffer DefineBuffer(const Buffer& b) {
    std::vector<Expr> shape;
    for (const Expr& extent : b.shape()) shape.push_back(OnExpr(extent));
    return buffers_[b] = Buffer(b.name(), b.type(), std::move(shape), b.scope());
  }
  Buffer UseBuffer(const Buffer& b) {
    const auto found = buffers_.find(b);
    return found == buffers_.end() ? b : found->second;
  }

 private:
  absl::flat_hash_map<Var, Var> vars_;
  absl::flat_hash_map<Buffer, Buffer> buffers_;
};

void WalkExpr(const Expr& e, const std::function<bool(const Expr&)>& visit) {
  if (!visit(e)) return;
  VisitChildren(
      e, [&](const Expr& child) { WalkExpr(child, visit); }, kNoStmts);
}
void WalkExprs(const Stmt& s, const std::function<bool(const Expr&)>& visit) {
  VisitChildren(
      s, [&](const Expr& e) { WalkExpr(e, visit); }, [&](const Stmt& child) { WalkExprs(child, visit); });
}

bool UsesVarIn(const Expr& e, const Var& var) {
  if (const VarRef* ref = e.As<VarRef>()) return ref->var == var;
  bool found = false;
  VisitChildren(
      e, [&](const Expr& child) { found = found || UsesVarIn(child, var); }, kNoStmts);
  return found;
}

void CollectFree(const Expr& e, std::vector<Var>& bound, std::set<Var>& free) {
  if (const VarRef* ref = e.As<VarRef>()) {
    for (const Var& v : bound) {
      if (v == ref->var) return;
    }
    free.insert(ref->var);
    return;
  }
  if (const LetExpr* let = e.As<LetExpr>()) {
    CollectFree(let->value, bound, free);
    bound.push_back(let->var);
    CollectFree(let->body, bound, free);
    bound.pop_back();
    return;
  }
  VisitChildren(
      e, [&](const Expr& child) { CollectFree(child, bound, free); }, kNoStmts);
}

}  // namespace

void ForEachExpr(const Expr& root, const std::function<bool(const Expr&)>& visit) { WalkExpr(root, visit); }
void ForEachExpr(const Stmt& root, const std::function<bool(const Expr&)>& visit) { WalkExprs(root, visit); }
void ForEachStmt(const Stmt& root, const std::function<bool(const Stmt&)>& visit) {
  if (!visit(root)) return;
  VisitChildren(root, kNoExprs, [&](const Stmt& child) { ForEachStmt(child, visit); });
}

void ForEachChild(const Stmt& stmt, const std::function<void(const Stmt&)>& on_stmt,
                  const std::function<void(const Expr&)>& on_expr) {
  VisitChildren(stmt, on_expr, on_stmt);
}
void ForEachChild(const Expr& expr, const std::function<void(const Expr&)>& on_expr) {
  VisitChildren(expr, on_expr, kNoStmts);
}

Expr RewriteBottomUp(const Expr& root, const ExprRewrite& rewrite) {
  SharedResults shared;
  const auto rewritten = [&](const Expr& e, const auto& self) -> Expr {
    return shared.Of(e, [&] {
      Expr rebuilt = MapOneLevel(
          e, [&](const Expr& child) { return self(child, self); }, kSameStmt);
      std::optional<Expr> replaced = rewrite(rebuilt);
      return replaced ? *std::move(replaced) : rebuilt;
    });
  };
  return rewritten(root, rewritten);
}
Stmt RewriteBottomUp(const Stmt& root, const StmtRewrite& rewrite) {
  Stmt rebuilt = MapOneLevel(root, kSameExpr, [&](const Stmt& child) { return RewriteBottomUp(child, rewrite); });
  std::optional<Stmt> replaced = rewrite(rebuilt);
  return replaced ? *std::move(replaced) : rebuilt;
}
Stmt RewriteExprs(const Stmt& root, const ExprRewrite& rewrite) {
  return MapOneLevel(
      root, [&](const Expr& child) { return RewriteBottomUp(child, rewrite); },
      [&](const Stmt& child) { return RewriteExprs(child, rewrite); });
}
Stmt MapChildren(const Stmt& stmt, const std::function<Stmt(const Stmt&)>& on_stmt,
                 const std::function<Expr(const Expr&)>& on_expr) {
  return MapOneLevel(
      stmt, [&](const Expr& e) { return on_expr(e); }, [&](const Stmt& s) { return on_stmt(s); });
}
Expr MapChildren(const Expr& expr, const std::function<Expr(const Expr&)>& on_expr) {
  return MapOneLevel(
      expr, [&](const Expr& e) { return on_expr(e); }, kSameStmt);
}

Expr Substitute(const Expr& root, const VarMap& map) { return Substituter(map).OnExpr(root); }
Stmt Substitute(const Stmt& root, const VarMap& map) { return Substituter(map).OnStmt(root); }
Expr Substitute(const Expr& root, const Var& var, const Expr& value) {
  return Substitute(root, [&](const Var& v) { return v == var ? std::optional(value) : std::nullopt; });
}
Stmt Substitute(const Stmt& root, const Var& var, const Expr& value) {
  return Substitute(root, [&](const Var& v) { return v == var ? std::optional(value) : std::nullopt; });
}
Stmt ReplaceBuffers(const Stmt& root, const std::function<std::optional<Buffer>(const Buffer&)>& map) {
  return BufferReplacer(map).OnStmt(root);
}
Stmt RenewDefinitions(const Stmt& root) { return Renamer().OnStmt(root); }

bool UsesVar(const Expr& e, const Var& var) { return UsesVarIn(e, var); }
bool UsesVar(const Stmt& s, const Var& var) {
  bool found = false;
  VisitChildren(
      s, [&](const Expr& e) { found = found || UsesVarIn(e, var); },
      [&](const Stmt& child) { found = found || UsesVar(child, var); });
  return found;
}
bool HasLoad(const Expr& e) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& part) {
    found |= part.As<Load>() != nullptr;
    return !found;
  });
  return found;
}
bool LoadsFrom(const Expr& e, const Buffer& buffer) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& part) {
    const Load* load = part.As<Load>();
    found |= load != nullptr && load->buffer.SameAs(buffer);
    return !found;
  });
  return found;
}
std::set<Var> FreeVars(const Expr& e) {
  std::vector<Var> bound;
  std::set<Var> free;
  CollectFree(e, bound, free);
  return free;
}

}  // namespace hone
