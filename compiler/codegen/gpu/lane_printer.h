// Statements and expressions of one kernel as text of a dialect: the inside of print_kernels.cc.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler/arith/analyzer.h"
#include "compiler/codegen/gpu/dialect.h"
#include "compiler/codegen/gpu/helpers.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/text/names.h"

namespace hone {

class LanePrinter {
 public:
  // `features`: as PrintKernels takes them.
  LanePrinter(const Dialect& dialect, const std::set<std::string>& features, Helpers& helpers);

  // The kernel with its head. What could not be printed is in status().
  std::string PrintKernel(const Launch& launch, const DeviceKernel& kernel);
  const absl::Status& status() const { return status_; }

 private:
  // A piece of an expression, and how tightly its outermost operator binds (C's precedence, 16 for what is one word).
  struct Text {
    std::string text;
    int binds = 16;
  };

  // A vector that was read at once.
  struct Run {
    std::string name;
    int lanes = 0;
  };

  // ---- Statements (print_stmt.cc)
  void OnStmt(const Stmt& stmt);
  void OnFor(const For& loop);
  void OnBranch(const IfThen& branch);
  void OnLet(const Let& let);
  void OnAlloc(const Alloc& alloc);
  void OnStore(const Store& store);
  void OnTileOp(const TileOp& op);
  void OnEvaluate(const Evaluate& evaluate);
  void StoreElement(const Buffer& buffer, const Expr& index, const Expr& value);
  // A loop marked kCopiesRun, in copies of as many bytes as are aligned on both sides; as a vector where there are
  // no asynchronous copies.
  void CopyRun(const For& loop);
  // So many elements from there on; a store where there is no copy of that size.
  void Copy(const Store& copy, int elements);
  bool CommitsGroups() const;  // of copies, which are then waited for
  void Line(const std::string& text);
  void Open(const std::string& text);  // a line that ends in {
  void Close();

  // ---- Vectors (print_vectors.cc): a store of one is a store of each lane; runs of elements go at once
  void StoreLanes(const Store& store);
  // The value of one lane of a vector, as a scalar expression.
  Expr LaneOf(const Expr& vector, int lane);
  Expr LaneOfLoad(const Load& load, DType type, int lane);
  // Reads the runs of elements in the value in front of the statement; LaneOf finds them in loaded_.
  void LoadRuns(const Expr& value);
  // So many elements go at once from a lane of a run on: 1 where the address need not be aligned as the dialect wants.
  int PieceAt(const Buffer& buffer, const Expr& base, int lane, int lanes);
  std::string ElementOfRun(const Run& run, int element) const;
  std::string MakeVector(DType type, absl::Span<const std::string> values) const;
  std::string VectorPointer(const Buffer& buffer, const Expr& index, int piece, bool read);

  // ---- Expressions (print_expr.cc)
  std::string Value(const Expr& e) { return OnExpr(e).text; }
  // The value with at least that binding, in parentheses where it has less.
  std::string Operand(const Expr& e, int binds);
  Text OnExpr(const Expr& e);
  Text OnConstant(const Expr& e);
  Text OnBinary(const Binary& binary, DType type);
  Text OnFloatBinary(const Binary& binary, DType type);
  Text OnIntBinary(const Binary& binary, DType type);
  Text OnQuotient(const Binary& binary, DType type);
  Text OnCast(const Expr& from, DType to);
  Text OnCall(const Call& call, DType type);
  Text Infix(const Expr& a, const char* op, int binds, const Expr& b);
  Text Rounded(Text value, DType type);                          // to a float of 16 bits
  Text FromMemory(const std::string& element, DType type);       // the value of an element as it lies in memory
  std::string Element(const Buffer& buffer, const Expr& index);  // A[i]
  bool IsIndexArithmetic(const Expr& e) const;
  // What is stored for the value: its bits where the type is one of 16-bit floats.
  std::string InMemory(const Expr& value);

  template <class... Pieces>
  void Refuse(const Pieces&... pieces) {
    status_ =
        absl::FailedPreconditionError(absl::StrCat("there is no ", dialect_.name, " for this kernel: ", pieces...));
  }

  // ---- Functions on floats (print_math.cc)
  std::string Function(absl::string_view name, DType type, const std::vector<std::string>& args);
  // The text of a helper that computes the function as what it is made of.
  std::string MathHelper(const MathFunction& function, const std::string& name, DType type);
  Text OnLetExpr(const LetExpr& let);

  const std::string& NameOf(const Var& var);
  const std::string& NameOf(const Buffer& buffer);

  const Dialect& dialect_;
  Helpers& helpers_;
  std::map<int64_t, const TileIntrinsic*> copies_;  // the asynchronous ones that there are, by their bytes
  NameTable names_;
  Analyzer known_;
  std::map<Var, std::string> bits_;           // variables that stand for an element of a run: what lay in memory
  std::map<Var, std::vector<Var>> lanes_of_;  // of a variable that is a vector: those of its lanes
  std::map<const ExprNode*, std::vector<Var>> loaded_;
  std::set<Var> data_;  // variables that are no index
  std::vector<Run> runs_;
  bool lets_are_lines_ = false;  // a LetExpr is a line in front of the statement, which nothing it reads forbids
  std::set<Var> lines_;          // those that have theirs
  std::string out_;
  int depth_ = 0;
  absl::Status status_;
};

}  // namespace hone
