#include "compiler/schedule/trace/step_call.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// ---- From fields to literals ----

StepLiteral LiteralOf(const std::string& v) { return v; }
StepLiteral LiteralOf(int64_t v) { return v; }
StepLiteral LiteralOf(double v) { return v; }
StepLiteral LiteralOf(bool v) { return v; }
StepLiteral LiteralOf(const BlockRef& v) { return StepLiteral::Ref{v.step, v.output}; }
StepLiteral LiteralOf(const LoopRef& v) { return StepLiteral::Ref{v.step, v.output}; }
StepLiteral LiteralOf(const BlockOrLoop& v) {
  return std::visit([](const auto& ref) { return LiteralOf(ref); }, v);
}
StepLiteral LiteralOf(const Value& v) {
  if (v.ref() != nullptr) return StepLiteral::Ref{v.ref()->step, v.ref()->output};
  if (v.number() != nullptr && *v.number() != -1) return *v.number();  // a factor -1 is None
  return StepLiteral();
}
StepLiteral LiteralOf(const IndexMap& v) { return StepLiteral::Map{ToText(v)}; }
StepLiteral LiteralOf(const BlockBuffer& v) {
  return StepLiteral::Of({std::string(v.kind == BufferKind::kRead ? "read" : "write"), int64_t{v.index}});
}
StepLiteral LiteralOf(const PadValue& v) {
  if (!v.has_value()) return StepLiteral();
  return std::visit([](const auto& number) { return LiteralOf(number); }, *v);
}
StepLiteral LiteralOf(const Attr& v);
template <class T>
StepLiteral LiteralOf(const std::vector<T>& list) {
  StepLiteral::List items;
  items.reserve(list.size());
  for (const T& item : list) items.push_back(LiteralOf(item));
  return StepLiteral::Of(std::move(items));
}
StepLiteral LiteralOf(const Attr& v) {
  return std::visit([](const auto& value) { return LiteralOf(value); }, v);
}

// ---- From literals to fields ----

std::string KindOf(const StepLiteral& value) {
  static constexpr std::string_view kKinds[] = {"None",   "a bool",   "an integer", "a number", "a string",
                                                "a name", "a lambda", "an output",  "a list"};
  if (const StepLiteral::Name* name = value.As<StepLiteral::Name>()) return name->text;
  return std::string(kKinds[value.kind.index()]);
}

// What a field may be follows from its type.
class ArgumentReader {
 public:
  ArgumentReader(const RefScope& scope, std::string where) : scope_(scope), where_(std::move(where)) {}

