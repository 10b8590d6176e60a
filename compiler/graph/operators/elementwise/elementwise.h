// What element-wise operators share: one element in, one element out; inputs broadcast.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"

namespace hone {

enum class Accepts : uint8_t { kAny, kFloat, kBool, kInt, kNumber };  // kNumber: everything but bool

// A function of one operand. Elements of its result are of type `result`, or of the operand's where that is absent.
OpInfo UnaryFunction(std::string_view name, Accepts accepts,
                     std::function<te::Tensor(const te::Tensor&, const Attrs&)> f,
                     std::optional<DType> result = std::nullopt);
// That of topi which takes a tensor and a name alone.
OpInfo UnaryFunction(std::string_view name, Accepts accepts, te::Tensor (*f)(const te::Tensor&, const std::string&),
                     std::optional<DType> result = std::nullopt);
// Of floating-point elements.
OpInfo FloatFunction(std::string_view name, std::function<Expr(const Expr&)> f);

// A function of two operands of one type.
OpInfo BinaryFunction(std::string_view name, Accepts accepts,
                      te::Tensor (*f)(const te::Tensor&, const te::Tensor&, const std::string&),
                      std::optional<DType> result = std::nullopt);
// The operands of which may change places.
OpInfo Commutative(OpInfo op);
// Of two operands of one integer type.
OpInfo IntFunction2(std::string_view name, std::function<Expr(const Expr&, const Expr&)> f);

// Imports an ONNX operator that is `op` of the graph's and has so many inputs.
Outputs ImportAs(NodeContext& context, int inputs, std::string_view op, Attrs attrs = {});

}  // namespace hone
