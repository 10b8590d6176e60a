// Other spellings of the language, what the reader says about mistakes, and texts that try to break it.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/ir/random_program.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {
namespace {

PrimFunc ParseOk(const std::string& text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  EXPECT_TRUE(f.ok()) << f.status().ToString() << "\n" << text;
  return f.ok() ? *std::move(f) : PrimFunc{};
}

constexpr char kReluNow[] = R"(
@T.prim_func
def main(A: T.Buffer((128, 64), "float32"), C: T.Buffer((128, 64), "float32")):
    B = T.alloc_buffer((128, 64), "float32")
    for i, j in T.grid(128, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(128, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.max(B[vi, vj], T.float32(0))
)";

TEST(TextDialectTest, TheSpellingOf2022) {
  const PrimFunc old = ParseOk(R"(
import tvm
from tvm.script import tir as T

@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, C: T.Buffer[(128, 64), "float32"]) -> None:
        # function attr dict
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A = T.match_buffer(a, [128, 64], dtype="float32")
        # body
        # with T.block("root")
        B = T.alloc_buffer([128, 64], dtype="float32")
        for i, j in T.grid(128, 64):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads([A[vi, vj]])
                T.writes([B[vi, vj]])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i in T.serial(0, 128):
            for j in range(64):
                with T.block("C"):
                    vi = T.axis.spatial(128, i)
                    vj = T.axis.S(64, j)
                    C[vi, vj] = T.max(B[vi, vj], T.float32(0), dtype="float32")
)");
  EXPECT_TRUE(StructuralEqual(old, ParseOk(kReluNow))) << ToText(old);
}

TEST(TextDialectTest, TheSpellingOf2025) {
  const PrimFunc recent = ParseOk(R"(
# from tvm.script import ir as I
# from tvm.script import tir as T

@I.ir_module
class Module:
    I.module_attrs({"version": 1})
    @R.function
    def other(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    @T.prim_func(private=True, s_tir=True)
    def relu(A: T.Buffer((128, 64), "float32"), C: T.Buffer((128, 64), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        with T.sblock("root"):
            T.reads()
            T.writes()
            B = T.sblock_alloc_buffer((128, 64))
            for i, j in T.grid(128, 64):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj] * T.float32(2.0)
            for i, j in T.grid(128, 64):
                with T.sblock("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[vi, vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = T.max(B[vi, vj], 0.0)
)");
  EXPECT_EQ(recent.name, "relu");
  EXPECT_TRUE(StructuralEqual(recent, ParseOk(kReluNow))) << ToText(recent);
}

TEST(TextDialectTest, SymbolicSizes) {
  const PrimFunc ours = ParseOk(R"(
@T.prim_func
def main(n: T.int64, A: T.Buffer((n, T.int64(4)), "float32"), B: T.Buffer((n,), "float32")):
    for i in range(n):
        B[i] = A[i, T.int64(0)]
)");
  const PrimFunc by_handle = ParseOk(R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, T.int64(4)), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = A[i, T.int64(0)]
)");
  const PrimFunc by_name = ParseOk(R"(
@T.prim_func
def main(A: T.Buffer(("n", T.int64(4)), "float32"), B: T.Buffer(("n",), "float32"), n: T.int64):
    for i in range(n):
        B[i] = A[i, T.int64(0)]
)");
  EXPECT_TRUE(StructuralEqual(ours, by_handle));
  EXPECT_TRUE(StructuralEqual(ours, by_name));
  ASSERT_EQ(ours.dims.size(), 1u);
  EXPECT_EQ(ours.dims[0].type(), kInt64);
}

TEST(TextDialectTest, SeveralSizesInALine) {
  const PrimFunc of_one_line = ParseOk(R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i in range(m):
        B[i] = A[T.int64(0), i]
)");
  const PrimFunc of_two_lines = ParseOk(R"(
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int64()
    m = T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m,), "float32")
    for i in range(m):
        B[i] = A[T.int64(0), i]
)");
  EXPECT_EQ(of_one_line.dims.size(), 2u);
  EXPECT_TRUE(StructuralEqual(of_one_line, of_two_lines)) << ToText(of_one_line);
}

// Code that TVM's scheduler does not look into says that it touches nothing, and has hints in a dictionary.
TEST(TextDialectTest, BlocksOfExternCode) {
  const PrimFunc printed = ParseOk(R"(
@T.prim_func
def main(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4, 9), "float32")):
    with T.sblock("scan"):
        T.reads()
        T.writes()
        T.attr({"pragma_scope": "seq"})
        for v in T.parallel(4):
            B[v, 0] = A[v, 0]
)");
  const PrimFunc meant = ParseOk(R"(
@T.prim_func
def main(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4, 9), "float32")):
    with T.block("scan"):
        for v in T.parallel(4):
            B[v, 0] = A[v, 0]
)");
  EXPECT_TRUE(StructuralEqual(printed, meant)) << ToText(printed);
}

