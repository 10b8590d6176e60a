// Trigonometric and hyperbolic functions, and their inverses.
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

// The function of ir/math_functions.h by its name.
OpInfo Function(std::string_view name) {
  return FloatFunction(name, [name](const Expr& x) { return MakeCall(std::string(name), {x}); });
}

template <const std::string_view& kOp>
Outputs Import(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return Results({Apply(kOp, {Input(c, 0)})});
}

Outputs Tan(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int sin, c.Emit("sin", {c.input(0)}));
  HONE_ASSIGN_OR_RETURN(const int cos, c.Emit("cos", {c.input(0)}));
  return One(c.Emit("divide", {sin, cos}));
}

constexpr std::string_view kAcos = "acos", kAcosh = "acosh", kAsin = "asin", kAsinh = "asinh", kAtan = "atan",
                           kAtanh = "atanh", kCosh = "cosh", kSinh = "sinh";

}  // namespace

HONE_OPERATORS(trigonometry) {
  constexpr Accepts kFloat = Accepts::kFloat;
  return {
      {.graph = {UnaryFunction("sin", kFloat, topi::Sin), UnaryFunction("cos", kFloat, topi::Cos),
                 UnaryFunction("tanh", kFloat, topi::Tanh)},
       .onnx =
           {
               {"Sin", 7, [](NodeContext& c) { return ImportAs(c, 1, "sin"); }},
               {"Cos", 7, [](NodeContext& c) { return ImportAs(c, 1, "cos"); }},
               {"Tan", 7, Tan, "", true},
               {"Tanh", 6, [](NodeContext& c) { return ImportAs(c, 1, "tanh"); }, "", true},
           }},
      {{Function(kAcos)}, {{.name = "Acos", .since = 7, .import = Import<kAcos>, .in_float32 = true}}},
      {{Function(kAcosh)}, {{.name = "Acosh", .since = 9, .import = Import<kAcosh>, .in_float32 = true}}},
      {{Function(kAsin)}, {{.name = "Asin", .since = 7, .import = Import<kAsin>, .in_float32 = true}}},
      {{Function(kAsinh)}, {{.name = "Asinh", .since = 9, .import = Import<kAsinh>, .in_float32 = true}}},
      {{Function(kAtan)}, {{.name = "Atan", .since = 7, .import = Import<kAtan>, .in_float32 = true}}},
      {{Function(kAtanh)}, {{.name = "Atanh", .since = 9, .import = Import<kAtanh>, .in_float32 = true}}},
      {{Function(kCosh)}, {{.name = "Cosh", .since = 9, .import = Import<kCosh>, .in_float32 = true}}},
      {{Function(kSinh)}, {{.name = "Sinh", .since = 9, .import = Import<kSinh>, .in_float32 = true}}},
  };
}

}  // namespace hone
