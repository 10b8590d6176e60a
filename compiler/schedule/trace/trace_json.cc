#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/trace/step_call.h"
#include "compiler/schedule/trace/trace_forms.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr int kDeepest = 8;  // lists inside lists, as in the text

bool IsUtf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80                ? 1
                          : c >= 0xC2 && c < 0xE0 ? 2
                          : c >= 0xE0 && c < 0xF0 ? 3
                          : c >= 0xF0 && c < 0xF5 ? 4
                                                  : 0;
    if (length == 0 || i + length > text.size()) return false;
    uint32_t code = length == 1 ? c : c & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      const unsigned char next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = code << 6 | (next & 0x3F);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
    i += length;
  }
  return true;
}

Json JsonOf(const StepLiteral& literal) {
  struct Writer {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool v) const { return v; }
    Json operator()(int64_t v) const { return v; }
    Json operator()(double v) const {
      if (std::isfinite(v)) return v;
      return Json{{"number", std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"}};
    }
    Json operator()(const std::string& v) const {
      if (IsUtf8(v)) return v;
      Json bytes = Json::array();
      for (const char c : v) bytes.push_back(static_cast<unsigned char>(c));
      return Json{{"bytes", std::move(bytes)}};
    }
    Json operator()(const StepLiteral::Name& v) const { return Json{{"name", v.text}}; }
    Json operator()(const StepLiteral::Map& v) const { return Json{{"map", v.text}}; }
    Json operator()(const StepLiteral::Ref& v) const { return Json{{"ref", Json::array({v.step, v.output})}}; }
    Json operator()(const std::shared_ptr<StepLiteral::List>& v) const {
      Json list = Json::array();
      for (const StepLiteral& item : *v) list.push_back(JsonOf(item));
      return list;
    }
  };
  return std::visit(Writer{}, literal.kind);
}

bool IsInt(const Json& json) {
  return json.is_number_integer() &&
         !(json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
}
bool IsSmallInt(const Json& json) {
  return IsInt(json) && json.get<int64_t>() >= INT32_MIN && json.get<int64_t>() <= INT32_MAX;
}

absl::StatusOr<StepLiteral> LiteralFrom(const Json& json, const std::string& where, int depth = 0) {
  if (depth > kDeepest) return Invalid(where, ": lists at most ", kDeepest, " deep");
  if (json.is_null()) return StepLiteral();
  if (json.is_boolean()) return StepLiteral(json.get<bool>());
  if (IsInt(json)) return StepLiteral(json.get<int64_t>());
  if (json.is_number_float()) return StepLiteral(json.get<double>());
  if (json.is_string()) return StepLiteral(json.get<std::string>());
  if (json.is_array()) {
    StepLiteral::List list;
    for (const Json& item : json) {
      HONE_ASSIGN_OR_RETURN(StepLiteral one, LiteralFrom(item, where, depth + 1));
      list.push_back(std::move(one));
    }
    return StepLiteral::Of(std::move(list));
  }
  if (json.is_object() && json.size() == 1) {
    const std::string& key = json.begin().key();
    const Json& value = json.begin().value();
    if (key == "ref" && value.is_array() && value.size() == 2 && IsSmallInt(value[0]) && IsSmallInt(value[1])) {
      return StepLiteral(StepLiteral::Ref{value[0].get<int>(), value[1].get<int>()});
    }
    if (key == "map" && value.is_string()) return StepLiteral(StepLiteral::Map{value.get<std::string>()});
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (key == "number" && value == "inf") return StepLiteral(kInf);
    if (key == "number" && value == "-inf") return StepLiteral(-kInf);
    if (key == "number" && value == "nan") return StepLiteral(std::numeric_limits<double>::quiet_NaN());
    if (key == "bytes" && value.is_array()) {
      std::string bytes;
      for (const Json& byte : value) {
        if (!IsInt(byte) || byte.get<int64_t>() < 0 || byte.get<int64_t>() > 255) {
          return Invalid(where, ": \"bytes\" has something else than numbers from 0 to 255");
        }
        bytes += static_cast<char>(byte.get<int>());
      }
      return StepLiteral(std::move(bytes));
    }
  }
  return Invalid(where, ": found ", json.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60),
                 ", expected a number, a string, a list, {\"ref\": [step, output]} or {\"map\": \"lambda ..\"}");
}

absl::StatusOr<int64_t> IntOr(const Json& object, const char* key, int64_t otherwise, const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end()) return otherwise;
  if (!IsSmallInt(*it) || it->get<int64_t>() < 0) return Invalid(where, ": \"", key, "\" is no number from 0 on");
  return it->get<int64_t>();
}

}  // namespace

std::string ToJson(const Trace& trace) {
  Json steps = Json::array();
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const StepCall call = CallOf(trace.steps[i]);
    Json step = {{"step", call.name}};
    if (call.version != 1) step["version"] = call.version;
    Json args = Json::object();
    for (const StepCall::Argument& argument : call.arguments) args[argument.keyword] = JsonOf(argument.value);
    step["args"] = std::move(args);
    step["outputs"] = trace.outputs[i];
    steps.push_back(std::move(step));
  }
  return Json{{"hone_trace", kFormat}, {"steps", std::move(steps)}}.dump();
}

absl::StatusOr<Trace> ParseTraceJson(std::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Invalid("the trace is not JSON");
  const auto format = json.find("hone_trace"), list = json.find("steps");
  if (!json.is_object() || format == json.end() || list == json.end() || !IsInt(*format) || !list->is_array()) {
    return Invalid("the JSON is not a trace: expected {\"hone_trace\": 1, \"steps\": [..]}");
  }
  if (*format != kFormat) {
    return Invalid("the trace has format ", format->get<int64_t>(), ", this release reads ", kFormat,
                   "; use a newer release");
  }
  HONE_RETURN_IF_ERROR(CheckStepCount(list->size()));
  Trace trace;
  const TraceScope scope(trace);
  for (const Json& json_step : *list) {
    const std::string where = Message("step ", trace.steps.size());
    const auto name = json_step.find("step"), args = json_step.find("args");
    if (!json_step.is_object() || name == json_step.end() || !name->is_string() ||
        (args != json_step.end() && !args->is_object())) {
      return Invalid(where, ": expected {\"step\": NAME, \"args\": {..}, \"outputs\": N}");
    }
    StepCall call;
    call.name = name->get<std::string>();
    HONE_ASSIGN_OR_RETURN(call.version, IntOr(json_step, "version", 1, where));
    if (args != json_step.end()) {
      for (const auto& [keyword, value] : args->items()) {
        const std::string place = Message(where, ": ", call.name, ", argument ", keyword);
        HONE_ASSIGN_OR_RETURN(StepLiteral literal, LiteralFrom(value, place));
        call.arguments.push_back({keyword, std::move(literal)});
      }
    }
    HONE_ASSIGN_OR_RETURN(const int64_t outputs, IntOr(json_step, "outputs", 0, where));
    HONE_ASSIGN_OR_RETURN(Step step, StepOf(call, scope, where));
    HONE_ASSIGN_OR_RETURN(const int given, OutputsOf(step, static_cast<int>(outputs), where));
    trace.steps.push_back(std::move(step));
    trace.outputs.push_back(given);
  }
  return trace;
}

}  // namespace hone
