#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/interp/compiler.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone::interp {

absl::StatusOr<int> Compiler::Expression(const Expr& e) {
  if (!e) return Error("an absent expression");
  if (++depth_ > 5000) return Error("an expression nests deeper than 5000");
  absl::StatusOr<int> slot = std::visit([&](const auto& node) { return Node(node, e.type()); }, e.node().kind);
  --depth_;
  return slot;
}

absl::StatusOr<int> Compiler::Node(const IntImm& n, DType) { return IntSlot(n.value); }

absl::StatusOr<int> Compiler::Node(const FloatImm& n, DType type) {
  return FloatSlot(options_.double_accumulation ? n.value : RoundToType(n.value, type));
}

absl::StatusOr<int> Compiler::Node(const VarRef& n, DType) {
  const auto found = vars_.find(n.var.id());
  if (found == vars_.end()) return Error(absl::StrCat("variable ", n.var.name(), " is used outside of its scope"));
  return found->second;
}

absl::StatusOr<int> Compiler::Node(const Binary& n, DType) {
  const DType type = Working(n.a.type());
  HONE_ASSIGN_OR_RETURN(const int a, Expression(n.a));
  HONE_ASSIGN_OR_RETURN(const int b, Expression(n.b));
  const int lanes = type.lanes;
  const int dst = NewSlots(lanes);
  const int k = static_cast<int>(n.op);
  if (type.is_float()) {
    static constexpr Op kDouble[] = {Op::kAddF64, Op::kSubF64, Op::kMulF64, Op::kDivF64};
    static constexpr Op kSingle[] = {Op::kAddF32, Op::kSubF32, Op::kMulF32, Op::kDivF32};
    static constexpr Op kCompare[] = {Op::kEqF, Op::kNeF, Op::kLtF, Op::kLeF, Op::kGtF, Op::kGeF};
    if (n.op <= BinaryOp::kDiv) {
      const bool single = type.bits == 32;
      Emit(single ? kSingle[k] : kDouble[k], lanes, dst, a, b);
      if (type.bits < 32) Emit(Op::kRound, lanes, dst, dst, 0, TypeIndex(type));
    } else if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) {
      Emit(n.op == BinaryOp::kMin ? Op::kMinF : Op::kMaxF, lanes, dst, a, b);
    } else if (IsComparison(n.op)) {
      Emit(kCompare[k - static_cast<int>(BinaryOp::kEq)], lanes, dst, a, b);
    } else {
      const int at = Emit(Op::kAnyFloat, lanes, dst, a, b, TypeIndex(type));
      code_.instrs[static_cast<size_t>(at)].aux = static_cast<uint16_t>(n.op);
    }
    return dst;
  }
  Emit(IntOp(n.op, type), lanes, dst, a, b, TypeIndex(type));
  code_.instrs.back().aux = static_cast<uint16_t>(n.op);
  if (code_.instrs.back().op == Op::kAnyInt || code_.instrs.back().op == Op::kFloorDivI ||
      code_.instrs.back().op == Op::kFloorModI) {
    code_.instrs.back().aux2 = Place("");
  }
  return dst;
}

Op Compiler::IntOp(BinaryOp op, DType type) {
  const bool wide = type == DType::Int(64, type.lanes), middle = type == DType::Int(32, type.lanes);
  const bool plain = type != DType::UInt(64, type.lanes);  // compares as it is kept
  switch (op) {
    case BinaryOp::kAdd: return wide ? Op::kAddI64 : middle ? Op::kAddI32 : Op::kAnyInt;
    case BinaryOp::kSub: return wide ? Op::kSubI64 : middle ? Op::kSubI32 : Op::kAnyInt;
    case BinaryOp::kMul: return wide ? Op::kMulI64 : middle ? Op::kMulI32 : Op::kAnyInt;
    case BinaryOp::kFloorDiv: return wide || middle ? Op::kFloorDivI : Op::kAnyInt;
    case BinaryOp::kFloorMod: return wide || middle ? Op::kFloorModI : Op::kAnyInt;
    case BinaryOp::kMin: return plain ? Op::kMinI : Op::kAnyInt;
    case BinaryOp::kMax: return plain ? Op::kMaxI : Op::kAnyInt;
    case BinaryOp::kEq: return Op::kEqI;
    case BinaryOp::kNe: return Op::kNeI;
    case BinaryOp::kLt: return plain ? Op::kLtI : Op::kAnyInt;
    case BinaryOp::kLe: return plain ? Op::kLeI : Op::kAnyInt;
    case BinaryOp::kGt: return plain ? Op::kGtI : Op::kAnyInt;
    case BinaryOp::kGe: return plain ? Op::kGeI : Op::kAnyInt;
    case BinaryOp::kAnd: return Op::kAnd;
    case BinaryOp::kOr: return Op::kOr;
    default: return Op::kAnyInt;
  }
}

