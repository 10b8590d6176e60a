// The parser's parts; others use ParsePrimFunc and ParseModule (text.h).
//
// Recursive descent over tokens. Expressions are built as they stand, without folding, so that what was printed comes
// back as the same tree; sizes and extents made of constants alone are folded. Recursion, and the depth of the trees it
// makes, are limited, so that no text can exhaust the stack here or in whoever walks the result.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/lexer.h"
#include "compiler/ir/module.h"
#include "compiler/ir/stmt.h"

namespace hone {

inline constexpr int kMaxExprDepth = 800;  // of an expression's tree
inline constexpr int kMaxNesting = 150;    // brackets within brackets
inline constexpr int kMaxStmtDepth = 300;  // loops, blocks and scopes within each other
inline constexpr int kMaxLanes = 1024;

// An expression while it is read.
struct Parsed {
  Expr e;
  int depth = 1;
  bool literal = false;  // a plain 1 or 0.5, which takes the type it meets
};

// What a name stands for.
struct Symbol {
  Var var;
  Buffer buffer;
  std::optional<Range> loop;  // of a loop's variable: its range
  int handle = -1;            // of a parameter `a: T.handle`: its number
  GraphVar value;             // of a graph function
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);
  absl::StatusOr<IrModule> Module();

 private:
  struct BlockParts;  // what T.axis, T.reads ... of one block said so far
  struct Subscript;   // one position between brackets: a point or a slice
  struct IndexList {  // of a load or store
    std::vector<Expr> indices;
    Expr mask;
    int lanes = 1, depth = 1;
  };

  // ---- tokens (parser.cc)
  const Token& Peek(int ahead = 0) const;
  Token Take();
  bool At(absl::string_view punct_or_name) const;  // not inside quotes
  bool AtName() const { return Peek().kind == TokenKind::kName; }
  bool TakeIf(absl::string_view punct_or_name);
  absl::Status Expect(absl::string_view punct_or_name);
  absl::StatusOr<std::string> ExpectName(absl::string_view what);
  absl::StatusOr<std::string> ExpectFunctionName();  // not a word of the language
  absl::StatusOr<std::string> ExpectString(absl::string_view what);
  absl::Status ExpectEndOfLine();
  absl::Status Unexpected(absl::string_view expected) const;  // "found X; expected Y"
  void SkipLine();
  void SkipSuite();

  // ---- names
  size_t Mark() const { return scope_.size(); }
  void RollBack(size_t mark);
  void Define(const std::string& name, Symbol symbol);
  const Symbol* Find(const std::string& name) const;

  // ---- modules (parse_module.cc)
  struct Decoration;
  Decoration Decorations();
  absl::Status TopLevel(IrModule& module);

  // ---- tensor functions (parse_function.cc)
  absl::StatusOr<PrimFunc> Function(bool wrap_root);
  absl::Status Parameters(PrimFunc& f);
  absl::Status DimensionNames(PrimFunc& f);
  absl::StatusOr<Stmt> FunctionBody(PrimFunc& f, bool wrap_root);
  void CountOutputs(PrimFunc& f) const;

  // ---- graph functions (parse_graph.cc) and their values (parse_graph_value.cc, parse_graph_type.cc)
  absl::StatusOr<GraphFunc> GraphFunction();
  absl::Status GraphParameters(GraphFunc& f);
  absl::Status GraphBody(GraphFunc& f);
  absl::Status GraphStatement(GraphFunc& f);
  absl::Status DataflowBlock(GraphFunc& f);
  absl::StatusOr<bool> GraphDeclaration(GraphFunc& f);  // a symbolic size or an alias of the module
  absl::Status Bind(BindingBlock& block);
  bool AtModule() const;                    // the class's name, or an alias of it
  absl::StatusOr<GraphExpr> GraphValues();  // one, or several that make a tuple
  absl::StatusOr<GraphExpr> GraphValue();
  absl::StatusOr<GraphExpr> GraphPrimary();
  absl::StatusOr<GraphExpr> GraphLiteral();
  absl::StatusOr<GraphExpr> GraphOperator();
  absl::StatusOr<GraphExpr> GraphConstant();
  absl::StatusOr<StoredConstant> GraphStoredConstant();
  absl::StatusOr<GraphExpr> CallTirValue(bool packed);
  absl::Status CallTirOutput(CallTir& call);
  absl::Status GraphArguments(GraphCall& call);  // after "(", takes ")"
  absl::StatusOr<std::vector<GraphExpr>> GraphItems(absl::string_view closing);
  bool AtGraphType() const;
  absl::StatusOr<GraphType> TypeOfGraph();
  absl::Status TensorArguments(GraphType& type);
  absl::StatusOr<std::vector<Expr>> Extents();  // "(1, n)" or "[1, n]"
  absl::StatusOr<Expr> Extent();

