#include "compiler/oracle/minimal_filtering.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/block_regions.h"
#include "compiler/ir/filter_transforms.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/visit.h"
#include "compiler/oracle/error_rules.h"
#include "compiler/oracle/oracle.h"

namespace hone::error_analysis {
namespace {

constexpr DType kF64 = DType::Float(64);
using filtering::kTaps;

Expr Real(double value) { return FloatConst(value, kF64); }
Expr Magnitude(const Expr& e) { return MakeCall("abs", {e}); }
Expr AsReal(const Expr& e) { return e.type() == kF64 ? e : MakeCast(kF64, e); }

// ---- The algorithms

using Matrix = std::vector<std::vector<double>>;

struct Filtering {
  int64_t tile;                 // m: outputs of a tile in one dimension
  Matrix input, taps, outputs;  // B^T, G, A^T
  int64_t reach() const { return tile + kTaps - 1; }
};

// Of a linear function of `size` numbers.
template <class Transform>
Matrix MatrixOf(int64_t size, const Transform& transform) {
  Matrix matrix;
  for (size_t k = 0; k < static_cast<size_t>(size); ++k) {
    std::vector<double> unit(static_cast<size_t>(size));
    unit[k] = 1;
    const std::vector<double> column = transform(unit);
    matrix.resize(column.size());
    for (size_t i = 0; i < column.size(); ++i) matrix[i].push_back(column[i]);
  }
  return matrix;
}

Filtering FilteringOf(int m) {
  using Numbers = std::vector<double>;
  return {.tile = m,
          .input = MatrixOf(m + kTaps - 1, [m](const Numbers& d) { return filtering::TransformInput(m, d); }),
          .taps = MatrixOf(kTaps, [m](const Numbers& g) { return filtering::TransformTaps(m, g); }),
          .outputs = MatrixOf(m + kTaps - 1, [m](const Numbers& p) { return filtering::TransformOutput(m, p); })};
}

const std::vector<Filtering>& Filterings() {
  static const auto* const kFilterings = new std::vector<Filtering>{FilteringOf(2), FilteringOf(4)};
  return *kFilterings;
}

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return std::abs(std::frexp(value, &exponent)) == 0.5;
}

// The most roundings that a term of a row goes through, in both dimensions: of additions, of the multiplication by a
// number that is no power of two, of that number itself where float32 does not hold it.
double Roundings(const Matrix& matrix) {
  int64_t most = 0;
  for (const std::vector<double>& row : matrix) {
    int64_t terms = 0;
    bool exact = true, held = true;
    for (const double c : row) {
      terms += c != 0;
      exact = exact && (c == 0 || IsPowerOfTwo(c));
      held = held && RoundToType(c, kFloat32) == c;
    }
    most = std::max(most, terms - 1 + (exact ? 0 : 1) + (held ? 0 : 1));
  }
  return 2.0 * static_cast<double>(most);
}

Matrix Magnitudes(Matrix matrix) {
  for (std::vector<double>& row : matrix) {
    for (double& c : row) c = std::abs(c);
  }
  return matrix;
}

// sum_k row[k] * values[k].
Expr RowTimes(const std::vector<double>& row, const std::vector<Expr>& values) {
  Expr sum = Real(0);
  for (size_t k = 0; k < values.size(); ++k) {
    if (row[k] != 0) sum = sum + Real(row[k]) * values[k];
  }
  return sum;
}

// ---- The statements

struct Body {
  Stmt init, body;
};

// for v in grid(extents): block NAME: what `body` makes of v; those from `reduced` on are reduced. With a loop outside,
// that one's variable comes before the others.
Stmt Nest(const std::string& name, const std::vector<int64_t>& extents, size_t reduced,
          const std::function<Body(const std::vector<Expr>& v)>& body, const For* outside = nullptr) {
  Block block{.name = name};
  std::vector<Var> loops;
  std::vector<Expr> vars, bindings;
  if (outside != nullptr) {
    const Var v(absl::StrCat("v_", outside->var.name()));
    block.iters.push_back({v, {outside->min, outside->extent}, IterKind::kSpatial});
    vars.push_back(v);
    bindings.push_back(outside->var);
  }
  for (size_t d = 0; d < extents.size(); ++d) {
    const Var& loop = loops.emplace_back(absl::StrCat("i", d));
    const Var v(absl::StrCat("v", d));
    const IterKind kind = d < reduced ? IterKind::kSpatial : IterKind::kReduce;
    block.iters.push_back({v, {IntConst(0), IntConst(extents[d])}, kind});
    vars.push_back(v);
    bindings.push_back(loop);
  }
  Body made = body(vars);
  block.init = std::move(made.init);
  block.body = std::move(made.body);
  DeclareRegions(block);
  Stmt stmt = Stmt::Make(BlockRealize{std::move(bindings), True(), std::move(block)});
  for (size_t d = extents.size(); d-- > 0;) {
    stmt = Stmt::Make(For{.var = loops[d], .min = IntConst(0), .extent = IntConst(extents[d]), .body = stmt});
  }
  return stmt;
}

// An index with iteration variables replaced, those that `values` has.
Expr At(const Expr& index, const FilterWindow& window, const std::map<size_t, Expr>& values) {
  return Substitute(index, [&](const Var& var) -> std::optional<Expr> {
    const auto found = values.find(window.PlaceOf(var));
    if (found == values.end()) return std::nullopt;
    return found->second.type() == var.type() ? found->second : MakeCast(var.type(), found->second);
  });
}

Stmt StoreTo(const Buffer& buffer, std::vector<Expr> indices, Expr value) {
  return Stmt::Make(Store{buffer, std::move(indices), std::move(value), Expr()});
}

size_t Rank(const Buffer& buffer) { return buffer.shape().size(); }

std::vector<Expr> Joined(std::vector<Expr> head, std::span<const Expr> tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

// The bound of one algorithm, one row of tiles after the other. Buffers of one have the indices [i, j, phase of rows,
// phase of columns, tile of columns, others], those of taps [i, j, others].
class FilteringBound {
 public:
  FilteringBound(const FilterWindow& window, const Filtering& filtering)
      : window_(window),
        filtering_(filtering),
        reach_(filtering.reach()),
        tiles_{window.rows.dilation, window.columns.dilation, Tiles(window.columns)} {
    of_x_ = OthersOf(window.x_indices);
    of_weights_ = OthersOf(window.weights_indices);
    of_y_ = OthersOf(window.y_indices);
    int64_t channels = 1;
    for (const size_t iter : of_x_) {
      if (window.iters[iter].kind != IterKind::kReduce) continue;
      summed_.push_back(iter);
      channels *= window.extent(iter);
    }
    const double growth = SumGrowth(IntConst(channels), kFloat32).As<FloatImm>()->value;
    roundings_ = growth + 1 + Roundings(filtering.outputs);
  }

  // What OfOutput reads. A transform of rows or of columns is straight code, in which its coefficients are constants.
  std::vector<Stmt> Statements(const Buffer& x, std::vector<Buffer>& allocs) {
    const Buffer gathered = Tensor("tiles", reach_, reach_, tiles_, of_x_, allocs);
    const Buffer rows = Tensor("input_rows", reach_, reach_, tiles_, of_x_, allocs);
    const Buffer sizes = Tensor("input_sizes", reach_, reach_, tiles_, of_x_, allocs);
    const Buffer input = Tensor("input", reach_, reach_, tiles_, of_x_, allocs);
    const Buffer taps = Tensor("taps", reach_, reach_, {}, of_weights_, allocs);
    const Buffer product = Tensor("product", reach_, reach_, tiles_, of_y_, allocs);
    For row{.var = Var("tile_row"), .min = IntConst(0), .extent = IntConst(Tiles(window_.rows))};
    std::vector<Expr> shape = {row.extent, IntConst(filtering_.tile)};
    for (size_t d = 1; d < Rank(product); ++d) shape.push_back(product.shape()[d]);
    output_rows_ = allocs.emplace_back(Name("output_rows"), kF64, std::move(shape));
    row.body = MakeSeq({Gather(row, x, gathered), InputRows(gathered, rows, sizes), Input(rows, sizes, input),
                        Product(input, taps, product), OutputRows(row, product)});
    return {Taps(taps, allocs), Stmt::Make(std::move(row))};
  }

  // The bound of the element with these spatial variables.
  Expr OfOutput(const std::map<size_t, Expr>& at) const {
    const auto [phase_h, tile_h, row] = PlaceOf(window_.rows, at.at(window_.rows.output));
    const auto [phase_w, tile_w, column] = PlaceOf(window_.columns, at.at(window_.columns.output));
    std::vector<Expr> values;
    for (int64_t j = 0; j < reach_; ++j) {
      std::vector<Expr> indices = {tile_h, row, IntConst(j), phase_h, phase_w, tile_w};
      for (const size_t iter : of_y_) indices.push_back(at.at(iter));
      values.push_back(MakeLoad(output_rows_, std::move(indices)));
    }
    const Matrix sizes = Magnitudes(filtering_.outputs);
    Expr sum = RowTimes(sizes.back(), values);
    for (size_t q = sizes.size() - 1; q-- > 0;) {
      sum = MakeSelect(Eq(column, IntConst(static_cast<int64_t>(q))), RowTimes(sizes[q], values), sum);
    }
    return Real(roundings_ * UnitRoundoff(kFloat32)) * sum;
  }

 private:
  // The variables other than the window's own, as they lie in memory.
  std::vector<size_t> OthersOf(const std::vector<Expr>& indices) const {
    std::vector<size_t> others;
    for (const Expr& index : indices) {
      for (size_t i = 0; i < window_.iters.size(); ++i) {
        const bool is_own = i == window_.rows.output || i == window_.columns.output || i == window_.rows.tap ||
                            i == window_.columns.tap;
        const bool is_new = !is_own && std::ranges::find(others, i) == others.end();
        if (is_new && UsesVar(index, window_.var(i))) others.push_back(i);
      }
    }
    return others;
  }
  int64_t Tiles(const WindowAxis& axis) const {
    const int64_t size = axis.dilation * filtering_.tile;  // outputs that the phases of one tile hold
    return (window_.extent(axis.output) + size - 1) / size;
  }
  std::string Name(const char* part) const {
    return absl::StrCat(window_.y.name(), "_filter", filtering_.tile, "_", part);
  }
  Buffer Tensor(const char* part, int64_t first, int64_t second, const std::vector<int64_t>& tiles,
                const std::vector<size_t>& others, std::vector<Buffer>& allocs) const {
    std::vector<Expr> shape = {IntConst(first), IntConst(second)};
    for (const int64_t extent : tiles) shape.push_back(IntConst(extent));
    for (const size_t iter : others) shape.push_back(IntConst(window_.extent(iter)));
    return allocs.emplace_back(Name(part), kF64, std::move(shape));
  }
  static std::vector<int64_t> ExtentsBehind(const Buffer& buffer, size_t first) {
    std::vector<int64_t> extents;
    for (size_t d = first; d < Rank(buffer); ++d) extents.push_back(*ConstantValue(buffer.shape()[d]));
    return extents;
  }
  struct Place {
    Expr phase, tile, inside;
  };
  Place PlaceOf(const WindowAxis& axis, const Expr& output) const {
    const Expr dilation = IntConst(axis.dilation), tile = IntConst(filtering_.tile);
    const bool dilated = axis.dilation > 1;
    const Expr in_phase = dilated ? FloorDiv(output, dilation) : output;
    return {dilated ? FloorMod(output, dilation) : IntConst(0), FloorDiv(in_phase, tile), FloorMod(in_phase, tile)};
  }

  // A row of tiles of x, one row and column a tap further each; 0 where the last tiles reach beyond it.
  Stmt Gather(const For& tile_row, const Buffer& x, const Buffer& to) const {
    return Nest(
        Name("tiles"), ExtentsBehind(to, 0), Rank(to),
        [&](const std::vector<Expr>& v) {
          const auto first = [&](const WindowAxis& axis, const Expr& phase, const Expr& tile) {
            return tile * IntConst(axis.dilation * filtering_.tile) + phase;
          };
          const std::span<const Expr> place = std::span(v).subspan(1);
          std::map<size_t, Expr> at;
          at[window_.rows.output] = first(window_.rows, place[2], v[0]);
          at[window_.columns.output] = first(window_.columns, place[3], place[4]);
          at[window_.rows.tap] = place[0];
          at[window_.columns.tap] = place[1];
          for (size_t i = 0; i < of_x_.size(); ++i) at[of_x_[i]] = place[kTilePlace + i];
          std::vector<Expr> indices;
          Expr inside = True();
          for (size_t d = 0; d < Rank(x); ++d) {
            const Expr& index = window_.x_indices[d];
            indices.push_back(At(index, window_, at));
            const bool moves =
                UsesVar(index, window_.var(window_.rows.tap)) || UsesVar(index, window_.var(window_.columns.tap));
            if (moves) inside = And(inside, indices.back() < x.shape()[d]);
          }
          return Body{Stmt(), StoreTo(to, std::vector<Expr>(place.begin(), place.end()),
                                      IfThenElse(inside, AsReal(MakeLoad(x, std::move(indices))), Real(0)))};
        },
        &tile_row);
  }

  // The rows of B^T d, and of |B|^T |d|.
  Stmt InputRows(const Buffer& from, const Buffer& rows, const Buffer& sizes) const {
    return Nest(Name("input_rows"), ExtentsBehind(rows, 1), Rank(rows) - 1, [&](const std::vector<Expr>& v) {
      std::vector<Expr> values;
      for (int64_t k = 0; k < reach_; ++k) values.push_back(MakeLoad(from, Joined({IntConst(k)}, v)));
      return Body{Stmt(), Rows(filtering_.input, values, v, rows, sizes)};
    });
  }
  // The columns of |V| + V' b / (k + a).
  Stmt Input(const Buffer& rows, const Buffer& sizes, const Buffer& to) const {
    std::vector<int64_t> extents = ExtentsBehind(to, 2);
    extents.insert(extents.begin(), reach_);
    return Nest(Name("input"), extents, extents.size(), [&](const std::vector<Expr>& v) {
      const std::span<const Expr> rest = std::span(v).subspan(1);
      return Body{Stmt(), Columns(filtering_.input, rows, sizes, v[0], rest, to, rest)};
    });
  }
  // The rows of G g, and of |G| |g|, of one channel.
  Stmt TapRows(const For& channel, const Buffer& rows, const Buffer& sizes) const {
    return Nest(
        Name("tap_rows"), ExtentsBehind(rows, 1), Rank(rows) - 1,
        [&](const std::vector<Expr>& v) {
          const std::span<const Expr> place = std::span(v).subspan(1);
          std::map<size_t, Expr> at;
          for (size_t d = 0; d < of_weights_.size(); ++d) at[of_weights_[d]] = d == 0 ? v[0] : place[d];
          at[window_.columns.tap] = place[0];
          std::vector<Expr> values;
          for (int64_t row = 0; row < kTaps; ++row) {
            at[window_.rows.tap] = IntConst(row);
            std::vector<Expr> indices;
            for (const Expr& index : window_.weights_indices) indices.push_back(At(index, window_, at));
            values.push_back(AsReal(MakeLoad(window_.weights, std::move(indices))));
          }
          return Body{Stmt(), Rows(filtering_.taps, values, place, rows, sizes)};
        },
        &channel);
  }
  // The columns of |U| + U' g / (k + a), of that channel.
  Stmt TapColumns(const For& channel, const Buffer& rows, const Buffer& sizes, const Buffer& to) const {
    std::vector<int64_t> extents = ExtentsBehind(rows, 2);
    extents.insert(extents.begin(), reach_);
    return Nest(
        Name("taps"), extents, extents.size(),
        [&](const std::vector<Expr>& v) {
          const std::span<const Expr> place = std::span(v).subspan(1);
          const std::span<const Expr> rest = place.subspan(1);
          std::vector<Expr> others;
          if (!of_weights_.empty()) others.push_back(v[0]);
          others = Joined(std::move(others), rest);
          return Body{Stmt(), Columns(filtering_.taps, rows, sizes, place[0], rest, to, others)};
        },
        &channel);
  }
  // All taps, one channel after the other, so that what is between their rows and columns is small. Channels are the
  // first of the other variables; where there are none, all is one.
  Stmt Taps(const Buffer& to, std::vector<Buffer>& allocs) const {
    std::vector<size_t> others = of_weights_;
    int64_t channels = 1;
    if (!others.empty()) {
      channels = window_.extent(others.front());
      others.erase(others.begin());
    }
    const Buffer rows = Tensor("tap_rows", reach_, kTaps, {}, others, allocs);
    const Buffer sizes = Tensor("tap_sizes", reach_, kTaps, {}, others, allocs);
    For channel{.var = Var("channel"), .min = IntConst(0), .extent = IntConst(channels)};
    channel.body = MakeSeq({TapRows(channel, rows, sizes), TapColumns(channel, rows, sizes, to)});
    return Stmt::Make(std::move(channel));
  }
  // Each row of a matrix times the values, and of its magnitudes times theirs, at [row, place].
  static Stmt Rows(const Matrix& matrix, const std::vector<Expr>& values, std::span<const Expr> place,
                   const Buffer& rows, const Buffer& sizes) {
    std::vector<Expr> magnitudes;
    for (const Expr& value : values) magnitudes.push_back(Magnitude(value));
    const Matrix of_sizes = Magnitudes(matrix);
    std::vector<Stmt> stores;
    for (size_t i = 0; i < matrix.size(); ++i) {
      const std::vector<Expr> at = Joined({IntConst(static_cast<int64_t>(i))}, place);
      stores.push_back(StoreTo(rows, at, RowTimes(matrix[i], values)));
      stores.push_back(StoreTo(sizes, at, RowTimes(of_sizes[i], magnitudes)));
    }
    return MakeSeq(std::move(stores));
  }
  // From rows at [row, .., from], each column in magnitude with its own error, at [row, column, to].
  Stmt Columns(const Matrix& matrix, const Buffer& rows, const Buffer& sizes, const Expr& row,
               std::span<const Expr> from, const Buffer& to, std::span<const Expr> others) const {
    std::vector<Expr> values, magnitudes;
    for (size_t column = 0; column < matrix[0].size(); ++column) {
      const std::vector<Expr> at = Joined({row, IntConst(static_cast<int64_t>(column))}, from);
      values.push_back(MakeLoad(rows, at));
      magnitudes.push_back(MakeLoad(sizes, at));
    }
    const Matrix of_sizes = Magnitudes(matrix);
    const Expr own = Real(Roundings(matrix) / roundings_);
    std::vector<Stmt> stores;
    for (size_t j = 0; j < matrix.size(); ++j) {
      stores.push_back(StoreTo(to, Joined({row, IntConst(static_cast<int64_t>(j))}, others),
                               Magnitude(RowTimes(matrix[j], values)) + RowTimes(of_sizes[j], magnitudes) * own));
    }
    return MakeSeq(std::move(stores));
  }

  Stmt Product(const Buffer& input, const Buffer& taps, const Buffer& to) const {
    std::vector<int64_t> extents = ExtentsBehind(to, 0);
    for (const size_t iter : summed_) extents.push_back(window_.extent(iter));
    return Nest(Name("product"), extents, Rank(to), [&](const std::vector<Expr>& v) {
      std::map<size_t, Expr> at;
      for (size_t i = 0; i < of_y_.size(); ++i) at[of_y_[i]] = v[kTilePlace + i];
      for (size_t i = 0; i < summed_.size(); ++i) at[summed_[i]] = v[Rank(to) + i];
      std::vector<Expr> of_input(v.begin(), v.begin() + kTilePlace), of_taps(v.begin(), v.begin() + 2);
      for (const size_t iter : of_x_) of_input.push_back(at.at(iter));
      for (const size_t iter : of_weights_) of_taps.push_back(at.at(iter));
      const std::vector<Expr> place(v.begin(), v.begin() + static_cast<ptrdiff_t>(Rank(to)));
      return Body{StoreTo(to, place, Real(0)),
                  StoreTo(to, place, MakeLoad(to, place) + MakeLoad(input, of_input) * MakeLoad(taps, of_taps))};
    });
  }
  Stmt OutputRows(const For& tile_row, const Buffer& product) const {
    return Nest(
        Name("output_rows"), ExtentsBehind(product, 1), Rank(product) - 1,
        [&](const std::vector<Expr>& v) {
          const std::span<const Expr> rest = std::span(v).subspan(1);
          std::vector<Expr> values;
          for (int64_t i = 0; i < reach_; ++i) values.push_back(MakeLoad(product, Joined({IntConst(i)}, rest)));
          const Matrix sizes = Magnitudes(filtering_.outputs);
          std::vector<Stmt> stores;
          for (size_t p = 0; p < sizes.size(); ++p) {
            const std::vector<Expr> at = Joined({v[0], IntConst(static_cast<int64_t>(p))}, rest);
            stores.push_back(StoreTo(output_rows_, at, RowTimes(sizes[p], values)));
          }
          return Body{Stmt(), MakeSeq(std::move(stores))};
        },
        &tile_row);
  }

  static constexpr size_t kTilePlace = 5;  // indices of a tile's number, in front of those of others

  const FilterWindow& window_;
  const Filtering& filtering_;
  int64_t reach_;
  std::vector<int64_t> tiles_;
  // Iteration variables other than those of the window: what x, the weights and y move with, and what is summed over.
  std::vector<size_t> of_x_, of_weights_, of_y_, summed_;
  double roundings_ = 0;  // k + a
  Buffer output_rows_;
};

}  // namespace

std::vector<Stmt> AddFilteringError(const FilterWindow& window, const Buffer& x, const Buffer& error,
                                    const Buffer& loose, std::vector<Buffer>& allocs) {
  std::vector<FilteringBound> bounds;
  std::vector<Stmt> stmts;
  for (const Filtering& filtering : Filterings()) {
    FilteringBound& bound = bounds.emplace_back(window, filtering);
    for (Stmt& stmt : bound.Statements(x, allocs)) stmts.push_back(std::move(stmt));
  }
  std::vector<size_t> iters;
  std::vector<int64_t> extents;
  for (size_t i = 0; i < window.iters.size(); ++i) {
    if (window.iters[i].kind == IterKind::kReduce) continue;
    iters.push_back(i);
    extents.push_back(window.extent(i));
  }
  stmts.push_back(Nest(loose.name(), extents, extents.size(), [&](const std::vector<Expr>& v) {
    std::map<size_t, Expr> at;
    for (size_t i = 0; i < iters.size(); ++i) at[iters[i]] = v[i];
    Expr most = Real(0);
    for (const FilteringBound& bound : bounds) most = Max(most, bound.OfOutput(at));
    std::vector<Expr> indices;
    for (const Expr& index : window.y_indices) indices.push_back(At(index, window, at));
    // Infinities have no place in a transform, which makes differences of them.
    const Expr share = MakeSelect(most < Real(std::numeric_limits<double>::infinity()),
                                  most * Real(1 / LevelConstant(NumericLevel::kDefault)), Real(0));
    return Body{Stmt(), StoreTo(loose, indices, MakeLoad(error, indices) + share)};
  }));
  return stmts;
}

}  // namespace hone::error_analysis
