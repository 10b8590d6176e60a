// Logic of bools, and the choice between two operands by a bool.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

OpInfo WhereOp() {
  OpInfo op{.name = "where", .kind = OpKind::kElementwise};
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 3));
    if (!in[0].dtype.is_bool()) return Refuse("where: the condition is ", ToText(in[0]), ", not bool");
    if (in[1].dtype != in[2].dtype) return Refuse("where of different types: ", ToText(in[1]), " and ", ToText(in[2]));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, BroadcastShapes(in[0].shape, in[1].shape));
    HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, in[2].shape));
    return Types{{in[1].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs&, TypeSpan) {
    return std::vector{topi::Where(in[0], in[1], in[2], "where")};
  };
  return op;
}

}  // namespace

HONE_OPERATORS(logic) {
  constexpr Accepts kIsBool = Accepts::kBool;
  return {{.graph = {BinaryFunction("and", kIsBool, topi::LogicalAnd), BinaryFunction("or", kIsBool, topi::LogicalOr),
                     BinaryFunction("xor", kIsBool, topi::LogicalXor), UnaryFunction("not", kIsBool, topi::LogicalNot),
                     WhereOp()},
           .onnx = {
               {"And", 7, [](NodeContext& c) { return ImportAs(c, 2, "and"); }},
               {"Or", 7, [](NodeContext& c) { return ImportAs(c, 2, "or"); }},
               {"Xor", 7, [](NodeContext& c) { return ImportAs(c, 2, "xor"); }},
               {"Not", 1, [](NodeContext& c) { return ImportAs(c, 1, "not"); }},
               {"Where", 9, [](NodeContext& c) { return ImportAs(c, 3, "where"); }},
           }}};
}

}  // namespace hone
