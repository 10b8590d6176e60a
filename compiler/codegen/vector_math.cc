#include "compiler/codegen/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numbers>
#include <vector>

#include "compiler/support/check.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace hone {
namespace {

using llvm::Value;

// Instructions on one floating type, float or double, scalar or vector.
class Math {
 public:
  Math(llvm::IRBuilder<>& b, llvm::Type* type, bool scalef = false)
      : b_(b), type_(type), wide_(type->getScalarType()->isDoubleTy()), scalef_(scalef) {
    int_ = wide_ ? b.getInt64Ty() : b.getInt32Ty();
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
      int_ = llvm::FixedVectorType::get(int_, vector->getNumElements());
  }

  Value* Exp(Value* x) {
    return ExpOfReduced(x, std::numbers::log2e, wide_ ? 710 : 89, wide_ ? -746 : -104, /*base_two=*/false);
  }
  Value* Exp2(Value* x) { return ExpOfReduced(x, 1, wide_ ? 1025 : 129, wide_ ? -1080 : -155, /*base_two=*/true); }

  // expm1(z) / (expm1(z) + 2) with z = 2|x|: no cancellation near 0, 1 for large z.
  Value* Tanh(Value* x) {
    Value* z = b_.CreateFMul(Abs(x), C(2));
    const double limit = wide_ ? 40 : 20;
    z = b_.CreateSelect(b_.CreateFCmpOGT(z, C(limit)), C(limit), z);
    const Reduced reduced = Reduce(z);
    Value* minus_one = b_.CreateFMul(reduced.r, Polynomial(Expm1Coefficients(), reduced.r));
    Value* scale = PowerOfTwo(reduced.n);
    Value* e = Fma(scale, minus_one, b_.CreateFSub(scale, C(1)));
    return CopySign(b_.CreateFDiv(e, b_.CreateFAdd(e, C(2))), x);
  }

  // (e^a - e^-a) / 2 with a = |x|: with d = (e^a - 1) / 4 it is 2 (d + d / (4 d + 1)), without cancellation near 0.
  // Near 0 it is x, also where a quarter of that is no longer exact.
  Value* Sinh(Value* x) {
    const Quarter quarter = QuarterOfExp(x);
    Value* d = Fma(quarter.scale, quarter.minus_one, b_.CreateFSub(quarter.scale, C(0.25)));
    Value* sum = b_.CreateFAdd(d, b_.CreateFDiv(d, Fma(d, C(4), C(1))));
    Value* value = b_.CreateFMul(sum, C(2));
    Value* tiny = b_.CreateFCmpOLT(Abs(x), C(wide_ ? 0x1p-27 : 0x1p-13));
    return b_.CreateSelect(tiny, x, CopySign(value, x));
  }
  Value* Cosh(Value* x) {
    const Quarter quarter = QuarterOfExp(x);
    Value* e = Fma(quarter.scale, quarter.minus_one, quarter.scale);
    return b_.CreateFMul(b_.CreateFAdd(e, b_.CreateFDiv(C(0.0625), e)), C(2));
  }

  // The arctangent of the smaller of |x| and |y| over the larger, r, is the angle from the nearer axis; from that one
  // the direction is base + r or base - r, base being 0, pi/2 or pi in two parts. Signs of zeros and infinities as C
  // has them.
  Value* Atan2(Value* y, Value* x) {
    Value *ax = Abs(x), *ay = Abs(y);
    Value* steep = b_.CreateFCmpOGT(ay, ax);
    Value* small = b_.CreateSelect(steep, ax, ay);
    Value* large = b_.CreateSelect(steep, ay, ax);
    large = b_.CreateSelect(b_.CreateFCmpOEQ(large, C(0)), C(1), large);
    Value* q = b_.CreateFDiv(small, large);
    q = b_.CreateSelect(b_.CreateFCmpOEQ(small, large), C(1), q);  // infinities too
    Value* square = b_.CreateFMul(q, q);
    Value* r = Fma(b_.CreateFMul(q, square), Polynomial(AtanCoefficients(), square), q);
    Value* left = b_.CreateICmpSLT(b_.CreateBitCast(x, int_), I(0));
    r = b_.CreateSelect(b_.CreateXor(steep, left), b_.CreateFNeg(r), r);
    const double half_pi = wide_ ? std::numbers::pi / 2 : static_cast<double>(std::numbers::pi_v<float> / 2);
    const double rest = wide_ ? 0x1.1a62633145c07p-54 : std::numbers::pi / 2 - half_pi;
    Value* base = b_.CreateSelect(steep, C(half_pi), b_.CreateSelect(left, C(2 * half_pi), C(0)));
    Value* low = b_.CreateSelect(steep, C(rest), b_.CreateSelect(left, C(2 * rest), C(0)));
    return CopySign(b_.CreateFAdd(base, b_.CreateFAdd(low, r)), y);
  }

