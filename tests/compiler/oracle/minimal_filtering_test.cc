// Bounds at the default level hold for Winograd's algorithm whatever the inputs, and still tell a wrong kernel.
#include "compiler/oracle/minimal_filtering.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/visit.h"
#include "compiler/oracle/oracle.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/random.h"
#include "compiler/te/te.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/elementwise.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone {
namespace {

using testing::ConvBiasResidualRelu;
using testing::ConvShape;

constexpr int kKinds = static_cast<int>(kLastInputKind) + 1;

PrimFunc DilatedWindow(const std::vector<int64_t>& image, const std::vector<int64_t>& dilation) {
  const te::Tensor x = te::Placeholder(te::Shape(image), kFloat32, "x");
  const te::Tensor w = te::Placeholder(te::Shape({3, 3, image[3], 5}), kFloat32, "w");
  const te::Tensor conv = topi::Conv2d(x, w, {{}, dilation, dilation, dilation}, "conv");
  return te::CreatePrimFunc({x, w}, {topi::Relu(conv, "relu")}, "main", {{"constants", std::vector<int64_t>{1}}});
}

PrimFunc RandomWindow(Random& random) {
  const auto pick = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.Below(static_cast<uint64_t>(most - least + 1)));
  };
  if (random.Below(4) == 0) return DilatedWindow({pick(1, 2), pick(3, 9), pick(3, 9), pick(1, 5)}, {2, pick(1, 3)});
  return ConvBiasResidualRelu(
      {.height = pick(3, 11), .width = pick(3, 11), .in = pick(1, 12), .out = pick(1, 5), .padding = pick(0, 1)});
}

// The workload by an algorithm; nullopt where it is not for it.
std::optional<ScheduledProgram> ByAlgorithm(const PrimFunc& workload, const std::string& algorithm) {
  Schedule schedule(workload);
  const absl::StatusOr<BlockRef> block = GetBlock(schedule, "conv");
  EXPECT_TRUE(block.ok()) << block.status();
  if (!block.ok() || !ChooseAlgorithm(schedule, *block, algorithm).ok()) return std::nullopt;
  return schedule.Program();
}

struct OracleValues {
  NdArray value, scale, default_scale;
};

// Of the workload's only output.
OracleValues RunOracle(const PrimFunc& workload, const std::vector<NdArray>& inputs) {
  const absl::StatusOr<PrimFunc> oracle = MakeOracle(workload);
  EXPECT_TRUE(oracle.ok()) << oracle.status();
  const absl::Status verified = Verify(*oracle);
  EXPECT_TRUE(verified.ok()) << verified;
  EXPECT_EQ(oracle->num_outputs(), 3);
  std::vector<NdArray> args = RandomArguments(*oracle, 1, InputKind::kUniform);
  for (size_t i = 0; i + 1 < inputs.size(); ++i) args[i] = inputs[i];
  const absl::Status ran = Interpret(*oracle, args);
  EXPECT_TRUE(ran.ok()) << ran;
  const size_t first = inputs.size() - 1;
  return {args[first], args[first + 1], args[first + 2]};
}

NdArray RunProgram(const ScheduledProgram& program, std::vector<NdArray> args) {
  for (const Prepare& prepare : program.prepares) {
    std::vector<NdArray> packing = RandomArguments(prepare.func, 1, InputKind::kUniform);
    const size_t param = static_cast<size_t>(prepare.param);
    packing[0] = args[param];
    const absl::Status packed = Interpret(prepare.func, packing);
    EXPECT_TRUE(packed.ok()) << packed;
    args[param] = packing[1];
  }
  const absl::Status ran = Interpret(program.main, args);
  EXPECT_TRUE(ran.ok()) << ran;
  return args.back();
}

struct Errors {
  double worst = 0;    // over the bound
  double refused = 0;  // the share of elements beyond it
};
Errors ErrorsOf(const NdArray& got, const OracleValues& oracle, const NdArray& scale) {
  Errors errors;
  for (int64_t i = 0; i < got.NumElements(); ++i) {
    const double error =
        ErrorOverBound(got.Get(i), oracle.value.Get(i), scale.Get(i), kFloat32, NumericLevel::kDefault);
    errors.worst = std::max(errors.worst, error);
    errors.refused += error > 1;
  }
  errors.refused /= static_cast<double>(std::max<int64_t>(1, got.NumElements()));
  return errors;
}

