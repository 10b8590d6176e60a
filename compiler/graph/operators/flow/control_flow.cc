// If, Loop and Scan: no control flow is left at run time. The graphs inside are put in their place, as often as they
// run.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kMostIterations = 1024;

// One of two tensors, or of each pair of elements. Of an optional value the one that is there.
absl::StatusOr<int> Choose(NodeContext& c, const Value& condition, int yes, int no) {
  if (yes == Sequences::kNothing || no == Sequences::kNothing) {
    c.graph().notes.push_back(
        absl::StrCat("Node \"", c.name(),
                     "\": of two branches one gives nothing; the bundle gives what the other does, "
                     "whatever the condition is."));
    return yes == Sequences::kNothing ? no : yes;
  }
  if (Sequences::IsSequence(yes) && Sequences::IsSequence(no)) {
    const std::vector<int> one = c.sequences().Elements(yes), other = c.sequences().Elements(no);
    if (one.size() != other.size())
      return Unsupported(absl::StrCat("its condition is computed at run time, and an output is a sequence of ",
                                      one.size(), " or ", other.size()));
    std::vector<int> chosen;
    for (size_t i = 0; i < one.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const int element, Choose(c, condition, one[i], other[i]));
      chosen.push_back(element);
    }
    return c.sequences().Add(std::move(chosen));
  }
  if (yes < 0 || no < 0) return Unsupported("an output of a branch is missing");
  if (!(c.type(yes) == c.type(no)))
    return Unsupported(absl::StrCat("its condition is computed at run time, and an output is ", ToText(c.type(yes)),
                                    " or ", ToText(c.type(no))));
  const Value chosen = Where(condition, Value(c, yes), Value(c, no));
  if (!chosen) return c.status();
  return chosen.id();
}

// Of each pair of values the first where the condition holds.
absl::StatusOr<std::vector<int>> ChooseAll(NodeContext& c, const Value& condition, const std::vector<int>& yes,
                                           const std::vector<int>& no) {
  std::vector<int> chosen;
  for (size_t i = 0; i < yes.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const int value, Choose(c, condition, yes[i], no[i]));
    chosen.push_back(value);
  }
  return chosen;
}

// A condition that is known chooses the branch; otherwise both are computed, and one's results are taken.
Outputs If(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  c.HasAttr("then_branch");
  c.HasAttr("else_branch");
  if (c.IsConstant(0)) {
    HONE_ASSIGN_OR_RETURN(const double condition, c.Number(0, "the condition"));
    return c.Inline(condition != 0 ? "then_branch" : "else_branch", {});
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<int> yes, c.Inline("then_branch", {}));
  HONE_ASSIGN_OR_RETURN(const std::vector<int> no, c.Inline("else_branch", {}));
  if (yes.size() != no.size()) return Unsupported("its branches differ in their number of outputs");
  return ChooseAll(c, Reshape(Input(c, 0), {}), yes, no);
}

// Parts stacked along a new first dimension, or another one.
Value Stack(const std::vector<Value>& parts, int64_t axis) {
  std::vector<Value> rows;
  for (const Value& part : parts) {
    std::vector<int64_t> shape = part.shape();
    shape.insert(shape.begin() + axis, 1);
    rows.push_back(Reshape(part, shape));
  }
  return Concat(rows, axis);
}

// How often a body is put in place.
struct Iterations {
  int64_t most = 0;
  bool exact = false;  // the model declares so many, whatever the conditions are
};
absl::StatusOr<Iterations> FindIterations(NodeContext& c, int carried) {
  const bool known_count = c.IsConstant(0), runs_on = !c.HasInput(1) || c.IsConstant(1);
  if (known_count && c.HasInput(1) && c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const double condition, c.Number(1, "the condition"));
    if (condition == 0) return Iterations{};
  }
  for (int i = carried; i < c.num_outputs() && !(known_count && !c.HasInput(1)); ++i) {
    const std::optional<std::vector<int64_t>> shape = c.DeclaredShape(i);
    if (shape.has_value() && !shape->empty()) {
      HONE_RETURN_IF_ERROR(c.ShapeInsteadOf(c.HasInput(0) ? 0 : 1, "the trip count", i).status());
      return Iterations{(*shape)[0], !known_count || !runs_on};
    }
  }
  if (!known_count) return Unsupported("the number of iterations is only known at run time");
  HONE_ASSIGN_OR_RETURN(const int64_t most, c.Int(0, "the trip count"));
  return Iterations{most, false};
}

