// What values of each element type are in LLVM's types, and conversions between them.
#include <cmath>
#include <limits>

#include "compiler/codegen/emitter.h"
#include "compiler/ir/float_format.h"

namespace hone {
namespace {

bool IsHalf(DType type) { return type.code == TypeCode::kFloat && type.bits == 16; }
bool IsBFloat(DType type) { return type.code == TypeCode::kBFloat; }
bool IsFloat8(DType type) { return type.code == TypeCode::kFloat8E4M3 || type.code == TypeCode::kFloat8E5M2; }
bool IsKeptAsBits(DType type) { return IsBFloat(type) || IsFloat8(type); }

}  // namespace

bool Emitter::IsUnsigned(DType type) { return type.code == TypeCode::kUInt || type.is_bool(); }

llvm::Type* Emitter::WithLanesOf(llvm::Type* element, llvm::Value* like) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType())) {
    return llvm::FixedVectorType::get(element, vector->getNumElements());
  }
  return element;
}

llvm::Type* Emitter::TypeOf(DType type) const {
  llvm::LLVMContext& c = context_;
  llvm::Type* element = type.is_bool()       ? llvm::Type::getInt1Ty(c)
                        : type.is_int()      ? llvm::Type::getIntNTy(c, type.bits)
                        : IsKeptAsBits(type) ? llvm::Type::getIntNTy(c, type.bits)
                        : IsHalf(type)       ? llvm::Type::getHalfTy(c)
                        : type.bits == 32    ? llvm::Type::getFloatTy(c)
                                             : llvm::Type::getDoubleTy(c);
  return type.is_scalar() ? element : llvm::FixedVectorType::get(element, type.lanes);
}

llvm::Type* Emitter::MemoryTypeOf(DType type) const {
  return type.bits < 8 ? TypeOf(DType::UInt(8, type.lanes)) : TypeOf(type);
}

llvm::Value* Emitter::ToFloat(llvm::Value* value, DType type) {
  if (IsHalf(type)) return b_.CreateFPExt(value, WithLanesOf(b_.getFloatTy(), value));
  if (IsFloat8(type)) return Float8ToFloat(value, type);
  if (!IsBFloat(type)) return value;
  llvm::Type* i32 = WithLanesOf(b_.getInt32Ty(), value);
  return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(value, i32), llvm::ConstantInt::get(i32, 16)),
                          WithLanesOf(b_.getFloatTy(), value));
}

llvm::Value* Emitter::FromFloat(llvm::Value* value, DType type) {
  if (IsHalf(type)) return b_.CreateFPTrunc(value, WithLanesOf(b_.getHalfTy(), value));
  if (IsFloat8(type)) return FloatToFloat8(value, type);
  return IsBFloat(type) ? FloatToBFloat(value) : value;
}

// Both formats are float16's with exponent or mantissa cut: their digits in its place are the number over a power of
// two, subnormal ones too.
llvm::Value* Emitter::Float8ToFloat(llvm::Value* value, DType type) {
  const FloatFormat& format = FormatOf(type);
  const FloatFormat& half = FormatOf(DType::Float(16));
  llvm::Type* i16 = WithLanesOf(b_.getInt16Ty(), value);
  const auto constant = [&](uint64_t v) { return llvm::ConstantInt::get(i16, v); };
  llvm::Value* bits = b_.CreateZExt(value, i16);
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(bits, constant(0x80)), constant(8));
  llvm::Value* digits = b_.CreateAnd(bits, constant(0x7F));
  llvm::Value* shifted =
      b_.CreateShl(digits, constant(static_cast<uint64_t>(half.mantissa_bits - format.mantissa_bits)));
  llvm::Value* number = b_.CreateBitCast(b_.CreateOr(sign, shifted), WithLanesOf(b_.getHalfTy(), value));
  number = b_.CreateFPExt(number, WithLanesOf(b_.getFloatTy(), value));
  if (format.has_infinity) return number;  // e5m2: the exponents are the same
  llvm::Type* f32 = number->getType();
  number = b_.CreateFMul(number, llvm::ConstantFP::get(f32, std::ldexp(1, format.min_exponent - half.min_exponent)));
  return b_.CreateSelect(b_.CreateICmpEQ(digits, constant(0x7F)), llvm::ConstantFP::getNaN(f32), number);
}

