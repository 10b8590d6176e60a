// Expressions.
#include <algorithm>
#include <cmath>

#include "compiler/codegen/emitter.h"
#include "compiler/codegen/vector_math.h"
#include "compiler/ir/float_format.h"
#include "compiler/ir/math_functions.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "llvm/TargetParser/Triple.h"

namespace hone {
namespace {

// A float constant that is not NaN, looking through broadcasts.
bool IsNumber(const Expr& e) {
  if (const Broadcast* broadcast = e.As<Broadcast>()) return IsNumber(broadcast->value);
  const FloatImm* imm = e.As<FloatImm>();
  return imm != nullptr && !std::isnan(imm->value);
}

}  // namespace

llvm::Value* Emitter::Splat(llvm::Value* value, int lanes) {
  return lanes == 1 ? value : b_.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}

llvm::Value* Emitter::EmitExpr(const Expr& e) {
  const DType type = e.type();
  if (const IntImm* imm = e.As<IntImm>()) {
    return llvm::ConstantInt::get(TypeOf(type), static_cast<uint64_t>(imm->value), /*IsSigned=*/true);
  }
  if (const FloatImm* imm = e.As<FloatImm>()) {
    if (!TypeOf(type)->getScalarType()->isFloatingPointTy())  // kept as its bits
      return llvm::ConstantInt::get(TypeOf(type), FloatToBits(RoundToType(imm->value, type), type));
    return llvm::ConstantFP::get(TypeOf(type), RoundToType(imm->value, type.element()));
  }
  if (const VarRef* ref = e.As<VarRef>()) {
    const auto found = frame_.vars.find(ref->var);
    HONE_CHECK(found != frame_.vars.end()) << ref->var.name() << " is not in scope";
    return type == kInt32 ? b_.CreateTrunc(found->second, b_.getInt32Ty()) : found->second;
  }
  if (const Binary* binary = e.As<Binary>()) {
    if (IsIndexType(type) && IsIndexArithmetic(e)) {
      llvm::Value* wide = EmitWide(e);
      return type == kInt32 ? b_.CreateTrunc(wide, b_.getInt32Ty()) : wide;
    }
    return EmitBinary(*binary, type);
  }
  if (const Not* negation = e.As<Not>()) return b_.CreateNot(EmitExpr(negation->a));
  if (const Cast* cast = e.As<Cast>()) return EmitCast(cast->a, type);
  if (const Select* select = e.As<Select>()) {
    llvm::Value* condition = EmitExpr(select->condition);
    llvm::Value* yes = EmitExpr(select->yes);
    return b_.CreateSelect(condition, yes, EmitExpr(select->no));
  }
  if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) return EmitIfThenElse(*choice, type);
  if (const LetExpr* let = e.As<LetExpr>()) {
    frame_.vars[let->var] = EmitBound(let->var, let->value);
    return EmitExpr(let->body);
  }
  if (const Load* load = e.As<Load>()) return EmitLoad(*load, type);
  if (const Call* call = e.As<Call>()) return EmitCall(*call, type);
  if (const Broadcast* broadcast = e.As<Broadcast>()) return EmitBroadcast(*broadcast, type.lanes);
  if (const Ramp* ramp = e.As<Ramp>()) {
    std::vector<llvm::Constant*> steps;
    for (int i = 0; i < type.lanes; ++i) steps.push_back(llvm::ConstantInt::get(TypeOf(type.element()), i));
    llvm::Value* stride = Splat(EmitExpr(ramp->stride), type.lanes);
    llvm::Value* offsets = b_.CreateMul(llvm::ConstantVector::get(steps), stride);
    return b_.CreateAdd(Splat(EmitExpr(ramp->base), type.lanes), offsets);
  }
  HONE_UNREACHABLE() << "an expression the code generator does not know";
  return nullptr;
}

llvm::Value* Emitter::EmitBound(const Var& var, const Expr& value) {
  return IsIndexType(var.type()) ? EmitEarly(value) : EmitExpr(value);
}

