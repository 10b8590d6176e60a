// A module: tensor functions, and the graph functions that call them (the R.* dialect: compiler/text/README.md).
//
// A graph function is a line of bindings, some of them in dataflow blocks, which have no side effects. A tensor
// function is called in destination-passing style: `CallTir` names what it gives back, the caller makes room for it.
// Nodes are immutable and reached through the shared handle `GraphExpr`, as expressions are (expr.h); the reader makes
// them, and StructuralEqual compares them up to the names of values and of symbolic sizes.
//
// This is a graph as text has it. Passes, fusion and plans work on Graph (compiler/graph/graph.h): ImportModule
// (compiler/frontend/module_import.h) makes one of a module, ModuleOf (compiler/graph/module_of_graph.h) the reverse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"

namespace hone {

// What is known of a value before the program runs.
struct GraphType {
  enum class Kind : uint8_t { kObject, kTensor, kShape, kScalar, kTuple };
  Kind kind = Kind::kObject;
  std::optional<DType> dtype;              // of a tensor's elements or of a scalar
  std::optional<std::vector<Expr>> shape;  // of a tensor; of a shape: its extents. int64
  int rank = -1;                           // of a tensor or shape without `shape`: -1 when unknown
  std::vector<GraphType> fields;           // of a tuple

  static constexpr auto Fields() {
    return std::tuple(&GraphType::kind, &GraphType::dtype, &GraphType::shape, &GraphType::rank, &GraphType::fields);
  }
};

// A value with a name is its own identity, as a variable is.
class GraphVar {
 public:
  GraphVar() = default;
  explicit GraphVar(std::string name, std::optional<GraphType> type = std::nullopt);
  const std::string& name() const { return node_->name; }
  const std::optional<GraphType>& type() const { return node_->type; }  // absent where the text does not say it
  uint64_t id() const { return node_->id; }                             // unique in the process
  friend bool operator==(const GraphVar& a, const GraphVar& b) { return a.node_ == b.node_; }
  explicit operator bool() const { return static_cast<bool>(node_); }
  template <class H>
  friend H AbslHashValue(H h, const GraphVar& v) {
    return H::combine(std::move(h), v.id());
  }

 private:
  struct Node : Counted {
    std::string name;
    std::optional<GraphType> type;
    uint64_t id = 0;
  };
  Ref<const Node> node_;
};

struct GraphNode;

class GraphExpr {
 public:
  GraphExpr() = default;
  template <class Node>
  static GraphExpr Make(Node node);
  template <class Node>
  const Node* As() const;  // nullptr when it is another kind
  const GraphNode& node() const { return *node_; }
  explicit operator bool() const { return static_cast<bool>(node_); }

