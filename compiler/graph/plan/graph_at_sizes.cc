#include "compiler/graph/plan/graph_at_sizes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/constant_parts.h"
#include "compiler/graph/plan/plan_sizes.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kMostSizes = 1000;

// At most `most` of the values, the ends among them.
std::vector<int64_t> Thinned(const SizeRange& range, int64_t most) {
  std::vector<int64_t> values;
  const int64_t count = std::min(most, range.max - range.min + 1);
  for (int64_t i = 0; i < count; ++i)
    values.push_back(count == 1 ? range.max : range.min + (range.max - range.min) * i / (count - 1));
  return values;
}

// The form of a node's attributes; what is a number goes to `numbers`.
void FlattenAttributes(const Attrs& attrs, std::string* form, std::vector<double>* numbers) {
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(form, " ", name, "=");
    if (const auto* number = std::get_if<int64_t>(&value)) {
      numbers->push_back(static_cast<double>(*number));
    } else if (const auto* real = std::get_if<double>(&value)) {
      numbers->push_back(*real);
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      absl::StrAppend(form, "[", list->size(), "]");
      numbers->insert(numbers->end(), list->begin(), list->end());
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      absl::StrAppend(form, *text);
    } else {
      absl::StrAppend(form, absl::StrJoin(std::get<std::vector<std::string>>(value), ","));
    }
  }
}

void FlattenType(const TensorType& type, std::string* form, std::vector<double>* numbers) {
  absl::StrAppend(form, " ", ToText(type.dtype), "[", type.shape.size(), "]");
  numbers->insert(numbers->end(), type.shape.begin(), type.shape.end());
}

bool IsPart(const std::shared_ptr<const NdArray>& part, const std::shared_ptr<const NdArray>& whole) {
  return part == whole || IsCornerOf(*part, *whole);
}

}  // namespace

std::vector<std::vector<int64_t>> SizesToCheck(const std::vector<PlanSize>& given) {
  std::vector<PlanSize> sizes = given;
  for (PlanSize& size : sizes) size.range.min = std::max<int64_t>(size.range.min, 1);
  int64_t combinations = 1;
  for (const PlanSize& size : sizes) {
    const int64_t values = size.range.max - size.range.min + 1;
    combinations = combinations > kMostSizes / values ? kMostSizes + 1 : combinations * values;
  }
  if (combinations <= kMostSizes) {
    std::vector<std::vector<int64_t>> all;
    for (const PlanSize& size : sizes) all.push_back(Thinned(size.range, kMostSizes));
    return Grid(all);
  }
  std::vector<std::vector<int64_t>> points;
  const int64_t of_each = kMostSizes / (2 * static_cast<int64_t>(sizes.size()));
  for (size_t s = 0; s < sizes.size(); ++s) {
    for (const bool others_least : {true, false}) {
      std::vector<int64_t> point;
      for (const PlanSize& size : sizes) point.push_back(others_least ? size.range.min : size.range.max);
      for (const int64_t value : Thinned(sizes[s].range, sizes.size() == 1 ? kMostSizes : of_each)) {
        point[s] = value;
        points.push_back(point);
      }
      if (sizes.size() == 1) return points;
    }
  }
  return points;
}

GraphAtSizes::GraphAtSizes(std::vector<PlanSize> sizes, std::vector<std::vector<int64_t>> points,
                           const std::vector<Graph>& graphs)
    : sizes_(std::move(sizes)), points_(std::move(points)) {
  HONE_CHECK(!graphs.empty() && graphs.size() == points_.size()) << "one graph for each point";
  std::vector<Flat> flat;
  for (const Graph& graph : graphs) flat.push_back(Flatten(graph));
  greatest_ = std::move(flat[0]);
  PolynomialFit fit(points_);
  is_part_.assign(greatest_.tables.size(), true);
  for (size_t f = 0; f < greatest_.forms.size(); ++f) {
    numbers_.emplace_back(greatest_.numbers[f].size());
    for (size_t n = 0; n < numbers_[f].size(); ++n) {
      std::vector<double> values = {greatest_.numbers[f][n]};
      for (size_t i = 1; i < flat.size(); ++i) {
        const bool same = flat[i].forms.size() > f && flat[i].forms[f] == greatest_.forms[f];
        if (same && n < flat[i].numbers[f].size()) values.push_back(flat[i].numbers[f][n]);
      }
      if (values.size() == flat.size()) numbers_[f][n] = fit.OfNumbers(values);
    }
  }
  for (size_t i = 1; i < flat.size(); ++i) {
    for (size_t t = 0; t < is_part_.size(); ++t) {
      is_part_[t] =
          is_part_[t] && flat[i].tables.size() == is_part_.size() && IsPart(flat[i].tables[t], greatest_.tables[t]);
    }
  }
}

