// Ensembles of decision trees. All trees of all rows go down together, a level at a time: a step looks the feature, the
// threshold and both successors of each tree's node up in tables, and a leaf leads to itself.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

enum Mode : int64_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };
constexpr int64_t kMostNodes = 1 << 22;

// Interior nodes first, then leaves.
struct Trees {
  Ints feature, mode, yes, no, missing_is_yes, roots;
  std::vector<double> split;
  Ints target;  // of leaves
  std::vector<double> weight;
  int64_t interior() const { return static_cast<int64_t>(feature.size()) - leaves(); }
  int64_t leaves() const { return static_cast<int64_t>(target.size()); }
};

// Membership in a set becomes a chain of nodes that compare with one member each. `sets` are the members of all such
// nodes in order, a NaN after each set.
absl::Status ExpandMembership(Trees& trees, const std::vector<double>& sets) {
  size_t at = 0;
  const size_t nodes = trees.feature.size();
  for (size_t i = 0; i < nodes; ++i) {
    if (trees.mode[i] != kMember) continue;
    if (at >= sets.size() || std::isnan(sets[at])) return Unsupported("a node's membership_values are missing");
    size_t last = i;
    trees.mode[i] = kEqual;
    trees.split[i] = sets[at];
    const int64_t otherwise = trees.no[i];
    for (++at; at < sets.size() && !std::isnan(sets[at]); ++at) {
      trees.no[last] = static_cast<int64_t>(trees.feature.size());
      last = trees.feature.size();
      trees.feature.push_back(trees.feature[i]);
      trees.mode.push_back(kEqual);
      trees.yes.push_back(trees.yes[i]);
      trees.no.push_back(otherwise);
      trees.missing_is_yes.push_back(trees.missing_is_yes[i]);
      trees.split.push_back(sets[at]);
    }
    ++at;  // past the NaN
  }
  return absl::OkStatus();
}

std::vector<double> Doubles(const std::shared_ptr<const NdArray>& array) {
  std::vector<double> values;
  for (int64_t i = 0; array != nullptr && i < array->NumElements(); ++i) values.push_back(array->Get(i));
  return values;
}

absl::StatusOr<Trees> ReadTrees(NodeContext& c, int64_t features) {
  Trees trees;
  trees.feature = c.IntsAttr("nodes_featureids");
  trees.yes = c.IntsAttr("nodes_truenodeids");
  trees.no = c.IntsAttr("nodes_falsenodeids");
  trees.roots = c.IntsAttr("tree_roots");
  trees.target = c.IntsAttr("leaf_targetids");
  trees.weight = Doubles(c.TensorAttr("leaf_weights"));
  trees.split = Doubles(c.TensorAttr("nodes_splits"));
  for (const double mode : Doubles(c.TensorAttr("nodes_modes"))) {
    const bool known = mode >= static_cast<double>(kLessEqual) && mode <= static_cast<double>(kMember);
    trees.mode.push_back(known ? static_cast<int64_t>(mode) : -1);
  }
  const size_t n = trees.feature.size();
  trees.missing_is_yes = c.IntsAttr("nodes_missing_value_tracks_true", Ints(n, 0));
  const Ints yes_leaf = c.IntsAttr("nodes_trueleafs"), no_leaf = c.IntsAttr("nodes_falseleafs");
  for (const size_t size : {trees.yes.size(), trees.no.size(), trees.split.size(), trees.mode.size(),
                            trees.missing_is_yes.size(), yes_leaf.size(), no_leaf.size()}) {
    if (size != n) return Unsupported("the nodes' attributes differ in length");
  }
  if (n < 1 || n > kMostNodes || trees.target.empty() || trees.weight.size() != trees.target.size() ||
      trees.roots.empty())
    return Unsupported("nodes, leaves or roots are missing");
  for (size_t i = 0; i < n; ++i) {
    const auto within = [](int64_t k, size_t size) { return k >= 0 && k < static_cast<int64_t>(size); };
    if (!within(trees.yes[i], yes_leaf[i] != 0 ? trees.target.size() : n) ||
        !within(trees.no[i], no_leaf[i] != 0 ? trees.target.size() : n) ||
        !within(trees.feature[i], static_cast<size_t>(features)) || !within(trees.mode[i], kMember + 1))
      return Unsupported(absl::StrCat("node ", i, " names a node, leaf, feature or mode that there is not"));
  }
  for (const int64_t root : trees.roots) {
    if (root < 0 || root >= static_cast<int64_t>(n)) return Unsupported(absl::StrCat("a tree's root is ", root));
  }
  // Leaves are numbered from kLeaf on as long as interior nodes are added.
  constexpr int64_t kLeaf = int64_t{1} << 40;
  for (size_t i = 0; i < n; ++i) {
    if (yes_leaf[i] != 0) trees.yes[i] += kLeaf;
    if (no_leaf[i] != 0) trees.no[i] += kLeaf;
  }
  HONE_RETURN_IF_ERROR(ExpandMembership(trees, Doubles(c.TensorAttr("membership_values"))));
  const int64_t interior = static_cast<int64_t>(trees.feature.size());
  for (Ints* next : {&trees.yes, &trees.no}) {
    for (int64_t& to : *next) to = to >= kLeaf ? interior + (to - kLeaf) : to;
  }
  for (int64_t leaf = 0; leaf < trees.leaves(); ++leaf) {
    trees.feature.push_back(0);
    trees.mode.push_back(kLessEqual);
    trees.yes.push_back(interior + leaf);
    trees.no.push_back(interior + leaf);
    trees.missing_is_yes.push_back(0);
    trees.split.push_back(0);
  }
  return trees;
}