// Multiply-adds of AArch64 read one element of a register for all lanes. A load that spreads what it reads (LD1R) takes
// a turn of the pipes that multiply, and LLVM takes one wherever it sees a loaded value spread; it does not look
// through a freeze, which costs nothing.
llvm::Value* Emitter::EmitBroadcast(const Broadcast& broadcast, int lanes) {
  llvm::Value* value = EmitExpr(broadcast.value);
  const DType type = broadcast.value.type();
  const bool multiplied_by_element = llvm::Triple(module_.getTargetTriple()).isAArch64() && type.is_float() &&
                                     type.bits >= 32 && broadcast.value.As<Load>() != nullptr;
  return Splat(multiplied_by_element ? b_.CreateFreeze(value) : value, lanes);
}

bool Emitter::IsIndexArithmetic(const Expr& e) const {
  if (!IsIndexType(e.type())) return false;
  if (e.As<IntImm>() != nullptr || e.As<VarRef>() != nullptr) return true;
  if (const Cast* cast = e.As<Cast>()) return e.type().bits >= cast->a.type().bits && IsIndexArithmetic(cast->a);
  const Binary* binary = e.As<Binary>();
  if (binary == nullptr) return false;
  switch (binary->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMul:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return IsIndexArithmetic(binary->a) && IsIndexArithmetic(binary->b);
    default: return false;
  }
}

llvm::Value* Emitter::EmitWide(const Expr& e) {
  if (const std::optional<int64_t> value = ConstantValue(e)) return Int64(*value);
  if (IsIndexArithmetic(e)) {
    if (const VarRef* ref = e.As<VarRef>()) {
      const auto found = frame_.vars.find(ref->var);
      HONE_CHECK(found != frame_.vars.end()) << ref->var.name() << " is not in scope";
      return found->second;
    }
    if (const Cast* cast = e.As<Cast>()) return EmitWide(cast->a);
    const Binary* binary = e.As<Binary>();
    llvm::Value* a = EmitWide(binary->a);
    return EmitIndexArithmetic(binary->op, a, EmitWide(binary->b), NonNegative(binary->a));
  }
  llvm::Value* value = EmitExpr(e);
  if (e.type().bits == 64) return value;
  return IsUnsigned(e.type()) ? b_.CreateZExt(value, b_.getInt64Ty()) : b_.CreateSExt(value, b_.getInt64Ty());
}

// Certainly at least 0: then a quotient rounds the same way whichever way it rounds.
bool Emitter::NonNegative(const Expr& e) const {
  if (const std::optional<int64_t> value = ConstantValue(e)) return *value >= 0;
  if (const VarRef* ref = e.As<VarRef>()) return non_negative_.count(ref->var) != 0;
  if (const Cast* cast = e.As<Cast>()) return IsIndexType(cast->a.type()) && NonNegative(cast->a);
  const Binary* binary = e.As<Binary>();
  if (binary == nullptr) return false;
  switch (binary->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kMin: return NonNegative(binary->a) && NonNegative(binary->b);
    case BinaryOp::kMax: return NonNegative(binary->a) || NonNegative(binary->b);
    case BinaryOp::kFloorMod: return NonNegative(binary->b);
    default: return false;
  }
}

