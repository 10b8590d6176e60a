#include "compiler/frontend/module_literals.h"

#include <string>
#include <utility>

#include "compiler/graph/graph.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// How many numbers there are in a list.
int64_t CountOf(const GraphExpr& e) {
  const auto* list = e.As<GraphTuple>();
  if (list == nullptr) return 1;
  int64_t count = 0;
  for (const GraphExpr& item : list->items) count += CountOf(item);
  return count;
}

// Puts the numbers of a list, or one number, into the array from element `at` on.
absl::Status Fill(const GraphExpr& e, size_t depth, NdArray& array, int64_t& at) {
  if (const auto* list = e.As<GraphTuple>()) {
    if (depth >= array.shape.size() || array.shape[depth] != static_cast<int64_t>(list->items.size()))
      return Unclear("R.const of lists that differ in length");
    for (const GraphExpr& item : list->items) HONE_RETURN_IF_ERROR(Fill(item, depth + 1, array, at));
    return absl::OkStatus();
  }
  const auto* literal = e.As<Literal>();
  if (literal == nullptr || depth != array.shape.size()) return Unclear("R.const of something else than numbers");
  const int64_t here = at++;
  if (const auto* number = std::get_if<double>(&literal->value)) {
    if (!array.dtype.is_float()) return Unclear("R.const of ", *number, " as an integer");
    array.Set(here, *number);
    return absl::OkStatus();
  }
  const auto* flag = std::get_if<bool>(&literal->value);
  const auto* integer = std::get_if<int64_t>(&literal->value);
  if (flag == nullptr && integer == nullptr) return Unclear("R.const of something else than numbers");
  const int64_t value = flag != nullptr ? *flag : *integer;
  array.dtype.is_float() ? array.Set(here, static_cast<double>(value)) : array.SetInt(here, value);
  return absl::OkStatus();
}

// Of literals that are all texts, or all numbers of which one at least is no integer.
absl::StatusOr<std::optional<OnnxAttribute>> ListOf(const GraphTuple& list) {
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (const GraphExpr& item : list.items) {
    const auto* literal = item.As<Literal>();
    const auto* text = literal == nullptr ? nullptr : std::get_if<std::string>(&literal->value);
    const auto* integer = literal == nullptr ? nullptr : std::get_if<int64_t>(&literal->value);
    if (text != nullptr) texts.push_back(*text);
    if (integer != nullptr) numbers.push_back(static_cast<double>(*integer));
    if (const std::optional<double> number = NumberIn(item)) numbers.push_back(*number);
  }
  if (texts.size() == list.items.size()) return OnnxAttribute(texts);
  if (numbers.size() == list.items.size()) return OnnxAttribute(numbers);
  return Unclear("an attribute that is a list of unlike things");
}

}  // namespace

std::optional<std::vector<int64_t>> IntegersIn(const GraphExpr& e, const SizeValues& sizes) {
  std::vector<Expr> all;
  if (const auto* shape = e.As<ShapeValue>()) all = shape->extents;
  if (const auto* scalar = e.As<ScalarValue>(); scalar != nullptr && scalar->value.type().is_int())
    all.push_back(scalar->value);
  std::vector<int64_t> integers;
  for (const Expr& extent : all) {
    const std::optional<int64_t> value = EvaluateSize(extent, sizes);
    if (!value.has_value()) return std::nullopt;
    integers.push_back(*value);
  }
  if (!all.empty() || e.As<ShapeValue>() != nullptr) return integers;
  if (const auto* literal = e.As<Literal>(); literal != nullptr && std::holds_alternative<int64_t>(literal->value))
    return std::vector{std::get<int64_t>(literal->value)};
  const auto* list = e.As<GraphTuple>();
  if (list == nullptr) return std::nullopt;
  for (const GraphExpr& item : list->items) {
    const auto part = IntegersIn(item, sizes);
    if (!part.has_value() || part->size() != 1) return std::nullopt;
    integers.push_back((*part)[0]);
  }
  return integers;
}

std::optional<double> NumberIn(const GraphExpr& e) {
  if (const auto* literal = e.As<Literal>(); literal != nullptr && std::holds_alternative<double>(literal->value))
    return std::get<double>(literal->value);
  const auto* scalar = e.As<ScalarValue>();
  const FloatImm* number = scalar == nullptr ? nullptr : scalar->value.As<FloatImm>();
  return number == nullptr ? std::nullopt : std::optional(number->value);
}

std::optional<NdArray> NumbersIn(const GraphExpr& e, const SizeValues& sizes) {
  const bool is_empty = e.As<GraphTuple>() != nullptr && e.As<GraphTuple>()->items.empty();
  if (const auto integers = IntegersIn(e, sizes); integers.has_value() && !is_empty) {
    const bool is_scalar = e.As<ScalarValue>() != nullptr || e.As<Literal>() != nullptr;
    std::vector<int64_t> shape;
    if (!is_scalar) shape.push_back(static_cast<int64_t>(integers->size()));
    return NdArray::Of<int64_t>(kInt64, std::move(shape), *integers);
  }
  const std::optional<double> number = NumberIn(e);
  if (!number.has_value()) return std::nullopt;
  NdArray array(DType::Float(64), {});
  array.Set(0, *number);
  return array;
}

absl::StatusOr<std::optional<OnnxAttribute>> AttributeOf(const GraphExpr& e, const SizeValues& sizes) {
  if (const auto* literal = e.As<Literal>()) {
    if (std::holds_alternative<std::monostate>(literal->value)) return std::nullopt;
    if (const auto* flag = std::get_if<bool>(&literal->value)) return OnnxAttribute(int64_t{*flag});
    if (const auto* integer = std::get_if<int64_t>(&literal->value)) return OnnxAttribute(*integer);
    if (const auto* number = std::get_if<double>(&literal->value)) return OnnxAttribute(*number);
    return OnnxAttribute(std::get<std::string>(literal->value));
  }
  if (const auto* type = e.As<TypeLiteral>(); type != nullptr && type->type.dtype.has_value())
    return OnnxAttribute(ToText(*type->type.dtype));
  if (const std::optional<double> number = NumberIn(e)) return OnnxAttribute(*number);
  if (const auto integers = IntegersIn(e, sizes); integers.has_value())
    return e.As<ScalarValue>() != nullptr ? OnnxAttribute((*integers)[0]) : OnnxAttribute(*integers);
  const auto* list = e.As<GraphTuple>();
  if (list == nullptr) return Unclear("an attribute that is neither number, text nor a list of them");
  return ListOf(*list);
}

absl::StatusOr<NdArray> ArrayOf(const TensorConstant& constant) {
  std::vector<int64_t> shape;
  const GraphExpr* e = &constant.value;
  while (const auto* list = e->As<GraphTuple>()) {
    shape.push_back(static_cast<int64_t>(list->items.size()));
    if (list->items.empty()) break;
    e = &list->items[0];
  }
  // Before there is room for them: lists that differ may promise more than the text holds.
  if (NumElements(shape) != CountOf(constant.value)) return Unclear("R.const of lists that differ in length");
  NdArray array(constant.dtype, std::move(shape));
  int64_t at = 0;
  HONE_RETURN_IF_ERROR(Fill(constant.value, 0, array, at));
  return array;
}

}  // namespace hone
