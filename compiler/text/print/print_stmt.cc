// Statements and tensor functions as text, in the spelling of TVM 0.18.
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/text/literals.h"
#include "compiler/text/names.h"
#include "compiler/text/print/expr_printer.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

bool ContainsBlock(const Stmt& stmt) {
  bool found = false;
  ForEachStmt(stmt, [&](const Stmt& s) {
    found = found || s.As<BlockRealize>() != nullptr;
    return !found;
  });
  return found;
}

bool IsTrue(const Expr& e) { return !e || IsConst(e, 1); }

bool IsRoot(const Stmt& stmt) {
  const BlockRealize* realize = stmt.As<BlockRealize>();
  return realize != nullptr && realize->block.name == "root" && realize->block.iters.empty();
}

// A root block that says nothing but its allocations; the reader puts it back where there are blocks or allocations.
bool MayOmitRoot(const Stmt& body) {
  if (!IsRoot(body)) return false;
  const BlockRealize& realize = *body.As<BlockRealize>();
  const Block& block = realize.block;
  const bool plain = realize.values.empty() && IsTrue(realize.predicate) && block.reads.empty() &&
                     block.writes.empty() && block.matches.empty() && block.annotations.empty() && !block.init;
  if (!plain) return false;
  return !block.allocs.empty() || (ContainsBlock(block.body) && !IsRoot(block.body));
}

class Printer {
 public:
  Printer() : exprs_(&names_) {}

  std::string Function(const PrimFunc& f) {
    const bool omit_root = MayOmitRoot(f.body);
    const bool rootless = !omit_root && !IsRoot(f.body) && ContainsBlock(f.body);
    Line(rootless ? "@T.prim_func(root=False)" : "@T.prim_func");
    std::vector<std::string> params;
    for (const Var& dim : f.dims) {
      const std::string name = exprs_.Define(dim);
      const std::optional<SizeRange>& range = dim.range();
      const std::string said =
          range.has_value() && *range != SizeRange{} ? absl::StrCat("(", range->min, ", ", range->max, ")") : "";
      params.push_back(absl::StrCat(name, ": T.", hone::ToText(dim.type()), said));
    }
    for (const Buffer& b : f.params) {
      const std::string name = exprs_.Define(b);
      params.push_back(absl::StrCat(name, ": T.Buffer(", BufferType(b), ")"));
    }
    NameTable function_names;
    const std::string name = function_names.Define(0, f.name.empty() ? "main" : f.name);
    Line(absl::StrCat("def ", name, "(", absl::StrJoin(params, ", "), "):"));
    ++indent_;
    if (!f.attrs.empty()) Line(absl::StrCat("T.func_attr(", AttrsText(f.attrs), ")"));
    if (omit_root) {
      const Block& root = f.body.As<BlockRealize>()->block;
      Allocations(root.allocs);
      Suite(root.body);
    } else {
      Suite(f.body);
    }
    return std::move(out_);
  }

  std::string Statement(const Stmt& s) {
    Suite(s);
    return std::move(out_);
  }

 private:
  void Line(absl::string_view text) {
    out_.append(static_cast<size_t>(indent_) * 4, ' ');
    absl::StrAppend(&out_, text, "\n");
  }

  std::string BufferType(const Buffer& b) {
    std::string text = absl::StrCat(exprs_.Shape(b.shape()), ", \"", hone::ToText(b.type()), "\"");
    if (b.scope() != Scope::kGlobal) absl::StrAppend(&text, ", scope=\"", std::string(hone::ToText(b.scope())), "\"");
    return text;
  }

  void Allocations(const std::vector<Buffer>& allocs) {
    for (const Buffer& b : allocs) {
      const std::string type = BufferType(b);
      Line(absl::StrCat(exprs_.Define(b), " = T.alloc_buffer(", type, ")"));
    }
  }

  // The statements of one indentation, names of which end with it.
  void Suite(const Stmt& stmt) {
    const size_t mark = names_.Mark();
    if (!stmt) {
      Line("pass");
    } else if (const Seq* seq = stmt.As<Seq>()) {
      if (seq->stmts.empty()) Line("pass");
      for (size_t i = 0; i < seq->stmts.size(); ++i) One(seq->stmts[i], i + 1 == seq->stmts.size());
    } else {
      One(stmt, true);
    }
    names_.RollBack(mark);
  }
  void Indented(const Stmt& stmt) {
    ++indent_;
    Suite(stmt);
    --indent_;
  }

