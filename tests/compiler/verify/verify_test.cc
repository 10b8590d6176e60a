#include "compiler/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone {
namespace {

// Y[v] = A[v] in block Y under a loop: what every case breaks in one way.
struct Program {
  Var n{"n", kInt32, SizeRange{}}, i{"i"}, v{"vi"};
  Buffer a{"A", kFloat32, {8}}, y{"Y", kFloat32, {8}}, t{"T", kFloat32, {2, 4}};
  Attrs attrs;
  std::vector<Var> dims;
  std::vector<Buffer> params{a, y};
  ForKind kind = ForKind::kSerial;
  std::string thread;
  Expr extent = 8, predicate = True();
  std::vector<Expr> values{Expr(i)};
  std::vector<BufferRegion> reads{{a, {{v, 1}}}}, writes{{y, {{v, 1}}}};
  std::vector<Buffer> allocs;
  Stmt body = Stmt::Make(Store{y, {v}, MakeLoad(a, {v})});

  PrimFunc Make() const {
    Block block{
        .name = "Y", .iters = {{v, {0, 8}, IterKind::kSpatial}}, .reads = reads, .writes = writes, .allocs = allocs};
    block.body = body;
    const Stmt realize = Stmt::Make(BlockRealize{values, predicate, block});
    Block root{.name = "root"};
    root.body = Stmt::Make(For{.var = i, .min = 0, .extent = extent, .kind = kind, .thread = thread, .body = realize});
    return {"main", params, dims, attrs, Stmt::Make(BlockRealize{{}, True(), root})};
  }
  Stmt StoreY(const Expr& value) const { return Stmt::Make(Store{y, {v}, value}); }
};

struct Case {
  const char* name;
  void (*change)(Program&);
  const char* error;  // the message; "": the program is accepted
};

Expr Raw(BinaryOp op, Expr a, Expr b, DType type) { return Expr::Make(Binary{op, a, b}, type); }

const Case kCases[] = {
    {"Good", [](Program&) {}, ""},
    {"VariableScope", [](Program& p) { p.body = p.StoreY(MakeCast(kFloat32, Var("w"))); },
     "variable-scope: block Y: variable w is not defined here"},
    {"LoopInBlock", [](Program& p) { p.body = p.StoreY(MakeCast(kFloat32, p.i)); },
     "loop-in-block: block Y: loop i is used inside the block"},
    {"VariableTwice", [](Program& p) { p.body = Stmt::Make(For{.var = p.i, .min = 0, .extent = 2, .body = p.body}); },
     "defined-twice: block Y: variable i"},
    {"BufferTwice", [](Program& p) { p.allocs = {p.a}; }, "defined-twice: block Y: buffer A"},
    {"BufferScope",
     [](Program& p) {
       p.body = p.StoreY(MakeLoad(p.t, {0, 0}));
     },
     "buffer-scope: block Y: buffer T is neither a parameter nor allocated here"},
    {"BufferAllocated",
     [](Program& p) {
       p.allocs = {p.t};
       p.body = p.StoreY(MakeLoad(p.t, {0, 0}));
     },
     ""},
    {"RegionBuffer",
     [](Program& p) {
       p.reads = {{p.t, {{0, 1}, {0, 1}}}};
     },
     "buffer-scope: block Y: buffer T"},
    {"InputWritten",
     [](Program& p) {
       p.body = Stmt::Make(Store{p.a, {p.v}, FloatConst(0)});
     },
     "input-written: block Y: parameter A is an input"},
    {"BindingCount", [](Program& p) { p.values = {}; }, "binding-count: block Y: 0 values for 1 iteration variables"},
    {"StoreRank",
     [](Program& p) {
       p.allocs = {p.t};
       p.body = Stmt::Make(Store{p.t, {p.v}, FloatConst(0)});
     },
     "store-rank: block Y: T[vi] has 1 index, the buffer has 2 dimensions"},
    {"LoadRank",
     [](Program& p) {
       p.body = p.StoreY(MakeLoad(p.a, {p.v, 0}));
     },
     "load-rank: block Y: A[vi, 0] has 2 indices, the buffer has 1 dimension"},
    {"RegionRank",
     [](Program& p) {
       p.writes = {{p.y, {}}};
     },
     "region-rank: block Y: the region of Y has 0 ranges, the buffer has 1 dimensions"},
    {"IndexRange", [](Program& p) { p.body = p.StoreY(MakeLoad(p.a, {8})); },
     "index-range: block Y: A[8]: index 8 of dimension 0 is outside [0, 8)"},
    {"IndexNegative", [](Program& p) { p.body = p.StoreY(MakeLoad(p.a, {-1})); }, "index-range: block Y: A[-1]"},
    {"IndexGuarded",
     [](Program& p) {
       p.reads = {{p.a, {{-1, 1}}}};
       p.body = p.StoreY(IfThenElse(Expr(p.v) < 4, MakeLoad(p.a, {-1}), FloatConst(0)));
     },
     ""},
    {"OperandTypes",
     [](Program& p) { p.body = p.StoreY(Raw(BinaryOp::kAdd, MakeLoad(p.a, {p.v}), Expr(1), kFloat32)); },
     "types: block Y: A[vi] + 1 has operands of types float32 and int32"},
    {"ComparisonType",
     [](Program& p) { p.body = p.StoreY(Raw(BinaryOp::kLt, FloatConst(1), MakeLoad(p.a, {p.v}), kFloat32)); },
     "types: block Y: "},
    {"StoredType", [](Program& p) { p.body = p.StoreY(Expr(1)); },
     "types: block Y: a value of type int32 is stored to Y[vi] of type float32"},
    {"LoopType", [](Program& p) { p.extent = IntConst(8, kInt64); },
     "types: block root: loop i of type int32 starts at a int32 and has an extent of type int64"},
    {"BindingType", [](Program& p) { p.values = {IntConst(0, kInt64)}; },
     "types: block Y: iteration variable vi of type int32 is bound to"},
    {"IndexType", [](Program& p) { p.body = p.StoreY(MakeLoad(p.a, {FloatConst(0)})); }, "integer: block Y: index "},
    {"PredicateType", [](Program& p) { p.predicate = Expr(1); },
     "condition: block Y: the predicate 1 has type int32, not bool"},
    {"ConditionType",
     [](Program& p) {
       p.body = Stmt::Make(IfThen{p.v, p.body, Stmt()});
     },
     "condition: block Y: the condition vi has type int32, not bool"},
    {"WhileCondition",
     [](Program& p) {
       p.body = Stmt::Make(While{p.v, p.body});
     },
     "condition: block Y: the condition vi has type int32, not bool"},
    {"WhileWithoutBody",
     [](Program& p) {
       p.body = Stmt::Make(While{Expr(p.v) < 4, Stmt()});
     },
     "absent-part: block Y: a while has no body"},
    {"BlockInAWhile",
     [](Program& p) {
       const Block block{.name = "Z", .body = MakeSeq({})};
       p.body = Stmt::Make(While{Expr(p.v) < 4, Stmt::Make(BlockRealize{{}, True(), block})});
     },
     "while-block: block Z: a block in a while, which runs nobody knows how often; put the while in the block"},
    {"ShapeType", [](Program& p) { p.allocs = {Buffer("Z", kFloat32, {FloatConst(2)})}; },
     "shape-type: block Y: buffer Z has the extent "},
    {"NegativeShape", [](Program& p) { p.allocs = {Buffer("Z", kFloat32, {-3})}; },
     "shape-type: block Y: buffer Z has the extent -3"},
    {"SymbolicShape",
     [](Program& p) {
       p.dims = {p.n};
       p.allocs = {Buffer("Z", kFloat32, {p.n})};
     },
     ""},
    {"UnknownCall",
     [](Program& p) {
       p.body = p.StoreY(Expr::Make(Call{"frob", {FloatConst(1)}}, kFloat32));
     },
     "intrinsic: block Y: no function is called frob"},
    {"CallArity",
     [](Program& p) {
       p.body = p.StoreY(Expr::Make(Call{"fma", {FloatConst(1)}}, kFloat32));
     },
     "intrinsic: block Y: fma takes 3 arguments, not 1"},
    {"TileOperands",
     [](Program& p) {
       p.body = Stmt::Make(TileOp{"mma", {}, {}});
     },
     "tile-op: block Y: mma has no operands"},
    {"ThreadMissing", [](Program& p) { p.kind = ForKind::kThreadBinding; },
     "loop-thread: block root: loop i is bound to no thread"},
    {"ThreadUnexpected", [](Program& p) { p.thread = "blockIdx.x"; }, "loop-thread: block root: loop i names a thread"},
    {"SymbolicUnroll",
     [](Program& p) {
       p.dims = {p.n};
       p.extent = p.n;
       p.kind = ForKind::kUnrolled;
     },
     "loop-extent: block root: loop i is vectorized or unrolled, but its extent n is no constant"},
    {"Outputs", [](Program& p) { p.attrs["outputs"] = int64_t{3}; },
     "attributes: function main: \"outputs\" is not a number from 0 to 2"},
    {"Constants", [](Program& p) { p.attrs["constants"] = std::vector<int64_t>{1}; },
     "attributes: function main: \"constants\" names parameter 1, which is no input"},
    {"ColdOutputs", [](Program& p) { p.attrs["cold_outputs"] = std::vector<int64_t>{0}; },
     "attributes: function main: \"cold_outputs\" names parameter 0, which is no output"},
    {"Domains", [](Program& p) { p.attrs["domains"] = std::vector<std::string>{"positive"}; },
     "attributes: function main: \"domains\" is not a list of 2 texts"},
    {"NoBody", [](Program& p) { p.body = Stmt(); }, "absent-part: block Y: the block has no body"},
    {"NoPredicate", [](Program& p) { p.predicate = Expr(); }, "absent-part: block Y: the predicate is absent"},
    {"Masked",
     [](Program& p) {
       p.writes = {{p.y, {{0, 8}}}};
       p.body =
           Stmt::Make(Store{p.y, {MakeRamp(0, 1, 8)}, MakeBroadcast(FloatConst(1), 8), MakeRamp(0, 1, 8) < Expr(p.v)});
     },
     ""},
    {"MaskLanes",
     [](Program& p) {
       p.body =
           Stmt::Make(Store{p.y, {MakeRamp(0, 1, 8)}, MakeBroadcast(FloatConst(1), 8), MakeRamp(0, 1, 4) < Expr(p.v)});
     },
     "types: block Y: Y["},
};

class VerifyTable : public testing::TestWithParam<Case> {};
TEST_P(VerifyTable, AcceptsOrNamesRuleAndPlace) {
  Program program;
  GetParam().change(program);
  const absl::Status status = Verify(program.Make());
  if (*GetParam().error == 0) {
    EXPECT_TRUE(status.ok()) << status;
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(GetParam().error));
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, VerifyTable, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
