// Every operator on every type it has, scalar and vector, with a tail under a mask.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>

#include "compiler/ir/float_format.h"
#include "compiler/ir/intrinsics.h"
#include "tests/compiler/codegen/board_checks.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

using Body = std::function<Expr(const std::vector<Expr>&)>;

// out[i] = body(in0[i], in1[i], ...) for n elements; `lanes` above 1 vectorises with a tail. Names end with `which`.
PrimFunc ElementWise(const std::vector<DType>& inputs, DType output, const Body& body, int64_t n, int lanes,
                     const std::string& which) {
  PrimFunc func{.name = "main"};
  for (size_t i = 0; i < inputs.size(); ++i)
    func.params.emplace_back("in" + std::to_string(i) + which, inputs[i], std::vector<Expr>{Expr(n)});
  func.params.emplace_back("out" + which, output, std::vector<Expr>{Expr(n)});
  const Var v("v"), outer("o"), inner("i");
  std::vector<Expr> loads;
  Block block{.name = "out" + which, .iters = {IterVar{v, Range{IntConst(0), Expr(n)}}}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    loads.push_back(MakeLoad(func.params[i], {v}));
    block.reads.push_back({func.params[i], {Range{v, IntConst(1)}}});
  }
  block.writes.push_back({func.params.back(), {Range{v, IntConst(1)}}});
  block.body = Stmt::Make(Store{func.params.back(), {v}, body(loads), Expr()});
  const Expr index = outer * lanes + inner;
  Stmt nest = Stmt::Make(BlockRealize{{index}, index < Expr(n), block});
  nest = Stmt::Make(For{.var = inner,
                        .min = 0,
                        .extent = lanes,
                        .kind = lanes > 1 ? ForKind::kVectorized : ForKind::kSerial,
                        .body = nest});
  nest = Stmt::Make(For{.var = outer, .min = 0, .extent = Expr((n + lanes - 1) / lanes), .body = nest});
  func.body = Stmt::Make(BlockRealize{{}, True(), Block{.name = "root", .body = nest}});
  return func;
}

// Adds an offset where zeros would divide by zero.
Expr NonZero(const Expr& e) { return MakeSelect(Eq(e, Const(0, e.type())), Const(3, e.type()), e); }

class Operators : public ::testing::Test {
 protected:
  void TearDown() override { on_boards_.Run(); }

  void Check(const std::vector<DType>& inputs, DType output, const Body& body, double tolerance,
             const std::string& what) {
    ++checks_;
    for (const int lanes : {1, 16}) {
      const std::string which = what + ", " + std::to_string(lanes) + " lanes";
      SCOPED_TRACE(which);
      const PrimFunc func = ElementWise(inputs, output, body, 37, lanes, "_" + std::to_string(checks_));
      if (lanes > 1) {
        ExpectCompiledAgrees(func, tolerance, InputKind::kUniform);
        on_boards_.Add(func, tolerance, InputKind::kUniform, which);
      } else {
        ExpectPlainAgrees(func, tolerance, InputKind::kInteger);
      }
    }
  }

 private:
  BoardChecks on_boards_;
  int checks_ = 0;
};

const DType kFloats[] = {DType::Float8E4M3(), DType::Float8E5M2(), DType::Float(16), DType::BFloat16(), kFloat32,
                         DType::Float(64)};
const DType kIntegers[] = {DType::Int(4),  DType::Int(8),  DType::Int(16),  kInt32,          kInt64,
                           DType::UInt(4), DType::UInt(8), DType::UInt(16), DType::UInt(32), DType::UInt(64)};

