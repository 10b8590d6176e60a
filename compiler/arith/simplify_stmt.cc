// Statements: what loops, blocks and conditions make known to what is inside them.
#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

class StmtSimplifier {
 public:
  explicit StmtSimplifier(Analyzer& known) : known_(known) {}

  Stmt Visit(const Stmt& s) {
    const size_t mark = known_.Save();
    Stmt result = Dispatch(s);
    known_.Restore(mark);
    return result;
  }

 private:
  Stmt Dispatch(const Stmt& s) {
    if (const For* loop = s.As<For>()) {
      // The ends are outside the variable's scope, but mention only what is known already.
      known_.Bind(loop->var, Range{loop->min, loop->extent});
      return Children(s);
    }
    if (const BlockRealize* realize = s.As<BlockRealize>()) return Realize(s, *realize);
    if (const IfThen* branch = s.As<IfThen>()) return Branch(s, *branch);
    if (const Let* let = s.As<Let>()) {
      if (IsIndexType(let->var.type())) known_.BindBounds(let->var, known_.ConstBounds(let->value));
      return Children(s);
    }
    return Children(s);
  }

  Stmt Children(const Stmt& s) {
    return MapChildren(
        s, [this](const Stmt& child) { return Visit(child); }, [this](const Expr& e) { return known_.Simplify(e); });
  }

  // The values and the predicate belong to the loops outside; inside, the block's variables have their domains.
  Stmt Realize(const Stmt& s, const BlockRealize& realize) {
    for (const IterVar& iter : realize.block.iters) known_.Bind(iter.var, iter.domain);
    return Children(s);
  }

  Stmt Branch(const Stmt& s, const IfThen& branch) {
    const Expr condition = known_.Simplify(branch.condition);
    if (const std::optional<int64_t> value = ConstantValue(condition)) {
      if (*value != 0) return Visit(branch.yes);
      return branch.no ? Visit(branch.no) : MakeSeq({});
    }
    Stmt yes, no;
    {
      const ConstraintScope inside(known_, LastingPart(condition));
      yes = Visit(branch.yes);
    }
    if (branch.no) {
      const ConstraintScope inside(known_, LastingPart(MakeNot(condition)));
      no = Visit(branch.no);
    }
    if (condition.SameAs(branch.condition) && yes.SameAs(branch.yes) && no.SameAs(branch.no)) return s;
    return Stmt::Make(IfThen{condition, yes, no});
  }

  Analyzer& known_;
};

}  // namespace

Stmt Analyzer::Simplify(const Stmt& root) { return StmtSimplifier(*this).Visit(root); }
Stmt Simplify(const Stmt& root) { return Analyzer().Simplify(root); }

}  // namespace hone