// Small and large images, few and many channels, dilated taps: on inputs of every kind.
TEST(MinimalFiltering, RightKernelsAreAccepted) {
  const int64_t seeds = testing::FromEnvironment("HONE_SEEDS", 240);
  int64_t ran = 0, beyond_strict = 0;
  double worst = 0;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    Random random(static_cast<uint64_t>(seed), 5);
    const PrimFunc workload = RandomWindow(random);
    const InputKind kind = static_cast<InputKind>(seed % kKinds);
    const std::vector<NdArray> args = RandomArguments(workload, random.Next(), kind);
    const OracleValues oracle = RunOracle(workload, args);
    for (const std::string& algorithm : AlgorithmNames()) {
      const std::optional<ScheduledProgram> program = ByAlgorithm(workload, algorithm);
      ASSERT_TRUE(program.has_value());
      const NdArray got = RunProgram(*program, args);
      const double error = ErrorsOf(got, oracle, oracle.default_scale).worst;
      EXPECT_LE(error, 1) << "seed " << seed << ", " << algorithm << ", inputs of kind " << static_cast<int>(kind);
      worst = std::max(worst, error);
      beyond_strict += ErrorsOf(got, oracle, oracle.scale).worst > 1;
      ++ran;
    }
  }
  std::printf("worst error over its bound %.3f; of %lld kernels %lld are beyond a bound for sums of their terms\n",
              worst, static_cast<long long>(ran), static_cast<long long>(beyond_strict));
  EXPECT_GT(worst, 0.02) << "a bound that nothing comes near tells nothing";
  EXPECT_GT(beyond_strict, 0) << "these inputs would not show that the bound is needed";
}

// What an element is at strict does not depend on the algorithms of other levels, which are for constant weights alone.
TEST(MinimalFiltering, StrictKeepsItsBound) {
  for (const ConvShape& shape : {ConvShape{9, 8, 5, 4}, ConvShape{7, 7, 3, 2}}) {
    const PrimFunc workload = ConvBiasResidualRelu(shape);
    PrimFunc variable = workload;
    variable.attrs.erase("constants");
    const absl::StatusOr<PrimFunc> plain = MakeOracle(variable);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(plain->num_outputs(), 2);
    for (int kind = 0; kind < kKinds; ++kind) {
      const std::vector<NdArray> args = RandomArguments(workload, 3, static_cast<InputKind>(kind));
      const OracleValues oracle = RunOracle(workload, args);
      std::vector<NdArray> of_plain = RandomArguments(*plain, 1, InputKind::kUniform);
      for (size_t i = 0; i + 1 < args.size(); ++i) of_plain[i] = args[i];
      ASSERT_TRUE(Interpret(*plain, of_plain).ok());
      EXPECT_EQ(oracle.value.data, of_plain[args.size() - 1].data);
      EXPECT_EQ(oracle.scale.data, of_plain[args.size()].data);
      for (int64_t i = 0; i < oracle.scale.NumElements(); ++i) {
        EXPECT_GE(oracle.default_scale.Get(i), oracle.scale.Get(i));
      }
    }
  }
}

TEST(MinimalFiltering, OtherWindowsHaveOneBound) {
  for (const ConvShape& shape :
       {ConvShape{9, 9, 4, 4, 3, 2}, ConvShape{9, 9, 4, 4, 5, 1, 2}, ConvShape{9, 9, 4, 4, 1, 1, 0}}) {
    const absl::StatusOr<PrimFunc> oracle = MakeOracle(ConvBiasResidualRelu(shape));
    ASSERT_TRUE(oracle.ok()) << oracle.status();
    EXPECT_EQ(oracle->num_outputs(), 2) << shape.kernel << ", stride " << shape.stride;
  }
}

// ---- Wrong kernels

// The statements with one index of the loads from a buffer one less where it is the last, as an index off by one is.
Stmt WithIndexOffByOne(const Stmt& root, const std::string& buffer, size_t dimension) {
  return RewriteExprs(root, [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr || load->buffer.name() != buffer) return std::nullopt;
    const std::optional<int64_t> index = ConstantValue(load->indices[dimension]);
    const std::optional<int64_t> extent = ConstantValue(load->buffer.shape()[dimension]);
    if (!index.has_value() || index != *extent - 1) return std::nullopt;
    std::vector<Expr> indices = load->indices;
    indices[dimension] = IntConst(*index - 1);
    return MakeLoad(load->buffer, std::move(indices));
  });
}