absl::StatusOr<int> Compiler::Node(const Not& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const int a, Expression(n.a));
  const int dst = NewSlots(type.lanes);
  Emit(Op::kNot, type.lanes, dst, a);
  return dst;
}

absl::StatusOr<int> Compiler::Node(const Cast& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const int a, Expression(n.a));
  const DType from = n.a.type(), to = Working(type);
  const int dst = NewSlots(to.lanes);
  if (from.is_float() && to.is_float()) {
    // To a wider type nothing is lost. What narrows rounds to the type it names, in double too.
    const bool widens = type.bits > from.bits || type == from;
    Emit(widens ? Op::kMove : Op::kRound, to.lanes, dst, a, 0, TypeIndex(type));
  } else if (from.is_float()) {
    Emit(to.is_bool() ? Op::kFloatToBool : Op::kFloatToInt, to.lanes, dst, a, 0, TypeIndex(to));
  } else if (to.is_float()) {
    Emit(Op::kIntToFloat, to.lanes, dst, a, TypeIndex(from), TypeIndex(to));
    code_.instrs.back().aux = static_cast<uint16_t>(TypeIndex(from));
    code_.instrs.back().b = 0;
  } else {
    Emit(Op::kWrap, to.lanes, dst, a, 0, TypeIndex(to));
  }
  return dst;
}

absl::StatusOr<int> Compiler::Node(const Select& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
  HONE_ASSIGN_OR_RETURN(const int yes, Expression(n.yes));
  HONE_ASSIGN_OR_RETURN(const int no, Expression(n.no));
  const int dst = NewSlots(type.lanes);
  Emit(Op::kSelect, type.lanes, dst, condition, yes, no);
  code_.instrs.back().aux2 = n.condition.type().is_scalar() ? 0 : 1;
  return dst;
}

absl::StatusOr<int> Compiler::Node(const IfThenElseExpr& n, DType type) {
  if (n.condition.type().is_scalar()) {
    HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
    const int dst = NewSlots(type.lanes);
    const int to_no = Emit(Op::kJumpIfZero, 1, 0, condition);
    HONE_ASSIGN_OR_RETURN(const int yes, Expression(n.yes));
    Emit(Op::kMove, type.lanes, dst, yes);
    const int to_end = Emit(Op::kJump);
    Land(to_no);
    HONE_ASSIGN_OR_RETURN(const int no, Expression(n.no));
    Emit(Op::kMove, type.lanes, dst, no);
    Land(to_end);
    return dst;
  }
  // Lane by lane: loads of a side run only in the lanes that choose it.
  HONE_ASSIGN_OR_RETURN(const int condition, Expression(n.condition));
  const int lanes = type.lanes;
  const int inverse = NewSlots(lanes);
  Emit(Op::kNot, lanes, inverse, condition);
  const int outer = guard_;
  const auto guarded = [&](const Expr& side, int own) -> absl::StatusOr<int> {
    guard_ = own;
    if (outer >= 0 && guard_lanes_ == lanes) {
      guard_ = NewSlots(lanes);
      Emit(Op::kAnd, lanes, guard_, own, outer);
    }
    const int outer_lanes = std::exchange(guard_lanes_, lanes);
    const absl::StatusOr<int> slot = Expression(side);
    guard_ = outer;
    guard_lanes_ = outer_lanes;
    return slot;
  };
  HONE_ASSIGN_OR_RETURN(const int yes, guarded(n.yes, condition));
  HONE_ASSIGN_OR_RETURN(const int no, guarded(n.no, inverse));
  const int dst = NewSlots(lanes);
  Emit(Op::kSelect, lanes, dst, condition, yes, no);
  code_.instrs.back().aux2 = 1;
  return dst;
}

