// A step as a call: the name of the primitive and its arguments as literals. All forms of a trace (python text, JSON,
// protobuf) print and read this one; what a step's arguments are, the step says (step.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/step.h"

namespace hone {

struct StepLiteral {
  struct Name {  // of an output: in text alone
    std::string text;
  };
  struct Map {  // "lambda i, j: (j, i)"
    std::string text;
  };
  struct Ref {  // output k of step n
    int step = -1;
    int output = 0;
  };
  using List = std::vector<StepLiteral>;
  using Kind = std::variant<std::monostate, bool, int64_t, double, std::string, Name, Map, Ref, std::shared_ptr<List>>;
  Kind kind;  // monostate is None

  StepLiteral() = default;
  template <class T>
  requires std::is_constructible_v<Kind, T> StepLiteral(T value)  // NOLINT: literals read as written
      : kind(std::move(value)) {}
  static StepLiteral Of(List items) { return StepLiteral(std::make_shared<List>(std::move(items))); }
  template <class T>
  const T* As() const {
    return std::get_if<T>(&kind);
  }
  const List* AsList() const {
    const auto* list = As<std::shared_ptr<List>>();
    return list == nullptr ? nullptr : list->get();
  }
};

struct StepCall {
  struct Argument {
    std::string keyword;  // empty: by position
    StepLiteral value;
  };
  std::string name;
  int64_t version = 1;
  std::vector<Argument> arguments;
};

// All arguments but an absent pad value, by keyword, refs as Ref.
StepCall CallOf(const Step& step);

// What literals may name: the outputs of the steps so far.
class RefScope {
 public:
  struct Place {
    OutputKind kind = OutputKind::kNone;
    int step = -1, output = 0;
  };
  virtual ~RefScope() = default;
  // InvalidArgument where there is no such output.
  virtual absl::StatusOr<Place> Find(const StepLiteral& literal) const = 0;
};

// The step the call stands for. InvalidArgument, beginning with `where` ("line 3"), when there is no such primitive, an
// argument is missing, unknown or of the wrong kind, or the version is one that is not known or no longer replayed.
absl::StatusOr<Step> StepOf(const StepCall& call, const RefScope& scope, std::string_view where);

// How many outputs a step may be given that its trace says gives `outputs`; InvalidArgument when it cannot.
absl::StatusOr<int> OutputsOf(const Step& step, int outputs, std::string_view where);

// InvalidArgument when a trace has more than kMostTraceSteps (trace.h).
absl::Status CheckStepCount(size_t steps);

// A scope over a trace as it grows, for forms that write refs as numbers.
class TraceScope : public RefScope {
 public:
  explicit TraceScope(const Trace& trace) : trace_(trace) {}
  absl::StatusOr<Place> Find(const StepLiteral& literal) const override;

 private:
  const Trace& trace_;
};

// Whether a step of this description and version can be replayed; the message says which versions can.
absl::Status CheckVersion(const StepInfo& info, int64_t version, std::string_view where);

}  // namespace hone
