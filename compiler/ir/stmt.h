// Statements: loops, blocks, stores. Immutable, as expressions are; see expr.h for how to add a kind.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

struct StmtNode;

class Stmt {
 public:
  Stmt() = default;  // the absent statement (a block without init)
  template <class Node>
  static Stmt Make(Node node);
  template <class Node>
  const Node* As() const;
  const StmtNode& node() const { return *node_; }
  bool SameAs(const Stmt& other) const { return node_ == other.node_; }
  explicit operator bool() const { return static_cast<bool>(node_); }

 private:
  Ref<const StmtNode> node_;
};

// A value of a loop's, block's or function's annotations.
using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
using Attrs = std::map<std::string, Attr>;  // ordered: printing and hashing do not depend on insertion

enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThreadBinding };

struct For {
  Var var;  // defined here
  Expr min, extent;
  ForKind kind = ForKind::kSerial;
  std::string thread;  // "blockIdx.x", "threadIdx.y": for kThreadBinding alone
  Attrs annotations;
  Stmt body;
  static constexpr auto Fields() {
    return std::tuple(&For::var, &For::min, &For::extent, &For::kind, &For::thread, &For::annotations, &For::body);
  }
};

enum class IterKind : uint8_t { kSpatial, kReduce, kOpaque };
struct IterVar {
  Var var;  // defined by the block
  Range domain;
  IterKind kind = IterKind::kSpatial;
  static constexpr auto Fields() { return std::tuple(&IterVar::var, &IterVar::domain, &IterVar::kind); }
};
struct BufferRegion {
  Buffer buffer;
  std::vector<Range> region;
  static constexpr auto Fields() { return std::tuple(&BufferRegion::buffer, &BufferRegion::region); }
};
// `buffer` names a part of `source` inside the block.
struct MatchBuffer {
  Buffer buffer;  // defined here
  BufferRegion source;
  static constexpr auto Fields() { return std::tuple(&MatchBuffer::buffer, &MatchBuffer::source); }
};

// The unit of computation: for every value of its iteration variables the body runs once; when every reduce variable is
// at the start of its domain, `init` runs before it. Only reached through the BlockRealize that binds its variables.
struct Block {
  std::string name;
  std::vector<IterVar> iters;
  std::vector<BufferRegion> reads, writes;
  std::vector<Buffer> allocs;  // buffers that live as long as the block runs
  std::vector<MatchBuffer> matches;
  Attrs annotations;
  Stmt init;  // absent: nothing to initialise
  Stmt body;
  static constexpr auto Fields() {
    return std::tuple(&Block::name, &Block::iters, &Block::reads, &Block::writes, &Block::allocs, &Block::matches,
                      &Block::annotations, &Block::init, &Block::body);
  }
};
struct BlockRealize {
  std::vector<Expr> values;  // one for each of the block's iteration variables
  Expr predicate;            // bool; the instance does not run where it is false
  Block block;
  static constexpr auto Fields() {
    return std::tuple(&BlockRealize::values, &BlockRealize::predicate, &BlockRealize::block);
  }
};

struct Store {
  Buffer buffer;
  std::vector<Expr> indices;  // as in Load
  Expr value;
  Expr mask;  // absent, or a bool vector: lanes that are off are not written
  static constexpr auto Fields() { return std::tuple(&Store::buffer, &Store::indices, &Store::value, &Store::mask); }
};
struct Seq {
  std::vector<Stmt> stmts;
  static constexpr auto Fields() { return std::tuple(&Seq::stmts); }
};
struct IfThen {
  Expr condition;
  Stmt yes, no;  // `no` may be absent
  static constexpr auto Fields() { return std::tuple(&IfThen::condition, &IfThen::yes, &IfThen::no); }
};
// Runs the body again and again, as long as the condition holds in front of it. How often is known only when it runs,
// so no block stands inside: loops that schedules know are For.
struct While {
  Expr condition;
  Stmt body;
  static constexpr auto Fields() { return std::tuple(&While::condition, &While::body); }
};
struct Let {
  Var var;  // defined here
  Expr value;
  Stmt body;
  static constexpr auto Fields() { return std::tuple(&Let::var, &Let::value, &Let::body); }
};
// After blocks are lowered: `buffer` exists inside `body` alone.
struct Alloc {
  Buffer buffer;  // defined here
  Stmt body;
  static constexpr auto Fields() { return std::tuple(&Alloc::buffer, &Alloc::body); }
};
// Applies an intrinsic (data: compiler/tile/tile_intrinsic.h) to regions of buffers. What it touches is said here, so
// that no table is asked: operand 0 is written, and read where the operation accumulates into it; the others are read.
struct TileOp {
  std::string intrinsic;
  std::vector<BufferRegion> operands;  // in the intrinsic's order: the output first
  Attrs params;
  bool accumulates = true;  // as the intrinsic does: CheckTileOp
  static constexpr auto Fields() {
    return std::tuple(&TileOp::intrinsic, &TileOp::operands, &TileOp::params, &TileOp::accumulates);
  }
};
struct Evaluate {  // an expression for its effect: a barrier
  Expr value;
  static constexpr auto Fields() { return std::tuple(&Evaluate::value); }
};

struct StmtNode : Counted {
  using Kind = std::variant<For, BlockRealize, Store, Seq, IfThen, Let, Alloc, TileOp, Evaluate, While>;
  template <class Node>
  explicit StmtNode(Node node) : kind(std::in_place_type<Node>, std::move(node)) {}
  ~StmtNode();  // in stmt.cc, once: see ExprNode
  Kind kind;
};

template <class Node>
Stmt Stmt::Make(Node node) {
  Stmt s;
  s.node_ = Ref<const StmtNode>(new StmtNode(std::move(node)));
  return s;
}
template <class Node>
const Node* Stmt::As() const {
  return node_ ? std::get_if<Node>(&node_->kind) : nullptr;
}

// One statement for several: nested sequences are flattened, a single statement stays itself. An empty one is an empty
// Seq.
Stmt MakeSeq(std::vector<Stmt> stmts);

// A tensor function: `params` in order, inputs first and outputs last (attribute "outputs" counts them; 1 when absent).
// The body is a BlockRealize of the root block (no iteration variables), whose `allocs` are the intermediates.
// Attributes the rest of Hone reads:
//   "outputs"    how many of the last params are written                                (default 1)
//   "constants"  indices of the params that hold constants: known when the kernel is built into a bundle
//   "domains"    one text a param, "" for any value: "int[0,10)" an index, "positive", "nonnegative"
struct PrimFunc {
  std::string name;
  std::vector<Buffer> params;
  std::vector<Var> dims;  // symbolic sizes the shapes mention, each with a range; in the order of HoneCall::dims
  Attrs attrs;
  Stmt body;

  int num_outputs() const;
  bool IsConstant(int param) const { return IsListed("constants", param); }
  bool IsListed(std::string_view attribute, int param) const;  // in an attribute that is a list of params
};

}  // namespace hone