TEST_F(Operators, FloatArithmetic) {
  for (const DType type : kFloats) {
    for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax}) {
      Check(
          {type, type}, type, [&](const auto& x) { return MakeBinary(op, x[0], x[1]); }, 0,
          ToText(type) + " op " + std::to_string(int(op)));
    }
    for (const BinaryOp op : {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kFloorDiv, BinaryOp::kFloorMod}) {
      Check(
          {type, type}, type, [&](const auto& x) { return MakeBinary(op, x[0], NonZero(x[1])); }, 1e-15,
          ToText(type) + " op " + std::to_string(int(op)));
    }
    for (const BinaryOp op :
         {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe}) {
      Check(
          {type, type}, kBool, [&](const auto& x) { return MakeBinary(op, x[0], x[1]); }, 0,
          ToText(type) + " comparison");
    }
  }
}

TEST_F(Operators, IntegerArithmetic) {
  for (const DType type : kIntegers) {
    for (const BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kMin, BinaryOp::kMax,
                              BinaryOp::kBitAnd, BinaryOp::kBitOr, BinaryOp::kBitXor}) {
      Check(
          {type, type}, type, [&](const auto& x) { return MakeBinary(op, x[0], x[1]); }, 0,
          ToText(type) + " op " + std::to_string(int(op)));
    }
    for (const BinaryOp op : {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kFloorDiv, BinaryOp::kFloorMod}) {
      Check(
          {type, type}, type, [&](const auto& x) { return MakeBinary(op, x[0], NonZero(x[1])); }, 0,
          ToText(type) + " op " + std::to_string(int(op)));
      Check(
          {type}, type, [&](const auto& x) { return MakeBinary(op, x[0], Const(7, type)); }, 0, ToText(type) + " by 7");
      Check(
          {type}, type, [&](const auto& x) { return MakeBinary(op, x[0], Const(8, type)); }, 0, ToText(type) + " by 8");
    }
    for (const BinaryOp op : {BinaryOp::kShiftLeft, BinaryOp::kShiftRight}) {
      Check(
          {type}, type, [&](const auto& x) { return MakeBinary(op, x[0], Const(3, type)); }, 0,
          ToText(type) + " shift");
    }
    for (const BinaryOp op :
         {BinaryOp::kEq, BinaryOp::kNe, BinaryOp::kLt, BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe}) {
      Check(
          {type, type}, kBool, [&](const auto& x) { return MakeBinary(op, x[0], x[1]); }, 0,
          ToText(type) + " comparison");
    }
    Check(
        {type}, type, [&](const auto& x) { return MakeCall("abs", {x[0]}); }, 0, "abs");
    Check(
        {type}, type, [&](const auto& x) { return MakeCall("popcount", {x[0]}); }, 0, "popcount");
  }
}

TEST_F(Operators, Logic) {
  Check(
      {kBool, kBool}, kBool, [](const auto& x) { return And(x[0], MakeNot(x[1])); }, 0, "and not");
  Check(
      {kBool, kBool}, kBool, [](const auto& x) { return Or(x[0], x[1]); }, 0, "or");
  Check(
      {kBool, kFloat32, kFloat32}, kFloat32, [](const auto& x) { return MakeSelect(x[0], x[1], x[2]); }, 0, "select");
  Check(
      {kBool, kFloat32, kFloat32}, kFloat32, [](const auto& x) { return IfThenElse(x[0], x[1], x[2]); }, 0,
      "if_then_else");
  Check(
      {kBool, kInt64, kInt64}, kInt64, [](const auto& x) { return MakeSelect(x[0], x[1], x[2]); }, 0,
      "select of int64");
}

TEST_F(Operators, Casts) {
  std::vector<DType> types(std::begin(kFloats), std::end(kFloats));
  types.insert(types.end(), std::begin(kIntegers), std::end(kIntegers));
  types.push_back(kBool);
  for (const DType from : types) {
    for (const DType to : types) {
      // Of what both can hold: what a machine does beyond is its own.
      const bool to_unsigned = to.code == TypeCode::kUInt;
      Check(
          {from}, to,
          [&](const auto& x) {
            if (from.is_float() && to_unsigned) return MakeCast(to, MakeCall("abs", {x[0]}));
            return MakeCast(to, x[0]);
          },
          0, ToText(from) + " to " + ToText(to));
    }
  }
}