// Every `from` of the block's constants is another number.
Stmt WithCoefficient(const Stmt& root, const std::string& block, double from, double to) {
  return RewriteBottomUp(root, [&](const Stmt& stmt) -> std::optional<Stmt> {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || realize->block.name != block) return std::nullopt;
    BlockRealize changed = *realize;
    changed.block.body = RewriteExprs(changed.block.body, [&](const Expr& e) -> std::optional<Expr> {
      const FloatImm* constant = e.As<FloatImm>();
      if (constant == nullptr || constant->value != from) return std::nullopt;
      return FloatConst(to, e.type());
    });
    return Stmt::Make(std::move(changed));
  });
}

struct WrongFiltering {
  const char* name;
  std::function<void(ScheduledProgram&)> spoil;
  const char* of = "";  // how the names of its algorithms start
};
const WrongFiltering kWrongFilterings[] = {
    {"InputRow", [](ScheduledProgram& p) { p.main.body = WithIndexOffByOne(p.main.body, "conv_input_rows", 1); }},
    {"Product", [](ScheduledProgram& p) { p.main.body = WithIndexOffByOne(p.main.body, "conv_product", 0); }},
    {"OutputRow", [](ScheduledProgram& p) { p.main.body = WithIndexOffByOne(p.main.body, "conv_output_rows", 1); }},
    {"Tap",
     [](ScheduledProgram& p) {
       Stmt& body = p.prepares[0].func.body;
       body = WithIndexOffByOne(body, "weight", 0);
     }},
    {"Coefficient", [](ScheduledProgram& p) { p.main.body = WithCoefficient(p.main.body, "conv_input_rows", 5, 5.01); },
     "winograd_4x4"},
};

TEST(MinimalFiltering, WrongTransformsAreRefused) {
  const PrimFunc workload = ConvBiasResidualRelu({12, 12, 16, 4});
  for (const InputKind kind : {InputKind::kUniform, InputKind::kPeaks, InputKind::kRising}) {
    const std::vector<NdArray> args = RandomArguments(workload, 21, kind);
    const OracleValues oracle = RunOracle(workload, args);
    for (const std::string& algorithm : AlgorithmNames()) {
      for (const WrongFiltering& wrong : kWrongFilterings) {
        if (!algorithm.starts_with(wrong.of)) continue;
        ScheduledProgram program = *ByAlgorithm(workload, algorithm);
        const Stmt right = program.main.body, packs = program.prepares[0].func.body;
        wrong.spoil(program);
        ASSERT_FALSE(program.main.body.SameAs(right) && program.prepares[0].func.body.SameAs(packs)) << wrong.name;
        const Errors errors = ErrorsOf(RunProgram(program, args), oracle, oracle.default_scale);
        EXPECT_GT(errors.refused, 0.1) << algorithm << ", " << wrong.name << ", inputs of kind "
                                       << static_cast<int>(kind);
      }
    }
  }
}

// One tap of one channel, of 9 x 32.
TEST(MinimalFiltering, ADroppedTapIsRefused) {
  const PrimFunc workload = ConvBiasResidualRelu({8, 8, 32, 4});
  PrimFunc dropped = workload;
  dropped.body = RewriteBottomUp(workload.body, [&](const Stmt& stmt) -> std::optional<Stmt> {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || realize->block.name != "conv") return std::nullopt;
    BlockRealize changed = *realize;
    Expr is_last = True();
    for (const IterVar& iter : changed.block.iters) {
      if (iter.kind == IterKind::kReduce) is_last = And(is_last, Eq(iter.var, iter.domain.extent - 1));
    }
    changed.block.body = RewriteExprs(changed.block.body, [&](const Expr& e) -> std::optional<Expr> {
      const Binary* product = e.As<Binary>();
      if (product == nullptr || product->op != BinaryOp::kMul || !e.type().is_float()) return std::nullopt;
      return MakeSelect(is_last, FloatConst(0), e);
    });
    return Stmt::Make(std::move(changed));
  });
  ASSERT_FALSE(dropped.body.SameAs(workload.body));
  for (const InputKind kind : {InputKind::kUniform, InputKind::kLarge, InputKind::kRising}) {
    const std::vector<NdArray> args = RandomArguments(workload, 8, kind);
    const OracleValues oracle = RunOracle(workload, args);
    const NdArray got = RunProgram({dropped, {}}, args);
    EXPECT_GT(ErrorsOf(got, oracle, oracle.default_scale).refused, 0.25) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace hone
