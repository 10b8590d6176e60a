#include "compiler/schedule/trace/trace.h"

#include <charconv>
#include <functional>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/primitives/sample_partitioned_tile.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/step_call.h"
#include "compiler/schedule/trace/step_compare.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

std::string NumberText(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;  // the shortest that reads back the same
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // "1" would read back as an integer
  return text;
}

std::string QuotedText(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

// The name of a ref in the text, which the caller chooses.
using RefName = std::function<std::string(int step, int output)>;

std::string LiteralText(const StepLiteral& literal, const RefName& name);

std::string Joined(const StepLiteral::List& list, const RefName& name) {
  std::string text;
  for (const StepLiteral& item : list) {
    if (!text.empty()) text += ", ";
    text += LiteralText(item, name);
  }
  return text;
}

std::string LiteralText(const StepLiteral& literal, const RefName& name) {
  struct Printer {
    const RefName& name;
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool v) const { return v ? "True" : "False"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return NumberText(v); }
    std::string operator()(const std::string& v) const { return QuotedText(v); }
    std::string operator()(const StepLiteral::Name& v) const { return v.text; }
    std::string operator()(const StepLiteral::Map& v) const { return v.text; }
    std::string operator()(const StepLiteral::Ref& v) const { return name(v.step, v.output); }
    std::string operator()(const std::shared_ptr<StepLiteral::List>& v) const {
      // What names a buffer is a pair: ("read", 0).
      const bool pair = v->size() == 2 && v->front().As<std::string>() != nullptr && v->back().As<int64_t>() != nullptr;
      return Message(pair ? "(" : "[", Joined(*v, name), pair ? ")" : "]");
    }
  };
  return std::visit(Printer{name}, literal.kind);
}

std::string CallText(const Step& step, const RefName& name) {
  const StepCall call = CallOf(step);
  std::string args;
  if (step.info().spreads_list) {
    args = Joined(*call.arguments[0].value.AsList(), name);
  } else {
    for (const StepCall::Argument& argument : call.arguments) {
      if (!args.empty()) args += Message(", ", argument.keyword, "=");  // the first by position
      args += LiteralText(argument.value, name);
    }
  }
  if (call.version > 1) args += Message(args.empty() ? "" : ", ", "version=", call.version);
  return Message("sch.", call.name, "(", args, ")");
}

constexpr char kPrefix[] = {'x', 'b', 'l', 'v'};  // by OutputKind

}  // namespace

std::string ToText(const Step& step) {
  return CallText(step, [](int s, int output) { return Message("s", s, ".", output); });
}

std::string ToText(const Trace& trace) {
  std::vector<std::vector<std::string>> names;  // of the outputs of each step
  names.reserve(trace.steps.size());
  int count = 0;
  const RefName name = [&](int step, int output) -> std::string {
    if (step < 0 || step >= static_cast<int>(names.size()) || output < 0 ||
        output >= static_cast<int>(names[step].size())) {
      return Message("s", step, "_", output);  // a ref to nothing: it parses as an unknown name
    }
    return names[step][output];
  };
  std::string text;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const std::string call = CallText(trace.steps[i], name);
    const OutputKind kind = trace.steps[i].info().output;
    std::vector<std::string> outputs;
    for (int k = 0; k < trace.outputs[i]; ++k)
      outputs.push_back(Message(std::string(1, kPrefix[static_cast<int>(kind)]), count++));
    for (size_t k = 0; k < outputs.size(); ++k) text += Message(k == 0 ? "" : ", ", outputs[k]);
    // One name unpacks a list of one; `b, = ` is how python says so.
    if (outputs.size() == 1 && trace.steps[i].info().gives_list) text += ",";
    text += Message(outputs.empty() ? "" : " = ", call, "\n");
    names.push_back(std::move(outputs));
  }
  return text;
}

bool operator==(const Trace& a, const Trace& b) {
  if (a.outputs != b.outputs || a.steps.size() != b.steps.size()) return false;
  for (size_t i = 0; i < a.steps.size(); ++i) {
    if (!SameStep(a.steps[i], b.steps[i])) return false;
  }
  return true;
}

std::vector<Decision> Decisions(const Trace& trace) {
  std::vector<Decision> decisions;
  for (int i = 0; i < static_cast<int>(trace.steps.size()); ++i) {
    const Step& step = trace.steps[i];
    if (const auto* tile = step.As<SamplePerfectTileStep>()) {
      decisions.push_back({i, tile->decision, {}, tile->max_innermost_factor, Decision::Kind::kPerfectTile});
    } else if (const auto* part = step.As<SamplePartitionedTileStep>()) {
      decisions.push_back({i, part->decision, {}, 0, Decision::Kind::kPerfectTile});
    } else if (const auto* choice = step.As<SampleCategoricalStep>()) {
      decisions.push_back({i, {choice->decision}, choice->candidates, 0, Decision::Kind::kCategorical});
    } else if (const auto* place = step.As<SampleComputeLocationStep>()) {
      decisions.push_back({i, {place->decision}, {}, 0, Decision::Kind::kComputeLocation});
    }
  }
  return decisions;
}

Trace WithDecision(Trace trace, int step, const std::vector<int64_t>& values) {
  HONE_CHECK(step >= 0 && step < static_cast<int>(trace.steps.size())) << "no step " << step;
  Step& edited = trace.steps[step];
  if (auto* tile = edited.Mutable<SamplePerfectTileStep>()) {
    tile->decision = values;
    return trace;
  }
  if (auto* part = edited.Mutable<SamplePartitionedTileStep>()) {
    part->decision = values;
    return trace;
  }
  HONE_CHECK(values.size() == 1) << "the decision of step " << step << " is one index";
  if (auto* choice = edited.Mutable<SampleCategoricalStep>()) {
    choice->decision = values[0];
  } else if (auto* place = edited.Mutable<SampleComputeLocationStep>()) {
    place->decision = values[0];
  } else {
    HONE_UNREACHABLE() << "step " << step << " has no decision: " << ToText(edited);
  }
  return trace;
}

}  // namespace hone
