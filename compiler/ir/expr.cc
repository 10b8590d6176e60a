#include "compiler/ir/expr.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "compiler/ir/intrinsics.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

uint64_t NextId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool FitsInt32(int64_t v) { return v == static_cast<int32_t>(v); }

// The value of a scalar floating-point constant.
const FloatImm* AsFloat(const Expr& e) { return e.As<FloatImm>(); }

// An integer constant that may take another type.
bool IsIntConstant(const Expr& e) { return e.As<IntImm>() != nullptr && e.type().is_int(); }

// The element type two operands meet in; both stay as they are when they have none in common.
DType MeetingType(const Expr& a, const Expr& b) {
  const DType ta = a.type().element(), tb = b.type().element();
  if (ta == tb) return ta;
  const bool signed_ints = ta.code == TypeCode::kInt && tb.code == TypeCode::kInt;
  if (signed_ints && ta.bits >= 32 && tb.bits >= 32) return kInt64;
  if (IsIntConstant(a) && !tb.is_bool()) return tb;
  if (IsIntConstant(b) && !ta.is_bool()) return ta;
  return ta;
}

Expr WithType(Expr e, DType element, int lanes) {
  const DType from = e.type().element();
  const bool may_convert = from == element || IsIntConstant(e) || (from == kInt32 && element == kInt64);
  HONE_CHECK(may_convert) << "operands of types " << ToText(from) << " and " << ToText(element) << "; cast one of them";
  const DType converted = element.with_lanes(e.type().lanes);
  if (from != element) e = MakeCast(converted, std::move(e));
  if (e.type().lanes != lanes) {
    HONE_CHECK(e.type().is_scalar()) << "operands of " << e.type().lanes << " and " << lanes << " lanes";
    e = MakeBroadcast(std::move(e), lanes);
  }
  return e;
}

void Unify(Expr& a, Expr& b) {
  if (a.type() == b.type()) return;
  const DType element = MeetingType(a, b);
  const int lanes = std::max(a.type().lanes, b.type().lanes);
  a = WithType(std::move(a), element, lanes);
  b = WithType(std::move(b), element, lanes);
}

Expr IntOrBool(int64_t value, DType type) { return Expr::Make(IntImm{value}, type); }

// Both operands scalar constants.
std::optional<Expr> FoldScalars(BinaryOp op, const Expr& a, const Expr& b) {
  const DType type = a.type();
  if (const IntImm* x = a.As<IntImm>(), *y = b.As<IntImm>(); x != nullptr && y != nullptr) {
    const std::optional<int64_t> value = EvalInt(op, x->value, y->value, type);
    if (value.has_value()) return IntOrBool(*value, ResultType(op, type));
    return std::nullopt;
  }
  if (const FloatImm* x = AsFloat(a), *y = AsFloat(b); x != nullptr && y != nullptr) {
    if (const std::optional<bool> value = CompareFloat(op, x->value, y->value)) return IntOrBool(*value, kBool);
    if (const std::optional<double> value = EvalFloat(op, x->value, y->value, type)) return FloatConst(*value, type);
  }
  return std::nullopt;
}

// x + 0, x * 1 and their like. For floats only what holds for every value, -0 and NaN included.
std::optional<Expr> FoldNeutral(BinaryOp op, const Expr& a, const Expr& b) {
  const bool is_float = a.type().is_float();
  const auto is = [is_float](const Expr& e, int64_t value) {
    if (const FloatImm* f = AsFloat(e)) return is_float && f->value == static_cast<double>(value);
    return IsConst(e, value);
  };
  const bool whole = !is_float;
  switch (op) {
    case BinaryOp::kAdd:
      if (whole && is(b, 0)) return a;
      if (whole && is(a, 0)) return b;
      break;
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
      if (is(b, 0)) return a;
      if (is(a, 0)) return b;
      break;
    case BinaryOp::kSub:
      if (whole && is(b, 0)) return a;
      break;
    case BinaryOp::kMul:
      if (is(b, 1)) return a;
      if (is(a, 1)) return b;
      if (whole && is(a, 0)) return a;
      if (whole && is(b, 0)) return b;
      break;
    case BinaryOp::kDiv:
      if (is(b, 1)) return a;
      break;
    case BinaryOp::kFloorDiv:
      if (whole && is(b, 1)) return a;
      break;
    case BinaryOp::kMod:
    case BinaryOp::kFloorMod:
      if (whole && is(b, 1)) return IntConst(0, a.type());
      break;
    case BinaryOp::kAnd:
      if (is(a, 1) || is(b, 0)) return b;
      if (is(b, 1) || is(a, 0)) return a;
      break;
    case BinaryOp::kOr:
      if (is(a, 1) || is(b, 0)) return a;
      if (is(b, 1) || is(a, 0)) return b;
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      if (a.SameAs(b)) return a;
      break;
    default: break;
  }
  return std::nullopt;
}

