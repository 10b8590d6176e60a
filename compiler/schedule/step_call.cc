#include "compiler/schedule/step_call.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "compiler/schedule/message.h"
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

template <class S>
constexpr bool kSpreads = requires {
  S::kSpread;
};

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
  if (keyword == "pad_value") return none;
  if (keyword == "consumer_blocks") return none || (list != nullptr && list->empty());
  return std::nullopt;
}

template <class S>
absl::StatusOr<Step> ReadStep(const StepCall& call, const RefScope& scope, std::string_view where) {
  S step;
  const std::string line = Message(where, ": ", S::kInfo.name);
  HONE_RETURN_IF_ERROR(CheckVersion(S::kInfo, call.version, where));
  size_t next = 0;  // the next argument by position
  std::vector<bool> used(call.arguments.size(), false);
  absl::Status status = absl::OkStatus();
  const auto read = [&](const auto& field) {
    if (!status.ok()) return;
    auto& member = step.*(field.member);
    using Member = std::decay_t<decltype(member)>;
    const ArgumentReader reader(scope, Message(line, ", argument ", field.name));
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (call.arguments[i].keyword != field.name || used[i]) continue;
      used[i] = true;
      status = reader.Read(call.arguments[i].value, member);
      return;
    }
    if constexpr (kSpreads<S>) {
      const bool one_list = !call.arguments.empty() && call.arguments[0].value.AsList() != nullptr;
      if (!one_list) {  // the arguments are the list's items
        StepLiteral::List list;
        for (size_t i = 0; i < call.arguments.size(); ++i) {
          if (!call.arguments[i].keyword.empty()) continue;
          used[i] = true;
          list.push_back(call.arguments[i].value);
        }
        status = reader.Read(StepLiteral::Of(std::move(list)), member);
        return;
      }
    }
    if (next < call.arguments.size() && call.arguments[next].keyword.empty()) {
      used[next] = true;
      status = reader.Read(call.arguments[next++].value, member);
    } else if (kNeeded<Member>) {
      status = Invalid(line, ": the argument ", field.name, " is missing");
    }
  };
  std::apply([&](const auto&... field) { (read(field), ...); }, S::Fields());
  HONE_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const std::string& keyword = call.arguments[i].keyword;
    if (used[i]) continue;
    const std::optional<bool> nothing = AsksForNothing(keyword, call.arguments[i].value);
    if (nothing.has_value() && *nothing) continue;
    if (nothing.has_value()) return Invalid(line, ": the argument ", keyword, " is supported with its default alone");
    return Invalid(line, ": there is no argument ", keyword.empty() ? Message("number ", i + 1) : keyword);
  }
  return Step(std::move(step));
}

template <size_t kIndex = 0>
absl::StatusOr<Step> ReadAnyStep(const StepCall& call, const RefScope& scope, std::string_view where) {
  if constexpr (kIndex == std::variant_size_v<Step>) {
    return Invalid(where, ": there is no primitive ", call.name);
  } else {
    using S = std::variant_alternative_t<kIndex, Step>;
    if (call.name == S::kInfo.name) return ReadStep<S>(call, scope, where);
    return ReadAnyStep<kIndex + 1>(call, scope, where);
  }
}

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
  return std::visit(
      [](const auto& s) {
        StepCall call;
        call.name = s.kInfo.name;
        call.version = s.kInfo.version;
        std::apply(
            [&](const auto&... field) {
              (call.arguments.push_back({std::string(field.name), LiteralOf(s.*(field.member))}), ...);
            },
            std::decay_t<decltype(s)>::Fields());
        return call;
      },
      step);
}

bool SpreadsItsList(const Step& step) {
  return std::visit([](const auto& s) { return kSpreads<std::decay_t<decltype(s)>>; }, step);
}

absl::StatusOr<Step> StepOf(const StepCall& call, const RefScope& scope, std::string_view where) {
  return ReadAnyStep(call, scope, where);
}

absl::StatusOr<int> OutputsOf(const Step& step, int outputs, std::string_view where) {
  const StepInfo info = std::visit([](const auto& s) { return s.kInfo; }, step);
  const bool list = std::visit([](const auto& s) { return GivesList(s); }, step);
  if (info.output == OutputKind::kNone && outputs > 0) {
    return Invalid(where, ": ", info.name, " gives nothing, not ", outputs);
  }
  if (info.output == OutputKind::kNone || list) return outputs;
  if (outputs > 1) return Invalid(where, ": ", info.name, " gives one thing, not ", outputs);
  return 1;  // a result nobody names is still one
}

absl::StatusOr<RefScope::Place> TraceScope::Find(const StepLiteral& literal) const {
  const StepLiteral::Ref* ref = literal.As<StepLiteral::Ref>();
  if (ref == nullptr) return Invalid("a name, where outputs have numbers");
  const int steps = static_cast<int>(trace_.steps.size());
  if (ref->step < 0 || ref->step >= steps || ref->output < 0 || ref->output >= trace_.outputs[ref->step]) {
    return Invalid("there is no output ", ref->output, " of step ", ref->step, " above");
  }
  const OutputKind kind = std::visit([](const auto& s) { return s.kInfo.output; }, trace_.steps[ref->step]);
  return Place{kind, ref->step, ref->output};
}

}  // namespace hone