TEST_F(Operators, NarrowFloatsRoundOnce) {
  // Halves of the last place, where rounding twice goes wrong.
  for (const DType to : {DType::Float(16), DType::BFloat16(), DType::Float8E4M3(), DType::Float8E5M2()}) {
    Check(
        {DType::Float(64)}, to,
        [&](const auto& x) {
          return MakeCast(
              to, Const(1 + FormatOf(to).UnitRoundoff(), DType::Float(64)) + x[0] * Const(0x1p-40, DType::Float(64)));
        },
        0, "double to " + ToText(to));
  }
}

TEST_F(Operators, NotANumberStaysOne) {
  for (const DType type : {kFloat32, DType::Float(64)}) {
    const auto nan = [&](const Expr& e) {
      return e / MakeSelect(e > Const(0, type), e, Const(0, type));
    };  // 0/0 for 0, 1 for positive
    for (const BinaryOp op : {BinaryOp::kMin, BinaryOp::kMax}) {
      Check(
          {type, type}, type, [&](const auto& x) { return MakeBinary(op, nan(x[0]), nan(x[1])); }, 0, "min/max of NaN");
      Check(
          {type}, type, [&](const auto& x) { return MakeBinary(op, nan(x[0]), Const(0, type)); }, 0,
          "min/max of NaN and 0");
      Check(
          {type}, type, [&](const auto& x) { return MakeBinary(op, Const(0, type), nan(x[0])); }, 0,
          "min/max of 0 and NaN");
    }
    Check(
        {type}, kBool, [&](const auto& x) { return MakeCall("isnan", {nan(x[0])}); }, 0, "isnan");
    Check(
        {type}, kBool, [&](const auto& x) { return MakeCall("isinf", {nan(x[0])}); }, 0, "isinf");
  }
}

TEST_F(Operators, Rounding) {
  for (const DType type : kFloats) {
    for (const char* name : {"floor", "ceil", "round", "trunc"}) {
      Check(
          {type}, type, [&](const auto& x) { return MakeCall(name, {x[0] * Const(2.5, type)}); }, 0, name);
    }
  }
}

TEST_F(Operators, Functions) {
  const auto value_at = [](const IntrinsicInfo& info, double x) {
    return info.of_one != nullptr ? info.of_one(x) : info.of_two != nullptr ? info.of_two(x, 0.5) : 0;
  };
  for (const DType type : kFloats) {
    if (type.bits < 16) continue;  // computed in float32 as those of 16 bits are
    const double tolerance = type.bits == 64                  ? 1e-13
                             : type.bits == 32                ? 5e-7
                             : type.code == TypeCode::kBFloat ? 0.01
                                                              : 0.002;
    for (const IntrinsicInfo& info : Intrinsics()) {
      const std::string name(info.name);
      if (info.returns_bool || info.stands_alone || name == "popcount") continue;
      // The argument is moved into the function's domain: what is positive, above 1, or between -1 and 1.
      const bool bounded_below = std::isnan(value_at(info, -2));
      const bool bounded = bounded_below && std::isnan(value_at(info, 2));
      const double least = std::isnan(value_at(info, 0.5)) ? 1.125 : 0.125;
      Check(
          std::vector<DType>(info.arity, type), type,
          [&](const auto& x) {
            std::vector<Expr> args = x;
            const Expr magnitude = MakeCall("abs", {args[0]});
            if (bounded) {
              args[0] = args[0] / (magnitude + Const(1, type));
            } else if (bounded_below) {
              args[0] = magnitude + Const(least, type);
            }
            return MakeCall(name, args);
          },
          tolerance, name + " of " + ToText(type));
    }
  }
}

TEST_F(Operators, LetAndIndexArithmetic) {
  Check(
      {kFloat32}, kFloat32,
      [](const auto& x) {
        const Var t("t", kFloat32);
        return Expr::Make(LetExpr{t, x[0] * x[0], Expr(t) + Expr(t)}, kFloat32);
      },
      1e-6, "let");
}

}  // namespace
}  // namespace hone
