#include "compiler/graph/plan/size_polynomial.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// Lists of sizes, each at most twice, three at most; shorter ones first.
std::vector<std::vector<int>> Monomials(int sizes) {
  std::vector<std::vector<int>> all = {{}};
  for (size_t at = 0; at < all.size(); ++at) {
    const std::vector<int> base = all[at];  // a copy: `all` grows
    if (base.size() == 3) break;
    for (int s = base.empty() ? 0 : base.back(); s < sizes; ++s) {
      if (std::ranges::count(base, s) == 2) continue;
      all.push_back(base);
      all.back().push_back(s);
    }
  }
  return all;
}

int64_t Product(const std::vector<int>& monomial, std::span<const int64_t> sizes) {
  int64_t product = 1;
  for (const int s : monomial) product *= sizes[static_cast<size_t>(s)];
  return product;
}

// The next of the ascending lists of numbers below `end`; false after the last.
bool Next(std::vector<size_t>& list, size_t end) {
  for (size_t i = list.size(); i-- > 0;) {
    if (list[i] + (list.size() - i) >= end) continue;
    ++list[i];
    for (size_t k = i + 1; k < list.size(); ++k) list[k] = list[k - 1] + 1;
    return true;
  }
  return false;
}

// Brings the rows, each of coefficients and a value, into the form that reads off the solution. nullopt: there is none,
// or more than one.
std::optional<std::vector<double>> Eliminate(std::vector<std::vector<double>> rows, size_t unknowns) {
  for (size_t u = 0; u < unknowns; ++u) {
    const auto pivot = std::max_element(rows.begin() + static_cast<int64_t>(u), rows.end(),
                                        [&](auto& a, auto& b) { return std::abs(a[u]) < std::abs(b[u]); });
    if (std::abs((*pivot)[u]) < 1e-9) return std::nullopt;
    std::iter_swap(rows.begin() + static_cast<int64_t>(u), pivot);
    for (size_t r = 0; r < rows.size(); ++r) {
      if (r == u) continue;
      const double times = rows[r][u] / rows[u][u];
      for (size_t c = u; c <= unknowns; ++c) rows[r][c] -= times * rows[u][c];
    }
  }
  std::vector<double> solution;
  for (size_t u = 0; u < unknowns; ++u) solution.push_back(rows[u][unknowns] / rows[u][u]);
  return solution;
}

bool SameInFloat32(double a, double b) { return a == b || static_cast<float>(a) == static_cast<float>(b); }

// The whole numbers that these are, or whose reciprocals they are; nullopt where one is neither.
std::optional<std::vector<int64_t>> WholeNumbers(std::span<const double> values, bool reciprocal) {
  std::vector<int64_t> whole;
  for (const double value : values) {
    const double number = reciprocal ? 1 / value : value;
    if (!(std::abs(number) < 0x1p52)) return std::nullopt;
    whole.push_back(std::llround(number));
    const double there = static_cast<double>(whole.back());
    if (!SameInFloat32(reciprocal ? 1 / there : there, value)) return std::nullopt;
  }
  return whole;
}

}  // namespace

SizePolynomial SizePolynomial::Number(int64_t number) {
  SizePolynomial result;
  if (number != 0) result.terms.push_back({number, {}});
  return result;
}

std::optional<int64_t> SizePolynomial::number() const {
  if (terms.empty()) return 0;
  return terms.size() == 1 && terms[0].sizes.empty() ? std::optional(terms[0].factor) : std::nullopt;
}

int64_t SizePolynomial::At(std::span<const int64_t> sizes) const {
  int64_t sum = 0;
  for (const Term& term : terms) sum += term.factor * Product(term.sizes, sizes);
  return sum;
}

Expr SizePolynomial::Over(std::span<const Var> sizes) const {
  Expr sum = IntConst(0);
  for (const Term& term : terms) {
    Expr product = IntConst(1);
    for (const int s : term.sizes) product = std::move(product) * sizes[static_cast<size_t>(s)];
    sum = std::move(sum) + std::move(product) * Expr(term.factor);
  }
  return sum;
}