  // `last`: nothing follows in this suite, so that the body of an allocation needs no indentation of its own.
  void One(const Stmt& stmt, bool last) {
    struct Visitor {
      Printer& p;
      bool last;
      void operator()(const For& n) { p.Loop(n); }
      void operator()(const BlockRealize& n) { p.Realize(n); }
      void operator()(const Store& n) { p.StoreLine(n); }
      void operator()(const Seq& n) {
        for (size_t i = 0; i < n.stmts.size(); ++i) p.One(n.stmts[i], last && i + 1 == n.stmts.size());
      }
      void operator()(const IfThen& n) {
        p.Line(absl::StrCat("if ", p.exprs_.Print(n.condition), ":"));
        p.Indented(n.yes);
        if (!n.no) return;
        p.Line("else:");
        p.Indented(n.no);
      }
      void operator()(const While& n) {
        p.Line(absl::StrCat("while ", p.exprs_.Print(n.condition), ":"));
        p.Indented(n.body);
      }
      void operator()(const Let& n) {
        const std::string value = p.exprs_.Print(n.value);
        const size_t mark = p.names_.Mark();
        const std::string name = p.exprs_.Define(n.var);
        if (last) return p.Flat(absl::StrCat(name, ": T.", hone::ToText(n.var.type()), " = ", value), n.body);
        p.Nested(absl::StrCat("with T.LetStmt(", value, ") as ", name, ":"), n.body, mark);
      }
      void operator()(const Alloc& n) {
        const std::string type = p.BufferType(n.buffer);
        const size_t mark = p.names_.Mark();
        const std::string name = p.exprs_.Define(n.buffer);
        if (last) return p.Flat(absl::StrCat(name, " = T.allocate(", type, ")"), n.body);
        p.Nested(absl::StrCat("with T.allocate(", type, ") as ", name, ":"), n.body, mark);
      }
      void operator()(const TileOp& n) {
        std::string text = absl::StrCat("T.tile_op(", QuotedText(n.intrinsic));
        for (const BufferRegion& operand : n.operands) absl::StrAppend(&text, ", ", p.exprs_.Region(operand));
        if (!n.accumulates) absl::StrAppend(&text, ", accumulates=False");
        if (!n.params.empty()) absl::StrAppend(&text, ", params=", AttrsText(n.params));
        p.Line(absl::StrCat(text, ")"));
      }
      void operator()(const Evaluate& n) {
        if (IsBarrier(n)) return p.Line("T.tvm_storage_sync(\"shared\")");
        if (IsCommitGroup(n)) return p.Line("T.ptx_commit_group()");
        if (const std::optional<int64_t> groups = WaitGroup(n))
          return p.Line(absl::StrCat("T.ptx_wait_group(", *groups, ")"));
        p.Line(absl::StrCat("T.evaluate(", p.exprs_.Print(n.value), ")"));
      }
    };
    std::visit(Visitor{*this, last}, stmt.node().kind);
  }

  void Flat(absl::string_view line, const Stmt& body) {
    Line(line);
    if (const Seq* seq = body.As<Seq>(); seq != nullptr && !seq->stmts.empty()) {
      for (size_t i = 0; i < seq->stmts.size(); ++i) One(seq->stmts[i], i + 1 == seq->stmts.size());
    } else if (body && seq == nullptr) {
      One(body, true);
    } else {
      Line("pass");
    }
  }
  void Nested(absl::string_view line, const Stmt& body, size_t mark) {
    Line(line);
    Indented(body);
    names_.RollBack(mark);
  }

  static bool InGrid(const For& loop) {
    return loop.kind == ForKind::kSerial && loop.annotations.empty() && loop.thread.empty() && IsConst(loop.min, 0) &&
           loop.min.type() == loop.extent.type() && loop.var.type() == loop.extent.type();
  }

  void EnterLoop(const For& loop) { loops_.insert_or_assign(loop.var.id(), Range{loop.min, loop.extent}); }

  void Loop(const For& first) {
    const size_t mark = names_.Mark();
    std::vector<const For*> grid;
    std::vector<std::string> extents;
    for (const For* loop = &first; loop != nullptr && InGrid(*loop); loop = loop->body.As<For>()) {
      bool independent = true;
      for (const For* outer : grid) independent = independent && !UsesVar(loop->extent, outer->var);
      if (!independent) break;
      extents.push_back(exprs_.Print(loop->extent));
      grid.push_back(loop);
      EnterLoop(*loop);
    }
    if (grid.size() >= 2) {
      std::vector<std::string> names;
      for (const For* loop : grid) names.push_back(exprs_.Define(loop->var));
      Line(absl::StrCat("for ", absl::StrJoin(names, ", "), " in T.grid(", absl::StrJoin(extents, ", "), "):"));
      Indented(grid.back()->body);
    } else {
      const std::string iterator = Iterator(first);
      EnterLoop(first);
      const std::string name = exprs_.Define(first.var);
      Line(absl::StrCat("for ", name, " in ", iterator, ":"));
      Indented(first.body);
    }
    names_.RollBack(mark);
  }

  std::string Iterator(const For& loop) {
    if (InGrid(loop)) return absl::StrCat("range(", exprs_.Print(loop.extent), ")");
    static constexpr absl::string_view kNames[] = {"T.serial", "T.parallel", "T.vectorized", "T.unroll",
                                                   "T.thread_binding"};
    std::string text = absl::StrCat(kNames[static_cast<int>(loop.kind)], "(");
    if (IsConst(loop.min, 0) && loop.min.type() == loop.extent.type()) {
      absl::StrAppend(&text, exprs_.Print(loop.extent));
    } else {
      absl::StrAppend(&text, exprs_.Print(loop.min), ", ", exprs_.End({loop.min, loop.extent}));
    }
    if (!loop.thread.empty() || loop.kind == ForKind::kThreadBinding) {
      absl::StrAppend(&text, ", thread=", QuotedText(loop.thread));
    }
    if (!loop.annotations.empty()) absl::StrAppend(&text, ", annotations=", AttrsText(loop.annotations));
    return absl::StrCat(text, ")");
  }

