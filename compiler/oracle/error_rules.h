// Running error analysis of expressions: the rules by which MakeOracle (oracle.h) carries errors along.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone::error_analysis {

// A value and how far a right kernel's may be from it: at most error + relative * |value|, times the level's constant.
// Floats are float64; integers and bool keep their types (a bool's error is 1 where it may be the other one).
struct Estimate {
  Expr value;
  Expr error;  // float64, absolute; absent: 0
  double relative = 0;
  bool exact() const { return !error && relative == 0; }
};

double UnitRoundoff(DType type);  // 2^-24 for float32; for float64 twice, as the oracle itself rounds
double SmallestNormal(DType type);
// How many roundings of the running sum count for one of n terms; see oracle.h.
Expr SumGrowth(const Expr& terms, DType type);

class ErrorRules {
 public:
  // The estimate of an element of a buffer, given the values of its indices.
  using LoadRule = std::function<absl::StatusOr<Estimate>(const Buffer&, std::vector<Expr> indices)>;
  explicit ErrorRules(LoadRule load) : load_(std::move(load)) {}

  absl::StatusOr<Estimate> Of(const Expr& e);
  // The whole absolute error; absent when exact.
  Expr Absolute(const Estimate& a);
  // Gives `e` a name, so that it is computed once however often it is used.
  Expr Bind(const Expr& e);
  void Define(const Var& var, Estimate estimate) { vars_.insert_or_assign(var.id(), std::move(estimate)); }

  // What Bind named since the last call; wraps a statement or an expression in those it needs.
  using Names = std::vector<std::pair<Var, Expr>>;
  Names TakeNames() { return std::exchange(names_, {}); }
  static Stmt Wrap(const Names& names, Stmt body);
  static Expr Wrap(const Names& names, Expr body);

 private:
  absl::StatusOr<Estimate> OfBinary(const Binary& n, DType type);
  absl::StatusOr<Estimate> OfIntBinary(const Binary& n, const Estimate& a, const Estimate& b);
  absl::StatusOr<Estimate> OfCast(const Cast& n, DType to);
  absl::StatusOr<Estimate> OfChoice(const Expr& condition, const Expr& yes, const Expr& no, bool lazy);
  absl::StatusOr<Estimate> OfCall(const Call& n, DType type);
  Estimate Sum(const Estimate& a, const Estimate& b, bool minus, double u);
  Estimate Product(const Estimate& a, const Estimate& b, double u);
  Estimate Quotient(const Estimate& a, const Estimate& b, double u);
  Estimate Extremum(BinaryOp op, const Estimate& a, const Estimate& b);
  Estimate Comparison(BinaryOp op, const Estimate& a, const Estimate& b);
  Estimate Step(const std::string& function, const Estimate& a);

  LoadRule load_;
  std::unordered_map<uint64_t, Estimate> vars_;
  Names names_;
};

}  // namespace hone::error_analysis
