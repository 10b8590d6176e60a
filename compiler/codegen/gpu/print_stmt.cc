// Statements.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/gpu/lane_printer.h"
#include "compiler/ir/effects.h"
#include "compiler/text/text.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {

void LanePrinter::Line(const std::string& text) { absl::StrAppend(&out_, std::string(2 * depth_, ' '), text, "\n"); }
void LanePrinter::Open(const std::string& text) { Line(text), ++depth_; }
void LanePrinter::Close() { --depth_, Line("}"); }

void LanePrinter::OnStmt(const Stmt& stmt) {
  if (const Seq* seq = stmt.As<Seq>()) {
    for (const Stmt& s : seq->stmts) OnStmt(s);
  } else if (const For* loop = stmt.As<For>()) {
    OnFor(*loop);
  } else if (const IfThen* branch = stmt.As<IfThen>()) {
    OnBranch(*branch);
  } else if (const Let* let = stmt.As<Let>()) {
    OnLet(*let);
  } else if (const Alloc* alloc = stmt.As<Alloc>()) {
    OnAlloc(*alloc);
  } else if (const Store* store = stmt.As<Store>()) {
    OnStore(*store);
  } else if (const TileOp* op = stmt.As<TileOp>()) {
    OnTileOp(*op);
  } else if (const Evaluate* evaluate = stmt.As<Evaluate>()) {
    OnEvaluate(*evaluate);
  } else {
    HONE_UNREACHABLE() << "a statement that lane programs do not have: " << ToText(stmt);
  }
}

void LanePrinter::OnFor(const For& loop) {
  known_.Bind(loop.var, Range{loop.min, loop.extent});
  const std::string& name = NameOf(loop.var);
  Open(absl::StrCat("for (", ValueType(dialect_, loop.var.type()), " ", name, " = ", Value(loop.min), "; ", name, " < ",
                    Operand(known_.Simplify(loop.min + loop.extent), 11), "; ++", name, ") {"));
  OnStmt(loop.body);
  Close();
}

void LanePrinter::OnBranch(const IfThen& branch) {
  Open(absl::StrCat("if (", Value(branch.condition), ") {"));
  {
    const ConstraintScope inside(known_, branch.condition);
    OnStmt(branch.yes);
  }
  if (branch.no) {
    --depth_;
    Open("} else {");
    OnStmt(branch.no);
  }
  Close();
}

void LanePrinter::OnLet(const Let& let) {
  const DType type = let.var.type();
  if (!IsIndexArithmetic(let.value)) data_.insert(let.var);
  for (int lane = 0; lane < type.lanes; ++lane) {
    const Var var = type.is_scalar() ? let.var : Var(absl::StrCat(let.var.name(), lane), type.element());
    if (!type.is_scalar()) lanes_of_[let.var].push_back(var), data_.insert(var);
    const std::string value = Value(LaneOf(let.value, lane));
    Line(absl::StrCat("const ", ValueType(dialect_, type.element()), " ", NameOf(var), " = ", value, ";"));
  }
  OnStmt(let.body);
}

void LanePrinter::OnAlloc(const Alloc& alloc) {
  Line(absl::StrCat(MemoryType(dialect_, alloc.buffer.type()), " ", NameOf(alloc.buffer), "[",
                    *alloc.buffer.NumElements(), "];"));
  OnStmt(alloc.body);
}

void LanePrinter::OnStore(const Store& store) {
  if (!store.indices[0].type().is_scalar()) return StoreLanes(store);
  StoreElement(store.buffer, store.indices[0], store.value);
}

void LanePrinter::StoreElement(const Buffer& buffer, const Expr& index, const Expr& value) {
  Line(absl::StrCat(Element(buffer, index), " = ", InMemory(value), ";"));
}

void LanePrinter::OnTileOp(const TileOp& op) {
  const TileIntrinsic& intrinsic = *FindTileIntrinsic(op.intrinsic);
  const std::string text = dialect_.warp_operation == nullptr ? "" : dialect_.warp_operation(intrinsic);
  if (text.empty()) {
    return Refuse("the tile operation ", op.intrinsic,
                  intrinsic.threads > 1 ? " is done by the lanes of a warp together, for which it has no instruction"
                                        : " is for CPUs");
  }
  std::string operands;
  for (const BufferRegion& operand : op.operands) {
    const Expr first = known_.Simplify(operand.region[0].min);
    absl::StrAppend(&operands, operands.empty() ? "" : ", ", NameOf(operand.buffer));
    if (!IsConst(first, 0)) absl::StrAppend(&operands, " + ", Operand(first, 12));
  }
  Line(absl::StrCat(helpers_.Use(op.intrinsic, text), "(", operands, ");"));
}

void LanePrinter::OnEvaluate(const Evaluate& evaluate) {
  if (IsBarrier(evaluate)) return Line(std::string(dialect_.barrier));
  if (const std::optional<Store> copy = AsyncCopy(evaluate))
    return CopyElement(copy->buffer, copy->indices[0], copy->value);
  if (const Call* call = evaluate.value.As<Call>(); AtomicUpdate(evaluate).has_value())
    return Refuse(call->name, " has no instruction; use rfactor in place of an atomic update");
  if (dialect_.copy_async.empty()) return;
  if (IsCommitGroup(evaluate)) return Line(helpers_.Use("commit_copies", std::string(dialect_.commit_copies)) + "();");
  if (const std::optional<int64_t> left = WaitGroup(evaluate)) {
    const std::string count = absl::StrCat(*left);
    Line(helpers_.Use("wait_for_copies_" + count, absl::StrReplaceAll(dialect_.wait_for_copies, {{"{left}", count}})) +
         "();");
  }
}

// Where the copy cannot go on beside what follows it is a store.
void LanePrinter::CopyElement(const Buffer& to, const Expr& index, const Expr& value) {
  const IfThenElseExpr* choice = value.As<IfThenElseExpr>();
  const Load& from = *(choice == nullptr ? value : choice->yes).As<Load>();
  const int bytes = value.type().bytes();
  const FloatImm* fill = choice == nullptr ? nullptr : choice->no.As<FloatImm>();
  const bool fills_zero = choice == nullptr || IsConst(choice->no, 0) ||
                          (fill != nullptr && fill->value == 0 && !std::signbit(fill->value));
  if (dialect_.copy_async.empty() || bytes < 4 || !fills_zero) return StoreElement(to, index, value);
  const std::string size = absl::StrCat(bytes);
  const std::string helper =
      helpers_.Use("copy_async_" + size, absl::StrReplaceAll(dialect_.copy_async, {{"{bytes}", size}}));
  const std::string target = absl::StrCat("&", Element(to, index));
  if (choice == nullptr) {
    Line(absl::StrCat(helper, "(", target, ", &", Element(from.buffer, from.indices[0]), ", ", bytes, ");"));
    return;
  }
  // Where the condition does not hold no byte is read, and the address is one that may be.
  const std::string condition = Operand(choice->condition, 4);
  Line(absl::StrCat(helper, "(", target, ", ", condition, " ? &", Element(from.buffer, from.indices[0]), " : ",
                    NameOf(from.buffer), ", ", condition, " ? ", bytes, " : 0);"));
}

}  // namespace hone