TEST(TextDialectTest, BuffersWhoseLayoutIsFree) {
  const PrimFunc printed = ParseOk(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            T.sblock_attr({"layout_free_placeholders": [A]})
            B[vi] = A[vi]
)");
  EXPECT_EQ(ToText(printed).find("layout_free"), std::string::npos) << ToText(printed);
}

TEST(TextDialectTest, OperatorsBindAsInPython) {
  const auto value = [](const std::string& text) {
    const PrimFunc f =
        ParseOk(absl::StrCat("@T.prim_func\ndef main(a: T.int32, b: T.int32, A: T.Buffer((1,), \"int32\"), P: "
                             "T.Buffer((a + b,), \"bool\")):\n"
                             "    T.evaluate(",
                             text, ")\n"));
    return f.body ? f.body.As<Evaluate>()->value : Expr();
  };
  const auto same = [&](const std::string& x, const std::string& y) {
    // The dimensions differ from parse to parse, so the texts are compared.
    EXPECT_EQ(ToText(value(x)), ToText(value(y))) << x << " and " << y;
  };
  same("a + b * a - b", "(a + (b * a)) - b");
  same("a - b - a", "(a - b) - a");
  same("-a * b", "(0 - a) * b");
  same("-3 % a", "(-3) % a");
  same("a // b % a", "(a // b) % a");
  same("a < b and b < a or not a == b", "((a < b) and (b < a)) or (not (a == b))");
  same("0 <= a < b", "(0 <= a) and (a < b)");
  same("a | b & a << 1", "a | (b & (a << 1))");
  same("T.floordiv(a, b)", "a // b");
  EXPECT_EQ(ToText(value("a - (b - a)")), "a - (b - a)");
  EXPECT_EQ(ToText(value("a * (b * a)")), "a * (b * a)");
  EXPECT_EQ(ToText(value("(a < b) == (b < a)")), "(a < b) == (b < a)");
  EXPECT_EQ(ToText(value("T.Let(x + 1, where={x: a * b})")), "T.let(x, a * b, x + 1)");
  EXPECT_EQ(ToText(value("a.astype(\"float32\")")), "T.Cast(\"float32\", a)");
  EXPECT_EQ(ToText(value("T.cast(a, \"int64\")")), "T.Cast(\"int64\", a)");
  EXPECT_EQ(ToText(value("a + T.int64(1)")), "T.Cast(\"int64\", a) + T.int64(1)");
  EXPECT_EQ(ToText(value("4294967296")), "T.int64(4294967296)");
}