std::string SizePolynomial::Text(std::span<const std::string> names) const {
  std::string text;
  for (const Term& term : terms) {
    std::string product;
    for (const int s : term.sizes)
      absl::StrAppend(&product, product.empty() ? "" : " * ", names[static_cast<size_t>(s)]);
    if (product.empty()) product = absl::StrCat(term.factor);
    else if (term.factor != 1) absl::StrAppend(&product, " * ", term.factor);
    absl::StrAppend(&text, text.empty() ? "" : " + ", product);
  }
  return text.empty() ? "0" : text;
}

double SizeNumber::At(std::span<const int64_t> sizes) const {
  const double value = static_cast<double>(polynomial.At(sizes));
  return reciprocal ? 1 / value : value;
}

bool SizeNumber::IsAt(std::span<const int64_t> sizes, double number) const { return SameInFloat32(At(sizes), number); }

PolynomialFit::PolynomialFit(std::vector<std::vector<int64_t>> points) : points_(std::move(points)) {
  HONE_CHECK(!points_.empty());
  monomials_ = Monomials(static_cast<int>(points_[0].size()));
  for (const std::vector<int>& monomial : monomials_) {
    at_points_.emplace_back();
    for (const std::vector<int64_t>& point : points_) at_points_.back().push_back(Product(monomial, point));
  }
}

std::optional<SizePolynomial> PolynomialFit::Of(const std::vector<int64_t>& values) {
  HONE_CHECK(values.size() == points_.size()) << "one value for each point";
  const bool same = std::ranges::all_of(values, [&](int64_t v) { return v == values[0]; });
  if (same) return SizePolynomial::Number(values[0]);
  const auto found = found_.find(values);
  return found != found_.end() ? found->second : found_[values] = Search(values);
}

std::optional<SizeNumber> PolynomialFit::OfNumbers(std::span<const double> values) {
  for (const bool reciprocal : {false, true}) {
    const std::optional<std::vector<int64_t>> whole = WholeNumbers(values, reciprocal);
    if (!whole.has_value()) continue;
    if (std::optional<SizePolynomial> polynomial = Of(*whole)) return SizeNumber{*std::move(polynomial), reciprocal};
  }
  return std::nullopt;
}

std::optional<SizePolynomial> PolynomialFit::Search(const std::vector<int64_t>& values) const {
  const size_t most = std::min(points_.size() - 1, monomials_.size());
  for (size_t count = 1; count <= most; ++count) {
    std::vector<size_t> chosen(count);
    for (size_t i = 0; i < count; ++i) chosen[i] = i;
    do {
      if (std::optional<SizePolynomial> fit = Solve(values, chosen)) return fit;
    } while (Next(chosen, monomials_.size()));
  }
  return std::nullopt;
}

// Solved in double, rounded, and then exact: only what has the values at every point is taken.
std::optional<SizePolynomial> PolynomialFit::Solve(const std::vector<int64_t>& values,
                                                   const std::vector<size_t>& monomials) const {
  std::vector<std::vector<double>> rows(points_.size());
  for (size_t p = 0; p < points_.size(); ++p) {
    for (const size_t m : monomials) rows[p].push_back(static_cast<double>(at_points_[m][p]));
    rows[p].push_back(static_cast<double>(values[p]));
  }
  const std::optional<std::vector<double>> solution = Eliminate(std::move(rows), monomials.size());
  if (!solution.has_value()) return std::nullopt;
  SizePolynomial fit;
  for (size_t i = monomials.size(); i-- > 0;) {  // the highest degree first
    if (std::abs((*solution)[i]) > 0x1p52) return std::nullopt;
    const int64_t factor = std::llround((*solution)[i]);
    if (factor != 0) fit.terms.push_back({factor, monomials_[monomials[i]]});
  }
  for (size_t p = 0; p < points_.size(); ++p) {
    if (fit.At(points_[p]) != values[p]) return std::nullopt;
  }
  return fit;
}

}  // namespace hone
