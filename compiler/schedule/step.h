// Steps and traces as data. A step is a primitive with its arguments, whichever primitive it is: what a step struct
// says of itself (step_field.h) is all that printing, parsing, comparing and replaying need, so that none of them knows
// the primitives.
//
//   if (const SplitStep* split = step.As<SplitStep>()) Use(split->factors);
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/pad_value.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

// What an argument may be. `Pointer<T>` is a T* or const T*.
template <template <class> class Pointer>
using AnyArgument =
    std::variant<Pointer<std::string>, Pointer<int64_t>, Pointer<double>, Pointer<bool>, Pointer<BlockRef>,
                 Pointer<LoopRef>, Pointer<BlockOrLoop>, Pointer<Value>, Pointer<IndexMap>, Pointer<BlockBuffer>,
                 Pointer<PadValue>, Pointer<Attr>, Pointer<std::vector<int64_t>>, Pointer<std::vector<double>>,
                 Pointer<std::vector<LoopRef>>, Pointer<std::vector<Value>>>;
template <class T>
using PointerToConst = const T*;
template <class T>
using PointerTo = T*;

struct StepArgument {
  std::string_view name;
  AnyArgument<PointerToConst> value;
};
struct MutableStepArgument {
  std::string_view name;
  AnyArgument<PointerTo> value;
};
constexpr size_t kUsualArguments = 5;
using StepArguments = absl::InlinedVector<StepArgument, kUsualArguments>;
using MutableStepArguments = absl::InlinedVector<MutableStepArgument, kUsualArguments>;

template <class S>
concept StepStruct = requires {
  { S::kInfo } -> std::convertible_to<const StepInfo&>;
  S::Fields();
};

// By the function that stands beside the struct.
template <StepStruct S>
absl::Status ApplyStep(Schedule& schedule, const S& step) {
  return Apply(schedule, step);
}

// Copies share the struct until one of them is changed.
class Step {
 public:
  template <StepStruct S>
  Step(S step) : model_(std::make_shared<Model<S>>(std::move(step))) {}  // NOLINT: steps are written as their structs

  const StepInfo& info() const { return model_->info(); }
  template <StepStruct S>
  const S* As() const {  // nullptr when it is another primitive's
    return &info() == &S::kInfo ? &static_cast<const Model<S>&>(*model_).step : nullptr;
  }
  template <StepStruct S>
  S* Mutable() {
    return As<S>() == nullptr ? nullptr : &static_cast<Model<S>&>(Own()).step;
  }

  // In the order of the struct's fields; they point into this step.
  StepArguments arguments() const { return model_->arguments(); }
  MutableStepArguments MutableArguments() { return Own().MutableArguments(); }

  // The primitive with these arguments, recorded again.
  absl::Status Apply(Schedule& schedule) const { return model_->Apply(schedule); }

 private:
  struct AnyModel {
    virtual ~AnyModel() = default;
    virtual const StepInfo& info() const = 0;
    virtual StepArguments arguments() const = 0;
    virtual MutableStepArguments MutableArguments() = 0;
    virtual absl::Status Apply(Schedule& schedule) const = 0;
    virtual std::shared_ptr<AnyModel> Copy() const = 0;
  };
  template <class S>
  struct Model final : AnyModel {
    explicit Model(S s) : step(std::move(s)) {}
    const StepInfo& info() const override { return S::kInfo; }
    StepArguments arguments() const override {
      const auto list = [this](const auto&... f) { return StepArguments{{f.name, &(step.*(f.member))}...}; };
      return std::apply(list, S::Fields());
    }
    MutableStepArguments MutableArguments() override {
      const auto list = [this](const auto&... f) { return MutableStepArguments{{f.name, &(step.*(f.member))}...}; };
      return std::apply(list, S::Fields());
    }
    absl::Status Apply(Schedule& schedule) const override { return ApplyStep(schedule, step); }
    std::shared_ptr<AnyModel> Copy() const override { return std::make_shared<Model>(step); }
    S step;
  };
  AnyModel& Own() {
    if (model_.use_count() > 1) model_ = model_->Copy();
    return *model_;
  }

  std::shared_ptr<AnyModel> model_;
};

// A schedule as data: its steps in order, and how many outputs each gave, side by side.
struct Trace {
  std::vector<Step> steps;
  std::vector<int> outputs;
};

}  // namespace hone
