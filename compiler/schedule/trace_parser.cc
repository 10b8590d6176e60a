// The python dialect of traces: statements `a, b = sch.method(argument, keyword=argument)`, one a line (a line goes on
// inside brackets), arguments being literals, lists, tuples, earlier names and lambdas. Nothing else of python is read.
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "compiler/schedule/message.h"
#include "compiler/schedule/trace.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct Name {
  std::string text;
};
struct Lambda {
  std::string text;
};
struct List;
using Literal = std::variant<std::monostate, bool, int64_t, double, std::string, Name, Lambda, std::shared_ptr<List>>;
struct List {
  std::vector<Literal> items;
};
struct Argument {
  std::string keyword;  // empty: by position
  Literal value;
};
struct Statement {
  int line = 0;
  std::vector<std::string> targets;
  std::string method;
  std::vector<Argument> arguments;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Statement>> Read() {
    std::vector<Statement> calls;
    while (true) {
      SkipBlank();
      if (at_ >= text_.size()) return calls;
      if (Word("def") || Word("@")) {  // the frame a published trace stands in
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        continue;
      }
      if (Word("return") || Word("pass")) continue;
      HONE_ASSIGN_OR_RETURN(Statement call, ReadStatement());
      calls.push_back(std::move(call));
    }
  }

 private:
  absl::Status Error(std::string_view expected) const {
    std::string found = "the end of the text";
    if (at_ < text_.size()) {
      size_t end = at_ + 1;
      if (IsName(text_[at_])) {
        while (end < text_.size() && IsName(text_[end])) ++end;
      }
      found = text_[at_] == '\n' ? "the end of the line" : Message("\"", text_.substr(at_, end - at_), "\"");
    }
    return Invalid("line ", line_, ": found ", found, ", expected ", expected);
  }

