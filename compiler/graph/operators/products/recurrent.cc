// RNN, GRU and LSTM, unrolled over time.
#include <functional>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kMostSteps = 512;

// One activation by ONNX's name; alpha and beta have the operators' own defaults.
Value Activate(const Value& x, const std::string& name) {
  if (name == "Sigmoid") return Sigmoid(x);
  if (name == "Tanh") return Tanh(x);
  if (name == "Relu") return Apply("relu", {x});
  if (name == "LeakyRelu") return Apply("leaky_relu", {x}, {{"alpha", 0.01}});
  if (name == "HardSigmoid") return Apply("hard_sigmoid", {x}, {{"alpha", 0.2}, {"beta", 0.5}});
  if (name == "Elu") return Apply("elu", {x}, {{"alpha", 1.0}});
  if (name == "Softsign") return x / (Abs(x) + 1);
  if (name == "Softplus") return Apply("softplus", {x});
  return x ? Fail(x.context(), Unsupported(absl::StrCat("activation \"", name, "\""))) : Value();
}

struct Cell {
  NodeContext* c = nullptr;
  int64_t hidden = 0;
  std::vector<std::string> activations;  // of this direction
  double clip = 0;                       // 0: none
  Value w, r, wb, rb, p;                 // [gates * hidden, inputs], [gates * hidden, hidden], [gates * hidden] or none

  Value F(int i, const Value& x) const {
    return Activate(clip > 0 ? Clip(x, -clip, clip) : x, activations[static_cast<size_t>(i)]);
  }
  // Gate `i` of [batch, gates * hidden].
  Value Gate(const Value& all, int i) const { return Slice(all, 1, i * hidden, hidden); }
  Value Bias(const Value& b, int i) const { return Slice(b, 0, i * hidden, hidden); }
};

// x W' + Wb, which waits for no state and is one product for all steps, and h R' + Rb.
Value FromInput(const Cell& cell, const Value& x) {
  const Value y = MatMul(x, Transpose(cell.w, {1, 0}));
  return cell.wb ? y + cell.wb : y;
}
Value FromState(const Cell& cell, const Value& h) {
  const Value y = MatMul(h, Transpose(cell.r, {1, 0}));
  return cell.rb ? y + cell.rb : y;
}

struct State {
  Value h, c;
};

State RnnStep(const Cell& cell, const Value& from_x, const State& s) {
  return {cell.F(0, from_x + FromState(cell, s.h)), {}};
}

// Gates z, r, h. `linear_before_reset`: the state goes through its matrix before the reset gate is applied.
State GruStep(const Cell& cell, const Value& from_x, const State& s, bool linear_before_reset) {
  const Value from_h = FromState(cell, s.h);
  const Value z = cell.F(0, cell.Gate(from_x, 0) + cell.Gate(from_h, 0));
  const Value r = cell.F(0, cell.Gate(from_x, 1) + cell.Gate(from_h, 1));
  Value seen;
  if (linear_before_reset) {
    seen = r * cell.Gate(from_h, 2);
  } else {
    seen = MatMul(r * s.h, Transpose(Slice(cell.r, 0, 2 * cell.hidden, cell.hidden), {1, 0}));
    if (cell.rb) seen = seen + cell.Bias(cell.rb, 2);
  }
  const Value h = cell.F(1, cell.Gate(from_x, 2) + seen);
  return {(1 - z) * h + z * s.h, {}};
}

// Gates i, o, f, c; peepholes i, o, f. `input_forget`: the forget gate is what the input gate leaves.
State LstmStep(const Cell& cell, const Value& from_x, const State& s, bool input_forget) {
  const Value gates = from_x + FromState(cell, s.h);
  const auto peep = [&](const Value& gate, const Value& state, int i) {
    return cell.p ? gate + cell.Bias(cell.p, i) * state : gate;
  };
  const Value i = cell.F(0, peep(cell.Gate(gates, 0), s.c, 0));
  const Value f = input_forget ? 1 - i : cell.F(0, peep(cell.Gate(gates, 2), s.c, 2));
  const Value c = f * s.c + i * cell.F(1, cell.Gate(gates, 3));
  const Value o = cell.F(0, peep(cell.Gate(gates, 1), c, 1));
  // The threshold is for what goes into the gates; the state is taken as it is, as ONNX Runtime does.
  return {o * Activate(c, cell.activations[2]), c};
}