// Arithmetic on ramps and broadcasts stays a ramp or a broadcast.
std::optional<Expr> FoldVectors(BinaryOp op, const Expr& a, const Expr& b) {
  const int lanes = a.type().lanes;
  const Broadcast *ba = a.As<Broadcast>(), *bb = b.As<Broadcast>();
  if (ba != nullptr && bb != nullptr) return MakeBroadcast(MakeBinary(op, ba->value, bb->value), lanes);
  if (!a.type().is_int()) return std::nullopt;
  const Ramp *ra = a.As<Ramp>(), *rb = b.As<Ramp>();
  if (op == BinaryOp::kAdd || op == BinaryOp::kSub) {
    const auto apply = [op](const Expr& x, const Expr& y) { return MakeBinary(op, x, y); };
    if (ra != nullptr && bb != nullptr) return MakeRamp(apply(ra->base, bb->value), ra->stride, lanes);
    if (ra != nullptr && rb != nullptr)
      return MakeRamp(apply(ra->base, rb->base), apply(ra->stride, rb->stride), lanes);
    if (ba != nullptr && rb != nullptr) {
      const Expr stride = op == BinaryOp::kAdd ? rb->stride : -rb->stride;
      return MakeRamp(apply(ba->value, rb->base), stride, lanes);
    }
  }
  if (op == BinaryOp::kMul) {
    if (ra != nullptr && bb != nullptr) return MakeRamp(ra->base * bb->value, ra->stride * bb->value, lanes);
    if (ba != nullptr && rb != nullptr) return MakeRamp(rb->base * ba->value, rb->stride * ba->value, lanes);
  }
  return std::nullopt;
}

}  // namespace

ExprNode::~ExprNode() = default;
Var::Node::~Node() = default;
Buffer::Node::~Node() = default;

Expr::Expr(int32_t value) : Expr(IntConst(value)) {}
Expr::Expr(int64_t value) : Expr(IntConst(value, FitsInt32(value) ? kInt32 : kInt64)) {}

Var::Var(std::string name, DType type) {
  auto* node = new Node;
  node->name = std::move(name);
  node->type = type;
  node->id = NextId();
  node_ = Ref<const Node>(node);
}
Var::Var(std::string name, DType type, SizeRange range) {
  HONE_CHECK(range.min >= 0 && range.min <= range.max) << name << " from " << range.min << " to " << range.max;
  auto* node = new Node;
  node->name = std::move(name);
  node->type = type;
  node->range = range;
  node->id = NextId();
  node_ = Ref<const Node>(node);
}
const std::string& Var::name() const { return node_->name; }
const std::optional<SizeRange>& Var::range() const { return node_->range; }
DType Var::type() const { return node_->type; }
uint64_t Var::id() const { return node_ ? node_->id : 0; }
Var::operator Expr() const { return Expr::Make(VarRef{*this}, node_->type); }

std::string_view ToText(Scope scope) {
  switch (scope) {
    case Scope::kGlobal: return "global";
    case Scope::kThread: return "local.thread";
    case Scope::kRegister: return "local";
    case Scope::kShared: return "shared";
    case Scope::kWarp: return "warp";
  }
  return "";
}
std::optional<Scope> ParseScope(std::string_view text) {
  for (const Scope scope : {Scope::kGlobal, Scope::kThread, Scope::kRegister, Scope::kShared, Scope::kWarp}) {
    if (text == ToText(scope)) return scope;
  }
  return std::nullopt;
}

Buffer::Buffer(std::string name, DType type, std::vector<Expr> shape, Scope scope) {
  auto* node = new Node;
  node->name = std::move(name);
  node->type = type;
  node->shape = std::move(shape);
  node->scope = scope;
  node->id = NextId();
  node_ = Ref<const Node>(node);
}
const std::string& Buffer::name() const { return node_->name; }
DType Buffer::type() const { return node_->type; }
const std::vector<Expr>& Buffer::shape() const { return node_->shape; }
Scope Buffer::scope() const { return node_->scope; }
uint64_t Buffer::id() const { return node_ ? node_->id : 0; }
std::optional<int64_t> Buffer::NumElements() const {
  int64_t total = 1;
  for (const Expr& extent : shape()) {
    const std::optional<int64_t> n = ConstantValue(extent);
    if (!n.has_value() || __builtin_mul_overflow(total, *n, &total)) return std::nullopt;
  }
  return total;
}