  // ---- statements (parse_stmt.cc, parse_loop.cc, parse_block.cc, parse_assign.cc, parse_buffer.cc, parse_script.cc)
  absl::StatusOr<Stmt> Suite(BlockParts* block);  // after the colon
  absl::StatusOr<Stmt> Statements(BlockParts* block);
  // One statement; an empty Stmt when it only told something about the block. `wrap` receives the scope a flat
  // allocation or let opens for the rest of the suite.
  absl::StatusOr<Stmt> Statement(BlockParts* block, std::optional<Stmt>& wrap);
  absl::StatusOr<Stmt> ForStatement();
  absl::StatusOr<Stmt> WithStatement(BlockParts* block);
  absl::StatusOr<Stmt> BlockStatement();
  absl::StatusOr<Stmt> IfStatement();
  absl::StatusOr<Stmt> AssignStatement(BlockParts* block, std::optional<Stmt>& wrap);
  absl::StatusOr<Stmt> StoreStatement(const Token& at, const Symbol& target);
  absl::StatusOr<Stmt> ScriptStatement(BlockParts* block);
  absl::StatusOr<Stmt> TileOpStatement();
  bool AtBounds() const;
  absl::Status AxisStatement(BlockParts* block, const std::vector<std::string>& names);
  absl::StatusOr<std::vector<BufferRegion>> Regions();
  absl::StatusOr<BufferRegion> Region();
  struct BufferSpec {
    std::vector<Expr> shape;
    DType type = kFloat32;
    Scope scope = Scope::kGlobal;
  };
  absl::StatusOr<BufferSpec> BufferArguments(bool shape_first, absl::string_view closing);
  absl::Status MatchStatement(BlockParts* block, const std::string& name);
  absl::StatusOr<Range> LoopRange(absl::string_view function, std::optional<DType>& dtype, std::string& thread,
                                  Attrs& annotations);

  // ---- expressions (parse_expr.cc, parse_typing.cc, parse_access.cc, parse_constant.cc, parse_call.cc),
  // parse_attrs.cc
  absl::StatusOr<Parsed> Expression(int min_level = 0);
  absl::StatusOr<Expr> IntExpression(absl::string_view what);  // folded when made of constants alone
  absl::StatusOr<Expr> BoolExpression(absl::string_view what);
  absl::StatusOr<Parsed> Unary();
  absl::StatusOr<Parsed> Primary();
  absl::StatusOr<Parsed> Postfix(Parsed value);
  absl::StatusOr<Parsed> NumberLiteral(bool negative);
  absl::StatusOr<Parsed> ScriptCall();
  absl::StatusOr<Parsed> TypedConstant(DType type);
  absl::StatusOr<Parsed> LetCall();
  absl::StatusOr<Parsed> LoadFrom(const Token& at, const Buffer& buffer);
  absl::StatusOr<Parsed> Combine(const Token& at, BinaryOp op, Parsed a, Parsed b);
  absl::StatusOr<Parsed> Choice(const Token& at, bool lazy, Parsed condition, Parsed yes, Parsed no);
  absl::Status Unify(const Token& at, Parsed& a, Parsed& b);
  absl::StatusOr<Parsed> Coerce(const Token& at, Parsed value, DType type, absl::string_view what);
  absl::StatusOr<std::vector<Parsed>> Arguments(absl::string_view function, int count);  // after "(", takes ")"
  absl::StatusOr<Parsed> Deeper(const Token& at, Expr e, std::initializer_list<int> depths) const;
  absl::StatusOr<DType> TypeText(absl::string_view what);
  absl::StatusOr<std::vector<Subscript>> Subscripts(const Token& at, const Buffer& buffer);
  absl::StatusOr<IndexList> Indices(const Token& at, const Buffer& buffer);
  absl::Status Mask(IndexList& list);
  absl::StatusOr<DType> AccessType(const Token& at, const Buffer& buffer, const IndexList& list);
  absl::StatusOr<int> Lanes();
  absl::StatusOr<Attrs> AttrDict();
  absl::StatusOr<std::optional<Attr>> AttrValue();
  struct AttrList {
    std::vector<int64_t> numbers;
    std::vector<std::string> texts;
    bool is_outside = false;  // an element is kept outside of the text
  };
  absl::Status AttrItems(AttrList& list, int depth);
  bool AtMetadata() const;  // metadata["..."][3]
  absl::StatusOr<int64_t> IntegerText(const Token& token, bool negative, bool is_unsigned) const;

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0, stmt_depth_ = 0, let_replays_ = 0;
  PrimFunc* function_ = nullptr;
  std::vector<std::optional<Buffer>> params_;  // of the function being read; empty until T.match_buffer names them
  std::unordered_map<std::string, std::vector<Symbol>> symbols_;
  std::vector<std::string> scope_;  // names in order of definition
  std::string class_name_;
  std::unordered_set<std::string> function_names_;  // of the class
  std::unordered_set<std::string> aliases_;         // of the class, in the graph function being read
  std::vector<Var>* graph_dims_ = nullptr;          // of the graph function whose signature is being read
};

struct Parser::Subscript {
  Expr min;
  Expr extent;  // absent: a point
  int depth = 1;
};

struct Parser::BlockParts {
  bool is_function = false;  // the level of the function itself, whose allocations are the root's
  std::vector<Expr> values;
  Expr predicate = True();
  Block block;
  bool has_reads = false, has_writes = false;
};

// The extent of [min, end): takes `min` off again where `end` is written as min + extent.
Expr ExtentOf(const Expr& min, const Expr& end);
// A constant where every leaf is an integer constant; otherwise the same handle.
Expr FoldClosed(const Expr& e);
// The newest spelling puts an s before what has to do with blocks: sblock, sblock_attr, sblock_alloc_buffer.
std::string WithoutSblock(const std::string& name);

}  // namespace hone