using Step = std::function<State(const Cell&, const Value& from_x, const State&)>;  // from_x [batch, gates * hidden]

// What the operators have in common. x [T, N, inputs], w [directions, gates * hidden, inputs], r, b [directions, 2 *
// gates * hidden], lengths [N], states [directions, N, hidden], p [directions, 3 * hidden]. layout 1: the batch comes
// first.
struct Recurrence {
  int gates = 1;
  bool has_cell = false;  // a state besides h
  std::vector<std::string> activations;
  std::string direction;
  int64_t directions = 1, steps = 0, batch = 0, hidden = 0;
  Value x, lengths;  // of lengths none: all are whole

  bool Backwards(int64_t d) const { return direction == "reverse" || d == 1; }
};

// Unsupported where operands or attributes do not fit. `usual`: the activations of one direction.
absl::StatusOr<Recurrence> ReadRecurrence(NodeContext& c, int gates, const std::vector<std::string>& usual,
                                          bool has_cell) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, has_cell ? 8 : 6));
  Recurrence r{.gates = gates, .has_cell = has_cell};
  r.x = Input(c, 0);
  if (r.x.rank() != 3) return Unsupported(absl::StrCat("a sequence ", ToText(c.type(r.x.id()))));
  if (c.IntAttr("layout", 0) != 0) r.x = Transpose(r.x, {1, 0, 2});
  r.direction = c.StringAttr("direction", "forward");
  if (r.direction != "forward" && r.direction != "reverse" && r.direction != "bidirectional")
    return Unsupported(absl::StrCat("direction is \"", r.direction, "\""));
  r.directions = r.direction == "bidirectional" ? 2 : 1;
  r.steps = r.x.dim(0);
  r.batch = r.x.dim(1);
  r.hidden = c.IntAttr("hidden_size", Input(c, 2).dim(-1));
  if (Input(c, 1).shape() != std::vector<int64_t>{r.directions, gates * r.hidden, r.x.dim(2)} ||
      Input(c, 2).shape() != std::vector<int64_t>{r.directions, gates * r.hidden, r.hidden})
    return Unsupported(absl::StrCat("weights ", ToText(c.type(c.input(1))), " and ", ToText(c.type(c.input(2)))));
  if (r.steps < 1 || r.steps > kMostSteps)
    return Unsupported(absl::StrCat(r.steps, " steps; at most ", kMostSteps, " are unrolled"));
  if (c.HasAttr("activation_alpha") || c.HasAttr("activation_beta"))
    return Unsupported("activation_alpha and activation_beta");
  r.activations = c.StringsAttr("activations");
  if (r.activations.empty()) {
    for (int64_t d = 0; d < r.directions; ++d) r.activations.insert(r.activations.end(), usual.begin(), usual.end());
  }
  if (r.activations.size() != usual.size() * static_cast<size_t>(r.directions))
    return Unsupported(absl::StrCat(r.activations.size(), " activations"));
  if (c.HasInput(4)) r.lengths = Reshape(Cast(Input(c, 4), kInt64), {r.batch, 1});
  return r;
}

// The weights and biases of one direction.
Cell CellOf(NodeContext& c, const Recurrence& r, int64_t d) {
  const int64_t rows = r.gates * r.hidden;
  const auto part = [&](int i, std::vector<int64_t> shape) {
    return Reshape(Slice(Input(c, i), 0, d, 1), std::move(shape));
  };
  const auto activations = static_cast<int64_t>(r.activations.size()) / r.directions;
  Cell cell;
  cell.c = &c;
  cell.hidden = r.hidden;
  cell.activations.assign(r.activations.begin() + d * activations, r.activations.begin() + (d + 1) * activations);
  cell.clip = c.FloatAttr("clip", 0);
  cell.w = part(1, {rows, r.x.dim(2)});
  cell.r = part(2, {rows, r.hidden});
  if (c.HasInput(3)) {
    const Value both = part(3, {2 * rows});
    cell.wb = Slice(both, 0, 0, rows);
    cell.rb = Slice(both, 0, rows, rows);
  }
  if (r.has_cell && c.HasInput(7)) cell.p = part(7, {3 * r.hidden});
  return cell;
}