TEST(TextDialectTest, ConstantsReadBack) {
  const double nan = std::nan("");
  const std::vector<Expr> constants = {FloatConst(0.1),
                                       FloatConst(-0.0),
                                       FloatConst(1e-45),
                                       FloatConst(3.4028234663852886e38),
                                       FloatConst(INFINITY),
                                       FloatConst(-INFINITY),
                                       FloatConst(nan),
                                       FloatConst(-nan),
                                       FloatConst(0.1, DType::Float(64)),
                                       FloatConst(5e-324, DType::Float(64)),
                                       FloatConst(1.0009765625, DType::Float(16)),
                                       FloatConst(3.140625, DType::BFloat16()),
                                       IntConst(-128, DType::Int(8)),
                                       IntConst(-1, DType::UInt(64)),
                                       IntConst(INT64_MIN, kInt64),
                                       IntConst(INT32_MIN),
                                       IntConst(255, DType::UInt(8)),
                                       True(),
                                       IntConst(0, kBool),
                                       FloatConst(123456789.0),
                                       FloatConst(1e22)};
  for (const Expr& constant : constants) {
    const PrimFunc f = ParseOk(absl::StrCat("@T.prim_func\ndef main(A: T.Buffer((1,), \"float32\")):\n    T.evaluate(",
                                            ToText(constant), ")\n"));
    ASSERT_TRUE(f.body) << ToText(constant);
    EXPECT_TRUE(StructuralEqual(f.body.As<Evaluate>()->value, constant))
        << ToText(constant) << " read as " << ToText(f.body.As<Evaluate>()->value);
  }
}

TEST(TextDialectTest, RandomProgramsReadBack) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    ASSERT_EQ(ReadBackError(RandomProgram(seed).Make()), "") << "seed " << seed;
  }
}

// What text cannot show by itself is marked: a function without a root, or with one that says nothing.
TEST(TextDialectTest, RootsComeBackAsTheyWere) {
  const Buffer a("A", kFloat32, {4}), b("B", kFloat32, {4});
  const Stmt store = Stmt::Make(Store{b, {0}, MakeLoad(a, {0}), Expr()});
  const Stmt inner = Stmt::Make(BlockRealize{{}, True(), Block{.name = "inner", .body = store}});
  const Stmt named_root = Stmt::Make(BlockRealize{{}, True(), Block{.name = "root", .body = store}});
  const auto root_of = [](Stmt body) {
    return Stmt::Make(BlockRealize{{}, True(), Block{.name = "root", .body = std::move(body)}});
  };
  const std::vector<Stmt> bodies = {store,
                                    inner,
                                    named_root,
                                    root_of(store),
                                    root_of(inner),
                                    root_of(named_root),
                                    MakeSeq({inner, store}),
                                    root_of(MakeSeq({})),
                                    MakeSeq({})};
  for (const Stmt& body : bodies) {
    EXPECT_EQ(ReadBackError(PrimFunc{.name = "main", .params = {a, b}, .body = body}), "");
  }
}

TEST(TextDialectTest, NamesAreMadeDistinct) {
  const Var i("i"), other("i"), odd("conv1/weight:0"), word("for");
  const Buffer a("i", kInt32, {8});
  Stmt body = Stmt::Make(Store{a, {Expr(i)}, Expr(other) + Expr(odd) + Expr(word), Expr()});
  for (const Var& v : {word, odd, other, i}) body = Stmt::Make(For{.var = v, .min = 0, .extent = 2, .body = body});
  EXPECT_EQ(ReadBackError(PrimFunc{.name = "class", .params = {a}, .body = body}), "");
}

// ---- regions

TEST(TextDialectTest, RegionsAreDerivedWhereTheTextHasNone) {
  const PrimFunc f = ParseOk(R"(
@T.prim_func
def main(A: T.Buffer((10, 16), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((8, 16), "float32")):
    for i in range(8):
        with T.block("stencil"):
            vi = T.axis.spatial(8, i)
            for j in range(16):
                B[vi, j] = A[vi, j] + A[vi + 2, j] * A[vi + 1, 15 - j] + A[I[vi], 0]
    for i, k in T.grid(8, 16):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi, 0] = T.float32(0)
            B[vi, 0] = B[vi, 0] + A[vi * 1, vk]
)");
  std::vector<std::string> regions;
  ForEachStmt(f.body, [&](const Stmt& s) {
    const BlockRealize* realize = s.As<BlockRealize>();
    if (realize == nullptr) return true;
    const Block& block = realize->block;
    if (block.name == "root") return true;
    PrimFunc shown{.name = "f", .params = f.params};
    Block only{
        .name = block.name, .iters = block.iters, .reads = block.reads, .writes = block.writes, .body = MakeSeq({})};
    std::vector<Expr> values;
    for (const IterVar& iter : block.iters) values.push_back(iter.domain.min);
    const std::string text = ToText(Stmt::Make(BlockRealize{values, True(), only}));
    const size_t reads = text.find("T.reads"), end = text.find("pass");
    regions.push_back(absl::StrReplaceAll(text.substr(reads, end - reads), {{"\n", ""}, {"    ", " "}}));
    return true;
  });
  EXPECT_THAT(regions, testing::ElementsAre("T.reads(A[0:10, 0:16], I_1[vi]) T.writes(B[vi, 0:16]) ",
                                            "T.reads(A[vi * 1, vk]) T.writes(B[vi, 0]) "));
}