  Value* Log(Value* x) {
    const Split s = SplitExponent(x);
    // ln 2 in two parts: the first has few bits, so that its product with an exponent is exact (Cody and Waite).
    const double high = wide_ ? 0x1.62e42fee00000p-1 : 0.693359375;
    const double low = wide_ ? 0x1.a39ef35793c76p-33 : -2.12194440054690583e-4;
    return LogSpecials(x, Fma(s.exponent, C(high), Fma(s.exponent, C(low), s.log_mantissa)));
  }
  Value* Log2(Value* x) {
    const Split s = SplitExponent(x);
    return LogSpecials(x, Fma(s.log_mantissa, C(std::numbers::log2e), s.exponent));
  }

  Value* Erf(Value* x) { return wide_ ? ErfDouble(x) : ErfFloat(x); }

  Value* Sin(Value* x) { return SinOrCos(x, 0); }
  Value* Cos(Value* x) { return SinOrCos(x, 1); }

  Value* IsNan(Value* x) { return b_.CreateFCmpUNO(x, x); }
  Value* IsInfinite(Value* x) { return b_.CreateFCmpOEQ(Abs(x), Infinity()); }

  // |x|^y = e^(y ln|x|), then C's special cases.
  Value* Pow(Value* x, Value* y) {
    Value* magnitude = Exp(b_.CreateFMul(y, Log(Abs(x))));
    Value* zero = C(0);
    Value* is_integer = b_.CreateFCmpOEQ(Unary(llvm::Intrinsic::trunc, y), y);
    Value* half = b_.CreateFMul(y, C(0.5));
    Value* odd = b_.CreateAnd(is_integer, b_.CreateFCmpONE(Unary(llvm::Intrinsic::trunc, half), half));
    Value* negative = b_.CreateFCmpOLT(x, zero);
    Value* y_infinite = b_.CreateFCmpOEQ(Abs(y), Infinity());
    Value* x_infinite = b_.CreateFCmpOEQ(Abs(x), Infinity());
    Value* result = b_.CreateSelect(b_.CreateAnd(negative, odd), b_.CreateFNeg(magnitude), magnitude);
    Value* undefined =
        b_.CreateAnd(negative, b_.CreateNot(b_.CreateOr(b_.CreateOr(is_integer, y_infinite), x_infinite)));
    result = b_.CreateSelect(undefined, llvm::ConstantFP::getNaN(type_), result);
    result = b_.CreateSelect(b_.CreateAnd(b_.CreateFCmpOEQ(Abs(x), C(1)), y_infinite), C(1), result);
    return b_.CreateSelect(b_.CreateOr(b_.CreateFCmpOEQ(y, zero), b_.CreateFCmpOEQ(x, C(1))), C(1), result);
  }

