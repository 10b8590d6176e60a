#include "compiler/ir/visit.h"

#include <gtest/gtest.h>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "tests/compiler/ir/random_program.h"

namespace hone {
namespace {

TEST(Visit, WalksParentsFirstAndStopsWhereToldTo) {
  const Var i("i"), j("j");
  const Expr e = (Expr(i) + 1) * FloorDiv(j, 4);
  int seen = 0;
  ForEachExpr(e, [&](const Expr&) { return ++seen, true; });
  EXPECT_EQ(seen, 7);
  seen = 0;
  ForEachExpr(e, [&](const Expr& part) {
    ++seen;
    const Binary* op = part.As<Binary>();
    return op == nullptr || op->op != BinaryOp::kFloorDiv;
  });
  EXPECT_EQ(seen, 5);
}

TEST(Visit, SeesRegionsDomainsShapesAndPredicates) {
  const Var domain("domain"), region("region"), shape("shape"), predicate("predicate"), mask("mask", kBool), v("v");
  const Buffer a("A", kFloat32, {8}), b("B", kFloat32, {shape});
  Block block{.name = "x"};
  block.iters = {{v, {0, domain}, IterKind::kSpatial}};
  block.reads = {{a, {{region, 1}}}};
  block.allocs = {b};
  block.body = Stmt::Make(Store{a, {v}, FloatConst(1), mask});
  const Stmt s = Stmt::Make(BlockRealize{{Expr(0)}, Expr(predicate) < 3, block});
  for (const Var& var : {domain, region, shape, predicate, mask}) EXPECT_TRUE(UsesVar(s, var)) << var.name();
  EXPECT_FALSE(UsesVar(s, Var("v")));
}

TEST(Rewrite, SharesWhatDoesNotChange) {
  const Var i("i"), j("j");
  const Expr left = Expr(i) * 3, right = Expr(j) * 5, e = left + right;
  const Expr same = RewriteBottomUp(e, [](const Expr&) { return std::nullopt; });
  EXPECT_TRUE(same.SameAs(e));
  const Expr changed = Substitute(e, i, 2);
  ASSERT_NE(changed.As<Binary>(), nullptr);
  EXPECT_TRUE(IsConst(changed.As<Binary>()->a, 6)) << ToText(changed);
  EXPECT_TRUE(changed.As<Binary>()->b.SameAs(right));
}

TEST(Rewrite, RetypesWhatAChangeReaches) {
  const Var i("i"), wide("wide", kInt64);
  const Buffer a("A", kFloat32, {64});
  EXPECT_EQ(Substitute(Expr(i) * 4 + 1, i, Expr(wide)).type(), kInt64);
  const Expr load = MakeSelect(Expr(i) < 60, MakeLoad(a, {Expr(i) + 1}), FloatConst(0));
  const Expr vector = Substitute(load, i, MakeRamp(0, 1, 16));
  EXPECT_EQ(vector.type(), DType::Float(32, 16));
  ASSERT_NE(vector.As<Select>(), nullptr);
  EXPECT_EQ(vector.As<Select>()->condition.type(), DType::Bool(16));
  EXPECT_NE(vector.As<Select>()->yes.As<Load>()->indices[0].As<Ramp>(), nullptr);
}

TEST(Substitute, NewShapesAreFollowedByUses) {
  const Var n("n"), i("i");
  const Buffer t("T", kFloat32, {n});
  const Stmt store = Stmt::Make(Store{t, {i}, MakeLoad(t, {i}) + FloatConst(1)});
  const Stmt s = Stmt::Make(Alloc{t, store});
  const Stmt sized = Substitute(s, n, 16);
  const Alloc* alloc = sized.As<Alloc>();
  EXPECT_TRUE(IsConst(alloc->buffer.shape()[0], 16));
  EXPECT_TRUE(alloc->body.As<Store>()->buffer == alloc->buffer);
  EXPECT_TRUE(Substitute(s, Var("m"), 3).SameAs(s));
  // The same by RewriteExprs, which goes level by level.
  const Stmt rewritten = RewriteExprs(s, [&](const Expr& e) -> std::optional<Expr> {
    const VarRef* ref = e.As<VarRef>();
    return ref != nullptr && ref->var == n ? std::optional<Expr>(16) : std::nullopt;
  });
  EXPECT_TRUE(StructuralEqual(sized, rewritten)) << ToText(rewritten);
}

TEST(ReplaceBuffers, ReachesEveryUse) {
  const Var v("v");
  const Buffer a("A", kFloat32, {8}), b("B", DType::Float(16), {8}), m("M", kFloat32, {4});
  Block block{.name = "x"};
  block.reads = {{a, {{0, 8}}}};
  block.matches = {{m, {a, {{0, 4}}}}};
  block.body = MakeSeq({Stmt::Make(Store{a, {v}, MakeLoad(a, {v})}), Stmt::Make(TileOp{"mma", {{a, {{0, 8}}}}, {}})});
  const Stmt s = Stmt::Make(Alloc{a, Stmt::Make(BlockRealize{{}, True(), block})});
  const Stmt replaced = ReplaceBuffers(s, [&](const Buffer& x) { return x == a ? std::optional(b) : std::nullopt; });
  EXPECT_TRUE(replaced.As<Alloc>()->buffer == b);
  const Block& inside = replaced.As<Alloc>()->body.As<BlockRealize>()->block;
  EXPECT_TRUE(inside.reads[0].buffer == b);
  EXPECT_TRUE(inside.matches[0].source.buffer == b);
  const std::vector<Stmt>& stmts = inside.body.As<Seq>()->stmts;
  EXPECT_TRUE(stmts[0].As<Store>()->buffer == b);
  EXPECT_EQ(stmts[0].As<Store>()->value.type(), DType::Float(16));
  EXPECT_TRUE(stmts[1].As<TileOp>()->operands[0].buffer == b);
}

TEST(FreeVars, LeavesOutWhatALetBinds) {
  const Var x("x"), y("y"), t("t");
  const Expr e = Expr::Make(LetExpr{t, Expr(x) + 1, Expr(t) * y}, kInt32);
  EXPECT_EQ(FreeVars(e), (std::set<Var>{x, y}));
}

TEST(RenewDefinitions, GivesAnEqualProgramWithItsOwnNames) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const PrimFunc f = RandomProgram(seed).Make();
    ASSERT_TRUE(Verify(f).ok()) << Verify(f) << "\n" << ToText(f);
    const Stmt copy = RenewDefinitions(f.body);
    ASSERT_TRUE(StructuralEqual(f.body, copy)) << ToText(f);
    ASSERT_EQ(StructuralHash(f.body), StructuralHash(copy));
    // Both together define nothing twice. Below another root they declare what they touch.
    const auto declared = [](const Stmt& root) {
      BlockRealize realize = *root.As<BlockRealize>();
      DeclareRegions(realize.block);
      return Stmt::Make(std::move(realize));
    };
    Block root{.name = "root"};
    root.body = MakeSeq({declared(f.body), declared(copy)});
    PrimFunc twice = f;
    twice.body = Stmt::Make(BlockRealize{{}, True(), root});
    ASSERT_TRUE(Verify(twice).ok()) << Verify(twice);
  }
}

TEST(Rewrite, IdentityIsTheSameHandleOnRandomPrograms) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Stmt body = RandomProgram(seed).Make().body;
    EXPECT_TRUE(RewriteExprs(body, [](const Expr&) { return std::nullopt; }).SameAs(body));
    EXPECT_TRUE(RewriteBottomUp(body, [](const Stmt&) { return std::optional<Stmt>(); }).SameAs(body));
    EXPECT_TRUE(Substitute(body, Var("other"), 1).SameAs(body));
    EXPECT_TRUE(ReplaceBuffers(body, [](const Buffer&) { return std::nullopt; }).SameAs(body));
  }
}

}  // namespace
}  // namespace hone