// ---- mistakes

struct Mistake {
  const char* name;
  const char* body;  // of a function with A, B: (4, 8) float32 and n: int32
  const char* message;
};

class MistakeTest : public testing::TestWithParam<Mistake> {};
void PrintTo(const Mistake& m, std::ostream* out) { *out << m.name; }

TEST_P(MistakeTest, IsNamedWithItsPlace) {
  const std::string text = absl::StrCat(
      "@T.prim_func\ndef main(n: T.int32, A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((4, 8), \"float32\")):\n",
      GetParam().body);
  const absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  ASSERT_FALSE(f.ok()) << ToText(*f);
  EXPECT_EQ(f.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(f.status().message()), GetParam().message);
}

constexpr Mistake kMistakes[] = {
    {"UnknownName", "    B[0, 0] = x\n",
     "line 3, column 15: `x` is not defined here; expected a loop's or block's variable, or a buffer"},
    {"UnknownBuffer", "    X[0, 0] = 1\n", "line 3, column 5: `X` is no buffer defined here"},
    {"TooFewIndices", "    B[0] = A[0, 0]\n", "line 3, column 5: `B` has 2 dimensions; found 1 indices"},
    {"TooManyIndices", "    B[0, 0, 0] = A[0, 0]\n", "line 3, column 5: `B` has 2 dimensions; found more indices"},
    {"FloatIndex", "    B[0, A[0, 0]] = 0\n", "line 3, column 10: an index of type float32; expected an integer"},
    {"MixedTypes", "    B[0, 0] = A[0, 0] + n\n",
     "line 3, column 23: the operands of `+` are float32 and int32; expected one type: write T.Cast(\"float32\", ...)"},
    {"StoredType", "    B[0, 0] = n\n",
     "line 3, column 15: found a value to store of type int32; expected float32: write T.Cast(\"float32\", ...)"},
    {"NoBody", "\n", "line 4, column 1: found the end of the text; expected an indented block of statements"},
    {"MissingParen", "    B[0, 0] = T.exp(A[0, 0]\n", "line 4, column 1: found the end of the line; expected `,`"},
    {"UnknownFunction", "    B[0, 0] = T.expp(A[0, 0])\n",
     "line 3, column 17: `T.expp` is not known here; expected a function such as T.exp or T.max"},
    {"ArgumentCount", "    B[0, 0] = T.pow(A[0, 0])\n", "line 3, column 21: T.pow takes 2 arguments; found 1"},
    {"AxisOutside", "    vi = T.axis.spatial(4, 0)\n",
     "line 3, column 12: T.axis outside of a block; expected it directly in a T.block"},
    {"RemapOfNoLoop", "    with T.block(\"x\"):\n        vi = T.axis.remap(\"S\", [n])\n",
     "line 4, column 33: `n` is no loop's variable"},
    {"GridCount", "    for i, j in T.grid(4):\n        B[i, j] = A[i, j]\n",
     "line 3, column 17: found 1 extents for 2 variables"},
    {"LoopKind", "    for i in T.parallell(4):\n        B[i, 0] = A[i, 0]\n",
     "line 3, column 14: `T.parallell` is no kind of loop; expected serial, parallel, vectorized, unroll, "
     "thread_binding or grid"},
    {"Scope", "    t = T.alloc_buffer((4,), \"float32\", scope=\"reg\")\n",
     "line 3, column 47: \"reg\" is no scope; expected \"global\", \"local\", \"local.thread\", \"shared\" or "
     "\"warp\""},
    {"Type", "    t = T.alloc_buffer((4,), \"float23\")\n",
     "line 3, column 30: \"float23\" names no type; expected one such as \"float32\" or \"int64\""},
    {"Condition", "    if n:\n        B[0, 0] = A[0, 0]\n",
     "line 3, column 8: found a condition of type int32; expected bool, a comparison"},
    {"Indentation", "    for i in range(3):\n        B[i, 0] = A[i, 0]\n      B[0, 0] = A[0, 0]\n",
     "line 5, column 7: this indentation matches no line above"},
    {"Quotes", "    T.func_attr({\"a\n", "line 3, column 18: this text in quotes has no end"},
    {"Character", "    B[0, 0] = A[0, 0] ? 1\n", "line 3, column 23: `?` means nothing here"},
    {"Number", "    B[0, 0] = 12abc\n", "line 3, column 15: `12` runs into `a`; a number ends here"},
    {"BigNumber", "    T.evaluate(99999999999999999999)\n",
     "line 3, column 16: `99999999999999999999` is no 64-bit integer"},
    {"DoesNotFit", "    T.evaluate(T.int8(300))\n", "line 3, column 23: 300 does not fit int8"},
    {"Lanes", "    T.evaluate(T.Broadcast(1, 1000000))\n",
     "line 3, column 31: the number of lanes must be a constant from 2 to 1024"},
    {"SecondInit",
     "    with T.block(\"x\"):\n        with T.init():\n            pass\n        with T.init():\n            pass\n",
     "line 6, column 16: a second T.init in one block"},
    {"Statement", "    return A\n",
     "line 3, column 5: `return` is not supported: what a function computes is written to its last parameters; leave "
     "it "
     "out"},
    {"MixedLanes", "    B[0, T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 8)\n",
     "line 3, column 29: found a value to store of 8 lanes; expected 4"},
    {"NegativeSize", "    t = T.alloc_buffer((-1,), \"float32\")\n",
     "line 3, column 25: a dimension of -1; expected 0 or more"},
};
INSTANTIATE_TEST_SUITE_P(Texts, MistakeTest, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TextDialectTest, NothingOrTooMuchIsSaid) {
  EXPECT_EQ(ParsePrimFunc("").status().message(),
            "line 1, column 1: found 0 functions with @T.prim_func; expected one");
  EXPECT_EQ(ParsePrimFunc("hello").status().message(),
            "line 1, column 1: found `hello`; expected a function (@T.prim_func or @R.function, then `def`), a class "
            "of functions, or "
            "an import");
  const std::string two = absl::StrCat(kReluNow, kReluNow);
  EXPECT_FALSE(ParsePrimFunc(two).ok());
  ASSERT_TRUE(ParseModule(two).ok());
  EXPECT_EQ(ParseModule(two)->size(), 2u);
  EXPECT_EQ(ParsePrimFunc("@T.prim_func\ndef main(a: T.handle):\n    pass\n").status().message(),
            "line 2, column 5: a T.handle of `main` is given no shape; add T.match_buffer");
}