// Integers, scalars or vectors, signed; index arithmetic in i64 and data in their own width share the rounding rules.
llvm::Value* Emitter::EmitIndexArithmetic(BinaryOp op, llvm::Value* a, llvm::Value* b, bool non_negative) {
  switch (op) {
    case BinaryOp::kAdd: return b_.CreateNSWAdd(a, b);
    case BinaryOp::kSub: return b_.CreateNSWSub(a, b);
    case BinaryOp::kMul: return b_.CreateNSWMul(a, b);
    case BinaryOp::kMin: return b_.CreateSelect(b_.CreateICmpSLT(a, b), a, b);
    case BinaryOp::kMax: return b_.CreateSelect(b_.CreateICmpSGT(a, b), a, b);
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: break;
    default: HONE_UNREACHABLE() << "not index arithmetic";
  }
  const bool quotient = op == BinaryOp::kFloorDiv;
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(b);
  if (constant == nullptr && llvm::isa<llvm::Constant>(b)) {
    constant = llvm::dyn_cast_or_null<llvm::ConstantInt>(llvm::cast<llvm::Constant>(b)->getSplatValue());
  }
  if (constant != nullptr && constant->getSExtValue() > 0) {
    if (constant->getValue().isPowerOf2()) {
      llvm::Type* type = b->getType();
      return quotient ? b_.CreateAShr(a, llvm::ConstantInt::get(type, constant->getValue().logBase2()))
                      : b_.CreateAnd(a, llvm::ConstantInt::get(type, constant->getValue() - 1));
    }
    if (non_negative) return quotient ? b_.CreateUDiv(a, b) : b_.CreateURem(a, b);
  }
  llvm::Value* remainder = b_.CreateSRem(a, b);
  llvm::Value* zero = llvm::Constant::getNullValue(a->getType());
  llvm::Value* differ = b_.CreateICmpSLT(b_.CreateXor(remainder, b), zero);  // signs differ: round the other way
  llvm::Value* adjust = b_.CreateAnd(b_.CreateICmpNE(remainder, zero), differ);
  if (!quotient) return b_.CreateSelect(adjust, b_.CreateAdd(remainder, b), remainder);
  return b_.CreateAdd(b_.CreateSDiv(a, b), b_.CreateSExt(adjust, a->getType()));
}

llvm::Value* Emitter::EmitBinary(const Binary& binary, DType type) {
  const DType operand = binary.a.type();
  const BinaryOp op = binary.op;
  // Comparisons of indices are made in 64 bits: nothing to extend or truncate.
  const bool wide =
      IsComparison(op) && IsIndexType(operand) && IsIndexArithmetic(binary.a) && IsIndexArithmetic(binary.b);
  llvm::Value* a = wide ? EmitWide(binary.a) : EmitExpr(binary.a);
  llvm::Value* b = wide ? EmitWide(binary.b) : EmitExpr(binary.b);
  if (operand.is_float()) {
    a = ToFloat(a, operand);
    b = ToFloat(b, operand);
    switch (op) {
      case BinaryOp::kEq: return b_.CreateFCmpOEQ(a, b);
      case BinaryOp::kNe: return b_.CreateFCmpUNE(a, b);
      case BinaryOp::kLt: return b_.CreateFCmpOLT(a, b);
      case BinaryOp::kLe: return b_.CreateFCmpOLE(a, b);
      case BinaryOp::kGt: return b_.CreateFCmpOGT(a, b);
      case BinaryOp::kGe: return b_.CreateFCmpOGE(a, b);
      default: return FromFloat(FloatArithmetic(op, a, b, binary.a, binary.b), operand);
    }
  }
  const bool is_unsigned = IsUnsigned(operand);
  if (IsDivision(op) && b->getType()->isVectorTy() && !llvm::isa<llvm::Constant>(b)) {
    // Lanes beyond the end of a tail hold 0, and the processor would stop at a division by it.
    llvm::Type* type = b->getType();
    b = b_.CreateSelect(b_.CreateICmpEQ(b, llvm::Constant::getNullValue(type)), llvm::ConstantInt::get(type, 1), b);
  }
  switch (op) {
    case BinaryOp::kEq: return b_.CreateICmpEQ(a, b);
    case BinaryOp::kNe: return b_.CreateICmpNE(a, b);
    case BinaryOp::kLt: return is_unsigned ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    case BinaryOp::kLe: return is_unsigned ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
    case BinaryOp::kGt: return is_unsigned ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b);
    case BinaryOp::kGe: return is_unsigned ? b_.CreateICmpUGE(a, b) : b_.CreateICmpSGE(a, b);
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd: return b_.CreateAnd(a, b);
    case BinaryOp::kOr:
    case BinaryOp::kBitOr: return b_.CreateOr(a, b);
    case BinaryOp::kBitXor: return b_.CreateXor(a, b);
    case BinaryOp::kShiftLeft: return b_.CreateShl(a, b);
    case BinaryOp::kShiftRight: return is_unsigned ? b_.CreateLShr(a, b) : b_.CreateAShr(a, b);
    case BinaryOp::kAdd: return b_.CreateAdd(a, b);  // data wraps
    case BinaryOp::kSub: return b_.CreateSub(a, b);
    case BinaryOp::kMul: return b_.CreateMul(a, b);
    case BinaryOp::kDiv: return is_unsigned ? b_.CreateUDiv(a, b) : b_.CreateSDiv(a, b);
    case BinaryOp::kMod: return is_unsigned ? b_.CreateURem(a, b) : b_.CreateSRem(a, b);
    case BinaryOp::kMin: return b_.CreateSelect(is_unsigned ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b), a, b);
    case BinaryOp::kMax: return b_.CreateSelect(is_unsigned ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b), a, b);
    case BinaryOp::kFloorDiv:
      if (is_unsigned) return b_.CreateUDiv(a, b);
      return EmitIndexArithmetic(op, a, b, NonNegative(binary.a));
    case BinaryOp::kFloorMod:
      if (is_unsigned) return b_.CreateURem(a, b);
      return EmitIndexArithmetic(op, a, b, NonNegative(binary.a));
  }
  HONE_UNREACHABLE() << "an operator the code generator does not know";
  return nullptr;
}