// Inputs: trip count, condition, values carried along. The body takes iteration, condition, values; it gives the next
// condition, the values, and what is stacked up. Where a condition is computed at run time, all iterations are, and the
// values after the last one that counts are kept.
Outputs Loop(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(0, 1 << 16));
  c.HasAttr("body");
  const int carried = std::max(0, c.num_inputs() - 2);
  HONE_ASSIGN_OR_RETURN(const Iterations iterations, FindIterations(c, carried));
  if (iterations.most < 0 || iterations.most > kMostIterations)
    return Unsupported(absl::StrCat(iterations.most, " iterations; at most ", kMostIterations, " are unrolled"));
  std::vector<int> values;
  for (int i = 0; i < carried; ++i) values.push_back(c.input(i + 2));
  int condition = c.HasInput(1) ? c.input(1) : c.Scalar(kBool, 1);
  Value counts;  // whether this iteration does; false as a handle: it does
  std::vector<std::vector<Value>> stacked(static_cast<size_t>(std::max(0, c.num_outputs() - carried)));
  for (int64_t i = 0; i < iterations.most; ++i) {
    const Value holds = Reshape(Value(c, condition), {});
    if (!holds) return c.status();
    if (!holds.is_constant() && !iterations.exact) {
      if (!stacked.empty())
        return Unsupported("its condition is computed at run time, and with it the length of what it stacks up");
      counts = counts ? And(counts, holds) : holds;
    } else if (holds.is_constant() && c.graph().values[static_cast<size_t>(holds.id())].data->Get(0) == 0) {
      break;
    }
    NdArray iteration(kInt64, {});
    iteration.SetInt(0, i);
    std::vector<int> inputs{c.AddConstant(std::move(iteration)), condition};
    inputs.insert(inputs.end(), values.begin(), values.end());
    HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs, c.Inline("body", inputs));
    if (outputs.size() < static_cast<size_t>(carried) + 1 + stacked.size())
      return Unsupported("its body has too few outputs");
    condition = outputs[0];
    if (condition < 0) return Unsupported("its condition is no tensor");
    std::vector<int> next(outputs.begin() + 1, outputs.begin() + 1 + carried);
    if (counts) { HONE_ASSIGN_OR_RETURN(next, ChooseAll(c, counts, next, values)); }
    values = std::move(next);
    for (size_t k = 0; k < stacked.size(); ++k) {
      const int part = outputs[k + 1 + static_cast<size_t>(carried)];
      if (part < 0) return Unsupported("what it stacks up is no tensor");
      stacked[k].emplace_back(c, part);
    }
  }
  for (const std::vector<Value>& parts : stacked) {
    if (parts.empty()) return Unsupported("it runs no iteration, so nothing is known of what it stacks up");
    const Value whole = Stack(parts, 0);
    if (!whole) return c.status();
    values.push_back(whole.id());
  }
  return values;
}

// Inputs: states, then sequences of which each iteration gets one element; the body gives states and elements. Before
// operator set 9 lengths come first, and all inputs have a batch dimension.
struct ScanInputs {
  std::vector<int> states;
  std::vector<Value> sequences;
  std::vector<int64_t> axes;        // of each sequence, along which its elements lie
  std::vector<int64_t> directions;  // of each sequence: not 0 from its end
  int64_t steps = 0;