// ---- texts that try to break the reader

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(TextDialectTest, DepthIsLimited) {
  const std::string head = "@T.prim_func\ndef main(A: T.Buffer((4,), \"int32\")):\n";
  const auto fails = [&](const std::string& body) {
    const absl::StatusOr<PrimFunc> f = ParsePrimFunc(head + body);
    EXPECT_FALSE(f.ok()) << body.substr(0, 60);
    EXPECT_LT(f.status().message().size(), 300u);
  };
  fails("    A[0] = " + Repeat("(", 100000));
  fails("    A[0] = " + Repeat("(", 100000) + "1" + Repeat(")", 100000) + "\n");
  fails("    A[0] = " + Repeat("-", 100000) + "A[0]\n");
  fails("    A[0] = " + Repeat("not ", 100000) + "True\n");
  fails("    A[0] = 1" + Repeat(" + A[0]", 100000) + "\n");
  fails("    A[0] = " + Repeat("A[", 100000) + "0" + Repeat("]", 100000) + "\n");
  fails("    A[0] = " + Repeat("T.min(1, ", 100000) + "\n");
  fails("    A[0] = A[0]" + Repeat(".astype(\"int32\")", 100000) + "\n");
  fails("    A[0] = " + Repeat("T.Let(", 300) + "x" + Repeat(", where={x: 1})", 300) + "\n");
  fails("    for " + Repeat("i, ", 10000) + "i in T.grid(" + Repeat("1, ", 10000) + "1):\n        A[0] = 1\n");
  std::string nested, indent = "    ";
  for (int i = 0; i < 1000; ++i) {
    nested += indent + "if True:\n";
    indent += " ";
  }
  fails(nested + indent + "A[0] = 1\n");
  fails(Repeat("    x: T.int32 = 1\n", 5000) + "    A[0] = x\n");
  fails("    if True:\n        A[0] = 1\n" + Repeat("    elif True:\n        A[0] = 1\n", 5000));
  fails("    T.func_attr({\"a\": " + Repeat("[", 100000) + "\n");
}

