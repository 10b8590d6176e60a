#include "tests/models/random_graph.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

constexpr uint64_t kMostNodes = 40;
constexpr int64_t kMostElementsOfOne = 4096;
constexpr double kMostMagnitude = 8;

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  Graph Make() {
    graph_.name = "random";
    const uint64_t inputs = 1 + random_.Below(3), nodes = 3 + random_.Below(kMostNodes - 2);
    for (uint64_t i = 0; i < inputs; ++i) {
      const int input = graph_.AddValue(absl::StrCat("x", i), {kFloat32, RandomShape()});
      graph_.inputs.push_back(input);
      values_.push_back({input, 1, true});
    }
    while (graph_.nodes.size() < nodes) Step();
    AddOutputs();
    return std::move(graph_);
  }

 private:
  struct Value {
    int id;
    double magnitude;  // no element is larger
    bool exact;        // the same however it is computed
  };

  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(high - low + 1)));
  }
  const Ints& shape(const Value& v) const { return graph_.type(v.id).shape; }
  Ints RandomShape() {
    constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17};
    Ints shape(static_cast<size_t>(Between(1, 4)));
    for (int64_t& extent : shape) extent = kExtents[random_.Below(std::size(kExtents))];
    while (*NumElements(shape) > kMostElementsOfOne) *std::max_element(shape.begin(), shape.end()) = 3;
    return shape;
  }
  // Later values more often than earlier ones, so that graphs become deep.
  Value Any() {
    const size_t back = random_.Chance(0.6) ? std::min<size_t>(3, values_.size()) : values_.size();
    return values_[values_.size() - 1 - random_.Below(back)];
  }
  int Weight(const Ints& of_shape) {
    NdArray data(kFloat32, of_shape);
    for (int64_t i = 0; i < data.NumElements(); ++i) data.Set(i, 2 * random_.Uniform() - 1);
    return graph_.AddConstant(absl::StrCat("w", graph_.values.size()), std::move(data));
  }

  // Adds the node; nothing where the operator refuses its operands or the result is large.
  void Add(std::string_view op, const std::vector<int>& inputs, double magnitude, bool exact, Attrs attrs = {}) {
    const size_t nodes = graph_.nodes.size(), values = graph_.values.size();
    const absl::StatusOr<int> id = graph_.Add(op, absl::StrCat(std::string(op), "_", nodes), inputs, std::move(attrs));
    if (id.ok() && *NumElements(graph_.type(*id).shape) <= kMostElementsOfOne &&
        *NumElements(graph_.type(*id).shape) > 0) {
      values_.push_back({*id, magnitude, exact});
      return;
    }
    graph_.nodes.resize(nodes);
    graph_.values.resize(std::max(values, graph_.values.size() - (id.ok() ? 1 : 0)));
  }

  void Step() {
    Value x = Any();
    if (x.magnitude > kMostMagnitude) return Add("tanh", {x.id}, 1, false);
    switch (random_.Below(10)) {
      case 0:
      case 1: return Unary(x);
      case 2:
      case 3: return Binary(x);
      case 4:
      case 5: return Move(x);
      case 6: return Reduce(x);
      case 7: return Product(x);
      case 8: return Image(x);
      default: return Choose(x);
    }
  }

  void Unary(const Value& x) {
    struct Function {
      const char* op;
      double most;  // -1: as the operand
      bool exact;
    };
    constexpr Function kFunctions[] = {{"relu", -1, true},     {"abs", -1, true},         {"negative", -1, true},
                                       {"tanh", 1, false},     {"sigmoid", 1, false},     {"silu", -1, false},
                                       {"gelu", -1, false},    {"hard_swish", -1, false}, {"erf", 1, false},
                                       {"sin", 1, false},      {"cos", 1, false},         {"identity", -1, true},
                                       {"softplus", 9, false}, {"gelu_tanh", -1, false}};
    constexpr const char* kJumps[] = {"floor", "ceil", "round", "sign"};
    if (x.exact && random_.Chance(0.2)) return Add(kJumps[random_.Below(4)], {x.id}, x.magnitude + 1, true);
    if (random_.Chance(0.1)) { return Add("clip", {x.id}, 1, x.exact, {{"min", -0.5}, {"max", 0.75}}); }
    const Function& f = kFunctions[random_.Below(std::size(kFunctions))];
    Add(f.op, {x.id}, f.most < 0 ? x.magnitude : f.most, x.exact && f.exact);
  }

  void Binary(const Value& x) {
    Value y = Any();
    if (random_.Chance(0.4)) {  // a constant that is broadcast: a number, a number a channel
      Ints of_shape = random_.Chance(0.5) ? Ints{} : Ints{shape(x).empty() ? 1 : shape(x).back()};
      y = {Weight(of_shape), 1, true};
    }
    switch (random_.Below(5)) {
      case 0: return Add("add", {x.id, y.id}, x.magnitude + y.magnitude, false);
      case 1: return Add("subtract", {x.id, y.id}, x.magnitude + y.magnitude, false);
      case 2: return Add("multiply", {x.id, y.id}, x.magnitude * y.magnitude, false);
      case 3: return Add("maximum", {x.id, y.id}, std::max(x.magnitude, y.magnitude), x.exact && y.exact);
      default: return Add("minimum", {x.id, y.id}, std::max(x.magnitude, y.magnitude), x.exact && y.exact);
    }
  }

  void Choose(const Value& x) {
    const Value y = Any();
    const auto exact = std::find_if(values_.begin(), values_.end(), [](const Value& v) { return v.exact; });
    if (exact == values_.end() || graph_.type(exact->id).dtype != kFloat32) return;
    const absl::StatusOr<int> less =
        graph_.Add("less", absl::StrCat("less_", graph_.nodes.size()), {exact->id, Weight({})});
    if (less.ok()) Add("where", {*less, x.id, y.id}, std::max(x.magnitude, y.magnitude), x.exact && y.exact);
  }

  void Move(const Value& x) {
    const Ints from = shape(x);
    const size_t rank = from.size();
    const auto move = [&](const char* op, Attrs attrs) { Add(op, {x.id}, x.magnitude, x.exact, std::move(attrs)); };
    const int64_t axis = rank == 0 ? 0 : Between(0, static_cast<int64_t>(rank) - 1);
    switch (random_.Below(7)) {
      case 0: return move("reshape", {{"shape", Refactored(from)}});
      case 1: {
        Ints perm(rank);
        std::iota(perm.begin(), perm.end(), 0);
        for (size_t i = rank; i > 1; --i) std::swap(perm[i - 1], perm[random_.Below(i)]);
        return move("transpose", {{"perm", perm}});
      }
      case 2: {
        Ints starts(rank, 0), sizes = from, steps(rank, 1);
        for (size_t d = 0; d < rank; ++d) {
          if (random_.Chance(0.5)) continue;
          steps[d] = Between(1, 2);
          starts[d] = Between(0, from[d] - 1);
          sizes[d] = Between(1, (from[d] - 1 - starts[d]) / steps[d] + 1);
        }
        return move("slice", {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
      }
      case 3: {
        const Value y = Any();
        const char* const op = Between(0, 1) == 0 ? "concat" : "interleave";
        return Add(op, {x.id, y.id, x.id}, std::max(x.magnitude, y.magnitude), x.exact && y.exact, {{"axis", axis}});
      }
      case 4: {
        Ints before(rank), after(rank);
        for (size_t d = 0; d < rank; ++d) before[d] = Between(0, 2), after[d] = Between(0, 1);
        return move("pad", {{"before", before}, {"after", after}, {"mode", std::string("constant")}, {"value", 0.5}});
      }
      case 5: {
        Ints wide = from;
        for (int64_t& extent : wide) extent = extent == 1 ? Between(1, 5) : extent;
        wide.insert(wide.begin(), Between(1, 3));
        return move("expand", {{"shape", wide}});
      }
      default: {
        if (rank == 0) return;
        NdArray places(kInt64, {Between(1, 5)});
        for (int64_t i = 0; i < places.NumElements(); ++i)
          places.SetInt(i, Between(0, from[static_cast<size_t>(axis)] - 1));
        const int indices = graph_.AddConstant(absl::StrCat("at", graph_.values.size()), std::move(places));
        return Add("gather", {x.id, indices}, x.magnitude, x.exact, {{"axis", axis}});
      }
    }
  }

  // As many elements under another shape: neighbours joined, an extent split.
  Ints Refactored(const Ints& from) {
    Ints to = from;
    if (to.size() > 1 && random_.Chance(0.5)) {
      const size_t d = random_.Below(to.size() - 1);
      to[d] *= to[d + 1];
      to.erase(to.begin() + static_cast<int64_t>(d) + 1);
    }
    for (size_t d = 0; d < to.size(); ++d) {
      for (const int64_t factor : {2, 3, 7}) {
        if (to[d] % factor != 0 || to.size() > 4 || !random_.Chance(0.4)) continue;
        to[d] /= factor;
        to.insert(to.begin() + static_cast<int64_t>(d), factor);
        return to;
      }
    }
    return to;
  }

  void Reduce(const Value& x) {
    const Ints from = shape(x);
    if (from.empty()) return;
    const int64_t axis = Between(0, static_cast<int64_t>(from.size()) - 1);
    const double extent = static_cast<double>(from[static_cast<size_t>(axis)]);
    const Attrs over{{"axes", Ints{axis}}, {"keepdims", Between(0, 1)}};
    switch (random_.Below(6)) {
      case 0: return Add("reduce_sum", {x.id}, x.magnitude * extent, false, over);
      case 1: return Add("reduce_mean", {x.id}, x.magnitude, false, over);
      case 2: return Add("reduce_max", {x.id}, x.magnitude, x.exact, over);
      case 3: return Add("softmax", {x.id}, 1, false, {{"axis", axis}});
      case 4: {
        const Ints normal(from.begin() + axis, from.end());
        return Add("layer_norm", {x.id, Weight(normal), Weight(normal)}, 4 + x.magnitude, false,
                   {{"axis", axis}, {"epsilon", 0.1}});
      }
      default: return Add("reduce_min", {x.id}, x.magnitude, x.exact, over);
    }
  }

  void Product(const Value& x) {
    const Ints from = shape(x);
    if (from.empty()) return;
    const double inner = static_cast<double>(from.back());
    if (from.size() == 1 || random_.Chance(0.6))
      return Add("dense", {x.id, Weight({from.back(), Between(1, 19)})}, x.magnitude * inner, false);
    if (random_.Chance(0.5)) {  // with itself, turned: scores
      Ints perm(from.size());
      std::iota(perm.begin(), perm.end(), 0);
      std::swap(perm.end()[-1], perm.end()[-2]);
      const size_t before = values_.size();
      Add("transpose", {x.id}, x.magnitude, x.exact, {{"perm", perm}});
      if (values_.size() == before) return;
      return Add("batch_matmul", {x.id, values_.back().id}, x.magnitude * x.magnitude * inner, false);
    }
    Ints other = from;
    other.end()[-2] = from.back();
    other.back() = Between(1, 9);
    Add("batch_matmul", {x.id, Weight(other)}, x.magnitude * inner, false);
  }

  void Image(const Value& x) {
    const Ints from = shape(x);
    if (from.size() != 4) return Move(x);
    const int64_t channels = from[3], kernel = Between(1, 3), pad = Between(0, kernel - 1);
    const Ints strides{Between(1, 2), Between(1, 2)}, pads{pad, pad, pad, pad}, window{kernel, kernel};
    const double taps = static_cast<double>(kernel * kernel);
    const Attrs moves{{"strides", strides}, {"pads", pads}};
    const Attrs pool{{"strides", strides}, {"pads", pads}, {"kernel", window}};
    switch (random_.Below(4)) {
      case 0: {
        const int weight = Weight({kernel, kernel, channels, Between(1, 17)});
        return Add("conv", {x.id, weight}, x.magnitude * taps * static_cast<double>(channels), false, moves);
      }
      case 1:
        return Add("depthwise_conv2d", {x.id, Weight({kernel, kernel, channels})}, x.magnitude * taps, false, moves);
      case 2: return Add("max_pool", {x.id}, x.magnitude, x.exact, pool);
      default: return Add("avg_pool", {x.id}, x.magnitude, false, pool);
    }
  }

  void AddOutputs() {
    const auto add = [&](int value) {
      graph_.outputs.push_back(value);
      graph_.output_names.push_back(absl::StrCat("y", graph_.outputs.size()));
    };
    const Uses uses(graph_);
    for (const Value& v : values_) {
      if (uses.consumers[static_cast<size_t>(v.id)].empty() || random_.Chance(0.05)) add(v.id);
    }
    const absl::Status compact = graph_.Compact();
    HONE_CHECK(compact.ok()) << compact.ToString();
  }

  Random random_;
  Graph graph_;
  std::vector<Value> values_;
};

std::optional<Graph> Compacted(Graph graph) {
  return graph.Compact().ok() && !graph.outputs.empty() ? std::optional(std::move(graph)) : std::nullopt;
}

// The graphs that are a little smaller.
std::vector<Graph> Smaller(const Graph& graph) {
  std::vector<Graph> found;
  const auto add = [&](Graph smaller) {
    if (std::optional<Graph> compacted = Compacted(std::move(smaller))) found.push_back(*std::move(compacted));
  };
  for (size_t o = 0; graph.outputs.size() > 1 && o < graph.outputs.size(); ++o) {
    Graph without = graph;
    without.outputs.erase(without.outputs.begin() + static_cast<int64_t>(o));
    without.output_names.erase(without.output_names.begin() + static_cast<int64_t>(o));
    add(std::move(without));
  }
  const Uses uses(graph);
  for (size_t o = 0; o < graph.outputs.size(); ++o) {  // what its node reads in place of an output
    const int n = uses.producer[static_cast<size_t>(graph.outputs[o])];
    for (const int input : n < 0 ? std::vector<int>() : graph.nodes[static_cast<size_t>(n)].inputs) {
      if (uses.producer[static_cast<size_t>(input)] < 0) continue;
      Graph shorter = graph;
      shorter.outputs[o] = input;
      add(std::move(shorter));
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const int result = graph.nodes[n].outputs[0];
    if (graph.type(result).dtype != kFloat32) continue;
    Graph without = graph;
    without.nodes.erase(without.nodes.begin() + static_cast<int64_t>(n));
    without.inputs.push_back(result);
    add(std::move(without));
  }
  return found;
}

}  // namespace

Graph RandomGraph(uint64_t seed) { return Maker(seed).Make(); }

Graph Shrunk(Graph graph, const std::function<bool(const Graph&)>& fails) {
  for (bool again = true; again;) {
    again = false;
    for (Graph& smaller : Smaller(graph)) {
      if (smaller.nodes.size() > graph.nodes.size() || !fails(smaller)) continue;
      graph = std::move(smaller);
      again = true;
      break;
    }
  }
  return graph;
}

}  // namespace hone
