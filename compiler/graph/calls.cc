#include "compiler/graph/calls.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hone {

Attrs CallAttrs(std::string function, std::span<const TensorType> outputs) {
  std::vector<std::string> dtypes;
  std::vector<int64_t> ranks, shapes;
  for (const TensorType& output : outputs) {
    dtypes.push_back(ToText(output.dtype));
    ranks.push_back(output.rank());
    shapes.insert(shapes.end(), output.shape.begin(), output.shape.end());
  }
  return {{"function", std::move(function)}, {"dtypes", dtypes}, {"ranks", ranks}, {"shapes", shapes}};
}

absl::StatusOr<std::vector<TensorType>> OutputsOfCall(const Attrs& attrs) {
  const auto unclear = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("it does not say what \"", StringAttr(attrs, "function"), "\" gives back"));
  };
  const auto found = attrs.find("dtypes");
  const auto* dtypes = found == attrs.end() ? nullptr : std::get_if<std::vector<std::string>>(&found->second);
  const std::vector<int64_t> ranks = IntsAttr(attrs, "ranks"), shapes = IntsAttr(attrs, "shapes");
  if (dtypes == nullptr || dtypes->empty() || dtypes->size() != ranks.size()) return unclear();
  std::vector<TensorType> outputs;
  size_t at = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::optional<DType> dtype = ParseDType((*dtypes)[i]);
    const size_t left = shapes.size() - at;
    if (!dtype.has_value() || ranks[i] < 0 || static_cast<size_t>(ranks[i]) > left) return unclear();
    const size_t end = at + static_cast<size_t>(ranks[i]);
    outputs.push_back({*dtype, std::vector<int64_t>(shapes.begin() + static_cast<int64_t>(at),
                                                    shapes.begin() + static_cast<int64_t>(end))});
    at = end;
  }
  return outputs;
}

}  // namespace hone