TEST(TextDialectTest, LongSumsWithinTheLimitRead) {
  const PrimFunc f =
      ParseOk("@T.prim_func\ndef main(A: T.Buffer((4,), \"int32\")):\n    A[0] = A[0]" + Repeat(" + A[1]", 500) + "\n");
  ASSERT_TRUE(f.body);
  EXPECT_TRUE(StructuralEqual(f, ParseOk(ToText(f))));
}

// Random damage: never a crash, and what is accepted prints and reads back.
TEST(TextDialectTest, DamagedTextsNeverCrash) {
  std::vector<std::string> seeds = {kReluNow};
  for (uint64_t seed = 0; seed < 20; ++seed) seeds.push_back(ToText(RandomProgram(seed).Make()));
  seeds.push_back(R"(@T.prim_func
def main(n: T.int32, A: T.Buffer((n, 64), "float32"), B: T.Buffer((n, 64), "float32")):
    T.func_attr({"outputs": 1, "domains": ["", ""], "x": T.float64(0.5)})
    with T.allocate((64,), "float32", scope="local.thread") as t:
        t[T.Ramp(0, 1, 16)] = A[0, T.Ramp(0, 1, 16)] * T.Broadcast(T.float32(2), 16)
        B.vstore([0, T.Ramp(0, 1, 16)], t[T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(n, 16))
    x: T.int32 = T.let(y, n * 2, y + 1)
    T.tile_op("mma", B[0, 0:16], A[x:x + 4, 0:n], params={"k": 1})
    for i in T.thread_binding(32, thread="threadIdx.x", annotations={"a": "b"}):
        B[0, i] = T.if_then_else(0 <= i < 3, A[0, i], T.float32("-inf"))
)");
  const std::string pieces[] = {"(",
                                ")",
                                "[",
                                "]",
                                ":",
                                ",",
                                "\n",
                                "    ",
                                "T.",
                                "-",
                                "0",
                                "9999999999",
                                "\"",
                                "#",
                                "=",
                                "T.int64(",
                                "float32x4",
                                "\\",
                                "if ",
                                "and ",
                                "T.Ramp(",
                                "vi",
                                "\t",
                                "\xff",
                                ".5",
                                "1e999",
                                "T.block(\"root\")",
                                "T.Cast(\"bool\", "};
  Random random(5);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = seeds[random.Below(seeds.size())];
    for (uint64_t edits = random.Below(4) + 1; edits > 0; --edits) {
      const size_t at = random.Below(text.size() + 1), length = random.Below(12);
      switch (random.Below(4)) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, pieces[random.Below(std::size(pieces))]); break;
        case 2: text.insert(at, text.substr(random.Below(text.size() + 1), length)); break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(random.Below(256));
      }
    }
    const absl::StatusOr<std::vector<PrimFunc>> functions = ParseModule(text);
    if (!functions.ok()) {
      ASSERT_TRUE(std::string(functions.status().message()).starts_with("line ")) << functions.status().ToString();
      continue;
    }
    for (const PrimFunc& f : *functions) {
      ++accepted;
      ASSERT_EQ(ReadBackError(f), "") << "--- from ---\n" << text;
      Verify(f).IgnoreError();
    }
  }
  EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace hone
