// Statements.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/gpu/lane_printer.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"

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
  } else if (const While* loop = stmt.As<While>()) {
    Open(absl::StrCat("while (", Value(loop->condition), ") {"));
    OnStmt(loop->body);
    Close();
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
  if (loop.annotations.contains(kCopiesRun)) return CopyRun(loop);
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
    const ConstraintScope inside(known_, LastingPart(branch.condition));
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
  const std::string text = dialect_.intrinsic_helper == nullptr ? "" : dialect_.intrinsic_helper(intrinsic);
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
  if (const std::optional<Store> copy = AsyncCopy(evaluate)) return Copy(*copy, 1);
  if (const Call* call = evaluate.value.As<Call>(); AtomicUpdate(evaluate).has_value())
    return Refuse(call->name, " has no instruction; use rfactor in place of an atomic update");
  if (!CommitsGroups()) return;
  if (IsCommitGroup(evaluate)) return Line(helpers_.Use("commit_copies", std::string(dialect_.commit_copies)) + "();");
  if (const std::optional<int64_t> left = WaitGroup(evaluate)) {
    const std::string count = absl::StrCat(*left);
    Line(helpers_.Use("wait_for_copies_" + count, absl::StrReplaceAll(dialect_.wait_for_copies, {{"{left}", count}})) +
         "();");
  }
}

bool LanePrinter::CommitsGroups() const {
  return std::ranges::any_of(copies_, [](const auto& copy) { return copy.second->token == AsyncToken::kGroup; });
}

void LanePrinter::CopyRun(const For& loop) {
  const Store copy = *AsyncCopy(*loop.body.As<Evaluate>());
  const IfThenElseExpr* choice = copy.value.As<IfThenElseExpr>();
  const Load& from = *(choice == nullptr ? copy.value : choice->yes).As<Load>();
  if (copies_.empty()) {
    const int lanes = static_cast<int>(*ConstantValue(loop.extent));
    const auto run = [&](const Expr& index) {
      return MakeRamp(Substitute(index, loop.var, loop.min), IntConst(1, index.type()), lanes);
    };
    const Expr elements = MakeLoad(from.buffer, {run(from.indices[0])});
    const Expr value =
        choice == nullptr ? elements : IfThenElse(choice->condition, elements, MakeBroadcast(choice->no, lanes));
    return StoreLanes({copy.buffer, {run(copy.indices[0])}, value, Expr()});
  }
  const int64_t elements = *ConstantValue(loop.extent), most = copies_.rbegin()->first / copy.value.type().bytes();
  for (int64_t done = 0; done < elements;) {
    const Expr at = loop.min + IntConst(done, loop.var.type());
    const auto aligned = [&](const Expr& index, int64_t n) {
      return known_.IsMultipleOf(Substitute(index, loop.var, at), n);
    };
    int64_t piece = 1;
    while (2 * piece <= most && done + 2 * piece <= elements && aligned(copy.indices[0], 2 * piece) &&
           aligned(from.indices[0], 2 * piece))
      piece *= 2;
    Copy({copy.buffer, {Substitute(copy.indices[0], loop.var, at)}, Substitute(copy.value, loop.var, at), Expr()},
         static_cast<int>(piece));
    done += piece;
  }
}

void LanePrinter::Copy(const Store& copy, int elements) {
  const IfThenElseExpr* choice = copy.value.As<IfThenElseExpr>();
  const Load& from = *(choice == nullptr ? copy.value : choice->yes).As<Load>();
  const int bytes = elements * copy.value.type().bytes();
  const FloatImm* fill = choice == nullptr ? nullptr : choice->no.As<FloatImm>();
  const bool fills_zero = choice == nullptr || IsConst(choice->no, 0) ||
                          (fill != nullptr && fill->value == 0 && !std::signbit(fill->value));
  const auto found = copies_.find(bytes);
  if (found == copies_.end() || !fills_zero) {
    for (int i = 0; i < elements; ++i) {
      const auto next = [&](const Expr& index) { return index + IntConst(i, index.type()); };
      const Expr element = MakeLoad(from.buffer, {next(from.indices[0])});
      StoreElement(copy.buffer, next(copy.indices[0]),
                   choice == nullptr ? element : IfThenElse(choice->condition, element, choice->no));
    }
    return;
  }
  const TileIntrinsic& intrinsic = *found->second;
  const std::string helper = helpers_.Use(intrinsic.name, dialect_.intrinsic_helper(intrinsic));
  const std::string to = absl::StrCat("&", Element(copy.buffer, copy.indices[0]));
  const std::string source = absl::StrCat("&", Element(from.buffer, from.indices[0]));
  if (choice == nullptr) return Line(absl::StrCat(helper, "(", to, ", ", source, ", ", bytes, ");"));
  // Where the condition does not hold no byte is read, and the address is one that may be.
  const std::string condition = Operand(choice->condition, 4);
  Line(absl::StrCat(helper, "(", to, ", ", condition, " ? ", source, " : ", NameOf(from.buffer), ", ", condition, " ? ",
                    bytes, " : 0);"));
}

}  // namespace hone
