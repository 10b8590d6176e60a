#include "compiler/graph/plan/group.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/graph/op.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

constexpr size_t kMostInGroup = 48;  // a longer chain is several kernels
constexpr int kMostAtOnce = 12;      // nodes looked at until a group has one output again

double FlopOf(const Graph& graph, const Node& node) {
  const OpInfo* info = FindOp(node.op);
  if (info->flop == nullptr) return 0;
  std::vector<TensorType> inputs, outputs;
  for (const int v : node.inputs) inputs.push_back(graph.type(v));
  for (const int v : node.outputs) outputs.push_back(graph.type(v));
  return info->flop(inputs, node.attrs, outputs);
}

class Grouper {
 public:
  Grouper(const Graph& graph, bool joins_attention)
      : graph_(graph), uses_(graph), joins_attention_(joins_attention), group_of_(graph.nodes.size(), -1) {}

  std::vector<Group> Fused() {
    std::vector<int> anchors;
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
      if (Kind(n) == OpKind::kAnchor) anchors.push_back(n);
    }
    std::vector<double> flop(graph_.nodes.size());
    for (const int n : anchors) flop[n] = FlopOf(graph_, graph_.nodes[n]);
    std::stable_sort(anchors.begin(), anchors.end(), [&](int a, int b) { return flop[a] > flop[b]; });
    for (const int n : anchors) {
      Start(n, n);
      Grow(n, /*moving=*/false);
    }
    for (const int n : anchors) AbsorbBeside(n);
    for (const int n : anchors) {
      if (FindOp(graph_.nodes[n].op)->reduces != Reduces::kNothing)
        Absorb(group_of_[n], graph_.nodes[n].inputs[0], /*moving=*/false);
      if (graph_.nodes[n].op == "conv") AbsorbLayout(n);
      if (graph_.nodes[n].op == "batch_matmul") AbsorbSlices(n);
      // The kernel of a product computes rows of an operand in the cache before it reads them; where it would have to
      // do so too often, it does it beforehand, as a kernel of its own would (tuner/space/sketches/rule_locate.cc).
      if (graph_.nodes[n].op == "dense") {
        for (const int value : graph_.nodes[n].inputs) Absorb(group_of_[n], value, /*moving=*/true);
      }
    }
    for (const int n : anchors) {
      if (graph_.nodes[n].op == "dense") JoinDepthwise(n);
      if (graph_.nodes[n].op == "batch_matmul" && joins_attention_) JoinAttention(n);
    }
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
      if (group_of_[n] >= 0 || !FindOp(graph_.nodes[n].op)->concatenates) continue;
      Start(n, -1);
      AbsorbSlices(n);
      Grow(n, /*moving=*/true);
    }
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
      if (group_of_[n] >= 0 || Kind(n) == OpKind::kView) continue;
      Start(n, -1);
      if (Kind(n) != OpKind::kOpaque) Grow(n, /*moving=*/true);
    }
    return Sorted();
  }

  std::vector<Group> Single() {
    for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
      if (Kind(n) != OpKind::kView) Start(n, Kind(n) == OpKind::kAnchor ? n : -1);
    }
    return groups_;
  }

 private:
  OpKind Kind(int n) const { return FindOp(graph_.nodes[n].op)->kind; }

  void Start(int node, int anchor) {
    group_of_[node] = static_cast<int>(groups_.size());
    groups_.push_back({{node}, anchor});
  }

  void Add(int node, int group) {
    group_of_[node] = group;
    groups_[group].nodes.push_back(node);
  }

  // Whether a node may follow inside a group whose value has this shape.
  bool MayFollow(int n, const std::vector<int64_t>& shape, bool moving) const {
    const Node& node = graph_.nodes[n];
    if (group_of_[n] >= 0 || node.outputs.size() != 1) return false;
    if (Kind(n) == OpKind::kElementwise) return graph_.type(node.outputs[0]).shape == shape;
    return moving && (node.op == "transpose" || node.op == "slice");
  }

  // Takes nodes that follow `from`, as long as they close to one output again.
  void Grow(int from, bool moving) {
    Group& group = groups_[group_of_[from]];
    if (graph_.nodes[from].outputs.size() != 1) return;
    int value = graph_.nodes[from].outputs[0];
    while (group.nodes.size() < kMostInGroup) {
      const std::optional<std::vector<int>> taken = NextSegment(value, moving);
      if (!taken.has_value()) return;
      for (const int n : *taken) Add(n, group_of_[from]);
      value = graph_.nodes[taken->back()].outputs[0];
    }
  }

  // The fewest nodes after which one value, the last node's, holds all that is needed of `value` later on.
  std::optional<std::vector<int>> NextSegment(int value, bool moving) const {
    if (uses_.is_output[value] || uses_.consumers[value].empty()) return std::nullopt;
    std::vector<int> taken;
    std::set<int> waiting(uses_.consumers[value].begin(), uses_.consumers[value].end());
    std::vector<int64_t> shape = graph_.type(value).shape;
    while (!waiting.empty() && static_cast<int>(taken.size()) < kMostAtOnce) {
      const int n = *waiting.begin();
      waiting.erase(waiting.begin());
      // A moving operator only as a segment of its own: its neighbours see another shape.
      const bool alone = taken.empty() && waiting.empty();
      if (!MayFollow(n, shape, moving && alone)) return std::nullopt;
      taken.push_back(n);
      const int result = graph_.nodes[n].outputs[0];
      if (waiting.empty()) return taken;  // every earlier value is read by taken nodes alone
      if (uses_.is_output[result]) return std::nullopt;
      waiting.insert(uses_.consumers[result].begin(), uses_.consumers[result].end());
    }
    return std::nullopt;
  }

  // Whether a node of no group makes the value, the group alone reads it, and there is room for the node.
  bool IsMadeForGroup(int group, int value) const {
    const int n = uses_.producer[value];
    return n >= 0 && group_of_[n] < 0 && !uses_.is_output[value] && groups_[group].nodes.size() < kMostInGroup &&
           std::ranges::all_of(uses_.consumers[value], [&](int consumer) { return group_of_[consumer] == group; });
  }

  // Takes the elementwise producers of a value that the group alone reads; with `moving` also the concatenation or
  // slice that they begin with.
  void Absorb(int group, int value, bool moving) {
    if (!IsMadeForGroup(group, value)) return;
    const int n = uses_.producer[value];
    const std::string& op = graph_.nodes[n].op;
    const bool elementwise = Kind(n) == OpKind::kElementwise;
    if (!elementwise && !(moving && (op == "concat" || op == "slice"))) return;
    Add(n, group);
    if (!elementwise) return;
    for (const int input : graph_.nodes[n].inputs) Absorb(group, input, moving);
  }

  // Takes what followers of the anchor read beside its value, where elementwise operators make it of one other value:
  // a residual that was dequantised, say. The kernel reads that value in its place.
  void AbsorbBeside(int anchor) {
    const int group = group_of_[anchor];
    const std::vector<int> nodes = groups_[group].nodes;
    for (size_t i = 1; i < nodes.size(); ++i) {
      const Node& follower = graph_.nodes[nodes[i]];
      for (const int value : follower.inputs) {
        if (graph_.type(value).shape == graph_.type(follower.outputs[0]).shape) AbsorbChain(group, value);
      }
    }
  }

  // Takes the elementwise operators behind one another that make a value of the group alone, each of one value beside
  // constants.
  void AbsorbChain(int group, int value) {
    while (IsMadeForGroup(group, value)) {
      const int n = uses_.producer[value];
      std::vector<int> reads = graph_.nodes[n].inputs;
      std::erase_if(reads, [&](int input) { return graph_.values[input].is_constant(); });
      if (Kind(n) != OpKind::kElementwise || reads.size() != 1) return;
      Add(n, group);
      value = reads[0];
    }
  }

  // Takes the change of layout in front of a convolution of few channels that pads, as networks have it at their input:
  // the padded copy is made anyway, and may as well be made from the image as it comes. With many channels their
  // elements would be gathered from far apart.
  void AbsorbLayout(int conv) {
    constexpr int64_t kFewChannels = 16;
    const Node& node = graph_.nodes[conv];
    const std::vector<int64_t> pads = IntsAttr(node.attrs, "pads");
    const bool copies = std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad > 0; });
    const int value = node.inputs[0], n = uses_.producer[value];
    if (!copies || n < 0 || group_of_[n] >= 0 || graph_.nodes[n].op != "transpose" || !IsReadOnce(value) ||
        graph_.type(value).shape.back() > kFewChannels) {
      return;
    }
    Add(n, group_of_[conv]);
  }

  // Takes the group of a depthwise convolution into that of the product that alone reads its pixels as rows (a
  // convolution of 1x1): the kernel computes some rows of the image where the product reads them, or all of them
  // beforehand, as a kernel of its own would (tuner/space/sketches/rule_inside.cc).
  void JoinDepthwise(int dense) {
    const int rows = graph_.nodes[dense].inputs[0];
    const std::optional<Front> front = FrontOf(rows);
    if (!front.has_value() || front->views.size() != 1) return;
    const std::vector<int64_t>& image = graph_.type(graph_.nodes[front->views[0]].inputs[0]).shape;
    if (OperatorOf(front->group) != "depthwise_conv2d" || graph_.type(rows).shape.back() != image.back()) return;
    Take(group_of_[dense], {*front});
  }

  // Takes what makes the left operand of a product of batches, where that is attention: a normalisation of rows, and
  // the product of batches whose rows it takes. The kernel computes some rows of all three at a time, or each
  // beforehand.
  void JoinAttention(int product) {
    const int weights = graph_.nodes[product].inputs[0];
    const std::optional<Front> rows = FrontOf(weights);
    if (!rows.has_value() || groups_[rows->group].anchor < 0 || !KeepDimensions(*rows)) return;
    const Node& normalises = graph_.nodes[groups_[rows->group].anchor];
    const int64_t last = static_cast<int64_t>(graph_.type(normalises.outputs[0]).shape.size()) - 1;
    if (FindOp(normalises.op)->reduces != Reduces::kAxis || IntAttr(normalises.attrs, "axis") != last ||
        graph_.type(normalises.inputs[0]).shape != graph_.type(normalises.outputs[0]).shape) {
      return;
    }
    for (const int n : groups_[rows->group].nodes) {
      for (const int value : graph_.nodes[n].inputs) {
        const std::optional<Front> scores = FrontOf(value);
        if (!scores.has_value() || OperatorOf(scores->group) != "batch_matmul" || !KeepDimensions(*scores)) continue;
        Take(group_of_[product], {*rows, *scores});
        return;
      }
    }
  }

  bool IsReadOnce(int value) const { return !uses_.is_output[value] && uses_.consumers[value].size() == 1; }
  std::string_view OperatorOf(int group) const {
    return groups_[group].anchor < 0 ? std::string_view() : graph_.nodes[groups_[group].anchor].op;
  }

  // The group that makes a value for one reader alone, and the views between, which are of no group.
  struct Front {
    int group;
    std::vector<int> views;
  };
  std::optional<Front> FrontOf(int value) const {
    Front front;
    for (;;) {
      const int n = uses_.producer[value];
      if (n < 0 || !IsReadOnce(value)) return std::nullopt;
      front.group = group_of_[n];
      if (front.group >= 0) {
        const bool is_last = *std::ranges::max_element(groups_[front.group].nodes) == n;
        return is_last ? std::optional(front) : std::nullopt;
      }
      if (Kind(n) != OpKind::kView) return std::nullopt;
      front.views.push_back(n);
      value = graph_.nodes[n].inputs[0];
    }
  }

  // Whether views add and drop dimensions of one element alone: rows behind others cannot be told apart from theirs.
  bool KeepDimensions(const Front& front) const {
    const auto longer = [&](int value) {
      std::vector<int64_t> shape = graph_.type(value).shape;
      std::erase(shape, 1);
      return shape;
    };
    return std::ranges::all_of(front.views, [&](int view) {
      return longer(graph_.nodes[view].inputs[0]) == longer(graph_.nodes[view].outputs[0]);
    });
  }

  // Takes whole groups with the views behind them, where there is room.
  void Take(int group, std::initializer_list<Front> fronts) {
    size_t nodes = groups_[group].nodes.size();
    for (const Front& front : fronts) nodes += groups_[front.group].nodes.size() + front.views.size();
    if (nodes > kMostInGroup) return;
    for (const Front& front : fronts) {
      std::vector<int> taken = std::exchange(groups_[front.group].nodes, {});
      taken.insert(taken.end(), front.views.begin(), front.views.end());
      for (const int n : taken) group_of_[n] = group;
      groups_[group].nodes.insert(groups_[group].nodes.end(), taken.begin(), taken.end());
    }
  }

  // Takes the slices that a product of batches or a concatenation reads: it reads those places of the whole.
  void AbsorbSlices(int reader) {
    for (const int value : graph_.nodes[reader].inputs) {
      const int n = uses_.producer[value];
      if (n < 0 || group_of_[n] >= 0 || graph_.nodes[n].op != "slice" || !IsReadOnce(value)) continue;
      Add(n, group_of_[reader]);
    }
  }

  // By the place of the last node: all a group needs is made by then.
  std::vector<Group> Sorted() {
    std::erase_if(groups_, [](const Group& group) { return group.nodes.empty(); });
    for (Group& group : groups_) std::sort(group.nodes.begin(), group.nodes.end());
    std::sort(groups_.begin(), groups_.end(),
              [](const Group& a, const Group& b) { return a.nodes.back() < b.nodes.back(); });
    return std::move(groups_);
  }

  const Graph& graph_;
  Uses uses_;
  bool joins_attention_;
  std::vector<int> group_of_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<Group> FormGroups(const Graph& graph, const PlanOptions& options) {
  Grouper grouper(graph, options.joins_attention);
  return options.fuse ? grouper.Fused() : grouper.Single();
}

}  // namespace hone