absl::StatusOr<int> Compiler::Node(const LetExpr& n, DType) {
  HONE_ASSIGN_OR_RETURN(vars_[n.var.id()], Expression(n.value));
  return Expression(n.body);
}

absl::StatusOr<int> Compiler::Node(const Ramp& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const int base, Expression(n.base));
  HONE_ASSIGN_OR_RETURN(const int stride, Expression(n.stride));
  const int dst = NewSlots(type.lanes);
  Emit(Op::kRamp, type.lanes, dst, base, stride, TypeIndex(type));
  return dst;
}

absl::StatusOr<int> Compiler::Node(const Broadcast& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const int value, Expression(n.value));
  const int dst = NewSlots(type.lanes);
  Emit(Op::kSplat, type.lanes, dst, value);
  return dst;
}

absl::StatusOr<int> Compiler::Node(const Load& n, DType type) {
  HONE_ASSIGN_OR_RETURN(const int access, AddAccess(n.buffer, n.indices, n.mask, type.lanes));
  const int dst = NewSlots(type.lanes);
  Emit(Op::kLoad, type.lanes, dst, access);
  return dst;
}

absl::StatusOr<int> Compiler::Node(const Call& n, DType result) {
  const DType declared = n.args.empty() ? result : n.args[0].type();
  const DType type = Working(declared);
  std::vector<int> args;
  for (const Expr& arg : n.args) {
    HONE_ASSIGN_OR_RETURN(const int slot, Expression(arg));
    args.push_back(slot);
  }
  const IntrinsicInfo* info = FindIntrinsic(n.name);
  if (info == nullptr || static_cast<int>(args.size()) != info->arity) {
    return absl::UnimplementedError(
        absl::StrCat("the interpreter knows no function ", n.name, " of ", args.size(), " arguments"));
  }
  if (info->stands_alone) return args[0];  // a prefetch: its address was checked, its element is not used
  const int lanes = result.lanes;
  const int dst = NewSlots(lanes);
  if (n.name == "isnan" || n.name == "isinf") {
    if (!type.is_float()) {
      Emit(Op::kSplat, lanes, dst, IntSlot(0));
    } else {
      Emit(n.name == "isnan" ? Op::kIsNan : Op::kIsInf, lanes, dst, args[0]);
    }
    return dst;
  }
  if (!type.is_float()) {
    if (n.name == "popcount") {
      Emit(Op::kPopcount, lanes, dst, args[0], 0, TypeIndex(type));
    } else if (n.name == "abs") {
      Emit(Op::kAbsI, lanes, dst, args[0], 0, TypeIndex(type));
    } else if (n.name == "floor" || n.name == "ceil" || n.name == "round" || n.name == "trunc") {
      Emit(Op::kMove, lanes, dst, args[0]);
    } else {
      return Error(absl::StrCat(n.name, " of ", ToText(type)));
    }
    return dst;
  }
  if (n.name == "fma") {
    const bool single = type.bits == 32;
    Emit(single ? Op::kFmaF32 : Op::kFma, lanes, dst, args[0], args[1], args[2]);
    if (type.bits < 32) Emit(Op::kRound, lanes, dst, dst, 0, TypeIndex(type));
    return dst;
  }
  if (info->of_two != nullptr) {
    code_.calls2.push_back(info->of_two);
    Emit(Op::kCall2, lanes, dst, args[0], args[1], static_cast<int>(code_.calls2.size()) - 1);
  } else {
    if (info->of_one == nullptr) return Error(absl::StrCat(n.name, " of ", ToText(type)));
    code_.calls1.push_back(info->of_one);
    Emit(Op::kCall1, lanes, dst, args[0], 0, static_cast<int>(code_.calls1.size()) - 1);
  }
  if (type.bits != 64) Emit(Op::kRound, lanes, dst, dst, 0, TypeIndex(type));
  return dst;
}