  static bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  void SkipSpace() {  // within a statement: a line ends it, unless inside brackets
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || (c == '\n' && depth_ > 0)) {
        line_ += c == '\n';
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        ++line_;
        at_ += 2;
      } else {
        return;
      }
    }
  }
  void SkipBlank() {  // between statements
    ++depth_;
    SkipSpace();
    while (at_ < text_.size() && text_[at_] == ';') {
      ++at_;
      SkipSpace();
    }
    --depth_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    if (c == '(' || c == '[') ++depth_;
    if (c == ')' || c == ']') --depth_;
    return true;
  }
  bool Word(std::string_view word) {
    SkipSpace();
    if (text_.substr(at_, word.size()) != word) return false;
    const size_t end = at_ + word.size();
    if (IsName(word.back()) && end < text_.size() && IsName(text_[end])) return false;
    at_ = end;
    return true;
  }
  std::string TakeName() {
    SkipSpace();
    const size_t start = at_;
    while (at_ < text_.size() && IsName(text_[at_])) ++at_;
    if (at_ > start && std::isdigit(static_cast<unsigned char>(text_[start]))) at_ = start;
    return std::string(text_.substr(start, at_ - start));
  }

  absl::StatusOr<Statement> ReadStatement() {
    Statement call;
    call.line = line_;
    const size_t start = at_;
    const bool bracket = Take('(') || Take('[');  // (a, b) = ... and [a, b] = ...
    while (true) {
      const std::string name = TakeName();
      if (name.empty()) break;
      call.targets.push_back(name);
      if (!Take(',')) break;
    }
    if (bracket && !Take(')') && !Take(']')) return Error("the bracket's end");
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == '=' && text_.substr(at_, 2) != "==") {
      ++at_;
    } else {  // no assignment
      call.targets.clear();
      at_ = start;
      depth_ = 0;
    }
    const std::string object = TakeName();
    if (object.empty()) return Error("a statement such as `b0 = sch.get_block(\"Y\")`");
    if (!Take('.')) return Error("\".\" after the schedule's name");
    call.method = TakeName();
    if (call.method.empty()) return Error("the name of a primitive");
    if (!Take('(')) return Error("\"(\"");
    while (!Take(')')) {
      Argument argument;
      SkipSpace();
      const size_t before = at_;
      std::string keyword = TakeName();
      SkipSpace();
      if (!keyword.empty() && at_ < text_.size() && text_[at_] == '=') {
        ++at_;
        argument.keyword = std::move(keyword);
      } else {
        at_ = before;
        SkipSpace();
        if (at_ < text_.size() && text_[at_] == '*') ++at_;  // sch.reorder(*loops): the list's items
      }
      HONE_ASSIGN_OR_RETURN(argument.value, ReadLiteral(0));
      call.arguments.push_back(std::move(argument));
      if (Take(',')) continue;
      if (Take(')')) break;
      return Error("\",\" or \")\"");
    }
    SkipSpace();
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ';') return Error("the end of the line");
    return call;
  }

  absl::StatusOr<Literal> ReadLiteral(int nesting) {
    if (nesting > 8) return Error("lists at most 8 deep");
    SkipSpace();
    if (at_ >= text_.size()) return Error("an argument");
    const char c = text_[at_];
    if (c == '[' || c == '(') {
      Take(c);
      const char close = c == '[' ? ']' : ')';
      auto list = std::make_shared<List>();
      bool comma = false;
      while (!Take(close)) {
        HONE_ASSIGN_OR_RETURN(Literal item, ReadLiteral(nesting + 1));
        list->items.push_back(std::move(item));
        if (Take(',')) {
          comma = true;
          continue;
        }
        if (Take(close)) break;
        return Error(close == ']' ? "\",\" or \"]\"" : "\",\" or \")\"");
      }
      if (c == '(' && list->items.size() == 1 && !comma) return list->items[0];  // brackets around one thing
      return Literal(std::move(list));
    }
    if (c == '"' || c == '\'') return ReadString(c);
    if (c == '-' || c == '+' || c == '.' || std::isdigit(static_cast<unsigned char>(c))) return ReadNumber();
    const std::string name = TakeName();
    if (name.empty()) return Error("an argument");
    if (name == "None") return Literal();
    if (name == "True") return Literal(true);
    if (name == "False") return Literal(false);
    if (name == "inf") return Literal(std::numeric_limits<double>::infinity());
    if (name == "nan") return Literal(std::numeric_limits<double>::quiet_NaN());
    if (name == "lambda") return ReadLambda();
    return Literal(Name{name});
  }

  absl::StatusOr<Literal> ReadString(char quote) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return Literal(std::move(value));
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        value += text_[at_] == 'n' ? '\n' : text_[at_];
      } else {
        value += text_[at_];
      }
    }
    return Error("the string's end");
  }

  absl::StatusOr<Literal> ReadNumber() {
    size_t end = at_;
    if (text_[end] == '+' || text_[end] == '-') ++end;
    if (text_.substr(end, 3) == "inf") {
      const bool negative = text_[at_] == '-';
      at_ = end + 3;
      return Literal(negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
    }
    while (end < text_.size() &&
           (IsName(text_[end]) || text_[end] == '.' ||
            ((text_[end] == '-' || text_[end] == '+') && (text_[end - 1] == 'e' || text_[end - 1] == 'E')))) {
      ++end;
    }
    const char* first = text_.data() + at_ + (text_[at_] == '+' ? 1 : 0);
    const char* last = text_.data() + end;
    int64_t integer = 0;
    if (const auto r = std::from_chars(first, last, integer); r.ec == std::errc() && r.ptr == last) {
      at_ = end;
      return Literal(integer);
    }
    double real = 0;
    if (const auto r = std::from_chars(first, last, real); r.ec == std::errc() && r.ptr == last) {
      at_ = end;
      return Literal(real);
    }
    return Error("a number");
  }

  absl::StatusOr<Literal> ReadLambda() {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ':' && text_[at_] != '\n') ++at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == ')' || c == ']')) break;
      depth += c == '(' || c == '[';
      depth -= c == ')' || c == ']';
      line_ += c == '\n';
    }
    return Literal(Lambda{Message("lambda", text_.substr(start, at_ - start))});
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;  // of brackets
};

struct Place {  // an output of a step
  OutputKind kind;
  int step, output;
};
using Names = std::map<std::string, Place>;

std::string KindOf(const Literal& value) {
  static constexpr std::string_view kKinds[] = {"None",     "a bool", "an integer", "a number",
                                                "a string", "a name", "a lambda",   "a list"};
  if (const Name* name = std::get_if<Name>(&value)) return name->text;
  return std::string(kKinds[value.index()]);
}

// Turns literals into the fields of steps; what a field may be follows from its type.
class ArgumentReader {
 public:
  ArgumentReader(const Names& names, std::string where) : names_(names), where_(std::move(where)) {}