// Rounds the digits as FloatToBFloat does. Below the normal numbers, adding a number whose last place is the type's
// least one rounds.
llvm::Value* Emitter::FloatToFloat8(llvm::Value* value, DType type) {
  const FloatFormat& format = FormatOf(type);
  const FloatFormat& single = FormatOf(kFloat32);
  llvm::Type *f32 = value->getType(), *i32 = WithLanesOf(b_.getInt32Ty(), value);
  const auto constant = [&](int64_t v) { return llvm::ConstantInt::get(i32, static_cast<uint64_t>(v)); };
  const auto number = [&](double v) { return llvm::ConstantFP::get(f32, v); };
  const int cut = single.mantissa_bits - format.mantissa_bits;
  llvm::Value* bits = b_.CreateBitCast(value, i32);
  llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(bits, constant(24)), constant(0x80));
  llvm::Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  llvm::Value* digits = b_.CreateAnd(bits, constant(0x7FFFFFFF));
  llvm::Value* last = b_.CreateAnd(b_.CreateLShr(digits, constant(cut)), constant(1));
  llvm::Value* normal =
      b_.CreateLShr(b_.CreateAdd(digits, b_.CreateAdd(last, constant((1 << (cut - 1)) - 1))), constant(cut));
  normal = b_.CreateSub(normal, constant((format.min_exponent - single.min_exponent) << format.mantissa_bits));
  const double rounder = std::ldexp(format.SmallestSubnormal(), single.mantissa_bits);
  llvm::Value* rounded = b_.CreateBitCast(b_.CreateFAdd(size, number(rounder)), i32);
  llvm::Value* small = b_.CreateSub(rounded, b_.CreateBitCast(number(rounder), i32));
  llvm::Value* result = b_.CreateSelect(b_.CreateFCmpOLT(size, number(format.SmallestNormal())), small, normal);
  const double infinity = std::numeric_limits<double>::infinity();
  const int64_t largest = FloatToBits(format.largest, type), nan = FloatToBits(std::nan(""), type);
  const int64_t beyond = format.has_infinity ? FloatToBits(infinity, type) : nan;
  result = b_.CreateSelect(b_.CreateICmpSGT(normal, constant(largest)), constant(beyond), result);
  result = b_.CreateSelect(b_.CreateFCmpUNO(value, value), constant(nan), result);
  return b_.CreateTrunc(b_.CreateOr(result, sign), WithLanesOf(b_.getInt8Ty(), value));
}

// Adds half of the last place kept, or a hair less when that place is even, and cuts; NaN stays a quiet NaN.
llvm::Value* Emitter::FloatToBFloat(llvm::Value* value) {
  llvm::Type* i32 = WithLanesOf(b_.getInt32Ty(), value);
  const auto constant = [&](uint64_t v) { return llvm::ConstantInt::get(i32, v); };
  llvm::Value* bits = b_.CreateBitCast(value, i32);
  llvm::Value* last = b_.CreateAnd(b_.CreateLShr(bits, constant(16)), constant(1));
  llvm::Value* rounded = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(last, constant(0x7FFF))), constant(16));
  llvm::Value* quiet = b_.CreateOr(b_.CreateLShr(bits, constant(16)), constant(0x40));
  llvm::Value* chosen = b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded);
  return b_.CreateTrunc(chosen, WithLanesOf(b_.getInt16Ty(), value));
}

