#include "compiler/interp/interpreter.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/te/te.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

namespace hone::te {
namespace {

using testing::ElementsAre;

std::vector<const Block*> Blocks(const PrimFunc& f) {
  std::vector<const Block*> blocks;
  ForEachStmt(f.body, [&](const Stmt& s) {
    if (const BlockRealize* realize = s.As<BlockRealize>()) blocks.push_back(&realize->block);
    return true;
  });
  return blocks;
}

std::string RegionText(const BufferRegion& r) {
  std::string text = r.buffer.name();
  for (const Range& range : r.region) text += " " + ToText(range.min) + "+" + ToText(range.extent);
  return text;
}

PrimFunc Product() {
  const Tensor a = Placeholder({4, 6}, kFloat32, "A"), b = Placeholder({6, 5}, kFloat32, "B");
  const ReduceAxis k(6, "k");
  const Tensor c = Compute(
      {4, 5}, [&](const Indices& i) { return Sum(a(i[0], k) * b(k, i[1]), {k}); }, "C");
  const Tensor d = Compute(
      {4, 5}, [&](const Indices& i) { return hone::Max(c(i), FloatConst(0)); }, "D");
  return CreatePrimFunc({a, b}, {d}, "product_relu", {{"domains", std::vector<std::string>{"", "", ""}}});
}

TEST(CreatePrimFunc, OneBlockForEachStage) {
  const PrimFunc f = Product();
  EXPECT_TRUE(Verify(f).ok()) << Verify(f);
  EXPECT_EQ(f.name, "product_relu");
  EXPECT_EQ(f.num_outputs(), 1);
  EXPECT_TRUE(f.attrs.contains("domains"));
  std::vector<std::string> params;
  for (const Buffer& p : f.params) params.push_back(p.name());
  EXPECT_THAT(params, ElementsAre("A", "B", "D"));
  const std::vector<const Block*> blocks = Blocks(f);
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0]->name, "root");
  ASSERT_EQ(blocks[0]->allocs.size(), 1u);
  EXPECT_EQ(blocks[0]->allocs[0].name(), "C");
  const Block& c = *blocks[1];
  EXPECT_EQ(c.name, "C");
  ASSERT_EQ(c.iters.size(), 3u);
  EXPECT_EQ(c.iters[0].var.name(), "v_i0");
  EXPECT_EQ(c.iters[2].var.name(), "v_k");
  EXPECT_EQ(c.iters[1].kind, IterKind::kSpatial);
  EXPECT_EQ(c.iters[2].kind, IterKind::kReduce);
  ASSERT_EQ(c.reads.size(), 2u);
  EXPECT_EQ(RegionText(c.reads[0]), "A v_i0+1 v_k+1");
  EXPECT_EQ(RegionText(c.reads[1]), "B v_k+1 v_i1+1");
  ASSERT_EQ(c.writes.size(), 1u);
  EXPECT_EQ(RegionText(c.writes[0]), "C v_i0+1 v_i1+1");
  EXPECT_TRUE(static_cast<bool>(c.init));
  EXPECT_FALSE(static_cast<bool>(blocks[2]->init));
}

TEST(CreatePrimFunc, IsRepeatable) { EXPECT_TRUE(StructuralEqual(Product(), Product())); }

TEST(CreatePrimFunc, RegionsCoverWhatIsRead) {
  const Tensor x = Placeholder({10, 8}, kFloat32, "x"), index = Placeholder({8}, kInt64, "index");
  const Tensor y = Compute(
      {8, 8}, [&](const Indices& i) { return x(i[0], i[1]) + x(i[0] + 2, i[1]) + x(MakeCast(kInt32, index(i[1])), 3); },
      "y");
  const PrimFunc f = CreatePrimFunc({x, index}, {y}, "f");
  const Block& block = *Blocks(f)[1];
  ASSERT_EQ(block.reads.size(), 2u);
  EXPECT_EQ(RegionText(block.reads[0]), "x 0+10 0+8");
  EXPECT_EQ(RegionText(block.reads[1]), "index v_i1+1");
  const Tensor z = Compute(
      {8, 8}, [&](const Indices& i) { return x(i[0] + 1, i[1]) + x(i[0] + 2, i[1]) + x(i[0], i[1]); }, "z");
  EXPECT_EQ(RegionText(Blocks(CreatePrimFunc({x}, {z}, "g"))[1]->reads[0]), "x v_i0+3 v_i1+1");
}

TEST(CreatePrimFunc, NamesAreIdentifiersAndUnique) {
  const Tensor x = Placeholder({3}, kFloat32, "/in/0:x");
  const auto next = [](const Tensor& t) {
    return Compute(
        {3}, [&](const Indices& i) { return t(i) + FloatConst(1); }, "root");
  };
  const Tensor y = next(next(x));
  const PrimFunc f = CreatePrimFunc({x}, {y}, "f");
  EXPECT_EQ(f.params[0].name(), "_in_0_x");
  const std::vector<const Block*> blocks = Blocks(f);
  EXPECT_NE(blocks[1]->name, blocks[2]->name);
  EXPECT_EQ(blocks[2]->name, "root_1");
  EXPECT_TRUE(Verify(f).ok()) << Verify(f);
}