  Value* Abs(Value* x) { return Unary(llvm::Intrinsic::fabs, x); }
  Value* Unary(llvm::Intrinsic::ID id, Value* x) { return b_.CreateUnaryIntrinsic(id, x); }
  Value* C(double value) { return llvm::ConstantFP::get(type_, value); }
  Value* Infinity() { return llvm::ConstantFP::getInfinity(type_); }
  Value* Fma(Value* a, Value* b, Value* c) { return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a, b, c}); }

 private:
  struct Reduced {
    Value* n;        // integer
    Value* n_float;  // the same as a float
    Value* r;        // |r| <= ln 2 / 2
  };
  struct Split {
    Value* exponent;  // as a float
    Value* log_mantissa;
  };

  // e^|x| / 4 = scale (1 + minus_one), finite also where sinh and cosh are not. |x| is cut where twice that is
  // infinite.
  struct Quarter {
    Value* scale;
    Value* minus_one;
  };
  Quarter QuarterOfExp(Value* x) {
    const double limit = wide_ ? 710.6 : 89.5;
    Value* a = Abs(x);
    a = b_.CreateSelect(b_.CreateFCmpOGT(a, C(limit)), C(limit), a);  // keeps a NaN
    const Reduced reduced = Reduce(a);
    Value* minus_one = b_.CreateFMul(reduced.r, Polynomial(Expm1Coefficients(), reduced.r));
    return {PowerOfTwo(b_.CreateSub(reduced.n, I(2))), minus_one};
  }

  Value* I(int64_t value) { return llvm::ConstantInt::get(int_, static_cast<uint64_t>(value), /*IsSigned=*/true); }
  Value* CopySign(Value* magnitude, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  int MantissaBits() const { return wide_ ? 52 : 23; }
  int Bias() const { return wide_ ? 1023 : 127; }
  // The Taylor series of e^r on |r| <= ln 2 / 2 is exact to the type with so many terms: r^8/8! < 6e-9, r^14/14! <
  // 5e-18.
  int Terms() const { return wide_ ? 14 : 8; }
  static double Factorial(int n) { return n <= 1 ? 1 : n * Factorial(n - 1); }

  // coefficients[0] + coefficients[1] x + ..., by Horner's rule.
  Value* Polynomial(const std::vector<double>& coefficients, Value* x) {
    Value* sum = C(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;) sum = Fma(sum, x, C(coefficients[i]));
    return sum;
  }

  // The nearest integer, as a float and as an integer: adding 1.5 * 2^mantissa leaves it in the low bits. No conversion
  // that a NaN would make undefined.
  Value* Nearest(Value* x, Value* scale, Value** integer) {
    const double magic = std::ldexp(1.5, MantissaBits());
    Value* shifted = Fma(x, scale, C(magic));
    *integer = b_.CreateSub(b_.CreateBitCast(shifted, int_), b_.CreateBitCast(C(magic), int_));
    return b_.CreateFSub(shifted, C(magic));
  }

  Reduced Reduce(Value* x) {
    Reduced reduced;
    reduced.n_float = Nearest(x, C(std::numbers::log2e), &reduced.n);
    Value* n = b_.CreateFNeg(reduced.n_float);
    const double high = wide_ ? 0x1.62e42fee00000p-1 : 0.693359375;
    const double low = wide_ ? 0x1.a39ef35793c76p-33 : -2.12194440054690583e-4;
    reduced.r = Fma(n, C(low), Fma(n, C(high), x));
    return reduced;
  }

  Value* PowerOfTwo(Value* n) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(n, I(Bias())), I(MantissaBits())), type_);
  }

  // Of e^r on |r| <= ln 2 / 2. Float: the polynomial of degree 6 that begins with 1 + r and has the least relative
  // error, 3.1e-9 (weighted least squares at 4000 Chebyshev nodes, weights after Lawson).
  std::vector<double> ExpCoefficients() const {
    if (!wide_) return {1, 1, 0.4999999345, 0.1666652069, 0.04166838736, 0.008368709828, 0.001381461313};
    std::vector<double> taylor;
    for (int k = 0; k < Terms(); ++k) taylor.push_back(1 / Factorial(k));
    return taylor;
  }

  // Of (e^r - 1) / r there.
  std::vector<double> Expm1Coefficients() const {
    std::vector<double> taylor;
    for (int k = 1; k <= Terms(); ++k) taylor.push_back(1 / Factorial(k));
    return taylor;
  }

  // Of (atan(q) / q - 1) / q^2 in powers of q^2, on |q| <= 1: from the Chebyshev series of the arctangent, the sum of
  // 2 (-1)^k tan(pi/8)^(2k+1) / (2k+1) T_(2k+1)(q) (J. Mason and D. Handscomb, Chebyshev Polynomials), with 60 digits,
  // cut at T_21, or at T_43 for double. The relative error of q + q^3 (..) is 5e-9, or 2e-17.
  std::vector<double> AtanCoefficients() const {
    if (!wide_)
      return {-0.3333329868, 0.1999905617,   -0.1427370296, 0.1102468170,    -0.08700871198,
              0.06514736840, -0.04174306900, 0.02019386137, -0.006273012205, 0.0009143684282};
    return {-0.333333333333328389,     0.199999999999491060,   -0.142857142832331637,    0.111111110411899130,
            -0.0909090781744320287,    0.0769229160399270452,  -0.0666651868939462985,   0.0588132693666684989,
            -0.0525765452790987874,    0.0473860978555356581,  -0.0426878245720529821,   0.0378220124810027343,
            -0.0321077460530520527,    0.0252155415586119025,  -0.0175981503720297335,   0.0104621344973729115,
            -0.00506534002162259034,   0.00189501904397345832, -0.000509703899519458898, 0.0000872169844798202471,
            -0.00000710341009993741156};
  }

  // The instruction of AVX-512 that gives a * 2^floor(b), rounded once, for vectors of the type.
  llvm::Intrinsic::ID ScalefOfType() const {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
    if (!scalef_ || vector == nullptr) return llvm::Intrinsic::not_intrinsic;
    switch (vector->getPrimitiveSizeInBits().getFixedValue()) {
      case 128:
        return wide_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_128 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128;
      case 256:
        return wide_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256;
      case 512:
        return wide_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512 : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
      default: return llvm::Intrinsic::not_intrinsic;
    }
  }

  Value* Scalef(llvm::Intrinsic::ID id, Value* a, Value* b) {
    const auto* vector = llvm::cast<llvm::FixedVectorType>(type_);
    llvm::Type* mask = b_.getIntNTy(std::max(8U, vector->getNumElements()));
    std::vector<Value*> args{a, b, llvm::Constant::getNullValue(type_), llvm::Constant::getAllOnesValue(mask)};
    constexpr uint32_t kRoundingOfThread = 4;
    if (vector->getPrimitiveSizeInBits() == 512) args.push_back(b_.getInt32(kRoundingOfThread));
    return b_.CreateIntrinsic(id, {}, args);
  }

  Value* ExpOfReduced(Value* x, double log2_of_base, double high, double low, bool base_two) {
    x = b_.CreateSelect(b_.CreateFCmpOGT(x, C(high)), C(high), x);  // keeps a NaN
    x = b_.CreateSelect(b_.CreateFCmpOLT(x, C(low)), C(low), x);
    Reduced reduced;
    if (base_two) {
      reduced.n_float = Nearest(x, C(log2_of_base), &reduced.n);
      reduced.r = b_.CreateFMul(b_.CreateFSub(x, reduced.n_float), C(std::numbers::ln2));
    } else {
      reduced = Reduce(x);
    }
    Value* p = Polynomial(ExpCoefficients(), reduced.r);
    if (const llvm::Intrinsic::ID scalef = ScalefOfType(); scalef != llvm::Intrinsic::not_intrinsic)
      return Scalef(scalef, p, reduced.n_float);
    // 2^n in two factors: n reaches beyond the exponents of the type where the result overflows or is denormal.
    Value* half = b_.CreateAShr(reduced.n, I(1));
    return b_.CreateFMul(b_.CreateFMul(p, PowerOfTwo(half)), PowerOfTwo(b_.CreateSub(reduced.n, half)));
  }

  // x = 2^e m with m in [sqrt 1/2, sqrt 2); ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
  Split SplitExponent(Value* x) {
    const double smallest = wide_ ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
    Value* denormal = b_.CreateFCmpOLT(x, C(smallest));
    x = b_.CreateSelect(denormal, b_.CreateFMul(x, C(std::ldexp(1.0, MantissaBits() + 1))), x);
    Value* bits = b_.CreateBitCast(x, int_);
    Value* root = b_.CreateBitCast(C(std::numbers::sqrt2 / 2), int_);
    Value* e = b_.CreateAShr(b_.CreateSub(bits, root), I(MantissaBits()));
    Value* m = b_.CreateBitCast(b_.CreateSub(bits, b_.CreateShl(e, I(MantissaBits()))), type_);
    e = b_.CreateSub(e, b_.CreateSelect(denormal, I(MantissaBits() + 1), I(0)));
    Value* f = b_.CreateFSub(m, C(1));
    Value* s = b_.CreateFDiv(f, b_.CreateFAdd(f, C(2)));
    Value* square = b_.CreateFMul(s, s);
    std::vector<double> atanh;  // 1/3 + s^2/5 + s^4/7 + ...
    for (int k = 3; k <= (wide_ ? 25 : 9); k += 2) atanh.push_back(1.0 / k);
    Value* twice = b_.CreateFAdd(s, s);
    Value* log = Fma(b_.CreateFMul(twice, square), Polynomial(atanh, square), twice);
    return {b_.CreateSIToFP(e, type_), log};
  }

  Value* LogSpecials(Value* x, Value* log) {
    log = b_.CreateSelect(b_.CreateFCmpOEQ(x, Infinity()), Infinity(), log);
    log = b_.CreateSelect(b_.CreateFCmpOEQ(x, C(0)), llvm::ConstantFP::getInfinity(type_, /*Negative=*/true), log);
    return b_.CreateSelect(b_.CreateFCmpULT(x, C(0)), llvm::ConstantFP::getNaN(type_),
                           log);  // NaN is unordered: stays one
  }

  // |x| < 1.1: x + x P(x^2); up to 4, beyond which erf is 1 in float: 1 - R(s), s the place of |x| in its range. P and
  // R: least squares at 400 Chebyshev nodes; errors 2e-9 and 7e-9. 1 - R rounds once where a quotient of polynomials
  // of this size would carry the errors of both.
  Value* ErfFloat(Value* x) {
    Value* a = Abs(x);
    a = b_.CreateSelect(b_.CreateFCmpOGT(a, C(4)), C(4), a);
    Value* p = Polynomial(
        {0.1283791629, -0.3761260419, 0.1128332624, -0.02684263446, 0.005166735465, -0.0007819382546, 7.225073444e-05},
        b_.CreateFMul(a, a));
    Value* s = Fma(a, C(2 / 2.9), C(-5.1 / 2.9));
    Value* r = Polynomial({0.0003106470504, -0.002453621406, 0.009073874978, -0.02064763172, 0.03178768579,
                           -0.03398579259, 0.02421538541, -0.008604485513, -0.003380892522, 0.006409927129,
                           -0.002858667935, -0.0004623420182, 0.0007494544411, -0.000153516851},
                          s);
    return CopySign(b_.CreateSelect(b_.CreateFCmpOLT(a, C(1.1)), Fma(a, p, a), b_.CreateFSub(C(1), r)), x);
  }

  // |x| < 1: x P(x^2); up to 6.2: 1 - e^(-x^2) R(s), s the place of 1/(1 + |x|/2) in its range. P and R: interpolation
  // at Chebyshev nodes with 40 digits; errors 8e-18 and 2e-17. Beyond 6.2 erf is 1 in double.
  Value* ErfDouble(Value* x) {
    Value* a = Abs(x);
    a = b_.CreateSelect(b_.CreateFCmpOGT(a, C(6.2)), C(6.2), a);
    Value* u = b_.CreateFMul(a, a);
    Value* near = b_.CreateFMul(
        a, Polynomial({1.12837916709551257, -0.376126389031837481, 0.112837916709548787, -0.0268661706450767932,
                       0.00522397762481801447, -0.000854832698083378991, 0.000120553311116427109,
                       -0.0000149255952668311816, 1.6461000484121368e-6, -1.6350312701054695e-7, 1.46597752740474358e-8,
                       -1.13728488567916737e-9, 5.9571761477489114e-11},
                      u));
    Value* t = b_.CreateFDiv(C(1), Fma(a, C(0.5), C(1)));
    Value* s = b_.CreateFMul(b_.CreateFSub(t, C(0.45528455284552845528)), C(1 / 0.21138211382113821138));
    Value* r =
        Polynomial({0.219068606620957262, 0.163121264711837606, 0.0394450973751371018, 0.00582555295713778074,
                    0.000215174946877295131, -0.0000861767656594345011, -8.22926117955093422e-6, 2.16968142416991469e-6,
                    1.94006176497649974e-7, -7.97057064321681677e-8, -1.17342221434365811e-9, 3.13386018157759833e-9,
                    -3.02665581773774208e-10, -9.57525005182840694e-11, 2.71179385564147874e-11,
                    8.89165663174695333e-13, -1.22228421186808062e-12},
                   s);
    Value* far = b_.CreateFSub(C(1), b_.CreateFMul(Exp(b_.CreateFNeg(u)), r));
    return CopySign(b_.CreateSelect(b_.CreateFCmpOLT(a, C(1)), near, far), x);
  }

  // In double. x - q pi/2 with pi/2 in three parts, each product exact inside a fused multiply-add; then the Taylor
  // series on [-pi/4, pi/4], exact to double with the terms below.
  Value* SinOrCos(Value* x, int shift) {
    HONE_CHECK(wide_) << "sines of floats are computed in double";
    Value* quadrant;
    Value* q = b_.CreateFNeg(Nearest(x, C(2 / std::numbers::pi), &quadrant));
    Value* r = Fma(q, C(0x1.921fb54442d18p+0), x);
    r = Fma(q, C(0x1.1a62633145c07p-54), r);
    r = Fma(q, C(-0x1.f1976b7ed8fbcp-110), r);
    if (shift != 0) quadrant = b_.CreateAdd(quadrant, I(shift));
    Value* square = b_.CreateFMul(r, r);
    std::vector<double> sine, cosine;
    for (int k = 0; k <= 9; ++k) {
      const double sign = k % 2 == 0 ? 1 : -1;
      sine.push_back(sign / Factorial(2 * k + 1));
      cosine.push_back(sign / Factorial(2 * k));
    }
    Value* sin = b_.CreateFMul(r, Polynomial(sine, square));
    Value* cos = Polynomial(cosine, square);
    Value* use_cos = b_.CreateICmpNE(b_.CreateAnd(quadrant, I(1)), I(0));
    Value* negative = b_.CreateICmpNE(b_.CreateAnd(quadrant, I(2)), I(0));
    Value* value = b_.CreateSelect(use_cos, cos, sin);
    return b_.CreateSelect(negative, b_.CreateFNeg(value), value);
  }

  llvm::IRBuilder<>& b_;
  llvm::Type* type_;
  llvm::Type* int_;
  bool wide_;
  bool scalef_;
};