llvm::Value* Emitter::FloatArithmetic(BinaryOp op, llvm::Value* a, llvm::Value* b, const Expr& a_expr,
                                      const Expr& b_expr) {
  llvm::IRBuilder<>::FastMathFlagGuard guard(b_);
  llvm::FastMathFlags flags;
  flags.setAllowContract(options_.contract);
  b_.setFastMathFlags(flags);
  switch (op) {
    case BinaryOp::kAdd: return b_.CreateFAdd(a, b);
    case BinaryOp::kSub: return b_.CreateFSub(a, b);
    case BinaryOp::kMul: return b_.CreateFMul(a, b);
    case BinaryOp::kDiv: return b_.CreateFDiv(a, b);
    case BinaryOp::kMod: return FloatModulo(a, b, /*floor=*/false);
    case BinaryOp::kFloorMod: return FloatModulo(a, b, /*floor=*/true);
    case BinaryOp::kFloorDiv: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, b_.CreateFDiv(a, b));
    case BinaryOp::kMin:
    case BinaryOp::kMax: break;
    default: HONE_UNREACHABLE() << "an operation that floats do not have";
  }
  // x86's min and max give the second operand when either is NaN. A NaN must stay one: where one side is a number, it
  // goes first and the single instruction is right; otherwise a NaN in the first operand stays where it is, which the
  // mask of an instruction of AVX-512 does.
  const auto better = [&](llvm::Value* x, llvm::Value* y) {
    return b_.CreateSelect(op == BinaryOp::kMax ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y), x, y);
  };
  if (IsNumber(a_expr)) return better(a, b);
  if (IsNumber(b_expr)) return better(b, a);
  return b_.CreateSelect(b_.CreateFCmpORD(a, a), better(a, b), a);
}

