// Expressions: immutable trees of typed scalars and vectors, reached through the shared handle `Expr`.
//
// A new kind of expression is one struct with `Fields()`, one entry in `ExprNode::kind`, and the places where the
// compiler says that a std::visit no longer covers every case. Children, equality, hashing and rewriting follow from
// `Fields()`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/ir/ref.h"

namespace hone {

struct ExprNode;

class Expr {  // cheap to copy; the tree it points to never changes
 public:
  Expr() = default;     // the absent expression; most functions do not take it
  Expr(int32_t value);  // NOLINT: literals read as in the program text: i * 16 + 1
  Expr(int64_t value);  // NOLINT: an int32 constant where it fits, int64 otherwise

  template <class Node>
  static Expr Make(Node node, DType type);  // no checks: prefer the functions below
  template <class Node>
  const Node* As() const;  // nullptr when it is another kind
  const ExprNode& node() const { return *node_; }
  DType type() const;
  bool SameAs(const Expr& other) const { return node_ == other.node_; }
  explicit operator bool() const { return static_cast<bool>(node_); }

 private:
  Ref<const ExprNode> node_;
};

// What a symbolic size may be, both ends included.
struct SizeRange {
  int64_t min = 1, max = INT32_MAX;
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};

// A variable is its own identity: two variables with one name are different.
class Var {
 public:
  Var() = default;
  explicit Var(std::string name, DType type = kInt32);
  // A symbolic size (PrimFunc::dims). The range belongs to the variable, so that whoever meets the variable knows it.
  Var(std::string name, DType type, SizeRange range);
  const std::string& name() const;
  DType type() const;
  const std::optional<SizeRange>& range() const;  // absent but for a symbolic size
  operator Expr() const;                          // NOLINT: a variable is an expression
  bool SameAs(const Var& other) const { return node_ == other.node_; }
  friend bool operator==(const Var& a, const Var& b) { return a.SameAs(b); }
  friend bool operator<(const Var& a, const Var& b) { return a.id() < b.id(); }  // order of creation: deterministic
  uint64_t id() const;                                                           // unique in the process
  explicit operator bool() const { return static_cast<bool>(node_); }
  template <class H>
  friend H AbslHashValue(H h, const Var& v) {
    return H::combine(std::move(h), v.id());
  }

 private:
  friend struct VarRef;
  struct Node : Counted {
    ~Node();
    std::string name;
    DType type;
    std::optional<SizeRange> range;
    uint64_t id = 0;
  };
  Ref<const Node> node_;
};

// Where a buffer lives.
//   kGlobal    memory the whole kernel sees: parameters, or scratch of the launch
//   kThread    memory of one parallel task: scratch that stays in its caches
//   kRegister  registers of one task: every index must be a constant once the program is lowered
//   kShared    shared memory of a GPU block
//   kWarp      shared memory of which every warp of a block (ir/thread_axes.h) has an instance of its own
enum class Scope : uint8_t { kGlobal, kThread, kRegister, kShared, kWarp };
std::string_view ToText(Scope scope);  // "global", "local.thread", "local", "shared", "warp"
std::optional<Scope> ParseScope(std::string_view text);
// Returns whether threads of a block see what others of it write there.
constexpr bool IsSharedByThreads(Scope scope) { return scope == Scope::kShared || scope == Scope::kWarp; }

// A buffer is its own identity, as a variable is. Row-major and contiguous: layouts are made by changing the shape
// (transform_layout), so that an index is enough to find an element.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::string name, DType type, std::vector<Expr> shape, Scope scope = Scope::kGlobal);
  const std::string& name() const;
  DType type() const;
  const std::vector<Expr>& shape() const;
  Scope scope() const;
  int rank() const { return static_cast<int>(shape().size()); }
  uint64_t id() const;
  std::optional<int64_t> NumElements() const;  // nullopt when symbolic or beyond int64
  bool SameAs(const Buffer& other) const { return node_ == other.node_; }
  friend bool operator==(const Buffer& a, const Buffer& b) { return a.SameAs(b); }
  friend bool operator<(const Buffer& a, const Buffer& b) { return a.id() < b.id(); }
  explicit operator bool() const { return static_cast<bool>(node_); }
  template <class H>
  friend H AbslHashValue(H h, const Buffer& b) {
    return H::combine(std::move(h), b.id());
  }

 private:
  struct Node : Counted {
    ~Node();
    std::string name;
    DType type;
    std::vector<Expr> shape;
    Scope scope = Scope::kGlobal;
    uint64_t id = 0;
  };
  Ref<const Node> node_;
};

// Half-open [min, min + extent).
struct Range {
  Expr min;
  Expr extent;
  static constexpr auto Fields() { return std::tuple(&Range::min, &Range::extent); }
};

