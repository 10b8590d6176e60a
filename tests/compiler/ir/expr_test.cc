#include "compiler/ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/ir/intrinsics.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/thread_axes.h"

namespace hone {
namespace {

TEST(DType, TextRoundTrips) {
  for (const DType t :
       {kInt32, kInt64, kBool, kFloat32, DType::Int(8, 4), DType::UInt(16), DType::BFloat16(8), DType::Float(16, 32),
        DType::Int(4), DType::UInt(4, 8), DType::Float8E4M3(4), DType::Float8E5M2()}) {
    EXPECT_EQ(ParseDType(ToText(t)), t) << ToText(t);
  }
  EXPECT_EQ(ToText(DType::Float(32, 16)), "float32x16");
  EXPECT_EQ(DType::Int(4).bytes(), 1);
  EXPECT_EQ(kBool.bytes(), 1);
  for (const char* text :
       {"", "float", "float33", "float8", "int32x0", "int32x", "x4", "int 32", "bool8", "int32x99999"}) {
    EXPECT_EQ(ParseDType(text), std::nullopt) << text;
  }
}

TEST(Scalars, RoundAsTheTypeDoes) {
  EXPECT_EQ(RoundToType(65504.0, DType::Float(16)), 65504.0);
  EXPECT_TRUE(std::isinf(RoundToType(65520.0, DType::Float(16))));
  EXPECT_EQ(RoundToType(1.0 + 0x1p-11, DType::Float(16)), 1.0);  // a tie goes to even
  EXPECT_EQ(RoundToType(1.0 + 0x3p-11, DType::Float(16)), 1.0 + 0x1p-9);
  EXPECT_EQ(RoundToType(0x1p-24, DType::Float(16)), 0x1p-24);  // the least subnormal
  EXPECT_EQ(RoundToType(0x1p-26, DType::Float(16)), 0.0);
  EXPECT_EQ(RoundToType(1.0 + 0x1p-8, DType::BFloat16()), 1.0);
  EXPECT_EQ(RoundToType(0.1, kFloat32), 0.1f);
  EXPECT_EQ(RoundToType(464, DType::Float8E4M3()), 448.0);  // halfway between the largest and what would be next
  EXPECT_TRUE(std::isnan(RoundToType(464.001, DType::Float8E4M3())));
  EXPECT_TRUE(std::isnan(RoundToType(INFINITY, DType::Float8E4M3())));
  EXPECT_EQ(RoundToType(0x3p-10, DType::Float8E4M3()), 0x1p-8);  // among subnormals
  EXPECT_EQ(RoundToType(61439, DType::Float8E5M2()), 57344.0);
  EXPECT_TRUE(std::isinf(RoundToType(61440, DType::Float8E5M2())));
  EXPECT_EQ(WrapToType(11, DType::Int(4)), -5);
  EXPECT_EQ(WrapToType(200, DType::Int(8)), -56);
  EXPECT_EQ(WrapToType(-1, DType::UInt(16)), 65535);
  EXPECT_EQ(EvalInt(BinaryOp::kFloorDiv, -7, 2, kInt32), -4);
  EXPECT_EQ(EvalInt(BinaryOp::kFloorMod, -7, 2, kInt32), 1);
  EXPECT_EQ(EvalInt(BinaryOp::kDiv, -7, 2, kInt32), -3);
  EXPECT_EQ(EvalInt(BinaryOp::kMod, -7, 2, kInt32), -1);
  EXPECT_EQ(EvalInt(BinaryOp::kDiv, std::numeric_limits<int64_t>::min(), -1, kInt64),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(EvalInt(BinaryOp::kFloorDiv, 1, 0, kInt32), std::nullopt);
  EXPECT_EQ(EvalInt(BinaryOp::kLt, -1, 1, DType::UInt(64)), 0);  // -1 is the largest uint64
  EXPECT_EQ(EvalInt(BinaryOp::kAdd, INT32_MAX, 1, kInt32), INT32_MIN);
}

TEST(Expr, ConstantsTakeTheOtherSidesType) {
  const Var i("i"), x("x", kFloat32), l("l", kInt64);
  EXPECT_EQ((Expr(i) + 1).type(), kInt32);
  EXPECT_EQ((Expr(x) * 2).type(), kFloat32);
  EXPECT_EQ((Expr(l) + i).type(), kInt64);
  EXPECT_EQ((Expr(i) < Expr(l)).type(), kBool);
  EXPECT_EQ(Expr(int64_t{1} << 40).type(), kInt64);
  EXPECT_EQ(Expr(int64_t{7}).type(), kInt32);
}

TEST(Expr, FoldsConstantsAndNeutralElements) {
  const Var i("i"), x("x", kFloat32), b("b", kBool);
  EXPECT_TRUE(IsConst(Expr(6) * 7, 42));
  EXPECT_TRUE(IsConst(FloorMod(-1, 8), 7));
  const Expr e = Expr(i);
  EXPECT_TRUE((e + 0).SameAs(e));
  EXPECT_TRUE((e * 1).SameAs(e));
  EXPECT_TRUE(IsConst(e * 0, 0));
  EXPECT_TRUE(FloorDiv(e, 1).SameAs(e));
  const Expr condition = b;
  EXPECT_TRUE(And(True(), condition).SameAs(condition));
  EXPECT_TRUE(IsConst(Or(True(), condition), 1));
  EXPECT_TRUE(MakeNot(MakeNot(condition)).SameAs(condition));
  EXPECT_NE((Expr(x) + FloatConst(0)).As<Binary>(), nullptr) << "-0 + 0 is 0, not -0";
  EXPECT_EQ((FloatConst(0.1) + FloatConst(0.2)).As<FloatImm>()->value, 0.1f + 0.2f);
  EXPECT_NE(FloorDiv(Expr(1), Expr(0)).As<Binary>(), nullptr) << "a division by zero is not folded";
  EXPECT_TRUE(MakeSelect(True(), e, Expr(3)).SameAs(e));
}

TEST(Expr, VectorArithmeticStaysInShape) {
  const Var i("i"), x("x", kFloat32);
  const Expr ramp = MakeRamp(i, 1, 8);
  EXPECT_EQ(ramp.type(), DType::Int(32, 8));
  const Expr moved = ramp * 4 + 3;
  ASSERT_NE(moved.As<Ramp>(), nullptr);
  EXPECT_TRUE(IsConst(moved.As<Ramp>()->stride, 4));
  EXPECT_EQ((ramp + i).type().lanes, 8);
  EXPECT_EQ((ramp < Expr(100)).type(), DType::Bool(8));
  const Expr splat = MakeBroadcast(x, 8);
  EXPECT_NE((splat * splat).As<Broadcast>(), nullptr);
  EXPECT_EQ(MakeBroadcast(x, 1).type(), kFloat32);
  EXPECT_NE(MakeRamp(i, 0, 4).As<Broadcast>(), nullptr);
  const Buffer a("A", kFloat32, {16, 64});
  EXPECT_EQ(MakeLoad(a, {Expr(i), ramp}).type(), DType::Float(32, 8));
}

TEST(Expr, CastsFoldWhereTheMachineAgrees) {
  EXPECT_EQ(MakeCast(kFloat32, Expr(3)).As<FloatImm>()->value, 3.0);
  EXPECT_TRUE(IsConst(MakeCast(kInt32, FloatConst(-2.7)), -2));
  EXPECT_NE(MakeCast(kInt32, FloatConst(1e20)).As<Cast>(), nullptr);
  EXPECT_TRUE(IsConst(MakeCast(DType::Int(8), Expr(300)), 44));
  const Var i("i");
  const Expr e = i;
  EXPECT_TRUE(MakeCast(kInt32, e).SameAs(e));
}

TEST(Expr, CallsTakeTheirTypeFromTheTable) {
  const Var x("x", kFloat32);
  EXPECT_EQ(MakeCall("exp", {x}).type(), kFloat32);
  EXPECT_EQ(MakeCall("isnan", {x}).type(), kBool);
  EXPECT_EQ(MakeCall("pow", {x, 2}).type(), kFloat32);
  EXPECT_EQ(FindIntrinsic("no such"), nullptr);
  for (const IntrinsicInfo& info : Intrinsics()) EXPECT_EQ(FindIntrinsic(info.name), &info);
}

TEST(Buffer, CountsItsElements) {
  const Var n("n");
  EXPECT_EQ(Buffer("A", kFloat32, {2, 3, 4}).NumElements(), 24);
  EXPECT_EQ(Buffer("A", kFloat32, {}).NumElements(), 1);
  EXPECT_EQ(Buffer("A", kFloat32, {2, n}).NumElements(), std::nullopt);
  EXPECT_EQ(Buffer("A", kFloat32, {int64_t{1} << 40, int64_t{1} << 40}).NumElements(), std::nullopt);
  for (const Scope s : {Scope::kGlobal, Scope::kThread, Scope::kRegister, Scope::kShared, Scope::kWarp})
    EXPECT_EQ(ParseScope(ToText(s)), s);
  EXPECT_EQ(ParseScope("nowhere"), std::nullopt);
}

TEST(Warps, AreCountedForAnyExtents) {
  EXPECT_EQ(NumWarps({1, 1, 1}), 1);
  EXPECT_EQ(NumWarps({33, 1, 1}), 2);
  EXPECT_EQ(WarpAxisOf({8, 16, 1}, 0), WarpAxis::kLanes);
  EXPECT_EQ(WarpAxisOf({8, 16, 1}, 1), WarpAxis::kBoth);
  EXPECT_EQ(WarpAxisOf({32, 4, 1}, 1), WarpAxis::kWarps);
  constexpr int64_t kMany = int64_t{1} << 62;
  EXPECT_EQ(NumWarps({kMany, kMany, 1}), (int64_t{1} << 30) / 32);
  EXPECT_EQ(WarpAxisOf({kMany, kMany, 1}, 0), WarpAxis::kBoth);
  for (const int64_t none : {int64_t{0}, -kMany}) EXPECT_EQ(WarpAxisOf({none, 1, 1}, 0), WarpAxis::kLanes);
}

TEST(Stmt, SequencesAreFlat) {
  const Stmt one = Stmt::Make(Evaluate{Expr(1)}), two = Stmt::Make(Evaluate{Expr(2)});
  EXPECT_TRUE(MakeSeq({one}).SameAs(one));
  const Stmt nested = MakeSeq({MakeSeq({one, two}), MakeSeq({}), Stmt(), one});
  ASSERT_NE(nested.As<Seq>(), nullptr);
  EXPECT_EQ(nested.As<Seq>()->stmts.size(), 3u);
  EXPECT_TRUE(MakeSeq({}).As<Seq>()->stmts.empty());
}

}  // namespace
}  // namespace hone
