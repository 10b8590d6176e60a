// The parser's parts; others use ParsePrimFunc and ParseModule (compiler/text/text.h).
//
// Recursive descent over tokens. Expressions are built as they stand, without folding, so that what was printed comes
// back as the same tree; sizes and extents made of constants alone are folded. Recursion, and the depth of the trees it
// makes, are limited, so that no text can exhaust the stack here or in a walk of the result.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/ir/intrinsics.h"
#include "compiler/ir/module.h"
#include "compiler/ir/stmt.h"
#include "compiler/text/parse/lexer.h"

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
  bool is_scalar = false;     // of a parameter `x: T.float32`: the buffer of one element that it is read as
  bool is_free = false;       // of a variable `s = T.int32()`: it may turn out to be a stride or an offset,
  Expr meaning;               // whose value is then this
  std::string thread;         // of `tx = T.env_thread("threadIdx.x")`
  GraphVar value;             // of a graph function
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);
  absl::StatusOr<IrModule> Module();

 private:
  struct View {  // a buffer in another's memory: element i lies at offset + sum of i * stride
    Buffer target;
    std::vector<Expr> strides;
    Expr offset;
  };
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
  absl::Status Definition(const Decoration& said, IrModule& module);  // at `def`
  absl::Status ModuleStatement(IrModule& module);                     // at `I.`

  // ---- tensor functions (parse_function.cc)
  absl::StatusOr<PrimFunc> Function(bool wrap_root);
  absl::Status Parameters(PrimFunc& f);
  absl::Status DimensionNames(PrimFunc& f);
  absl::StatusOr<SizeRange> RangeOfSize(int at);
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
  // One statement; an empty Stmt when it only told something about the block. `wrap` receives the scope that a flat
  // allocation, let or launch opens for the rest of the suite.
  absl::StatusOr<Stmt> Statement(BlockParts* block, std::optional<Stmt>& wrap);
  absl::StatusOr<Stmt> ForStatement();
  absl::StatusOr<Stmt> WithStatement(BlockParts* block);
  absl::StatusOr<Stmt> WithScope(const Token& at, const std::string& name);  // after "with T.allocate(", ...
  absl::Status InitStatement(const Token& at, BlockParts* block);
  absl::StatusOr<Stmt> BlockStatement(bool of_tvm);
  absl::StatusOr<Stmt> IfStatement();
  absl::StatusOr<Stmt> WhileStatement();
  absl::StatusOr<Stmt> AssignStatement(BlockParts* block, std::optional<Stmt>& wrap);
  absl::StatusOr<Stmt> TypedLet(const std::string& name, std::optional<Stmt>& wrap);
  absl::StatusOr<Stmt> NameStatement(const std::string& name, BlockParts* block, std::optional<Stmt>& wrap);
  bool AtSize(const BlockParts* block) const;                                  // at T.int32()
  absl::StatusOr<Stmt> SizesStatement(const std::vector<std::string>& names);  // n, m = T.int32(), T.int32()
  absl::StatusOr<Stmt> StoreStatement(const Token& at, const Symbol& target);
  absl::StatusOr<Stmt> ScriptStatement(BlockParts* block, std::optional<Stmt>& wrap);
  absl::StatusOr<Stmt> BarrierStatement();
  absl::StatusOr<Stmt> WaitGroupStatement();
  absl::Status FunctionAttrs();
  absl::Status BlockSaying(const std::string& name, BlockParts& block);  // T.reads, T.writes, T.where, T.block_attr
  absl::StatusOr<Stmt> TileOpStatement();
  bool AtBounds() const;
  absl::Status AxisStatement(BlockParts* block, const std::vector<std::string>& names);
  absl::Status RemapAxes(const Token& at, BlockParts& block, const std::vector<std::string>& names);
  absl::Status BoundAxis(BlockParts& block, const std::string& name, IterKind kind);
  void AddAxis(BlockParts& block, const std::string& name, IterKind kind, Range domain, Expr value);
  absl::StatusOr<std::vector<BufferRegion>> Regions();
  absl::StatusOr<BufferRegion> Region();
  struct Given {  // a stride or an offset as it is written
    Token at;
    Expr value;
  };
  struct BufferSpec {
    std::vector<Expr> shape;
    DType type = kFloat32;
    Scope scope = Scope::kGlobal;
    std::vector<Given> strides;  // none: contiguous
    std::optional<Given> offset;
    std::string data;  // the buffer in whose memory it lies; "" for memory of its own
  };
  absl::StatusOr<BufferSpec> BufferArguments(absl::string_view closing);
  absl::Status BufferArgument(BufferSpec& spec, const std::string& key);
  absl::Status BufferShape(BufferSpec& spec);
  absl::StatusOr<Expr> Dimension();
  absl::StatusOr<Scope> ScopeText();
  absl::StatusOr<Expr> NamedSize(const Token& name);  // "n"
  absl::Status MatchStatement(BlockParts* block, const std::string& name);
  absl::Status MatchParameter(BlockParts* block, const std::string& name, size_t handle);

  // ---- where elements lie (parse_layout.cc)
  absl::StatusOr<Given> GivenNumber();
  absl::Status GivenStrides(BufferSpec& spec);
  // `given` is `actual`, or a free variable, which then means it.
  absl::Status Require(const Given& given, const Expr& actual, absl::string_view what);
  absl::Status RequireLayout(const BufferSpec& spec, const std::vector<Expr>& strides, const Expr& offset);
  // Defines `name`; what it returns is its memory, which the buffer is a view of where its strides ask for that.
  absl::StatusOr<Buffer> NewBuffer(const std::string& name, BufferSpec spec);
  absl::StatusOr<Stmt> BufferStatement(const std::string& name, absl::string_view function, BlockParts* block,
                                       std::optional<Stmt>& wrap);
  absl::Status DefineView(const Token& at, const std::string& name, BufferSpec spec);
  // Where `indices` of a view lie in the buffer it is a view of; of another buffer: the same.
  std::pair<Buffer, std::vector<Expr>> Resolve(const Buffer& buffer, std::vector<Expr> indices) const;

  absl::StatusOr<Parsed> PlaceOf(const Buffer& buffer);  // at `.elem_offset` or `.strides[0]`

  // ---- fragments of tensor cores (parse_fragment.cc)
  absl::StatusOr<Stmt> FragmentStatement(const std::string& name);
  absl::StatusOr<Stmt> FillFragment();
  absl::StatusOr<Stmt> CopyFragment(bool loads);
  absl::StatusOr<Stmt> MultiplyFragments();
  absl::StatusOr<Buffer> SizedFragment();
  absl::StatusOr<Buffer> MatrixInMemory(bool* by_columns);
  absl::StatusOr<Buffer> DataOfMatrix();
  absl::Status FragmentNumber(const Buffer& fragment);
  absl::Status ExpectValue(absl::string_view what, const Parsed& expected);

  // ---- threads of a device, and attributes of statements (parse_launch.cc)
  absl::Status EnvThread(const std::string& name);
  absl::StatusOr<For> LaunchThread();  // after "(": its variable has a name where the text gives it one
  void EnterLaunch(For& launch, const std::string& name);
  absl::Status StatementAttr();                                       // after "T.attr": one that says nothing here
  absl::StatusOr<std::vector<For>> LoopHeads();                       // T.grid(4, 4), T.parallel(8), range(2, 10)
  absl::StatusOr<For> LoopHead(ForKind kind);                         // after T.serial, T.parallel, ...
  absl::StatusOr<Range> RangeTo(Expr first, absl::string_view what);  // its end follows
  // The same range as integers of `type`.
  absl::StatusOr<Range> RangeOf(const Token& at, Range range, DType type);

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
  // After "T.name(", with the place of the name.
  absl::StatusOr<Parsed> CastCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> ChoiceCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> RampCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> BroadcastCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> LimitCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> NotCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> LikelyCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> NamedCall(const Token& at, const std::string& name);
  absl::StatusOr<Parsed> IntrinsicCall(const Token& at, const IntrinsicInfo& info, std::vector<Parsed> args);
  absl::StatusOr<Parsed> LoadFrom(const Token& at, const Buffer& buffer);
  absl::StatusOr<Parsed> Combine(const Token& at, BinaryOp op, Parsed a, Parsed b);
  absl::StatusOr<Parsed> Choice(const Token& at, bool lazy, Parsed condition, Parsed yes, Parsed no);
  absl::Status Unify(const Token& at, Parsed& a, Parsed& b);
  absl::StatusOr<Parsed> Coerce(const Token& at, Parsed value, DType type, absl::string_view what);
  absl::StatusOr<std::vector<Parsed>> Arguments(absl::string_view function, int count);  // after "(", takes ")"
  absl::StatusOr<Parsed> Deeper(const Token& at, Expr e, std::initializer_list<int> depths) const;
  // What a name or a place stands for. A text may make each of the one before, and twice of it: its size counts as
  // depth.
  absl::StatusOr<Parsed> Meaning(const Token& at, Expr e) const;
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
    bool is_outside = false;  // an element is a buffer, or kept outside of the text
  };
  absl::Status AttrItems(AttrList& list, int depth);
  bool AtMetadata() const;  // metadata["..."][3]
  absl::StatusOr<int64_t> IntegerText(const Token& token, bool negative, bool is_unsigned) const;

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0, stmt_depth_ = 0, let_replays_ = 0;
  PrimFunc* function_ = nullptr;
  std::vector<std::optional<Buffer>> params_;   // of the function being read; empty until T.match_buffer names them
  std::vector<Buffer> scalars_;                 // of the function being read: `x: T.float32`
  std::unordered_map<uint64_t, View> views_;    // by the id of the buffer that the text indexes
  std::unordered_map<uint64_t, View> matched_;  // where parts that blocks match lie in their source
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
// Of a row-major buffer of this shape: how many elements lie between neighbours in each dimension.
std::vector<Expr> ContiguousStrides(const std::vector<Expr>& shape);
Expr FlatIndex(const std::vector<Expr>& indices, const std::vector<Expr>& strides, Expr offset);
// The newest spelling puts an s before what has to do with blocks: sblock, sblock_attr, sblock_alloc_buffer.
std::string WithoutSblock(const std::string& name);

}  // namespace hone