struct IntImm {  // integers and bool (0 or 1)
  int64_t value = 0;
  static constexpr auto Fields() { return std::tuple(&IntImm::value); }
};
struct FloatImm {
  double value = 0;  // compared by its bits: NaN equals itself, -0 differs from 0
  static constexpr auto Fields() { return std::tuple(&FloatImm::value); }
};
struct VarRef {
  Var var;
  static constexpr auto Fields() { return std::tuple(&VarRef::var); }
};

// kDiv is true division (floats) or truncating division (integers); index arithmetic uses kFloorDiv and kFloorMod.
enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
};
struct Binary {
  BinaryOp op;
  Expr a, b;  // one type, both; comparisons and and/or give bool
  static constexpr auto Fields() { return std::tuple(&Binary::op, &Binary::a, &Binary::b); }
};
struct Not {
  Expr a;
  static constexpr auto Fields() { return std::tuple(&Not::a); }
};
struct Cast {  // the node's type says to what
  Expr a;
  static constexpr auto Fields() { return std::tuple(&Cast::a); }
};
struct Select {  // both sides are evaluated
  Expr condition, yes, no;
  static constexpr auto Fields() { return std::tuple(&Select::condition, &Select::yes, &Select::no); }
};
struct IfThenElseExpr {  // only the chosen side is evaluated: it may guard a load
  Expr condition, yes, no;
  static constexpr auto Fields() {
    return std::tuple(&IfThenElseExpr::condition, &IfThenElseExpr::yes, &IfThenElseExpr::no);
  }
};
struct LetExpr {
  Var var;  // defined here
  Expr value, body;
  static constexpr auto Fields() { return std::tuple(&LetExpr::var, &LetExpr::value, &LetExpr::body); }
};
struct Load {
  Buffer buffer;
  std::vector<Expr> indices;  // scalars; after vectorisation the last may be a Ramp or any vector
  Expr mask;                  // absent, or a bool vector: lanes that are off read nothing and give 0
  static constexpr auto Fields() { return std::tuple(&Load::buffer, &Load::indices, &Load::mask); }
};
// A pure mathematical function from the table in intrinsics.h: "exp", "sqrt", "fma", ...
struct Call {
  std::string name;
  std::vector<Expr> args;
  static constexpr auto Fields() { return std::tuple(&Call::name, &Call::args); }
};
struct Ramp {  // base, base + stride, ... : `lanes` of the node's type
  Expr base, stride;
  static constexpr auto Fields() { return std::tuple(&Ramp::base, &Ramp::stride); }
};
struct Broadcast {
  Expr value;
  static constexpr auto Fields() { return std::tuple(&Broadcast::value); }
};

struct ExprNode : Counted {
  using Kind = std::variant<IntImm, FloatImm, VarRef, Binary, Not, Cast, Select, IfThenElseExpr, LetExpr, Load, Call,
                            Ramp, Broadcast>;
  template <class Node>
  ExprNode(Node node, DType t) : kind(std::in_place_type<Node>, std::move(node)), type(t) {}
  ~ExprNode();  // in expr.cc, once: inline, every file that drops an expression would compile it for all kinds
  Kind kind;
  DType type;
};

template <class Node>
Expr Expr::Make(Node node, DType type) {
  Expr e;
  e.node_ = Ref<const ExprNode>(new ExprNode(std::move(node), type));
  return e;
}
template <class Node>
const Node* Expr::As() const {
  return node_ ? std::get_if<Node>(&node_->kind) : nullptr;
}
inline DType Expr::type() const { return node_->type; }

// ---- Building. Operands of different types are a broken promise of the caller's (HONE_CHECK), except that an integer
// constant takes the other side's type and that int32 meets int64 as int64. Constants are folded, x + 0 and x * 1
// vanish.
Expr IntConst(int64_t value, DType type = kInt32);
Expr FloatConst(double value, DType type = kFloat32);
Expr Const(double value, DType type);  // of any type
Expr True();
Expr MakeBinary(BinaryOp op, Expr a, Expr b);
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);  // BinaryOp::kDiv
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr Eq(Expr a, Expr b);
Expr Ne(Expr a, Expr b);
Expr And(Expr a, Expr b);  // True() is neutral
Expr Or(Expr a, Expr b);
Expr MakeNot(Expr a);
Expr FloorDiv(Expr a, Expr b);
Expr FloorMod(Expr a, Expr b);
Expr Min(Expr a, Expr b);
Expr Max(Expr a, Expr b);
Expr MakeCast(DType type, Expr a);
Expr MakeSelect(Expr condition, Expr yes, Expr no);
Expr IfThenElse(Expr condition, Expr yes, Expr no);
Expr MakeLoad(Buffer buffer, std::vector<Expr> indices, Expr mask = Expr());
Expr MakeCall(std::string name, std::vector<Expr> args);  // the type follows from the intrinsic and its first argument
Expr MakeRamp(Expr base, Expr stride, int lanes);
Expr MakeBroadcast(Expr value, int lanes);

// The value of an integer or bool constant.
std::optional<int64_t> ConstantValue(const Expr& e);
bool IsConst(const Expr& e, int64_t value);

}  // namespace hone
