// Numbers of a plan that follow from its symbolic sizes, and finding them: from what a number is at some sizes to what
// it is at all.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

// A sum of terms, each a number times the sizes that it lists (by index; one that is squared stands twice). No term has
// the factor 0, and of equal lists there is one. Zero has no terms.
struct SizePolynomial {
  struct Term {
    int64_t factor = 0;
    std::vector<int> sizes;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;
  friend bool operator==(const SizePolynomial&, const SizePolynomial&) = default;

  static SizePolynomial Number(int64_t number);
  std::optional<int64_t> number() const;  // nullopt: it follows from a size
  int64_t At(std::span<const int64_t> sizes) const;
  Expr Over(std::span<const Var> sizes) const;
  std::string Text(std::span<const std::string> names) const;  // "batch * 12 + 1"
};

// A polynomial, or one divided by it.
struct SizeNumber {
  SizePolynomial polynomial;
  bool reciprocal = false;
  double At(std::span<const int64_t> sizes) const;
  // Whether that is the number, as far as float32 tells.
  bool IsAt(std::span<const int64_t> sizes, double number) const;
};

// Finds polynomials by their values at `points`, each a value for every size.
class PolynomialFit {
 public:
  explicit PolynomialFit(std::vector<std::vector<int64_t>> points);

  // The polynomial of fewest terms, whole factors and degree at most 2 in each size, 3 in all, that has values[i] at
  // points[i]; of fewer terms than there are points, so that at least one point confirms it. nullopt: there is none.
  std::optional<SizePolynomial> Of(const std::vector<int64_t>& values);
  // The same of numbers that need not be whole. The values of a reciprocal are those of float32 at least.
  std::optional<SizeNumber> OfNumbers(std::span<const double> values);
  const std::vector<std::vector<int64_t>>& points() const { return points_; }

 private:
  std::optional<SizePolynomial> Search(const std::vector<int64_t>& values) const;
  std::optional<SizePolynomial> Solve(const std::vector<int64_t>& values, const std::vector<size_t>& monomials) const;

  std::vector<std::vector<int64_t>> points_;
  std::vector<std::vector<int>> monomials_;      // by degree; the first is 1
  std::vector<std::vector<int64_t>> at_points_;  // of each monomial
  std::map<std::vector<int64_t>, std::optional<SizePolynomial>> found_;
};

}  // namespace hone