Expr IntConst(int64_t value, DType type) {
  if (!type.is_scalar()) return MakeBroadcast(IntConst(value, type.element()), type.lanes);
  HONE_CHECK(type.is_int() || type.is_bool()) << "an integer constant of type " << ToText(type);
  return Expr::Make(IntImm{WrapToType(value, type)}, type);
}
Expr FloatConst(double value, DType type) {
  if (!type.is_scalar()) return MakeBroadcast(FloatConst(value, type.element()), type.lanes);
  HONE_CHECK(type.is_float()) << "a floating-point constant of type " << ToText(type);
  return Expr::Make(FloatImm{RoundToType(value, type)}, type);
}
Expr Const(double value, DType type) {
  if (type.is_float()) return FloatConst(value, type);
  if (type.is_bool()) return IntConst(value != 0, type);
  // Out of range saturates, as a conversion by the machine would at best; NaN is 0.
  if (std::isnan(value)) return IntConst(0, type);
  if (value >= 0x1p63) {
    const bool big = type.code == TypeCode::kUInt && value < 0x1p64;
    return IntConst(big ? static_cast<int64_t>(static_cast<uint64_t>(value)) : std::numeric_limits<int64_t>::max(),
                    type);
  }
  return IntConst(value <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value), type);
}
Expr True() { return IntConst(1, kBool); }

