#include "compiler/frontend/model_inputs.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hone {
namespace {

std::string Where(const std::string& name) { return absl::StrCat("input \"", name, "\""); }

// What an open dimension is called: as in the model, or by its place.
std::string SymbolOf(const OnnxInput& input, size_t d) {
  return input.dims[d].symbol.empty() ? absl::StrCat(input.name, ".", d) : input.dims[d].symbol;
}

// "int[0,30522)"
bool IsIntegerRange(const std::string& text, DType dtype) {
  absl::string_view rest = text;
  int64_t low = 0, high = 0;
  const std::vector<std::string> ends = absl::ConsumePrefix(&rest, "int[") && absl::ConsumeSuffix(&rest, ")")
                                            ? std::vector<std::string>(absl::StrSplit(rest, ','))
                                            : std::vector<std::string>();
  return dtype.is_int() && ends.size() == 2 && absl::SimpleAtoi(ends[0], &low) && absl::SimpleAtoi(ends[1], &high) &&
         low < high;
}

}  // namespace

std::optional<int> ModelInputs::Add(const OnnxInput& input) {
  names_.insert(input.name);
  if (options_.absent.count(input.name) > 0) {
    if (input.is_optional) return Sequences::kNothing;
    problems_.push_back(absl::StrCat(Where(input.name), ": it is to be absent, and its type is not optional"));
    return std::nullopt;
  }
  if (input.is_sequence) return AddSequence(input);
  if (!input.has_shape) {
    problems_.push_back(absl::StrCat(Where(input.name), ": the model does not say its shape"));
    return std::nullopt;
  }
  const std::optional<std::vector<int64_t>> shape = ShapeOf(input);
  return shape.has_value() ? AddTensor(input, input.name, *shape) : std::nullopt;
}

std::optional<std::vector<int64_t>> ModelInputs::ShapeOf(const OnnxInput& input) {
  std::vector<int64_t> shape;
  for (size_t d = 0; d < input.dims.size(); ++d) {
    const OnnxDim& dim = input.dims[d];
    int64_t size = dim.size;
    const std::string name =
        dim.symbol.empty() ? absl::StrCat("dimension ", d) : absl::StrCat("dimension ", d, " (\"", dim.symbol, "\")");
    const std::string remedy = absl::StrCat("--dim ", SymbolOf(input, d), "=SIZE");
    if (size < 0) symbols_.insert(SymbolOf(input, d));
    if (size < 0) size = ChosenSize(input, d);
    if (size < 0 && d == 0) {
      size = 1;
      graph_.notes.push_back(absl::StrCat("The ", name, " of input \"", input.name,
                                          "\" has no fixed size and is taken as 1; ", remedy, " gives another."));
    } else if (size < 0) {
      problems_.push_back(absl::StrCat(Where(input.name), ": ", name, " has no fixed size; give it with ", remedy,
                                       ", or export the model with a static shape"));
      return std::nullopt;
    }
    shape.push_back(size);
  }
  return shape;
}

// What the options say of an open dimension of an input; -1: nothing.
int64_t ModelInputs::ChosenSize(const OnnxInput& input, size_t d) const {
  if (const auto dim = options_.dims.find(SymbolOf(input, d)); dim != options_.dims.end()) return dim->second;
  const auto shape = options_.shapes.find(input.name);
  return shape != options_.shapes.end() && shape->second.size() == input.dims.size() ? shape->second[d] : -1;
}

bool ModelInputs::Fits(const OnnxInput& input, const std::vector<int64_t>& shape) const {
  if (!input.has_shape) return true;
  if (shape.size() != input.dims.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (input.dims[d].size >= 0 && input.dims[d].size != shape[d]) return false;
  }
  return true;
}