TEST(CreatePrimFunc, ScalarsAndTuples) {
  const Tensor x = Placeholder({7}, kFloat32, "x");
  const ReduceAxis k(7, "k");
  const std::vector<Tensor> best =
      ComputeTuple({}, [&](const Indices&) { return ArgMax(x(k), k, {k}); }, {"value", "index"});
  const Tensor twice = Compute(
      {}, [&](const Indices&) { return best[0]() + best[0](); }, "twice");
  const PrimFunc f = CreatePrimFunc({x}, {best[1], twice}, "f");
  ASSERT_TRUE(Verify(f).ok()) << Verify(f) << ToText(f);
  EXPECT_EQ(f.num_outputs(), 2);
  const float values[] = {1, 5, -2, 5, 0, 3, 4};
  std::vector<NdArray> args = {NdArray::Of<float>(kFloat32, {7}, values), NdArray(kInt32, {}), NdArray(kFloat32, {})};
  const absl::Status ran = Interpret(f, args);
  ASSERT_TRUE(ran.ok()) << ran << ToText(f);
  EXPECT_EQ(args[1].GetInt(0), 1);  // the first of the two fives
  EXPECT_EQ(args[2].Get(0), 10);
  EXPECT_EQ(ReadBackError(f), "");
}

TEST(CreatePrimFunc, SymbolicSizesBecomeDims) {
  const Var n("n", kInt64, SizeRange{});
  const Tensor x = Placeholder({n, 4}, kFloat32, "x");
  const Tensor y = Compute(
      x.shape(), [&](const Indices& i) { return x(i) * FloatConst(2); }, "y");
  const PrimFunc f = CreatePrimFunc({x}, {y}, "f");
  EXPECT_THAT(f.dims, ElementsAre(n));
  EXPECT_TRUE(Verify(f).ok()) << Verify(f) << ToText(f);
  std::vector<NdArray> args = {NdArray(kFloat32, {3, 4}), NdArray(kFloat32, {3, 4})};
  for (int i = 0; i < 12; ++i) args[0].Set(i, i);
  const absl::Status ran = Interpret(f, args);
  ASSERT_TRUE(ran.ok()) << ran;
  EXPECT_EQ(args[1].Get(11), 22);
}

TEST(CreatePrimFunc, EveryReducer) {
  const Tensor x = Placeholder({5}, DType::Int(32), "x");
  const ReduceAxis k(5, "k");
  const auto run = [&](const std::function<Reduction(Expr)>& reduce) {
    const Tensor y = Compute(
        {1}, [&](const Indices&) { return reduce(x(k)); }, "y");
    const PrimFunc f = CreatePrimFunc({x}, {y}, "f");
    const int32_t values[] = {3, -4, 2, 5, -1};
    std::vector<NdArray> args = {NdArray::Of<int32_t>(kInt32, {5}, values), NdArray(y.dtype(), {1})};
    const absl::Status ran = Interpret(f, args);
    EXPECT_TRUE(ran.ok()) << ran << ToText(f);
    return args[1].GetInt(0);
  };
  EXPECT_EQ(run([&](Expr e) { return Sum(e, {k}); }), 5);
  EXPECT_EQ(run([&](Expr e) { return Prod(e, {k}); }), 120);
  EXPECT_EQ(run([&](Expr e) { return te::Max(e, {k}); }), 5);
  EXPECT_EQ(run([&](Expr e) { return te::Min(e, {k}); }), -4);
  EXPECT_EQ(run([&](Expr e) { return te::And(e > 0, {k}); }), 0);
  EXPECT_EQ(run([&](Expr e) { return te::Or(e > 4, {k}); }), 1);
}

TEST(CreatePrimFuncDeathTest, Misuse) {
  const Tensor x = Placeholder({4, 6}, kFloat32, "x"), z = Placeholder({4, 6}, kFloat32, "z");
  EXPECT_DEATH(x(0, 0), "outside Compute");
  EXPECT_DEATH(Compute(
                   {4}, [&](const Indices& i) { return x(i[0]); }, "y"),
               "1 indices, its rank is 2");
  const Tensor y = Compute(
      {4, 6}, [&](const Indices& i) { return x(i) + z(i); }, "y");
  EXPECT_DEATH(CreatePrimFunc({x}, {y}, "f"), "z is read but is no input");
  EXPECT_DEATH(CreatePrimFunc({x}, {x}, "f"), "not computed");
}

}  // namespace
}  // namespace hone::te
