// The python dialect of traces: statements `a, b = sch.method(argument, keyword=argument)`, one a line (a line goes on
// inside brackets), arguments being literals, lists, tuples, earlier names and lambdas. Nothing else of python is read.
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/trace/step_call.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct Statement {
  int line = 0;
  std::vector<std::string> targets;
  StepCall call;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Statement>> Read() {
    std::vector<Statement> statements;
    while (true) {
      SkipBlank();
      if (at_ >= text_.size()) return statements;
      if (Word("def") || Word("@")) {  // the frame a published trace stands in
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        continue;
      }
      if (Word("return") || Word("pass")) continue;
      HONE_ASSIGN_OR_RETURN(Statement statement, ReadStatement());
      statements.push_back(std::move(statement));
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
    Statement statement;
    StepCall& call = statement.call;
    statement.line = line_;
    const size_t start = at_;
    const bool bracket = Take('(') || Take('[');  // (a, b) = ... and [a, b] = ...
    while (true) {
      const std::string name = TakeName();
      if (name.empty()) break;
      statement.targets.push_back(name);
      if (!Take(',')) break;
    }
    if (bracket && !Take(')') && !Take(']')) return Error("the bracket's end");
    SkipSpace();
    if (at_ < text_.size() && text_[at_] == '=' && text_.substr(at_, 2) != "==") {
      ++at_;
    } else {  // no assignment
      statement.targets.clear();
      at_ = start;
      depth_ = 0;
    }
    const std::string object = TakeName();
    if (object.empty()) return Error("a statement such as `b0 = sch.get_block(\"Y\")`");
    if (!Take('.')) return Error("\".\" after the schedule's name");
    call.name = TakeName();
    if (call.name.empty()) return Error("the name of a primitive");
    if (!Take('(')) return Error("\"(\"");
    while (!Take(')')) {
      StepCall::Argument argument;
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
      if (argument.keyword == "version") {
        const int64_t* version = argument.value.As<int64_t>();
        if (version == nullptr) return Error("the version's number in front");
        call.version = *version;
      } else {
        call.arguments.push_back(std::move(argument));
      }
      if (Take(',')) continue;
      if (Take(')')) break;
      return Error("\",\" or \")\"");
    }
    SkipSpace();
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ';') return Error("the end of the line");
    return statement;
  }

  absl::StatusOr<StepLiteral> ReadLiteral(int nesting) {
    if (nesting > 8) return Error("lists at most 8 deep");
    SkipSpace();
    if (at_ >= text_.size()) return Error("an argument");
    const char c = text_[at_];
    if (c == '[' || c == '(') {
      Take(c);
      const char close = c == '[' ? ']' : ')';
      StepLiteral::List list;
      bool comma = false;
      while (!Take(close)) {
        HONE_ASSIGN_OR_RETURN(StepLiteral item, ReadLiteral(nesting + 1));
        list.push_back(std::move(item));
        if (Take(',')) {
          comma = true;
          continue;
        }
        if (Take(close)) break;
        return Error(close == ']' ? "\",\" or \"]\"" : "\",\" or \")\"");
      }
      if (c == '(' && list.size() == 1 && !comma) return list[0];  // brackets around one thing
      return StepLiteral::Of(std::move(list));
    }
    if (c == '"' || c == '\'') return ReadString(c);
    if (c == '-' || c == '+' || c == '.' || std::isdigit(static_cast<unsigned char>(c))) return ReadNumber();
    const std::string name = TakeName();
    if (name.empty()) return Error("an argument");
    if (name == "None") return StepLiteral();
    if (name == "True") return StepLiteral(true);
    if (name == "False") return StepLiteral(false);
    if (name == "inf") return StepLiteral(std::numeric_limits<double>::infinity());
    if (name == "nan") return StepLiteral(std::numeric_limits<double>::quiet_NaN());
    if (name == "lambda") return ReadLambda();
    return StepLiteral(StepLiteral::Name{name});
  }

  absl::StatusOr<StepLiteral> ReadString(char quote) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return StepLiteral(std::move(value));
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

  absl::StatusOr<StepLiteral> ReadNumber() {
    size_t end = at_;
    if (text_[end] == '+' || text_[end] == '-') ++end;
    if (text_.substr(end, 3) == "inf") {
      const bool negative = text_[at_] == '-';
      at_ = end + 3;
      return StepLiteral(negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
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
      return StepLiteral(integer);
    }
    double real = 0;
    if (const auto r = std::from_chars(first, last, real); r.ec == std::errc() && r.ptr == last) {
      at_ = end;
      return StepLiteral(real);
    }
    return Error("a number");
  }

  absl::StatusOr<StepLiteral> ReadLambda() {
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
    return StepLiteral(StepLiteral::Map{Message("lambda", text_.substr(start, at_ - start))});
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;  // of brackets
};

class NameScope : public RefScope {
 public:
  void Define(const std::string& name, Place place) { names_[name] = place; }
  absl::StatusOr<Place> Find(const StepLiteral& literal) const override {
    const StepLiteral::Name* name = literal.As<StepLiteral::Name>();
    if (name == nullptr) return Invalid("a number, where outputs have names");
    const auto it = names_.find(name->text);
    if (it == names_.end()) return Invalid("the name ", name->text, " is not defined above");
    return it->second;
  }

 private:
  std::map<std::string, Place> names_;
};

}  // namespace

absl::StatusOr<Trace> ParseTrace(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Statement> statements, Reader(text).Read());
  HONE_RETURN_IF_ERROR(CheckStepCount(statements.size()));
  Trace trace;
  NameScope names;
  for (const Statement& statement : statements) {
    const std::string where = Message("line ", statement.line);
    HONE_ASSIGN_OR_RETURN(Step step, StepOf(statement.call, names, where));
    const OutputKind kind = step.info().output;
    if (kind == OutputKind::kNone && !statement.targets.empty()) {
      return Invalid(where, ": ", statement.call.name, " gives nothing to name ", statement.targets[0]);
    }
    HONE_ASSIGN_OR_RETURN(const int outputs, OutputsOf(step, static_cast<int>(statement.targets.size()), where));
    const int number = static_cast<int>(trace.steps.size());
    for (size_t k = 0; k < statement.targets.size(); ++k) {
      names.Define(statement.targets[k], {kind, number, static_cast<int>(k)});
    }
    trace.steps.push_back(std::move(step));
    trace.outputs.push_back(outputs);
  }
  return trace;
}

}  // namespace hone