// Input `i`'s state of one direction, zeros where there is none.
Value InitialState(NodeContext& c, const Recurrence& r, int i, int64_t d) {
  if (!c.HasInput(i)) return Expand(Constant(c, r.x.dtype(), 0), {r.batch, r.hidden});
  const Value all = c.IntAttr("layout", 0) != 0 ? Transpose(Input(c, i), {1, 0, 2}) : Input(c, i);
  return Reshape(Slice(all, 0, d, 1), {r.batch, r.hidden});
}

// One direction, step by step. `state` becomes the last; the outputs are [T, 1, batch, hidden].
absl::StatusOr<Value> Unroll(NodeContext& c, const Recurrence& r, int64_t d, const Step& step, State& state) {
  const Cell cell = CellOf(c, r, d);
  const Value from_x = FromInput(cell, Reshape(r.x, {r.steps * r.batch, r.x.dim(2)}));
  std::vector<Value> outputs(static_cast<size_t>(r.steps));
  for (int64_t n = 0; n < r.steps; ++n) {
    const int64_t t = r.Backwards(d) ? r.steps - 1 - n : n;
    State next = step(cell, Slice(from_x, 0, t * r.batch, r.batch), state);
    Value output = next.h;
    if (r.lengths) {  // beyond its end a sequence leaves the state and gives 0
      const Value inside = Constant(c, kInt64, static_cast<double>(t)) < r.lengths;
      output = Where(inside, next.h, Number(r.x, 0));
      next.h = Where(inside, next.h, state.h);
      if (r.has_cell) next.c = Where(inside, next.c, state.c);
    }
    state = next;
    outputs[static_cast<size_t>(t)] = Reshape(output, {1, 1, r.batch, r.hidden});
    HONE_RETURN_IF_ERROR(c.status());
  }
  return Concat(outputs, 0);
}

Outputs Recurrent(NodeContext& c, int gates, const std::vector<std::string>& usual, bool has_cell, const Step& step) {
  HONE_ASSIGN_OR_RETURN(const Recurrence r, ReadRecurrence(c, gates, usual, has_cell));
  std::vector<Value> all, last_h, last_c;  // each [.., 1, batch, hidden]
  for (int64_t d = 0; d < r.directions; ++d) {
    State state{InitialState(c, r, 5, d), has_cell ? InitialState(c, r, 6, d) : Value()};
    HONE_ASSIGN_OR_RETURN(const Value outputs, Unroll(c, r, d, step, state));
    all.push_back(outputs);
    last_h.push_back(Reshape(state.h, {1, r.batch, r.hidden}));
    if (has_cell) last_c.push_back(Reshape(state.c, {1, r.batch, r.hidden}));
  }
  Value y = Concat(all, 1), h = Concat(last_h, 0), cell_state = has_cell ? Concat(last_c, 0) : Value();
  if (c.IntAttr("layout", 0) != 0) {
    y = Transpose(y, {2, 0, 1, 3});
    h = Transpose(h, {1, 0, 2});
    if (has_cell) cell_state = Transpose(cell_state, {1, 0, 2});
  }
  return Results({y, h, cell_state});
}

Outputs Rnn(NodeContext& c) { return Recurrent(c, 1, {"Tanh"}, false, RnnStep); }
Outputs Gru(NodeContext& c) {
  const bool linear = c.IntAttr("linear_before_reset", 0) != 0;
  return Recurrent(c, 3, {"Sigmoid", "Tanh"}, false, [linear](const Cell& cell, const Value& from_x, const State& s) {
    return GruStep(cell, from_x, s, linear);
  });
}
Outputs Lstm(NodeContext& c) {
  const bool coupled = c.IntAttr("input_forget", 0) != 0;
  return Recurrent(
      c, 4, {"Sigmoid", "Tanh", "Tanh"}, true,
      [coupled](const Cell& cell, const Value& from_x, const State& s) { return LstmStep(cell, from_x, s, coupled); });
}

}  // namespace

HONE_OPERATORS(recurrent) {
  return {{.onnx = {{"RNN", 7, Rnn, "", true}, {"GRU", 7, Gru, "", true}, {"LSTM", 7, Lstm, "", true}}}};
}

}  // namespace hone