  absl::Status Read(const Literal& value, std::string& out) const {
    const std::string* s = std::get_if<std::string>(&value);
    if (s == nullptr) return Expected("a string", value);
    out = *s;
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, int64_t& out) const {
    if (const int64_t* v = std::get_if<int64_t>(&value)) {
      out = *v;
      return absl::OkStatus();
    }
    if (const bool* v = std::get_if<bool>(&value)) {
      out = *v ? 1 : 0;
      return absl::OkStatus();
    }
    return Expected("an integer", value);
  }
  absl::Status Read(const Literal& value, double& out) const {
    if (const int64_t* v = std::get_if<int64_t>(&value)) {
      out = static_cast<double>(*v);
    } else if (const double* d = std::get_if<double>(&value)) {
      out = *d;
    } else {
      return Expected("a number", value);
    }
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, bool& out) const {
    int64_t number = 0;
    if (!Read(value, number).ok()) return Expected("True or False", value);
    out = number != 0;
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, BlockRef& out) const {
    HONE_ASSIGN_OR_RETURN(const Place ref, Find(value, OutputKind::kBlock, "a block"));
    out = {ref.step, ref.output};
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, LoopRef& out) const {
    HONE_ASSIGN_OR_RETURN(const Place ref, Find(value, OutputKind::kLoop, "a loop"));
    out = {ref.step, ref.output};
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, BlockOrLoop& out) const {
    if (const absl::StatusOr<Place> block = Find(value, OutputKind::kBlock, "a block"); block.ok()) {
      out = BlockRef{block->step, block->output};
      return absl::OkStatus();
    }
    HONE_ASSIGN_OR_RETURN(const Place loop, Find(value, OutputKind::kLoop, "a block or a loop"));
    out = LoopRef{loop.step, loop.output};
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, Value& out) const {
    if (std::holds_alternative<std::monostate>(value)) {
      out = Value();
    } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
      out = *number;
    } else {
      HONE_ASSIGN_OR_RETURN(const Place ref, Find(value, OutputKind::kValue, "a number, None or a sampled number"));
      out = ValueRef{ref.step, ref.output};
    }
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, Attr& out) const {
    if (const int64_t* v = std::get_if<int64_t>(&value)) {
      out = *v;
    } else if (const bool* b = std::get_if<bool>(&value)) {
      out = int64_t{*b};
    } else if (const double* d = std::get_if<double>(&value)) {
      out = *d;
    } else if (const std::string* s = std::get_if<std::string>(&value)) {
      out = *s;
    } else if (const auto* list = std::get_if<std::shared_ptr<List>>(&value)) {
      const std::vector<Literal>& items = (*list)->items;
      if (!items.empty() && std::holds_alternative<std::string>(items[0])) {
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
  absl::Status Read(const Literal& value, IndexMap& out) const {
    const Lambda* lambda = std::get_if<Lambda>(&value);
    if (lambda == nullptr) return Expected("a lambda", value);
    absl::StatusOr<IndexMap> map = ParseIndexMap(lambda->text);
    if (!map.ok()) return Annotate(map.status(), where_);
    out = *std::move(map);
    return absl::OkStatus();
  }
  absl::Status Read(const Literal& value, BlockBuffer& out) const {
    const auto* pair = std::get_if<std::shared_ptr<List>>(&value);
    const std::string* kind =
        pair != nullptr && (*pair)->items.size() == 2 ? std::get_if<std::string>(&(*pair)->items[0]) : nullptr;
    const int64_t* index = kind != nullptr ? std::get_if<int64_t>(&(*pair)->items[1]) : nullptr;
    if (index == nullptr || (*kind != "read" && *kind != "write") || *index < 0 || *index > 1000) {
      return Expected("(\"read\", 0) or (\"write\", 0)", value);
    }
    out = {*kind == "read" ? BufferKind::kRead : BufferKind::kWrite, static_cast<int>(*index)};
    return absl::OkStatus();
  }
  template <class T>
  absl::Status Read(const Literal& value, std::vector<T>& out) const {
    const auto* list = std::get_if<std::shared_ptr<List>>(&value);
    if (list == nullptr) return Expected("a list", value);
    out.clear();
    for (const Literal& item : (*list)->items) {
      T one{};
      HONE_RETURN_IF_ERROR(Read(item, one));
      out.push_back(std::move(one));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Expected(std::string_view what, const Literal& found) const {
    return Invalid(where_, ": found ", KindOf(found), ", expected ", what);
  }
  absl::StatusOr<Place> Find(const Literal& value, OutputKind kind, std::string_view what) const {
    const Name* name = std::get_if<Name>(&value);
    if (name == nullptr) return Expected(what, value);
    const auto it = names_.find(name->text);
    if (it == names_.end()) return Invalid(where_, ": the name ", name->text, " is not defined above");
    if (it->second.kind != kind) {
      static constexpr std::string_view kKinds[] = {"nothing", "a block", "a loop", "a number"};
      return Invalid(where_, ": ", name->text, " is ", kKinds[static_cast<int>(it->second.kind)], ", expected ", what);
    }
    return it->second;
  }

  const Names& names_;
  std::string where_;
};

template <class T>
constexpr bool kNeeded = std::is_same_v<T, BlockRef> || std::is_same_v<T, LoopRef> || std::is_same_v<T, BlockOrLoop>;

// Arguments of the dialect that make no difference to us: what they ask for is always so, or never is.
bool Ignored(std::string_view keyword) {
  return keyword == "preserve_unit_iters" || keyword == "index" || keyword == "pad_value" ||
         keyword == "consumer_blocks" || keyword == "assume_injective_transform" || keyword == "disable_predication";
}

template <class S>
absl::StatusOr<Step> ReadStep(const Statement& call, const Names& names) {
  S step;
  const std::string line = Message("line ", call.line, ": ", S::kInfo.name);
  std::vector<bool> given;
  size_t next = 0;  // the next argument by position
  std::vector<bool> used(call.arguments.size(), false);
  absl::Status status = absl::OkStatus();
  const auto read = [&](const auto& field) {
    if (!status.ok()) return;
    auto& member = step.*(field.member);
    using Member = std::decay_t<decltype(member)>;
    const ArgumentReader reader(names, Message(line, ", argument ", field.name));
    if constexpr (requires { S::kSpread; }) {
      const bool one_list =
          call.arguments.size() >= 1 && std::holds_alternative<std::shared_ptr<List>>(call.arguments[0].value);
      if (!one_list) {  // the arguments are the list's items
        auto list = std::make_shared<List>();
        for (size_t i = 0; i < call.arguments.size(); ++i) {
          if (!call.arguments[i].keyword.empty()) continue;
          used[i] = true;
          list->items.push_back(call.arguments[i].value);
        }
        status = reader.Read(Literal(list), member);
        return;
      }
    }
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (call.arguments[i].keyword != field.name) continue;
      if (used[i]) continue;
      used[i] = true;
      status = reader.Read(call.arguments[i].value, member);
      return;
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
    const Argument& argument = call.arguments[i];
    if (used[i]) continue;
    if (argument.keyword == "version") {
      int64_t version = 1;
      HONE_RETURN_IF_ERROR(ArgumentReader(names, line).Read(argument.value, version));
      if (version > S::kInfo.version) {
        return Invalid(line, ": the step has version ", version, ", this release knows up to ", S::kInfo.version,
                       "; use a newer release");
      }
    } else if (argument.keyword.empty() || !Ignored(argument.keyword)) {
      return Invalid(line, ": there is no argument ",
                     argument.keyword.empty() ? Message("number ", i + 1) : argument.keyword);
    }
  }
  return Step(std::move(step));
}

template <size_t kIndex = 0>
absl::StatusOr<Step> ReadAnyStep(const Statement& call, const Names& names) {
  if constexpr (kIndex == std::variant_size_v<Step>) {
    return Invalid("line ", call.line, ": there is no primitive ", call.method);
  } else {
    using S = std::variant_alternative_t<kIndex, Step>;
    if (call.method == S::kInfo.name) return ReadStep<S>(call, names);
    return ReadAnyStep<kIndex + 1>(call, names);
  }
}

}  // namespace

absl::StatusOr<Trace> ParseTrace(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Statement> calls, Reader(text).Read());
  Trace trace;
  Names names;
  for (const Statement& call : calls) {
    HONE_ASSIGN_OR_RETURN(Step step, ReadAnyStep(call, names));
    const StepInfo info = std::visit([](const auto& s) { return s.kInfo; }, step);
    const bool list = std::visit([](const auto& s) { return GivesList(s); }, step);
    int outputs = static_cast<int>(call.targets.size());
    if (info.output == OutputKind::kNone && outputs > 0) {
      return Invalid("line ", call.line, ": ", info.name, " gives nothing to name ", call.targets[0]);
    }
    if (info.output != OutputKind::kNone && !list) {
      if (outputs > 1) return Invalid("line ", call.line, ": ", info.name, " gives one thing, not ", outputs);
      outputs = 1;  // a result nobody names is still one
    }
    const int number = static_cast<int>(trace.steps.size());
    for (size_t k = 0; k < call.targets.size(); ++k) {
      names[call.targets[k]] = Place{info.output, number, static_cast<int>(k)};
    }
    trace.steps.push_back(std::move(step));
    trace.outputs.push_back(outputs);
  }
  return trace;
}

}  // namespace hone
