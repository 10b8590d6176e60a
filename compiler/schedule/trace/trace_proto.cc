#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/trace/step_call.h"
#include "compiler/schedule/trace/trace_forms.h"
#include "compiler/support/status_macros.h"
#include "hone/v1/trace.pb.h"

namespace hone {
namespace {

constexpr int kDeepest = 8;  // lists inside lists, as in the text

void Write(const StepLiteral& literal, v1::TraceValue* proto) {
  struct Writer {
    v1::TraceValue* proto;
    void operator()(std::monostate) const { proto->set_none(true); }
    void operator()(bool v) const { proto->set_flag(v); }
    void operator()(int64_t v) const { proto->set_integer(v); }
    void operator()(double v) const { proto->set_number(v); }
    void operator()(const std::string& v) const { proto->set_text(v); }
    void operator()(const StepLiteral::Name& v) const { proto->set_text(v.text); }
    void operator()(const StepLiteral::Map& v) const { proto->set_index_map(v.text); }
    void operator()(const StepLiteral::Ref& v) const {
      proto->mutable_ref()->set_step(v.step);
      proto->mutable_ref()->set_output(v.output);
    }
    void operator()(const std::shared_ptr<StepLiteral::List>& v) const {
      v1::TraceList* list = proto->mutable_list();
      for (const StepLiteral& item : *v) Write(item, list->add_items());
    }
  };
  std::visit(Writer{proto}, literal.kind);
}

absl::StatusOr<StepLiteral> Read(const v1::TraceValue& proto, const std::string& where, int depth = 0) {
  if (depth > kDeepest) return Invalid(where, ": lists at most ", kDeepest, " deep");
  switch (proto.kind_case()) {
    case v1::TraceValue::kNone: return StepLiteral();
    case v1::TraceValue::kFlag: return StepLiteral(proto.flag());
    case v1::TraceValue::kInteger: return StepLiteral(int64_t{proto.integer()});
    case v1::TraceValue::kNumber: return StepLiteral(proto.number());
    case v1::TraceValue::kText: return StepLiteral(proto.text());
    case v1::TraceValue::kIndexMap: return StepLiteral(StepLiteral::Map{proto.index_map()});
    case v1::TraceValue::kRef: return StepLiteral(StepLiteral::Ref{proto.ref().step(), proto.ref().output()});
    case v1::TraceValue::kList: {
      StepLiteral::List list;
      for (const v1::TraceValue& item : proto.list().items()) {
        HONE_ASSIGN_OR_RETURN(StepLiteral one, Read(item, where, depth + 1));
        list.push_back(std::move(one));
      }
      return StepLiteral::Of(std::move(list));
    }
    case v1::TraceValue::KIND_NOT_SET: break;
  }
  return Invalid(where, ": a value of a kind this release does not know; use a newer release");
}

}  // namespace

void ToProto(const Trace& trace, v1::Trace* proto) {
  proto->Clear();
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const StepCall call = CallOf(trace.steps[i]);
    v1::TraceStep* step = proto->add_steps();
    step->set_name(call.name);
    if (call.version != 1) step->set_version(static_cast<uint32_t>(call.version));
    for (const StepCall::Argument& argument : call.arguments) {
      v1::TraceArgument* written = step->add_arguments();
      written->set_name(argument.keyword);
      Write(argument.value, written->mutable_value());
    }
    step->set_outputs(static_cast<uint32_t>(trace.outputs[i]));
  }
}

absl::StatusOr<Trace> TraceFromProto(const v1::Trace& proto) {
  HONE_RETURN_IF_ERROR(CheckStepCount(static_cast<size_t>(proto.steps_size())));
  Trace trace;
  const TraceScope scope(trace);
  for (const v1::TraceStep& read : proto.steps()) {
    const std::string where = Message("step ", trace.steps.size());
    StepCall call;
    call.name = read.name();
    call.version = read.version() == 0 ? 1 : read.version();
    for (const v1::TraceArgument& argument : read.arguments()) {
      const std::string place = Message(where, ": ", call.name, ", argument ", argument.name());
      HONE_ASSIGN_OR_RETURN(StepLiteral value, Read(argument.value(), place));
      call.arguments.push_back({argument.name(), std::move(value)});
    }
    if (read.outputs() > INT32_MAX) return Invalid(where, ": ", read.outputs(), " outputs are too many");
    HONE_ASSIGN_OR_RETURN(Step step, StepOf(call, scope, where));
    HONE_ASSIGN_OR_RETURN(const int outputs, OutputsOf(step, static_cast<int>(read.outputs()), where));
    trace.steps.push_back(std::move(step));
    trace.outputs.push_back(outputs);
  }
  return trace;
}

}  // namespace hone