// The indices of an access to a view become those of the buffer that it is of, through views of views; which one.
Buffer Compiler::ResolveViews(const Buffer& named, Access& access) {
  Buffer buffer = named;
  for (auto view = views_.find(buffer.id()); view != views_.end(); view = views_.find(buffer.id())) {
    // Leading dimensions that the view dropped are points of the source.
    const size_t dropped = view->second.mins.size() - access.indices.size();
    access.indices.insert(access.indices.begin(), view->second.mins.begin(),
                          view->second.mins.begin() + static_cast<ptrdiff_t>(dropped));
    access.strides.insert(access.strides.begin(), dropped, 0);
    for (size_t d = dropped; d < access.indices.size(); ++d) {
      const int width = access.strides[d] == 0 ? 1 : access.lanes;
      const int sum = NewSlots(width);
      int min = view->second.mins[d];
      if (width > 1) {
        min = NewSlots(width);
        Emit(Op::kSplat, width, min, view->second.mins[d]);
      }
      Emit(Op::kAddI64, width, sum, access.indices[d], min);
      access.indices[d] = sum;
    }
    buffer = view->second.source;
  }
  return buffer;
}

// The access is made where its mask, if it has one, and the guard of the lanes around it are true.
absl::Status Compiler::MaskAccess(const Expr& mask, Access& access) {
  if (mask) {
    HONE_ASSIGN_OR_RETURN(const int slot, Expression(mask));
    // A slot of its own: those of constants have negative numbers, as "no mask" has.
    access.mask = NewSlots(access.lanes);
    Emit(mask.type().is_scalar() ? Op::kSplat : Op::kMove, access.lanes, access.mask, slot);
  }
  if (guard_ < 0 || guard_lanes_ != access.lanes) return absl::OkStatus();
  if (access.mask == -1) {
    access.mask = guard_;
  } else {
    const int both = NewSlots(access.lanes);
    Emit(Op::kAnd, access.lanes, both, access.mask, guard_);
    access.mask = both;
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Compiler::AddAccess(const Buffer& named, const std::vector<Expr>& indices, const Expr& mask,
                                        int lanes) {
  Access access;
  access.lanes = lanes;
  access.place = block_;
  access.statement = statement_;
  access.atomic = updated_ && named.SameAs(updated_);
  for (const Expr& index : indices) {
    HONE_ASSIGN_OR_RETURN(const int slot, Expression(index));
    access.indices.push_back(slot);
    access.strides.push_back(index.type().is_scalar() ? 0 : 1);
    if (index.type().lanes != 1 && index.type().lanes != lanes) return Error("an index of another number of lanes");
  }
  if (static_cast<int>(indices.size()) != named.rank())
    return Error(absl::StrCat("buffer ", named.name(), " with ", indices.size(), " indices"));
  const Buffer buffer = ResolveViews(named, access);
  const auto found = buffers_.find(buffer.id());
  if (found == buffers_.end()) return Error(absl::StrCat("buffer ", buffer.name(), " is used outside of its scope"));
  access.buffer = found->second;
  if (IsOfSeveralWarps(buffer)) {
    HONE_ASSIGN_OR_RETURN(const int warp, WarpOf(buffer));
    access.indices.insert(access.indices.begin(), warp);
    access.strides.insert(access.strides.begin(), 0);
  }
  HONE_RETURN_IF_ERROR(MaskAccess(mask, access));
  code_.accesses.push_back(std::move(access));
  return static_cast<int>(code_.accesses.size()) - 1;
}

}  // namespace hone::interp
