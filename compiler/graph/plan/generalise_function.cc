#include "compiler/graph/plan/generalise_function.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/verify/verify.h"

namespace hone {
namespace {

// Calls `on_number` on every integer and floating constant of a function, in one order for all functions of one form,
// and puts what it gives in the constant's place.
PrimFunc MapNumbers(const PrimFunc& func, const std::set<int>& fixed,
                    const std::function<Expr(const Expr&)>& on_number) {
  std::function<Expr(const Expr&)> on_expr = [&](const Expr& e) {
    return e.As<IntImm>() != nullptr || e.As<FloatImm>() != nullptr ? on_number(e) : MapChildren(e, on_expr);
  };
  std::function<Stmt(const Stmt&)> on_stmt = [&](const Stmt& s) { return MapChildren(s, on_stmt, on_expr); };
  PrimFunc mapped = func;
  std::map<Buffer, Buffer> params;
  for (size_t p = 0; p < func.params.size(); ++p) {
    if (fixed.contains(static_cast<int>(p))) continue;
    std::vector<Expr> shape;
    for (const Expr& extent : func.params[p].shape()) shape.push_back(on_expr(extent));
    mapped.params[p] = Buffer(func.params[p].name(), func.params[p].type(), std::move(shape), func.params[p].scope());
    params.emplace(func.params[p], mapped.params[p]);
  }
  mapped.body = ReplaceBuffers(on_stmt(func.body), [&](const Buffer& b) -> std::optional<Buffer> {
    const auto found = params.find(b);
    return found == params.end() ? std::nullopt : std::optional(found->second);
  });
  return mapped;
}

std::vector<Expr> NumbersOf(const PrimFunc& func, const std::set<int>& fixed) {
  std::vector<Expr> numbers;
  MapNumbers(func, fixed, [&](const Expr& number) {
    numbers.push_back(number);
    return number;
  });
  return numbers;
}

// What one number of the function is at each point.
using Row = std::vector<Expr>;

double ValueOf(const Expr& number) {
  const FloatImm* real = number.As<FloatImm>();
  return real != nullptr ? real->value : static_cast<double>(*ConstantValue(number));
}

absl::StatusOr<Expr> NumberOver(const Row& row, std::span<const Var> sizes, PolynomialFit& fit) {
  const DType type = row[0].type();
  if (std::ranges::all_of(row, [&](const Expr& e) { return StructuralEqual(e, row[0]); })) return row[0];
  std::vector<double> values;
  for (const Expr& number : row) values.push_back(ValueOf(number));
  const std::optional<SizeNumber> number = fit.OfNumbers(values);
  if (!number.has_value() || (number->reciprocal && !type.is_float())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a number in it is no polynomial of the sizes: ", absl::StrJoin(values, ", "), " at the sizes tried"));
  }
  Expr polynomial = MakeCast(type, number->polynomial.Over(sizes));
  return number->reciprocal ? FloatConst(1, type) / std::move(polynomial) : std::move(polynomial);
}

// The rows of numbers, once the functions are known to differ in nothing else.
absl::StatusOr<std::vector<Row>> Rows(std::span<const PrimFunc* const> funcs, const std::set<int>& fixed) {
  std::vector<std::vector<Expr>> numbers;
  for (const PrimFunc* func : funcs) numbers.push_back(NumbersOf(*func, fixed));
  for (size_t i = 1; i < funcs.size(); ++i) {
    bool same = numbers[i].size() == numbers[0].size() && funcs[i]->params.size() == funcs[0]->params.size();
    if (same) {
      size_t next = 0;
      PrimFunc moved = MapNumbers(*funcs[0], fixed, [&](const Expr& number) {
        const Expr& here = numbers[i][next++];
        return here.type() == number.type() ? here : number;
      });
      // What keeps its shape is larger here than there.
      PrimFunc there = *funcs[i];
      for (const int p : fixed) {
        const size_t at = static_cast<size_t>(p);
        const Buffer kept = there.params[at];
        there.params[at] = Buffer(kept.name(), kept.type(), moved.params[at].shape(), kept.scope());
        there.body = ReplaceBuffers(
            there.body, [&](const Buffer& b) { return b == kept ? std::optional(there.params[at]) : std::nullopt; });
      }
      moved.attrs.erase("domains");
      there.attrs.erase("domains");
      same = StructuralEqual(moved, there);
    }
    if (!same) return absl::FailedPreconditionError("its program has another form at other sizes");
  }
  std::vector<Row> rows(numbers[0].size());
  for (size_t n = 0; n < rows.size(); ++n) {
    for (size_t i = 0; i < funcs.size(); ++i) rows[n].push_back(numbers[i][n]);
  }
  return rows;
}

// A domain that follows from a size is said of no input: what is not known to hold is not promised.
void KeepCommonDomains(std::span<const PrimFunc* const> funcs, PrimFunc* func) {
  const auto own = func->attrs.find("domains");
  if (own == func->attrs.end()) return;
  std::vector<std::string>& domains = std::get<std::vector<std::string>>(own->second);
  for (const PrimFunc* other : funcs) {
    const auto found = other->attrs.find("domains");
    for (size_t p = 0; p < domains.size(); ++p) {
      if (found == other->attrs.end() || std::get<std::vector<std::string>>(found->second)[p] != domains[p])
        domains[p] = "";
    }
  }
}

}  // namespace

absl::StatusOr<SymbolicFunction> GeneraliseFunction(std::span<const PrimFunc* const> funcs, const std::set<int>& fixed,
                                                    std::span<const Var> sizes, PolynomialFit& fit) {
  HONE_CHECK(funcs.size() == fit.points().size()) << "one function for each point";
  HONE_ASSIGN_OR_RETURN(const std::vector<Row> rows, Rows(funcs, fixed));
  std::vector<Expr> numbers;
  for (const Row& row : rows) {
    HONE_ASSIGN_OR_RETURN(Expr number, NumberOver(row, sizes, fit));
    numbers.push_back(std::move(number));
  }
  SymbolicFunction result;
  size_t next = 0;
  result.func = MapNumbers(*funcs[0], fixed, [&](const Expr&) { return numbers[next++]; });
  KeepCommonDomains(funcs, &result.func);
  for (size_t s = 0; s < sizes.size(); ++s) {
    const bool used = std::ranges::any_of(numbers, [&](const Expr& e) { return UsesVar(e, sizes[s]); });
    if (!used) continue;
    result.func.dims.push_back(sizes[s]);
    result.sizes.push_back(static_cast<int>(s));
  }
  HONE_RETURN_IF_ERROR(Verify(result.func));
  return result;
}

}  // namespace hone