Expr MakeBinary(BinaryOp op, Expr a, Expr b) {
  HONE_CHECK(a && b) << "an absent operand";
  Unify(a, b);
  const DType type = a.type();
  if (IsLogical(op)) HONE_CHECK(type.is_bool()) << "and / or of " << ToText(type);
  if (type.is_scalar()) {
    if (std::optional<Expr> folded = FoldScalars(op, a, b)) return *std::move(folded);
  } else if (std::optional<Expr> folded = FoldVectors(op, a, b)) {
    return *std::move(folded);
  }
  if (std::optional<Expr> folded = FoldNeutral(op, a, b)) return *std::move(folded);
  return Expr::Make(Binary{op, std::move(a), std::move(b)}, ResultType(op, type));
}
Expr operator+(Expr a, Expr b) { return MakeBinary(BinaryOp::kAdd, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return MakeBinary(BinaryOp::kSub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return MakeBinary(BinaryOp::kMul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return MakeBinary(BinaryOp::kDiv, std::move(a), std::move(b)); }
Expr operator-(Expr a) {
  const DType type = a.type();
  if (type.is_float()) return FloatConst(-1, type) * std::move(a);  // exact, and right for zeros, where 0 - a is not
  return IntConst(0, type) - std::move(a);
}
Expr operator<(Expr a, Expr b) { return MakeBinary(BinaryOp::kLt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return MakeBinary(BinaryOp::kLe, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return MakeBinary(BinaryOp::kGt, std::move(a), std::move(b)); }
Expr operator>=(Expr a, Expr b) { return MakeBinary(BinaryOp::kGe, std::move(a), std::move(b)); }
Expr Eq(Expr a, Expr b) { return MakeBinary(BinaryOp::kEq, std::move(a), std::move(b)); }
Expr Ne(Expr a, Expr b) { return MakeBinary(BinaryOp::kNe, std::move(a), std::move(b)); }
Expr And(Expr a, Expr b) { return MakeBinary(BinaryOp::kAnd, std::move(a), std::move(b)); }
Expr Or(Expr a, Expr b) { return MakeBinary(BinaryOp::kOr, std::move(a), std::move(b)); }
Expr MakeNot(Expr a) {
  HONE_CHECK(a.type().is_bool()) << "not of " << ToText(a.type());
  if (const IntImm* value = a.As<IntImm>()) return IntConst(value->value == 0, kBool);
  if (const Not* inner = a.As<Not>()) return inner->a;
  const DType type = a.type();
  return Expr::Make(Not{std::move(a)}, type);
}
Expr FloorDiv(Expr a, Expr b) { return MakeBinary(BinaryOp::kFloorDiv, std::move(a), std::move(b)); }
Expr FloorMod(Expr a, Expr b) { return MakeBinary(BinaryOp::kFloorMod, std::move(a), std::move(b)); }
Expr Min(Expr a, Expr b) { return MakeBinary(BinaryOp::kMin, std::move(a), std::move(b)); }
Expr Max(Expr a, Expr b) { return MakeBinary(BinaryOp::kMax, std::move(a), std::move(b)); }

Expr MakeCast(DType type, Expr a) {
  if (a.type() == type) return a;
  if (a.type().is_scalar() && !type.is_scalar())
    return MakeBroadcast(MakeCast(type.element(), std::move(a)), type.lanes);
  HONE_CHECK(a.type().lanes == type.lanes) << "a cast from " << ToText(a.type()) << " to " << ToText(type);
  if (const Broadcast* splat = a.As<Broadcast>())
    return MakeBroadcast(MakeCast(type.element(), splat->value), type.lanes);
  if (const IntImm* value = a.As<IntImm>()) {
    if (!type.is_float()) return IntConst(value->value, type);
    if (a.type().code == TypeCode::kUInt)
      return FloatConst(static_cast<double>(static_cast<uint64_t>(value->value)), type);
    return FloatConst(static_cast<double>(value->value), type);
  }
  if (const FloatImm* value = a.As<FloatImm>()) {
    const bool fits = std::abs(value->value) < 0x1p31;  // what the machine does beyond is not folded
    if (type.is_float() || type.is_bool() || fits) return Const(value->value, type);
  }
  return Expr::Make(Cast{std::move(a)}, type);
}

namespace {

template <class Node>
Expr MakeChoice(Expr condition, Expr yes, Expr no) {
  HONE_CHECK(condition.type().is_bool()) << "a condition of type " << ToText(condition.type());
  Unify(yes, no);
  if (const IntImm* value = condition.As<IntImm>()) return value->value != 0 ? yes : no;
  const int lanes = condition.type().lanes;
  if (lanes != 1 && yes.type().is_scalar()) {
    yes = MakeBroadcast(std::move(yes), lanes);
    no = MakeBroadcast(std::move(no), lanes);
  }
  const DType type = yes.type();
  HONE_CHECK(lanes == 1 || lanes == type.lanes) << "a condition of " << lanes << " lanes on " << ToText(type);
  return Expr::Make(Node{std::move(condition), std::move(yes), std::move(no)}, type);
}

}  // namespace

Expr MakeSelect(Expr condition, Expr yes, Expr no) {
  return MakeChoice<Select>(std::move(condition), std::move(yes), std::move(no));
}
Expr IfThenElse(Expr condition, Expr yes, Expr no) {
  return MakeChoice<IfThenElseExpr>(std::move(condition), std::move(yes), std::move(no));
}

Expr MakeLoad(Buffer buffer, std::vector<Expr> indices, Expr mask) {
  int lanes = mask ? mask.type().lanes : 1;
  for (const Expr& index : indices) lanes = std::max<int>(lanes, index.type().lanes);
  const DType type = buffer.type().with_lanes(buffer.type().lanes * lanes);
  return Expr::Make(Load{std::move(buffer), std::move(indices), std::move(mask)}, type);
}

Expr MakeCall(std::string name, std::vector<Expr> args) {
  const IntrinsicInfo* info = FindIntrinsic(name);
  HONE_CHECK(info != nullptr) << "no intrinsic is called " << name;
  HONE_CHECK(static_cast<int>(args.size()) == info->arity) << name << " with " << args.size() << " arguments";
  int lanes = 1;
  for (const Expr& arg : args) lanes = std::max<int>(lanes, arg.type().lanes);
  const DType element = args[0].type().element();
  for (Expr& arg : args) arg = WithType(std::move(arg), element, lanes);
  const DType type = info->returns_bool ? DType::Bool(lanes) : element.with_lanes(lanes);
  return Expr::Make(Call{std::move(name), std::move(args)}, type);
}

Expr MakeRamp(Expr base, Expr stride, int lanes) {
  HONE_CHECK(lanes >= 1);
  Unify(base, stride);
  HONE_CHECK(base.type().is_scalar() && base.type().is_int()) << "a ramp of " << ToText(base.type());
  if (lanes == 1) return base;
  if (IsConst(stride, 0)) return MakeBroadcast(std::move(base), lanes);
  const DType type = base.type().with_lanes(lanes);
  return Expr::Make(Ramp{std::move(base), std::move(stride)}, type);
}
Expr MakeBroadcast(Expr value, int lanes) {
  HONE_CHECK(value.type().is_scalar()) << "a broadcast of " << ToText(value.type());
  if (lanes == 1) return value;
  const DType type = value.type().with_lanes(lanes);
  return Expr::Make(Broadcast{std::move(value)}, type);
}

std::optional<int64_t> ConstantValue(const Expr& e) {
  const IntImm* value = e.As<IntImm>();
  return value == nullptr ? std::nullopt : std::optional(value->value);
}
bool IsConst(const Expr& e, int64_t value) {
  const IntImm* imm = e.As<IntImm>();
  return imm != nullptr && imm->value == value;
}

}  // namespace hone