// The most steps from a root to a leaf.
absl::StatusOr<int> Depth(const Trees& trees) {
  constexpr int kMostDepth = 256;
  std::vector<bool> at(trees.feature.size(), false);
  for (const int64_t root : trees.roots) at[static_cast<size_t>(root)] = true;
  for (int depth = 0; depth <= kMostDepth; ++depth) {
    std::vector<bool> next(at.size(), false);
    bool inside = false;
    for (size_t i = 0; i < static_cast<size_t>(trees.interior()); ++i) {
      if (!at[i]) continue;
      inside = true;
      next[static_cast<size_t>(trees.yes[i])] = next[static_cast<size_t>(trees.no[i])] = true;
    }
    if (!inside) return depth;
    at = std::move(next);
  }
  return Unsupported(absl::StrCat("trees deeper than ", kMostDepth));
}

// Whether each node's condition holds.
Value Holds(const Trees& trees, const Value& x, const Value& split, const Value& mode) {
  Value holds;
  for (int64_t m = kLessEqual; m < kMember; ++m) {
    if (std::count(trees.mode.begin(), trees.mode.end(), m) == 0) continue;
    const Value here = m == kLessEqual      ? x <= split
                       : m == kLess         ? x < split
                       : m == kGreaterEqual ? x >= split
                       : m == kGreater      ? x > split
                       : m == kEqual        ? x == split
                                            : Not(x == split);
    holds = holds ? Where(mode == Number(mode, static_cast<double>(m)), here, holds) : here;
  }
  return holds;
}