  // Of iteration `t`: the states there are, then an element of each sequence.
  absl::StatusOr<std::vector<int>> At(NodeContext& c, int64_t t, const std::vector<int>& now) const {
    std::vector<int> inputs = now;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const Value& sequence = sequences[i];
      if (sequence.dim(static_cast<int>(axes[i])) != steps) return Unsupported("sequences of different lengths");
      std::vector<int64_t> shape = sequence.shape();
      shape.erase(shape.begin() + axes[i]);
      const Value element = Reshape(Slice(sequence, axes[i], directions[i] != 0 ? steps - 1 - t : t, 1), shape);
      if (!element) return c.status();
      inputs.push_back(element.id());
    }
    return inputs;
  }
};

absl::StatusOr<ScanInputs> ReadScanInputs(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(0, 1 << 16));
  const int first = c.opset() < 9 ? 1 : 0;
  if (c.opset() < 9 && c.HasInput(0)) return Unsupported("lengths of sequences");
  const int scanned = static_cast<int>(c.IntAttr("num_scan_inputs", 1)), states = c.num_inputs() - first - scanned;
  if (scanned < 1 || states < 0) return Unsupported(absl::StrCat("num_scan_inputs is ", scanned));
  const std::vector<int64_t> zeros(static_cast<size_t>(scanned), 0);
  ScanInputs in;
  in.axes = c.IntsAttr("scan_input_axes", zeros);
  in.directions = c.IntsAttr(c.opset() < 9 ? "directions" : "scan_input_directions", zeros);
  if (in.axes.size() != zeros.size() || in.directions.size() != zeros.size())
    return Unsupported("axes or directions do not fit the inputs");
  for (int i = 0; i < states; ++i) in.states.push_back(c.input(first + i));
  for (int i = 0; i < scanned; ++i) in.sequences.push_back(Input(c, first + states + i));
  if (c.opset() < 9) {
    if (const int64_t batch = in.sequences[0].dim(0); batch != 1)
      return Unsupported(absl::StrCat("a batch of ", batch, " before operator set 9"));
    const auto without_batch = [](const Value& x) { return Reshape(x, {x.shape().begin() + 1, x.shape().end()}); };
    for (Value& sequence : in.sequences) sequence = without_batch(sequence);
    for (int& value : in.states) {
      const Value state = without_batch(Value(c, value));
      if (!state) return c.status();
      value = state.id();
    }
  }
  for (size_t i = 0; i < in.axes.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(in.axes[i], c.Axis(in.axes[i], in.sequences[i].rank()));
  }
  in.steps = in.sequences[0].dim(static_cast<int>(in.axes[0]));
  if (in.steps < 1 || in.steps > kMostIterations)
    return Unsupported(absl::StrCat(in.steps, " iterations; at most ", kMostIterations, " are unrolled"));
  return in;
}

// What the iterations gave for each output, stacked up as the attributes say.
Outputs StackOutputs(NodeContext& c, std::vector<std::vector<Value>> outputs, size_t declared) {
  const std::vector<int64_t> zeros(declared, 0);
  const std::vector<int64_t> axes = c.IntsAttr("scan_output_axes", zeros);
  const std::vector<int64_t> directions = c.IntsAttr("scan_output_directions", zeros);
  std::vector<int> values;
  for (size_t k = 0; k < outputs.size(); ++k) {
    std::vector<Value>& parts = outputs[k];
    if (k < directions.size() && directions[k] != 0) std::reverse(parts.begin(), parts.end());
    HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(k < axes.size() ? axes[k] : 0, parts[0].rank() + 1));
    const Value whole = Stack(parts, axis);
    if (!whole) return c.status();
    values.push_back(whole.id());
  }
  return values;
}