using Args = std::span<Value* const>;
enum class InDouble { kNever, kWhenPrecise, kAlways };  // how float is computed
struct Function {
  std::string_view name;
  Value* (*emit)(Math& m, Args x);
  InDouble in_double = InDouble::kNever;
};
// A sine needs more digits of pi than a float has, a power more of the logarithm.
const Function kFunctions[] = {
    {"exp", [](Math& m, Args x) { return m.Exp(x[0]); }, InDouble::kWhenPrecise},
    {"exp2", [](Math& m, Args x) { return m.Exp2(x[0]); }, InDouble::kWhenPrecise},
    {"log", [](Math& m, Args x) { return m.Log(x[0]); }, InDouble::kWhenPrecise},
    {"log2", [](Math& m, Args x) { return m.Log2(x[0]); }, InDouble::kWhenPrecise},
    {"tanh", [](Math& m, Args x) { return m.Tanh(x[0]); }, InDouble::kWhenPrecise},
    {"sinh", [](Math& m, Args x) { return m.Sinh(x[0]); }, InDouble::kWhenPrecise},
    {"cosh", [](Math& m, Args x) { return m.Cosh(x[0]); }, InDouble::kWhenPrecise},
    {"atan2", [](Math& m, Args x) { return m.Atan2(x[0], x[1]); }, InDouble::kWhenPrecise},
    {"erf", [](Math& m, Args x) { return m.Erf(x[0]); }, InDouble::kWhenPrecise},
    {"sin", [](Math& m, Args x) { return m.Sin(x[0]); }, InDouble::kAlways},
    {"cos", [](Math& m, Args x) { return m.Cos(x[0]); }, InDouble::kAlways},
    {"pow", [](Math& m, Args x) { return m.Pow(x[0], x[1]); }, InDouble::kAlways},
    {"sqrt", [](Math& m, Args x) { return m.Unary(llvm::Intrinsic::sqrt, x[0]); }},
    {"floor", [](Math& m, Args x) { return m.Unary(llvm::Intrinsic::floor, x[0]); }},
    {"ceil", [](Math& m, Args x) { return m.Unary(llvm::Intrinsic::ceil, x[0]); }},
    {"round", [](Math& m, Args x) { return m.Unary(llvm::Intrinsic::roundeven, x[0]); }},
    {"trunc", [](Math& m, Args x) { return m.Unary(llvm::Intrinsic::trunc, x[0]); }},
    {"abs", [](Math& m, Args x) { return m.Abs(x[0]); }},
    {"fma", [](Math& m, Args x) { return m.Fma(x[0], x[1], x[2]); }},
    {"isnan", [](Math& m, Args x) { return m.IsNan(x[0]); }},
    {"isinf", [](Math& m, Args x) { return m.IsInfinite(x[0]); }},
};

}  // namespace

Value* EmitMath(llvm::IRBuilder<>& b, std::string_view name, std::span<Value* const> args, const MathOptions& options) {
  const auto* function = std::ranges::find(kFunctions, name, &Function::name);
  HONE_CHECK(function != std::end(kFunctions)) << "no code for the function " << name;
  llvm::Type* type = args[0]->getType();
  const bool in_double =
      function->in_double == InDouble::kAlways || (options.precise && function->in_double == InDouble::kWhenPrecise);
  if (type->getScalarType()->isDoubleTy() || !in_double) {
    Math m(b, type, options.scalef);
    return function->emit(m, args);
  }
  llvm::Type* wide = b.getDoubleTy();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    wide = llvm::FixedVectorType::get(wide, vector->getNumElements());
  std::vector<Value*> extended;
  for (Value* arg : args) extended.push_back(b.CreateFPExt(arg, wide));
  Math m(b, wide, options.scalef);
  return b.CreateFPTrunc(function->emit(m, extended), type);
}

}  // namespace hone