// [rows, trees]: the leaf that each row comes to, counted from 0.
absl::StatusOr<Value> Leaves(const Trees& trees, const Value& x) {
  NodeContext& c = x.context();
  HONE_ASSIGN_OR_RETURN(const int depth, Depth(trees));
  const int64_t rows = x.dim(0), features = x.dim(1), n = static_cast<int64_t>(trees.feature.size());
  const auto table = [&](const Ints& values) { return Constant(c, NdArray::Of<int64_t>(kInt64, {n}, values)); };
  NdArray splits(x.dtype(), {n});
  for (int64_t i = 0; i < n; ++i) splits.Set(i, trees.split[static_cast<size_t>(i)]);
  const Value feature = table(trees.feature), mode = table(trees.mode), yes = table(trees.yes), no = table(trees.no),
              missing_is_yes = table(trees.missing_is_yes), split = Constant(c, std::move(splits));
  const bool tracks = std::count(trees.missing_is_yes.begin(), trees.missing_is_yes.end(), 0) != n;
  const int64_t count = static_cast<int64_t>(trees.roots.size());
  Value at = Expand(Constant(c, NdArray::Of<int64_t>(kInt64, {1, count}, trees.roots)), {rows, count});
  const Value flat = Reshape(x, {rows * features});
  const Value row = Reshape(Iota(c, kInt64, rows, 0, static_cast<double>(features)), {rows, 1});
  for (int level = 0; level < depth; ++level) {
    const Value value = Gather(flat, Gather(feature, at, 0) + row, 0);
    Value holds = Holds(trees, value, Gather(split, at, 0), Gather(mode, at, 0));
    if (tracks) holds = Or(holds, And(Apply("isnan", {value}), Gather(missing_is_yes, at, 0) > Constant(c, kInt64, 0)));
    at = Where(holds, Gather(yes, at, 0), Gather(no, at, 0));
    HONE_RETURN_IF_ERROR(c.status());
  }
  return at - Number(at, static_cast<double>(trees.interior()));
}

// 0 average, 1 sum, 2 least, 3 greatest of what the trees say of each target.
Value Aggregate(const Value& weights, const Value& targets, int64_t count, int64_t how) {
  NodeContext& c = weights.context();
  const int64_t rows = weights.dim(0), trees = weights.dim(1);
  const Value mine = Reshape(targets, {rows, trees, 1}) == Reshape(Iota(c, kInt64, count), {1, 1, count});
  const Value weight = Reshape(weights, {rows, trees, 1});
  if (how <= 1) {
    const Value sum = Reduce("reduce_sum", Where(mine, weight, Number(weight, 0)), {1}, false);
    return how == 1 ? sum : sum / static_cast<double>(trees);
  }
  const double none = how == 2 ? INFINITY : -INFINITY;
  const Value best =
      Reduce(how == 2 ? "reduce_min" : "reduce_max", Where(mine, weight, Number(weight, none)), {1}, false);
  return Where(best == Number(best, none), Number(best, 0), best);
}

Outputs TreeEnsemble(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  if (x.rank() != 2 || !x.dtype().is_float()) return Unsupported(absl::StrCat("features ", ToText(c.type(x.id()))));
  const int64_t targets = c.IntAttr("n_targets", 1), how = c.IntAttr("aggregate_function", 1),
                after = c.IntAttr("post_transform", 0);
  c.TensorAttr("nodes_hitrates");
  if (targets < 1 || targets > kMostNodes || how < 0 || how > 3) return Unsupported("n_targets or aggregate_function");
  if (after < 0 || after > 2) return Unsupported(absl::StrCat("post_transform is ", after));
  HONE_ASSIGN_OR_RETURN(const Trees trees, ReadTrees(c, x.dim(1)));
  HONE_RETURN_IF_ERROR(c.status());
  HONE_ASSIGN_OR_RETURN(const Value leaf, Leaves(trees, x));
  NdArray weights(x.dtype(), {trees.leaves()});
  for (int64_t i = 0; i < trees.leaves(); ++i) weights.Set(i, trees.weight[static_cast<size_t>(i)]);
  const Value target = Constant(c, NdArray::Of<int64_t>(kInt64, {trees.leaves()}, trees.target));
  const Value y = Aggregate(Gather(Constant(c, std::move(weights)), leaf, 0), Gather(target, leaf, 0), targets, how);
  return Results({after == 1 ? Softmax(y, 1) : after == 2 ? Sigmoid(y) : y});
}

}  // namespace

HONE_OPERATORS(tree_ensemble) { return {{.onnx = {{"TreeEnsemble", 5, TreeEnsemble, "ai.onnx.ml"}}}}; }

}  // namespace hone