Outputs Scan(NodeContext& c) {
  c.HasAttr("body");
  HONE_ASSIGN_OR_RETURN(const ScanInputs in, ReadScanInputs(c));
  const size_t states = in.states.size();
  std::vector<int> values = in.states;
  std::vector<std::vector<Value>> stacked;
  for (int64_t t = 0; t < in.steps; ++t) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int> inputs, in.At(c, t, values));
    HONE_ASSIGN_OR_RETURN(const std::vector<int> results, c.Inline("body", inputs));
    if (results.size() < states) return Unsupported("its body has too few outputs");
    if (std::any_of(results.begin(), results.end(), [](int result) { return result < 0; }))
      return Unsupported("an output of its body is no tensor");
    values.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(states));
    stacked.resize(results.size() - states);
    for (size_t k = 0; k < stacked.size(); ++k) stacked[k].emplace_back(c, results[k + states]);
  }
  const int declared = std::max(0, c.num_outputs() - static_cast<int>(states));
  HONE_ASSIGN_OR_RETURN(const std::vector<int> whole,
                        StackOutputs(c, std::move(stacked), static_cast<size_t>(declared)));
  values.insert(values.end(), whole.begin(), whole.end());
  if (c.opset() < 9) {
    for (int& value : values) {
      std::vector<int64_t> shape = c.shape(value);
      shape.insert(shape.begin(), 1);
      HONE_ASSIGN_OR_RETURN(value, c.Reshape(value, shape));
    }
  }
  return values;
}

// Attention with graphs that change scores and probabilities.
Outputs FlexAttention(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  Value q = Input(c, 0), k = Input(c, 1), v = Input(c, 2);
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.dim(1) < 1 || q.dim(1) % k.dim(1) != 0)
    return Unsupported("query, key and value are not four-dimensional, or their heads do not fit");
  c.HasAttr("score_mod");
  c.HasAttr("prob_mod");
  const int64_t precision = c.IntAttr("softmax_precision", 1), times = q.dim(1) / k.dim(1);
  const std::optional<DType> type = OnnxDType(precision);
  if (!type.has_value() || !type->is_float())
    return Unsupported(absl::StrCat("softmax_precision is ", OnnxDTypeName(precision)));
  const DType wide = c.HasAttr("softmax_precision") ? *type : q.dtype() == DType::Float(64) ? q.dtype() : kFloat32;
  const auto repeat = [&](const Value& x) {
    const std::vector<int64_t> s = x.shape();
    if (times == 1) return x;
    return Reshape(Expand(Reshape(x, {s[0], s[1], 1, s[2], s[3]}), {s[0], s[1], times, s[2], s[3]}),
                   {s[0], s[1] * times, s[2], s[3]});
  };
  const double scale = c.FloatAttr("scale", 1 / std::sqrt(static_cast<double>(q.dim(3))));
  Value scores = Cast(MatMul(q, Transpose(repeat(k), {0, 1, 3, 2})) * scale, wide);
  const auto change = [&](std::string_view attr, const Value& x) -> absl::StatusOr<Value> {
    if (!c.HasAttr(attr) || !x) return x;
    HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs, c.Inline(attr, {x.id()}));
    if (outputs.size() != 1 || outputs[0] < 0 || !(c.type(outputs[0]) == c.type(x.id())))
      return Unsupported(absl::StrCat(std::string(attr), " does not give what it takes"));
    return Value(c, outputs[0]);
  };
  HONE_ASSIGN_OR_RETURN(scores, change("score_mod", scores));
  HONE_ASSIGN_OR_RETURN(const Value probabilities, change("prob_mod", Softmax(scores, 3)));
  return Results({MatMul(Cast(probabilities, v.dtype()), repeat(v))});
}

}  // namespace

HONE_OPERATORS(control_flow) {
  return {{.onnx = {{.name = "If", .since = 1, .import = If, .takes_sequences = true},
                    {.name = "Loop", .since = 1, .import = Loop, .takes_sequences = true},
                    {"Scan", 8, Scan},
                    {"FlexAttention", 1, FlexAttention, "ai.onnx.preview", true}}}};
}

}  // namespace hone