std::optional<int> ModelInputs::AddSequence(const OnnxInput& input) {
  const auto shapes = options_.sequences.find(input.name);
  if (shapes == options_.sequences.end()) {
    problems_.push_back(absl::StrCat(Where(input.name), ": it is a sequence of tensors; --sequence ", input.name,
                                     "=2x3,4x3 says how many it has, and their shapes"));
    return std::nullopt;
  }
  std::vector<int> elements;
  for (const std::vector<int64_t>& shape : shapes->second) {
    const std::string name = absl::StrCat(input.name, "[", elements.size(), "]");
    if (!Fits(input, shape)) {
      problems_.push_back(
          absl::StrCat(Where(name), ": the model declares another shape than [", absl::StrJoin(shape, ", "), "]"));
      return std::nullopt;
    }
    const std::optional<int> element = AddTensor(input, name, shape);
    if (!element.has_value()) return std::nullopt;
    elements.push_back(*element);
  }
  return sequences_.Add(std::move(elements));
}

std::optional<int> ModelInputs::AddTensor(const OnnxInput& input, const std::string& name,
                                          const std::vector<int64_t>& shape) {
  const TensorType type{input.dtype, shape};
  if (const absl::Status size = CheckSize(type); !size.ok()) {
    problems_.push_back(absl::StrCat(Where(name), ": ", size.message()));
    return std::nullopt;
  }
  const auto domain = model_.metadata.find("domain." + name);
  if (domain != model_.metadata.end() && !IsIntegerRange(domain->second, type.dtype)) {
    problems_.push_back(absl::StrCat(Where(name), ": the metadata \"", domain->first, "\" is \"", domain->second,
                                     "\"; for an input of integers it may be \"int[LOW,HIGH)\""));
    return std::nullopt;
  }
  // What has no elements can be nothing else: it is known now, and still given at run time.
  std::optional<NdArray> known;
  if (NumElements(shape) == 0) known = NdArray(type.dtype, shape);
  if (const auto fixed = options_.values.find(name); fixed != options_.values.end()) {
    known = FixedValue(name, type, fixed->second);
    if (!known.has_value()) return std::nullopt;
  }
  names_.insert(name);
  int value = graph_.AddValue(name, type);
  graph_.values[value].element = input.element;
  if (domain != model_.metadata.end()) graph_.values[value].domain = domain->second;
  graph_.inputs.push_back(value);
  if (known.has_value()) {
    value = graph_.AddConstant(name, *std::move(known));
    graph_.values[value].element = input.element;
  }
  return value;
}

std::optional<NdArray> ModelInputs::FixedValue(const std::string& name, const TensorType& type,
                                               const std::vector<double>& numbers) {
  NdArray array(type.dtype, type.shape);
  if (static_cast<int64_t>(numbers.size()) != array.NumElements()) {
    problems_.push_back(
        absl::StrCat("--value ", name, ": it gives ", numbers.size(), " numbers, the input is ", ToText(type)));
    return std::nullopt;
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (type.dtype.is_float()) {
      array.Set(static_cast<int64_t>(i), numbers[i]);
      continue;
    }
    if (std::trunc(numbers[i]) != numbers[i] || std::abs(numbers[i]) > 0x1p53) {
      problems_.push_back(
          absl::StrCat("--value ", name, ": ", numbers[i], " is no integer, the input is ", ToText(type)));
      return std::nullopt;
    }
    array.SetInt(static_cast<int64_t>(i), static_cast<int64_t>(numbers[i]));
  }
  graph_.notes.push_back(absl::StrCat("The input \"", name, "\" is taken as [", absl::StrJoin(numbers, ", "),
                                      "], whatever it is given when the bundle runs."));
  return array;
}

void ModelInputs::CheckOptions() {
  for (const auto& [name, size] : options_.dims) {
    if (symbols_.count(name) != 0) continue;
    problems_.push_back(absl::StrCat("--dim ", name, "=", size, ": the inputs have no dimension of that name",
                                     symbols_.empty() ? "" : "; they have ", absl::StrJoin(symbols_, ", ")));
  }
  const auto check = [&](const std::string& flag, const std::string& name) {
    if (names_.count(name) == 0) problems_.push_back(absl::StrCat("--", flag, " ", name, ": no input has this name"));
  };
  for (const auto& [name, value] : options_.values) check("value", name);
  for (const auto& [name, shapes] : options_.sequences) check("sequence", name);
  for (const std::string& name : options_.absent) check("absent", name);
}

}  // namespace hone