  absl::Status Read(const StepLiteral& value, std::string& out) const {
    const std::string* s = value.As<std::string>();
    if (s == nullptr) return Expected("a string", value);
    out = *s;
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, int64_t& out) const {
    if (const int64_t* v = value.As<int64_t>()) {
      out = *v;
      return absl::OkStatus();
    }
    if (const bool* v = value.As<bool>()) {
      out = *v ? 1 : 0;
      return absl::OkStatus();
    }
    return Expected("an integer", value);
  }
  absl::Status Read(const StepLiteral& value, double& out) const {
    if (const int64_t* v = value.As<int64_t>()) {
      out = static_cast<double>(*v);
    } else if (const double* d = value.As<double>()) {
      out = *d;
    } else {
      return Expected("a number", value);
    }
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, bool& out) const {
    int64_t number = 0;
    if (!Read(value, number).ok()) return Expected("True or False", value);
    out = number != 0;
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, BlockRef& out) const {
    HONE_ASSIGN_OR_RETURN(const RefScope::Place ref, Find(value, OutputKind::kBlock, "a block"));
    out = {ref.step, ref.output};
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, LoopRef& out) const {
    HONE_ASSIGN_OR_RETURN(const RefScope::Place ref, Find(value, OutputKind::kLoop, "a loop"));
    out = {ref.step, ref.output};
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, BlockOrLoop& out) const {
    if (const absl::StatusOr<RefScope::Place> block = Find(value, OutputKind::kBlock, "a block"); block.ok()) {
      out = BlockRef{block->step, block->output};
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const RefScope::Place loop, Find(value, OutputKind::kLoop, "a block or a loop"));
    out = LoopRef{loop.step, loop.output};
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, Value& out) const {
    if (value.As<std::monostate>() != nullptr) {
      out = Value();
    } else if (const int64_t* number = value.As<int64_t>()) {
      out = *number;
    } else {
      HONE_ASSIGN_OR_RETURN(const RefScope::Place ref,
                            Find(value, OutputKind::kValue, "a number, None or a sampled number"));
      out = ValueRef{ref.step, ref.output};
    }
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, PadValue& out) const {
    int64_t integer = 0;
    double number = 0;
    if (value.As<std::monostate>() != nullptr) {
      out = std::nullopt;
    } else if (Read(value, integer).ok()) {
      out = integer;
    } else if (Read(value, number).ok()) {
      out = number;
    } else {
      return Expected("a number or None", value);
    }
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, Attr& out) const {
    if (const int64_t* v = value.As<int64_t>()) {
      out = *v;
    } else if (const bool* b = value.As<bool>()) {
      out = int64_t{*b};
    } else if (const double* d = value.As<double>()) {
      out = *d;
    } else if (const std::string* s = value.As<std::string>()) {
      out = *s;
    } else if (const StepLiteral::List* items = value.AsList()) {
      if (!items->empty() && items->front().As<std::string>() != nullptr) {
        std::vector<std::string> texts;
        HONE_RETURN_IF_ERROR(Read(value, texts));
        out = std::move(texts);
      } else {
        std::vector<int64_t> numbers;
        HONE_RETURN_IF_ERROR(Read(value, numbers));
        out = std::move(numbers);
      }
    } else {
      return Expected("a literal", value);
    }
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, IndexMap& out) const {
    const StepLiteral::Map* lambda = value.As<StepLiteral::Map>();
    if (lambda == nullptr) return Expected("a lambda", value);
    absl::StatusOr<IndexMap> map = ParseIndexMap(lambda->text);
    if (!map.ok()) return Annotate(map.status(), where_);
    out = *std::move(map);
    return absl::OkStatus();
  }
  absl::Status Read(const StepLiteral& value, BlockBuffer& out) const {
    const StepLiteral::List* pair = value.AsList();
    const std::string* kind = pair != nullptr && pair->size() == 2 ? pair->front().As<std::string>() : nullptr;
    const int64_t* index = kind != nullptr ? pair->back().As<int64_t>() : nullptr;
    if (index == nullptr || (*kind != "read" && *kind != "write") || *index < 0 || *index > 1000) {
      return Expected("(\"read\", 0) or (\"write\", 0)", value);
    }
    out = {*kind == "read" ? BufferKind::kRead : BufferKind::kWrite, static_cast<int>(*index)};
    return absl::OkStatus();
  }
  template <class T>
  absl::Status Read(const StepLiteral& value, std::vector<T>& out) const {
    const StepLiteral::List* list = value.AsList();
    if (list == nullptr) return Expected("a list", value);
    out.clear();
    for (const StepLiteral& item : *list) {
      T one{};
      HONE_RETURN_IF_ERROR(Read(item, one));
      out.push_back(std::move(one));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Expected(std::string_view what, const StepLiteral& found) const {
    return Invalid(where_, ": found ", KindOf(found), ", expected ", what);
  }
  absl::StatusOr<RefScope::Place> Find(const StepLiteral& value, OutputKind kind, std::string_view what) const {
    if (value.As<StepLiteral::Name>() == nullptr && value.As<StepLiteral::Ref>() == nullptr)
      return Expected(what, value);
    const absl::StatusOr<RefScope::Place> place = scope_.Find(value);
    if (!place.ok()) return Annotate(place.status(), where_);
    if (place->kind != kind) {
      static constexpr std::string_view kKinds[] = {"nothing", "a block", "a loop", "a number"};
      return Invalid(where_, ": ", KindOf(value), " is ", kKinds[static_cast<int>(place->kind)], ", expected ", what);
    }
    return *place;
  }

  const RefScope& scope_;
  std::string where_;
};

template <class T>
constexpr bool kNeeded = std::is_same_v<T, BlockRef> || std::is_same_v<T, LoopRef> || std::is_same_v<T, BlockOrLoop>;

// Arguments of TVM's dialect that no step of ours has: whether the value asks for what we do anyway; any other would
// change what the step means. Absent: there is no such argument in the dialect.
std::optional<bool> AsksForNothing(std::string_view keyword, const StepLiteral& value) {
  const bool none = value.As<std::monostate>() != nullptr;
  const bool* flag = value.As<bool>();
  const int64_t* number = value.As<int64_t>();
  const StepLiteral::List* list = value.AsList();
  if (keyword == "preserve_unit_iters") return flag != nullptr && *flag;
  if (keyword == "disable_predication") return flag != nullptr && !*flag;
  if (keyword == "assume_injective_transform") return flag != nullptr;  // an index map is checked to be one
  if (keyword == "index") return number != nullptr && *number == -1;    // where among the siblings: the last place
  if (keyword == "consumer_blocks") return none || (list != nullptr && list->empty());
  return std::nullopt;
}

// Whether the step means nothing without the argument.
bool IsNeeded(const MutableStepArgument& argument) {
  return std::holds_alternative<BlockRef*>(argument.value) || std::holds_alternative<LoopRef*>(argument.value) ||
         std::holds_alternative<BlockOrLoop*>(argument.value) || std::holds_alternative<IndexMap*>(argument.value);
}

// Gives a step's arguments what the call says: by keyword, or the next by position.
class CallReader {
 public:
  CallReader(const StepCall& call, const StepInfo& info, const RefScope& scope, std::string_view where)
      : call_(call), info_(info), scope_(scope), line_(Message(where, ": ", info.name)), used_(call.arguments.size()) {}

  absl::Status Read(const MutableStepArgument& argument) {
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      if (call_.arguments[i].keyword == argument.name && !used_[i]) return Take(i, argument);
    }
    if (info_.spreads_list && (call_.arguments.empty() || call_.arguments[0].value.AsList() == nullptr)) {
      return TakeAllAsList(argument);
    }
    if (next_ < call_.arguments.size() && call_.arguments[next_].keyword.empty()) return Take(next_++, argument);
    if (IsNeeded(argument)) return Invalid(line_, ": the argument ", argument.name, " is missing");
    return absl::OkStatus();
  }

  // What no argument took may ask for what the step does anyway.
  absl::Status CheckRest() const {
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      const std::string& keyword = call_.arguments[i].keyword;
      if (used_[i]) continue;
      const std::optional<bool> nothing = AsksForNothing(keyword, call_.arguments[i].value);
      if (nothing.has_value() && *nothing) continue;
      if (nothing.has_value()) {
        return Invalid(line_, ": the argument ", keyword, " is supported with its default alone");
      }
      return Invalid(line_, ": there is no argument ", keyword.empty() ? Message("number ", i + 1) : keyword);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Take(size_t i, const MutableStepArgument& argument) {
    used_[i] = true;
    return Give(call_.arguments[i].value, argument);
  }
  absl::Status TakeAllAsList(const MutableStepArgument& argument) {
    StepLiteral::List list;
    for (size_t i = 0; i < call_.arguments.size(); ++i) {
      if (!call_.arguments[i].keyword.empty()) continue;
      used_[i] = true;
      list.push_back(call_.arguments[i].value);
    }
    return Give(StepLiteral::Of(std::move(list)), argument);
  }
  absl::Status Give(const StepLiteral& value, const MutableStepArgument& argument) {
    const ArgumentReader reader(scope_, Message(line_, ", argument ", argument.name));
    return std::visit([&](auto* out) { return reader.Read(value, *out); }, argument.value);
  }

  const StepCall& call_;
  const StepInfo& info_;
  const RefScope& scope_;
  const std::string line_;  // what messages begin with
  std::vector<bool> used_;  // of the call's arguments
  size_t next_ = 0;         // by position
};

}  // namespace

absl::Status CheckVersion(const StepInfo& info, int64_t version, std::string_view where) {
  if (version > info.version) {
    return Invalid(where, ": ", info.name, ": the step has version ", version, ", this release knows up to ",
                   info.version, "; use a newer release");
  }
  if (version < info.oldest) {
    return Invalid(where, ": ", info.name, ": the step has version ", version, ", this release replays ", info.oldest,
                   " and later: what it does has changed since; schedule or tune the workload again");
  }
  return absl::OkStatus();
}

StepCall CallOf(const Step& step) {
  StepCall call{.name = std::string(step.info().name), .version = step.info().version, .arguments = {}};
  for (const StepArgument& argument : step.arguments()) {
    // A step without a pad value reads as it did before there were any.
    const auto* pad_value = std::get_if<const PadValue*>(&argument.value);
    if (pad_value != nullptr && !(*pad_value)->has_value()) continue;
    call.arguments.push_back(
        {std::string(argument.name), std::visit([](const auto* value) { return LiteralOf(*value); }, argument.value)});
  }
  return call;
}

absl::StatusOr<Step> StepOf(const StepCall& call, const RefScope& scope, std::string_view where) {
  const Primitive* primitive = FindPrimitive(call.name);
  if (primitive == nullptr) return Invalid(where, ": there is no primitive ", call.name);
  HONE_RETURN_IF_ERROR(CheckVersion(*primitive->info, call.version, where));
  Step step = primitive->make();
  CallReader reader(call, *primitive->info, scope, where);
  for (const MutableStepArgument& argument : step.MutableArguments()) HONE_RETURN_IF_ERROR(reader.Read(argument));
  HONE_RETURN_IF_ERROR(reader.CheckRest());
  return step;
}

absl::StatusOr<int> OutputsOf(const Step& step, int outputs, std::string_view where) {
  const StepInfo& info = step.info();
  if (info.output == OutputKind::kNone && outputs > 0) {
    return Invalid(where, ": ", info.name, " gives nothing, not ", outputs);
  }
  if (info.output == OutputKind::kNone || info.gives_list) return outputs;
  if (outputs > 1) return Invalid(where, ": ", info.name, " gives one thing, not ", outputs);
  return 1;  // a result without a name is still one
}

absl::Status CheckStepCount(size_t steps) {
  if (steps <= kMostTraceSteps) return absl::OkStatus();
  return Invalid("the trace has ", steps, " steps, and at most ", kMostTraceSteps,
                 " are replayed; leave out those that change nothing");
}

absl::StatusOr<RefScope::Place> TraceScope::Find(const StepLiteral& literal) const {
  const StepLiteral::Ref* ref = literal.As<StepLiteral::Ref>();
  if (ref == nullptr) return Invalid("a name, where outputs have numbers");
  const int steps = static_cast<int>(trace_.steps.size());
  if (ref->step < 0 || ref->step >= steps || ref->output < 0 || ref->output >= trace_.outputs[ref->step]) {
    return Invalid("there is no output ", ref->output, " of step ", ref->step, " above");
  }
  return Place{trace_.steps[ref->step].info().output, ref->step, ref->output};
}

}  // namespace hone
