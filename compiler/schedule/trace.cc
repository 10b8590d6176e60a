#include "compiler/schedule/trace.h"

#include <charconv>
#include <functional>
#include <map>
#include <utility>

#include "compiler/schedule/message.h"
#include "compiler/schedule/schedule.h"
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

// Prints arguments; how a ref is called is the caller's business.
class ArgumentPrinter {
 public:
  using RefName = std::function<std::string(int step, int output)>;
  explicit ArgumentPrinter(RefName name) : name_(std::move(name)) {}

  std::string operator()(const std::string& s) const { return QuotedText(s); }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return NumberText(v); }
  std::string operator()(bool v) const { return v ? "True" : "False"; }
  std::string operator()(const BlockRef& ref) const { return name_(ref.step, ref.output); }
  std::string operator()(const LoopRef& ref) const { return name_(ref.step, ref.output); }
  std::string operator()(const BlockOrLoop& ref) const { return std::visit(*this, ref); }
  std::string operator()(const Value& v) const {
    if (v.number() != nullptr && *v.number() != -1) return std::to_string(*v.number());  // a factor -1 is None
    if (v.ref() != nullptr) return name_(v.ref()->step, v.ref()->output);
    return "None";
  }
  std::string operator()(const Attr& v) const { return std::visit(*this, v); }
  std::string operator()(const IndexMap& map) const { return ToText(map); }
  std::string operator()(const BlockBuffer& b) const {
    return Message("(", b.kind == BufferKind::kRead ? "\"read\"" : "\"write\"", ", ", b.index, ")");
  }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return "[" + Joined(list) + "]";
  }
  template <class T>
  std::string Joined(const std::vector<T>& list) const {
    std::string text;
    for (const T& item : list) {
      if (!text.empty()) text += ", ";
      text += (*this)(item);
    }
    return text;
  }

 private:
  RefName name_;
};

template <class S>
constexpr bool kSpreads = requires {
  S::kSpread;
};

template <class S>
std::string CallText(const S& step, const ArgumentPrinter& print) {
  std::string args;
  if constexpr (kSpreads<S>) {
    args = print.Joined(step.*(std::get<0>(S::Fields()).member));
  } else {
    std::apply(
        [&](const auto&... field) {
          [[maybe_unused]] bool first = true;
          [[maybe_unused]] const auto add = [&](const auto& f) {
            if (!first) args += ", ";
            if (!first) args += std::string(f.name) + "=";
            args += print(step.*(f.member));
            first = false;
          };
          (add(field), ...);
        },
        S::Fields());
  }
  if (S::kInfo.version > 1) args += Message(args.empty() ? "" : ", ", "version=", S::kInfo.version);
  return Message("sch.", S::kInfo.name, "(", args, ")");
}

constexpr char kPrefix[] = {'x', 'b', 'l', 'v'};  // by OutputKind

// Two steps have the same text exactly when they are the same: refs are printed as numbers.
std::string PlainText(const Step& step) {
  const ArgumentPrinter print([](int s, int output) { return Message("s", s, ".", output); });
  return std::visit([&](const auto& s) { return CallText(s, print); }, step);
}

}  // namespace

std::string ToText(const Step& step) { return PlainText(step); }

std::string ToText(const Trace& trace) {
  std::vector<std::vector<std::string>> names;  // of the outputs of each step
  names.reserve(trace.steps.size());
  int count = 0;
  const ArgumentPrinter print([&](int step, int output) -> std::string {
    if (step < 0 || step >= static_cast<int>(names.size()) || output < 0 ||
        output >= static_cast<int>(names[step].size())) {
      return Message("s", step, "_", output);  // a ref to nothing: it parses as an unknown name
    }
    return names[step][output];
  });
  std::string text;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const std::string call = std::visit([&](const auto& s) { return CallText(s, print); }, trace.steps[i]);
    const OutputKind kind = std::visit([](const auto& s) { return s.kInfo.output; }, trace.steps[i]);
    std::vector<std::string> outputs;
    for (int k = 0; k < trace.outputs[i]; ++k)
      outputs.push_back(Message(std::string(1, kPrefix[static_cast<int>(kind)]), count++));
    for (size_t k = 0; k < outputs.size(); ++k) text += Message(k == 0 ? "" : ", ", outputs[k]);
    // One name unpacks a list of one; `b, = ` is how python says so.
    if (outputs.size() == 1 && std::visit([](const auto& s) { return GivesList(s); }, trace.steps[i])) text += ",";
    text += Message(outputs.empty() ? "" : " = ", call, "\n");
    names.push_back(std::move(outputs));
  }
  return text;
}

bool operator==(const Trace& a, const Trace& b) {
  if (a.outputs != b.outputs || a.steps.size() != b.steps.size()) return false;
  for (size_t i = 0; i < a.steps.size(); ++i) {
    if (a.steps[i].index() != b.steps[i].index() || PlainText(a.steps[i]) != PlainText(b.steps[i])) return false;
  }
  return true;
}

std::vector<Decision> Decisions(const Trace& trace) {
  std::vector<Decision> decisions;
  for (int i = 0; i < static_cast<int>(trace.steps.size()); ++i) {
    const Step& step = trace.steps[i];
    if (const auto* tile = std::get_if<SamplePerfectTileStep>(&step)) {
      decisions.push_back({i, tile->decision, {}, tile->max_innermost_factor, Decision::Kind::kPerfectTile});
    } else if (const auto* choice = std::get_if<SampleCategoricalStep>(&step)) {
      decisions.push_back({i, {choice->decision}, choice->candidates, 0, Decision::Kind::kCategorical});
    } else if (const auto* place = std::get_if<SampleComputeLocationStep>(&step)) {
      decisions.push_back({i, {place->decision}, {}, 0, Decision::Kind::kComputeLocation});
    }
  }
  return decisions;
}

Trace WithDecision(Trace trace, int step, const std::vector<int64_t>& values) {
  HONE_CHECK(step >= 0 && step < static_cast<int>(trace.steps.size())) << "no step " << step;
  Step& edited = trace.steps[step];
  if (auto* tile = std::get_if<SamplePerfectTileStep>(&edited)) {
    tile->decision = values;
    return trace;
  }
  HONE_CHECK(values.size() == 1) << "the decision of step " << step << " is one index";
  if (auto* choice = std::get_if<SampleCategoricalStep>(&edited)) {
    choice->decision = values[0];
  } else if (auto* place = std::get_if<SampleComputeLocationStep>(&edited)) {
    place->decision = values[0];
  } else {
    HONE_UNREACHABLE() << "step " << step << " has no decision: " << PlainText(edited);
  }
  return trace;
}

}  // namespace hone