 private:
  Ref<const GraphNode> node_;
};

struct GraphVarRef {
  GraphVar var;
  static constexpr auto Fields() { return std::tuple(&GraphVarRef::var); }
};
struct FunctionRef {  // cls.relu: a function of the module, by its name
  std::string name;
  static constexpr auto Fields() { return std::tuple(&FunctionRef::name); }
};
struct Literal {  // an attribute: None, True, 3, 0.5, "NCHW"
  std::variant<std::monostate, bool, int64_t, double, std::string> value;
  static constexpr auto Fields() { return std::tuple(&Literal::value); }
};
struct TypeLiteral {  // a type as an argument: R.Tensor((2,), "int64"), R.dtype("float32")
  GraphType type;
  static constexpr auto Fields() { return std::tuple(&TypeLiteral::type); }
};
struct ScalarValue {  // R.prim_value(n + 1)
  Expr value;
  static constexpr auto Fields() { return std::tuple(&ScalarValue::value); }
};
struct ShapeValue {  // R.shape([1, n])
  std::vector<Expr> extents;
  static constexpr auto Fields() { return std::tuple(&ShapeValue::extents); }
};
struct TensorConstant {  // R.const(0.5, "float32"), R.const([1, 2], "int64")
  DType dtype;
  GraphExpr value;  // a Literal, or lists of them
  static constexpr auto Fields() { return std::tuple(&TensorConstant::dtype, &TensorConstant::value); }
};
// A tensor kept outside of the text, by its number in the dictionary of constants: metadata["relax.expr.Constant"][3].
struct StoredConstant {
  int64_t index = 0;
  static constexpr auto Fields() { return std::tuple(&StoredConstant::index); }
};
struct GraphTuple {
  bool is_list = false;  // [a, b], which some attributes are
  std::vector<GraphExpr> items;
  static constexpr auto Fields() { return std::tuple(&GraphTuple::is_list, &GraphTuple::items); }
};
struct TupleItem {
  GraphExpr tuple;
  int64_t index = 0;
  static constexpr auto Fields() { return std::tuple(&TupleItem::tuple, &TupleItem::index); }
};
// Calls `function` with `args` and with room for what it gives back: a tensor function of the module, or, when
// `packed`, a function of the environment ("env.linear").
struct CallTir {
  bool packed = false;
  std::string function;
  std::vector<GraphExpr> args;
  std::vector<GraphType> outputs;  // one tensor, or several: then the value is a tuple
  std::vector<Expr> sizes;         // symbolic sizes handed over beside the tensors
  static constexpr auto Fields() {
    return std::tuple(&CallTir::packed, &CallTir::function, &CallTir::args, &CallTir::outputs, &CallTir::sizes);
  }
};
// Any other operator: R.nn.relu(x), R.concat((x, y), axis=1); or, with `callee`, a call of a graph function.
struct GraphCall {
  std::string op;  // "nn.relu"; empty with a callee
  GraphExpr callee;
  std::vector<GraphExpr> args;
  std::vector<std::pair<std::string, GraphExpr>> named;
  static constexpr auto Fields() {
    return std::tuple(&GraphCall::op, &GraphCall::callee, &GraphCall::args, &GraphCall::named);
  }
};

struct GraphNode : Counted {
  using Kind = std::variant<GraphVarRef, FunctionRef, Literal, TypeLiteral, ScalarValue, ShapeValue, TensorConstant,
                            StoredConstant, GraphTuple, TupleItem, CallTir, GraphCall>;
  explicit GraphNode(Kind k) : kind(std::move(k)) {}
  Kind kind;
};

template <class Node>
GraphExpr GraphExpr::Make(Node node) {
  GraphExpr e;
  e.node_ = Ref<const GraphNode>(new GraphNode(std::move(node)));
  return e;
}
template <class Node>
const Node* GraphExpr::As() const {
  return node_ ? std::get_if<Node>(&node_->kind) : nullptr;
}

struct GraphBinding {
  GraphVar var;  // defined here
  GraphExpr value;
};
struct BindingBlock {
  bool is_dataflow = false;
  std::vector<GraphBinding> bindings;
  std::vector<GraphVar> outputs;  // of a dataflow block: what the rest of the function may use
};

struct GraphFunc {
  std::string name;
  bool is_private = false, is_pure = true;
  std::vector<Var> dims;  // symbolic sizes, in order of their first mention
  std::vector<GraphVar> params;
  std::optional<GraphType> returns;  // absent where the text does not say it
  Attrs attrs;
  std::vector<BindingBlock> blocks;
  GraphExpr result;
};

struct IrModule {
  std::string name;  // of the class; empty: functions alone
  Attrs attrs;
  std::vector<std::variant<PrimFunc, GraphFunc>> functions;  // in the order of the text
};

const std::string& NameOf(const std::variant<PrimFunc, GraphFunc>& function);

// Equal up to the names of values and sizes. Names of functions count here, since calls go by them.
bool StructuralEqual(const GraphFunc& a, const GraphFunc& b);
bool StructuralEqual(const IrModule& a, const IrModule& b);

}  // namespace hone