// C's fmod by one quotient: exact while the quotient is below 2^52. Calls no library.
llvm::Value* Emitter::FloatModulo(llvm::Value* a, llvm::Value* b, bool floor) {
  llvm::Type* type = a->getType();
  llvm::Type* wide = WithLanesOf(b_.getDoubleTy(), a);
  llvm::Value* x = b_.CreateFPExt(a, wide);
  llvm::Value* y = b_.CreateFPExt(b, wide);
  llvm::Value* ay = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, y);
  llvm::Value* ax = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  llvm::Value* quotient = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b_.CreateFDiv(ax, ay));
  llvm::Value* remainder = b_.CreateIntrinsic(llvm::Intrinsic::fma, {wide}, {b_.CreateFNeg(quotient), ay, ax});
  llvm::Value* zero = llvm::Constant::getNullValue(wide);
  // The quotient may have been rounded up to the next integer, or down from it.
  remainder = b_.CreateSelect(b_.CreateFCmpOLT(remainder, zero), b_.CreateFAdd(remainder, ay), remainder);
  remainder = b_.CreateSelect(b_.CreateFCmpOGE(remainder, ay), b_.CreateFSub(remainder, ay), remainder);
  remainder = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, remainder, x);
  llvm::Value* y_infinite = b_.CreateFCmpOEQ(ay, llvm::ConstantFP::getInfinity(wide));
  llvm::Value* x_finite = b_.CreateFCmpONE(ax, llvm::ConstantFP::getInfinity(wide));
  remainder = b_.CreateSelect(b_.CreateAnd(y_infinite, x_finite), x, remainder);
  if (floor) {
    llvm::Value* differ = b_.CreateXor(b_.CreateFCmpOLT(remainder, zero), b_.CreateFCmpOLT(y, zero));
    llvm::Value* adjust = b_.CreateAnd(differ, b_.CreateFCmpONE(remainder, zero));
    remainder = b_.CreateSelect(adjust, b_.CreateFAdd(remainder, y), remainder);
  }
  return b_.CreateFPTrunc(remainder, type);
}

llvm::Value* Emitter::EmitIfThenElse(const IfThenElseExpr& e, DType type) {
  if (const std::optional<int64_t> known = ConstantValue(e.condition)) return EmitExpr(*known != 0 ? e.yes : e.no);
  if (!e.condition.type().is_scalar()) {  // the loads inside carry masks
    llvm::Value* condition = EmitExpr(e.condition);
    llvm::Value* yes = EmitExpr(e.yes);
    return b_.CreateSelect(condition, yes, EmitExpr(e.no));
  }
  if (llvm::Value* loaded = EmitGuardedLoad(e, type)) return loaded;
  llvm::BasicBlock* yes = llvm::BasicBlock::Create(context_, "yes", frame_.function);
  llvm::BasicBlock* no = llvm::BasicBlock::Create(context_, "no", frame_.function);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", frame_.function);
  b_.CreateCondBr(EmitExpr(e.condition), yes, no);
  llvm::Value *yes_value = nullptr, *no_value = nullptr;
  EmitBranch(yes, [&] { yes_value = EmitExpr(e.yes); });
  yes = b_.GetInsertBlock();
  b_.CreateBr(join);
  EmitBranch(no, [&] { no_value = EmitExpr(e.no); });
  no = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* value = b_.CreatePHI(TypeOf(type), 2);
  value->addIncoming(yes_value, yes);
  value->addIncoming(no_value, no);
  return value;
}

bool Emitter::HasFeature(std::string_view feature) const {
  return std::ranges::find(options_.features, feature) != options_.features.end();
}

llvm::Value* Emitter::EmitCall(const Call& call, DType type) {
  if (const std::optional<Expr> made_of = ExpandMath(call, options_.precise)) return EmitExpr(*made_of);
  std::vector<llvm::Value*> args;
  for (const Expr& arg : call.args) args.push_back(EmitExpr(arg));
  const DType operand = call.args[0].type();
  if (!operand.is_float()) {
    if (call.name == "abs") {
      if (IsUnsigned(operand)) return args[0];
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, args[0], b_.getFalse());
    }
    if (call.name == "popcount") return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, args[0]);
    if (call.name == "isnan" || call.name == "isinf") return llvm::Constant::getNullValue(TypeOf(type));
    if (call.name == "fma") return b_.CreateAdd(b_.CreateMul(args[0], args[1]), args[2]);
    if (call.name == "floor" || call.name == "ceil" || call.name == "round" || call.name == "trunc") return args[0];
    HONE_UNREACHABLE() << call.name << " of integers";
  }
  for (llvm::Value*& arg : args) arg = ToFloat(arg, operand);
  llvm::Value* result = EmitMath(b_, call.name, args, {.precise = options_.precise, .scalef = HasFeature("avx512vl")});
  return type.is_bool() ? result : FromFloat(result, operand);
}

}  // namespace hone
