// Features of classical models: columns of a table, thresholds, counts of n-grams.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

constexpr double kMostCompared = 0x1p26;
constexpr int64_t kMostColumns = 1 << 22, kMostSkips = 256;

// The columns that the second input names.
Outputs ArrayFeatureExtractor(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  Value x = Input(c, 0);
  if (x.rank() == 1) x = Reshape(x, {1, x.dim(0)});
  const Value columns = Reshape(Cast(Input(c, 1), kInt64), {*NumElements(c.shape(c.input(1)))});
  return Results({Gather(x, columns, x.rank() - 1)});
}

// 1 above the threshold, else 0.
Outputs Binarizer(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  return Results({Cast(x > Number(x, c.FloatAttr("threshold", 0)), x.dtype())});
}

// The n-grams of one length, a row each, and where their counts go.
struct Grams {
  int64_t length = 0;
  Ints tokens;  // [count, length]
  Ints columns;
  int64_t count() const { return static_cast<int64_t>(columns.size()); }
};

absl::StatusOr<std::vector<Grams>> ReadGrams(NodeContext& c) {
  const Ints starts = c.IntsAttr("ngram_counts"), columns = c.IntsAttr("ngram_indexes"),
             pool = c.IntsAttr("pool_int64s");
  const int64_t least = c.IntAttr("min_gram_length", 1), most = c.IntAttr("max_gram_length", 1);
  if (c.HasAttr("pool_strings")) return Unsupported("n-grams of strings");
  if (least < 1 || most < least || static_cast<int64_t>(starts.size()) < most)
    return Unsupported(absl::StrCat("n-grams of ", least, " to ", most, " tokens, and ", starts.size(), " counts"));
  std::vector<Grams> all;
  size_t column = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    const int64_t begin = starts[n - 1], end = n < starts.size() ? starts[n] : static_cast<int64_t>(pool.size()),
                  length = static_cast<int64_t>(n);
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) || (end - begin) % length != 0)
      return Unsupported("ngram_counts does not fit the pool");
    const size_t count = static_cast<size_t>((end - begin) / length);
    if (count > columns.size() - column) return Unsupported("ngram_indexes does not fit the pool");
    Grams grams{length, {pool.begin() + begin, pool.begin() + end}, {}};
    grams.columns.assign(columns.begin() + static_cast<int64_t>(column),
                         columns.begin() + static_cast<int64_t>(column + count));
    column += count;
    if (length >= least && length <= most && count > 0) all.push_back(std::move(grams));
  }
  return all;
}

// [rows, count]: how often each n-gram is in x [rows, tokens], its tokens `step` apart.
Value CountGrams(const Value& x, const Grams& grams, int64_t step) {
  NodeContext& c = x.context();
  const int64_t rows = x.dim(0), places = x.dim(1) - (grams.length - 1) * step;
  if (places < 1) return {};
  if (static_cast<double>(rows) * static_cast<double>(places) * static_cast<double>(grams.count()) > kMostCompared)
    return Fail(c, Unsupported("too many n-grams to compare"));
  Value all;
  for (int64_t k = 0; k < grams.length; ++k) {
    NdArray token(kInt64, {1, 1, grams.count()});
    for (int64_t g = 0; g < grams.count(); ++g)
      token.SetInt(g, grams.tokens[static_cast<size_t>(g * grams.length + k)]);
    const Value same = Reshape(Slice(x, 1, k * step, places), {rows, places, 1}) == Constant(c, std::move(token));
    all = all ? And(all, same) : same;
  }
  return Reduce("reduce_sum", Cast(all, kFloat32), {1}, false);
}

// Counts of n-grams (TF), whether they are there (IDF) or both (TFIDF), the latter two times the weights. The tokens of
// an n-gram may lie apart, all of them equally.
Outputs TfIdfVectorizer(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const std::string mode = c.StringAttr("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return Unsupported(absl::StrCat("mode is \"", mode, "\""));
  const int64_t skips = c.IntAttr("max_skip_count", 0);
  if (skips < 0 || skips > kMostSkips)
    return Unsupported(absl::StrCat("max_skip_count is ", skips, "; at most ", kMostSkips, " is supported"));
  Value x = Cast(Input(c, 0), kInt64);
  const bool one_row = x.rank() < 2;
  if (x.rank() > 2 || *NumElements(x.shape()) == 0)
    return Unsupported(absl::StrCat("tokens ", ToText(c.type(c.input(0)))));
  x = one_row ? Reshape(x, {1, *NumElements(x.shape())}) : x;
  HONE_ASSIGN_OR_RETURN(const std::vector<Grams> all, ReadGrams(c));
  const Ints columns = c.IntsAttr("ngram_indexes");
  const int64_t width = columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end()) + 1;
  if (width < 1 || width > kMostColumns) return Unsupported("ngram_indexes is not a list of columns");
  std::vector<Value> counts{Expand(Constant(c, kFloat32, 0), {x.dim(0), 1})};
  Ints from(static_cast<size_t>(width), 0);  // the place of each column's count; 0: of none
  int64_t at = 1;
  for (const Grams& grams : all) {
    Value sum;
    for (int64_t skip = 0; skip <= (grams.length == 1 ? 0 : std::min(skips, x.dim(1))); ++skip) {
      const Value count = CountGrams(x, grams, skip + 1);
      if (count) sum = sum ? sum + count : count;
    }
    HONE_RETURN_IF_ERROR(c.status());
    if (!sum) continue;
    counts.push_back(sum);
    for (const int64_t column : grams.columns) {
      if (column < 0 || from[static_cast<size_t>(column)] != 0)
        return Unsupported("ngram_indexes names a column twice");
      from[static_cast<size_t>(column)] = at++;
    }
  }
  Value y = Gather(Concat(counts, 1), Constant(c, NdArray::Of<int64_t>(kInt64, {width}, from)), 1);
  if (mode == "IDF") y = Cast(y > Number(y, 0), kFloat32);
  if (mode != "TF" && c.HasAttr("weights")) {
    const std::vector<double> weights = c.FloatsAttr("weights");
    if (static_cast<int64_t>(weights.size()) != width) return Unsupported("weights do not fit ngram_indexes");
    NdArray array(kFloat32, {width});
    for (size_t i = 0; i < weights.size(); ++i) array.Set(static_cast<int64_t>(i), weights[i]);
    y = y * Constant(c, std::move(array));
  }
  c.HasAttr("weights");
  return Results({one_row ? Reshape(y, {width}) : y});
}

}  // namespace

HONE_OPERATORS(features) {
  return {{.onnx = {{"ArrayFeatureExtractor", 1, ArrayFeatureExtractor, "ai.onnx.ml"},
                    {"Binarizer", 1, Binarizer, "ai.onnx.ml"},
                    {"TfIdfVectorizer", 9, TfIdfVectorizer}}}};
}

}  // namespace hone
