#include "compiler/ir/structural.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "tests/compiler/ir/random_program.h"

namespace hone {
namespace {

PrimFunc Copy(const Var& i, const Buffer& from, const Buffer& to, int64_t extent = 8) {
  const Stmt store = Stmt::Make(Store{to, {i}, MakeLoad(from, {i})});
  PrimFunc f{.name = i.name(), .params = {from, to}};
  f.body = Stmt::Make(For{.var = i, .min = 0, .extent = extent, .body = store});
  return f;
}

TEST(Structural, NamesDoNotCount) {
  const Buffer a("A", kFloat32, {8}), b("B", kFloat32, {8}), p("P", kFloat32, {8}), q("Q", kFloat32, {8});
  const PrimFunc one = Copy(Var("i"), a, b), two = Copy(Var("x"), p, q);
  EXPECT_TRUE(StructuralEqual(one, two));
  EXPECT_EQ(StructuralHash(one), StructuralHash(two));
}

TEST(Structural, EverythingElseCounts) {
  const Buffer a("A", kFloat32, {8}), b("B", kFloat32, {8}), wide("W", DType::Float(64), {8}),
      longer("L", kFloat32, {9});
  const Buffer shared("S", kFloat32, {8}, Scope::kShared);
  const Var i("i");
  const PrimFunc base = Copy(i, a, b);
  PrimFunc attributed = base;
  attributed.attrs["outputs"] = int64_t{1};
  PrimFunc swapped = base;
  swapped.params = {b, a};
  PrimFunc parallel = base;
  For loop = *base.body.As<For>();
  loop.kind = ForKind::kParallel;
  parallel.body = Stmt::Make(loop);
  for (const PrimFunc& other : {Copy(i, a, wide), Copy(i, a, longer), Copy(i, shared, b), Copy(i, a, b, 7),
                                Copy(i, b, b), attributed, swapped, parallel}) {
    EXPECT_FALSE(StructuralEqual(base, other));
    EXPECT_NE(StructuralHash(base), StructuralHash(other));
  }
}

TEST(Structural, FreeVariablesAreThemselves) {
  const Var x("x"), y("y"), t("t"), u("u");
  EXPECT_FALSE(StructuralEqual(Expr(x), Expr(y)));
  EXPECT_TRUE(StructuralEqual(Expr(x) + y, Expr(x) + y));
  const auto let = [](const Var& v, const Expr& body) { return Expr::Make(LetExpr{v, 1, body}, kInt32); };
  EXPECT_TRUE(StructuralEqual(let(t, Expr(t) + x), let(u, Expr(u) + x)));
  EXPECT_FALSE(StructuralEqual(let(t, Expr(t) + x), let(u, Expr(x) + x)));
  EXPECT_FALSE(StructuralEqual(let(t, Expr(x)), let(x, Expr(x)))) << "bound in one, free in the other";
  EXPECT_FALSE(StructuralEqual(let(x, Expr(x)), let(t, Expr(x))));
}

TEST(Structural, FloatsAreComparedByTheirBits) {
  const Expr nan = FloatConst(std::nan(""));
  EXPECT_TRUE(StructuralEqual(nan, FloatConst(std::nan(""))));
  EXPECT_FALSE(StructuralEqual(FloatConst(0.0), FloatConst(-0.0)));
}

// The value is stored in databases: it may not change from one process, machine or release to the next.
TEST(Structural, HashIsFixed) {
  const Buffer a("A", kFloat32, {8}), b("B", kFloat32, {8});
  EXPECT_EQ(StructuralHash(Copy(Var("i"), a, b)), 10560792679267994343u);
}

TEST(Structural, SymbolicSizesMatchInOrder) {
  const auto make = [](bool swap) {
    const Var m("m"), n("n"), i("i");
    const Buffer a("A", kFloat32, {m}), b("B", kFloat32, {n});
    PrimFunc f = Copy(i, a, b);
    f.dims = swap ? std::vector<Var>{n, m} : std::vector<Var>{m, n};
    return f;
  };
  EXPECT_TRUE(StructuralEqual(make(false), make(false)));
  EXPECT_EQ(StructuralHash(make(false)), StructuralHash(make(false)));
  EXPECT_FALSE(StructuralEqual(make(false), make(true)));
  EXPECT_NE(StructuralHash(make(false)), StructuralHash(make(true)));
}

// One change anywhere in a random program is noticed by both.
TEST(Structural, NoticesEveryChange) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const PrimFunc f = RandomProgram(seed).Make();
    ASSERT_TRUE(StructuralEqual(f, RandomProgram(seed).Make()));
    ASSERT_EQ(StructuralHash(f), StructuralHash(RandomProgram(seed).Make()));
    int constants = 0;
    ForEachExpr(f.body, [&](const Expr& e) {
      const FloatImm* imm = e.As<FloatImm>();
      constants += imm != nullptr;
      return true;
    });
    if (constants == 0) continue;
    int target = static_cast<int>(seed) % constants;
    PrimFunc changed = f;
    changed.body = RewriteExprs(f.body, [&](const Expr& e) -> std::optional<Expr> {
      const FloatImm* imm = e.As<FloatImm>();
      if (imm == nullptr || target-- != 0) return std::nullopt;
      return Expr::Make(FloatImm{imm->value + 100}, e.type());
    });
    ASSERT_FALSE(StructuralEqual(f, changed)) << ToText(f);
    ASSERT_NE(StructuralHash(f), StructuralHash(changed)) << ToText(f);
  }
}

}  // namespace
}  // namespace hone