  // The variable is bound to a whole enclosing loop: T.axis.remap says so in one letter.
  bool CanRemap(const IterVar& iter, const Expr& value) const {
    const VarRef* ref = value.As<VarRef>();
    if (ref == nullptr || iter.kind == IterKind::kOpaque || ref->var.type() != iter.var.type()) return false;
    const auto loop = loops_.find(ref->var.id());
    return loop != loops_.end() && StructuralEqual(loop->second.min, iter.domain.min) &&
           StructuralEqual(loop->second.extent, iter.domain.extent);
  }

  void Axes(const BlockRealize& n) {
    const std::vector<IterVar>& iters = n.block.iters;
    const auto value = [&](size_t i) { return i < n.values.size() ? n.values[i] : Expr(); };
    for (size_t i = 0; i < iters.size();) {
      size_t end = i;
      while (end < iters.size() && value(end) && CanRemap(iters[end], value(end))) ++end;
      if (end - i < 2) {
        Axis(iters[i], value(i));
        ++i;
        continue;
      }
      std::string kinds;
      std::vector<std::string> names, loops;
      for (size_t k = i; k < end; ++k) {
        kinds.push_back(iters[k].kind == IterKind::kSpatial ? 'S' : 'R');
        loops.push_back(exprs_.Print(value(k)));
        names.push_back(exprs_.Define(iters[k].var));
      }
      Line(absl::StrCat(absl::StrJoin(names, ", "), " = T.axis.remap(\"", kinds, "\", [", absl::StrJoin(loops, ", "),
                        "])"));
      i = end;
    }
  }

  void Axis(const IterVar& iter, const Expr& value) {
    static constexpr absl::string_view kKinds[] = {"spatial", "reduce", "opaque"};
    const Range& domain = iter.domain;
    const bool from_zero = IsConst(domain.min, 0) && domain.min.type() == domain.extent.type();
    const std::string extent = from_zero ? exprs_.Print(domain.extent)
                                         : absl::StrCat("(", exprs_.Print(domain.min), ", ", exprs_.End(domain), ")");
    const std::string bound = exprs_.Print(value);
    const std::string text = absl::StrCat(" = T.axis.", kKinds[static_cast<int>(iter.kind)], "(", extent, ", ", bound);
    Line(absl::StrCat(exprs_.Define(iter.var), text, ")"));
  }

  void Regions(absl::string_view function, const std::vector<BufferRegion>& regions) {
    std::vector<std::string> texts;
    for (const BufferRegion& region : regions) texts.push_back(exprs_.Region(region));
    Line(absl::StrCat(function, "(", absl::StrJoin(texts, ", "), ")"));
  }

  void Realize(const BlockRealize& n) {
    const Block& block = n.block;
    const size_t mark = names_.Mark();
    Line(absl::StrCat("with T.block(", QuotedText(block.name), "):"));
    ++indent_;
    Axes(n);
    if (!IsTrue(n.predicate)) Line(absl::StrCat("T.where(", exprs_.Print(n.predicate), ")"));
    Regions("T.reads", block.reads);
    Regions("T.writes", block.writes);
    if (!block.annotations.empty()) Line(absl::StrCat("T.block_attr(", AttrsText(block.annotations), ")"));
    Allocations(block.allocs);
    for (const MatchBuffer& match : block.matches) {
      const std::string source = exprs_.Region(match.source), type = BufferType(match.buffer);
      Line(absl::StrCat(exprs_.Define(match.buffer), " = T.match_buffer(", source, ", ", type, ")"));
    }
    if (block.init) {
      Line("with T.init():");
      Indented(block.init);
    }
    Suite(block.body);
    --indent_;
    names_.RollBack(mark);
  }

  void StoreLine(const Store& n) {
    const std::string name = exprs_.Name(n.buffer);
    if (!n.mask) return Line(absl::StrCat(name, "[", exprs_.Indices(n.indices), "] = ", exprs_.Print(n.value)));
    const std::string indices = n.indices.empty() ? "" : exprs_.Indices(n.indices);
    Line(absl::StrCat(name, ".vstore([", indices, "], ", exprs_.Print(n.value), ", predicate=", exprs_.Print(n.mask),
                      ")"));
  }

  NameTable names_;
  ExprPrinter exprs_;
  std::unordered_map<uint64_t, Range> loops_;
  std::string out_;
  int indent_ = 0;
};

}  // namespace

std::string ToText(const Stmt& s) { return Printer().Statement(s); }
std::string ToText(const PrimFunc& f) { return Printer().Function(f); }

}  // namespace hone