GraphAtSizes::Flat GraphAtSizes::Flatten(const Graph& graph) {
  Flat flat;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const GraphValue& value = graph.values[v];
    if (!value.is_constant()) continue;
    std::string form = absl::StrCat("constant ", v);
    std::vector<double> numbers;
    FlattenType(value.type, &form, &numbers);
    if (value.data->NumElements() == 1) numbers.push_back(value.data->Get(0));  // may follow from a size, as a number
    flat.tables.push_back(value.data);
    flat.constants.push_back(flat.forms.size());
    flat.names.push_back(absl::StrCat("the constant \"", value.name, "\""));
    flat.forms.push_back(std::move(form));
    flat.numbers.push_back(std::move(numbers));
  }
  for (const Node& node : graph.nodes) {
    std::string form = absl::StrCat(node.op, "(", absl::StrJoin(node.inputs, ","), ")");
    std::vector<double> numbers;
    for (const int output : node.outputs) FlattenType(graph.type(output), &form, &numbers);
    FlattenAttributes(node.attrs, &form, &numbers);
    flat.names.push_back(absl::StrCat("the node \"", node.name, "\" (", node.op, ")"));
    flat.forms.push_back(std::move(form));
    flat.numbers.push_back(std::move(numbers));
  }
  flat.names.push_back("the list of outputs");
  flat.forms.push_back(absl::StrCat("outputs ", absl::StrJoin(graph.outputs, ",")));
  flat.numbers.emplace_back();
  return flat;
}

absl::Status GraphAtSizes::Check(const std::vector<int64_t>& point, const Graph& graph) const {
  const Flat here = Flatten(graph);
  for (size_t f = 0; f < std::min(here.forms.size(), greatest_.forms.size()); ++f) {
    if (here.forms[f] != greatest_.forms[f])
      return Differs(point, absl::StrCat(here.names[f], " stands where ", greatest_.names[f], " was"));
    for (size_t n = 0; n < std::min(here.numbers[f].size(), numbers_[f].size()); ++n) {
      const std::optional<SizeNumber>& number = numbers_[f][n];
      if (!number.has_value() || number->IsAt(point, here.numbers[f][n])) continue;
      return Differs(point, absl::StrCat("of ", here.names[f], " a number is ", here.numbers[f][n], " and not ",
                                         number->At(point), ", as it would follow from the others"));
    }
  }
  if (here.forms.size() != greatest_.forms.size())
    return Differs(point,
                   absl::StrCat("it has ", here.forms.size(), " nodes and constants and not ", greatest_.forms.size()));
  for (size_t t = 0; t < here.tables.size(); ++t) {
    if (is_part_[t] && !IsPart(here.tables[t], greatest_.tables[t]))
      return Differs(point, absl::StrCat(here.names[here.constants[t]], " has other elements"));
  }
  return absl::OkStatus();
}

absl::Status GraphAtSizes::Differs(const std::vector<int64_t>& point, const std::string& what) const {
  return absl::FailedPreconditionError(absl::StrCat("the model is another one at ", SizesText(sizes_, point),
                                                    " than at ", SizesText(sizes_, points_[0]), ": ", what,
                                                    "; give a range on one side of it"));
}

}  // namespace hone