// Boldo and Melquiond, "When double rounding is odd" (2005): rounding to odd first, then to nearest, is rounding once.
llvm::Value* Emitter::DoubleToFloatOdd(llvm::Value* value) {
  llvm::Type *f32 = WithLanesOf(b_.getFloatTy(), value), *i32 = WithLanesOf(b_.getInt32Ty(), value);
  llvm::Value* nearest = b_.CreateFPTrunc(value, f32);
  llvm::Value* back = b_.CreateFPExt(nearest, value->getType());
  llvm::Value* bits = b_.CreateBitCast(nearest, i32);
  const auto magnitude = [&](llvm::Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  llvm::Value* away = b_.CreateFCmpOGT(magnitude(back), magnitude(value));
  llvm::Value* cut = b_.CreateAdd(bits, b_.CreateSExt(away, i32));  // towards zero
  llvm::Value* odd = b_.CreateOr(cut, llvm::ConstantInt::get(i32, 1));
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateFCmpONE(back, value), odd, bits), f32);
}

// The nearest value of the type towards zero, 0 for NaN, as LLVM's saturating conversion; which takes x86 several times
// as many instructions, for it does not hold the value within the type before it converts.
llvm::Value* Emitter::FloatToNarrow(llvm::Value* value, DType to) {
  const bool is_unsigned = to.code == TypeCode::kUInt;
  const double least = is_unsigned ? 0 : -std::ldexp(1, to.bits - 1);
  llvm::Value* low = llvm::ConstantFP::get(value->getType(), least);
  llvm::Value* high = llvm::ConstantFP::get(value->getType(), least + std::ldexp(1, to.bits) - 1);
  if (!is_unsigned) {
    llvm::Value* zero = llvm::ConstantFP::get(value->getType(), 0);
    value = b_.CreateSelect(b_.CreateFCmpORD(value, zero), value, zero);
  }
  value = b_.CreateSelect(b_.CreateFCmpOGT(value, low), value, low);
  value = b_.CreateSelect(b_.CreateFCmpOLT(value, high), value, high);
  return b_.CreateTrunc(b_.CreateFPToSI(value, WithLanesOf(b_.getInt32Ty(), value)), TypeOf(to));
}

llvm::Value* Emitter::EmitCast(const Expr& from, DType to) {
  const DType source = from.type();
  if (to == kInt64 && source == kInt32 && IsIndexArithmetic(from)) return EmitWide(from);
  llvm::Value* value = EmitExpr(from);
  if (source.code == to.code && source.bits == to.bits) return value;
  llvm::Type* type = TypeOf(to);
  if (to.is_bool()) {
    if (source.is_float()) {
      value = ToFloat(value, source);
      return b_.CreateFCmpUNE(value, llvm::Constant::getNullValue(value->getType()));
    }
    return b_.CreateICmpNE(value, llvm::Constant::getNullValue(value->getType()));
  }
  const bool narrow = to.is_float() && to.bits <= 16;
  if (source.is_float()) {
    value = ToFloat(value, source);
    if (to.is_float()) {
      if (narrow) return FromFloat(source.bits == 64 ? DoubleToFloatOdd(value) : value, to);
      return to.bits < value->getType()->getScalarSizeInBits()   ? b_.CreateFPTrunc(value, type)
             : to.bits > value->getType()->getScalarSizeInBits() ? b_.CreateFPExt(value, type)
                                                                 : value;
    }
    if (to.bits <= 16 && !value->getType()->getScalarType()->isHalfTy()) return FloatToNarrow(value, to);
    const auto convert = to.code == TypeCode::kUInt ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
    return b_.CreateIntrinsic(convert, {type, value->getType()}, {value});
  }
  const bool is_unsigned = IsUnsigned(source);
  if (to.is_float()) {
    llvm::Type* middle = narrow ? WithLanesOf(b_.getDoubleTy(), value) : type;
    value = is_unsigned ? b_.CreateUIToFP(value, middle) : b_.CreateSIToFP(value, middle);
    return narrow ? FromFloat(DoubleToFloatOdd(value), to) : value;
  }
  return b_.CreateIntCast(value, type, /*isSigned=*/!is_unsigned);
}

}  // namespace hone
