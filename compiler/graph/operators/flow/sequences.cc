// Sequences of tensors and optional values. Whether a value is there, and how long a sequence is, is known when the
// model is imported (sequences.h): what is left are the elements.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Elements = std::vector<int>;

constexpr int64_t kMostElements = 4096;

Outputs Sequence(NodeContext& c, Elements elements) { return Elements{c.sequences().Add(std::move(elements))}; }

// ---- Optional values: one that is there is the tensor or the sequence itself.
Outputs Optional(NodeContext& c) {
  c.HasAttr("type");
  return Elements{c.num_inputs() == 0 ? Sequences::kNothing : c.input(0)};
}

bool IsThere(const NodeContext& c) { return c.HasInput(0) || c.IsSequence(0); }

Outputs OptionalHasElement(NodeContext& c) { return Results({Constant(c, kBool, IsThere(c) ? 1 : 0)}); }

Outputs OptionalGetElement(NodeContext& c) {
  if (!IsThere(c)) return Unsupported("there is no element");
  return Elements{c.input(0)};
}

// ---- Sequences.
Outputs SequenceEmpty(NodeContext& c) {
  c.HasAttr("dtype");
  return Sequence(c, {});
}

Outputs SequenceConstruct(NodeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) return Unsupported(absl::StrCat("element ", i, " is no tensor"));
  }
  return Sequence(c, c.inputs());
}

Outputs SequenceLength(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(const Elements elements, c.Elements(0));
  return Results({Constant(c, kInt64, static_cast<double>(elements.size()))});
}

// Input 1: a position that counts from the end where it is below 0; `otherwise` where it is left out. It is below
// `count`.
absl::StatusOr<size_t> Position(NodeContext& c, int input, size_t count, size_t otherwise, size_t length) {
  if (!c.HasInput(input)) return otherwise;
  HONE_ASSIGN_OR_RETURN(const int64_t given, c.Int(input, "the position"));
  const int64_t position = given < 0 ? given + static_cast<int64_t>(length) : given;
  if (position < 0 || position >= static_cast<int64_t>(count))
    return Unsupported(absl::StrCat("position ", given, " of a sequence of ", length));
  return static_cast<size_t>(position);
}

Outputs SequenceInsert(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(Elements elements, c.Elements(0));
  if (!c.HasInput(1)) return Unsupported("the tensor to insert is left out");
  const size_t n = elements.size();
  HONE_ASSIGN_OR_RETURN(const size_t at, Position(c, 2, n + 1, n, n));
  elements.insert(elements.begin() + static_cast<int64_t>(at), c.input(1));
  return Sequence(c, std::move(elements));
}

Outputs SequenceErase(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(Elements elements, c.Elements(0));
  if (elements.empty()) return Unsupported("the sequence is empty");
  HONE_ASSIGN_OR_RETURN(const size_t at, Position(c, 1, elements.size(), elements.size() - 1, elements.size()));
  elements.erase(elements.begin() + static_cast<int64_t>(at));
  return Sequence(c, std::move(elements));
}

Value Stack(NodeContext& c, const Elements& elements, int64_t axis) {
  std::vector<Value> parts;
  for (const int element : elements) {
    std::vector<int64_t> shape = c.shape(element);
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(Reshape(Value(c, element), shape));
  }
  return Concat(parts, axis);
}

// Where the position comes at run time, the elements are of one type, and the one it names is taken.
Outputs SequenceAt(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(const Elements elements, c.Elements(0));
  if (elements.empty()) return Unsupported("the sequence is empty");
  if (!c.HasInput(1)) return Unsupported("the position is left out");
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const size_t at, Position(c, 1, elements.size(), 0, elements.size()));
    return Elements{elements[at]};
  }
  for (const int element : elements) {
    if (!(c.type(element) == c.type(elements[0])))
      return Unsupported(absl::StrCat("the position comes at run time, and elements are ", ToText(c.type(elements[0])),
                                      " and ", ToText(c.type(element))));
  }
  const Value given = Reshape(Cast(Input(c, 1), kInt64), {1}), n = Number(given, static_cast<double>(elements.size()));
  const Value at = Where(given < Number(given, 0), given + n, given);
  return Results({Reshape(Gather(Stack(c, elements, 0), at, 0), c.shape(elements[0]))});
}

// The sizes of the parts along the axis: input 1 is one size, the last part being what is left, or one for each part.
absl::StatusOr<std::vector<int64_t>> PartSizes(NodeContext& c, int64_t extent) {
  if (!c.HasInput(1)) return std::vector<int64_t>(static_cast<size_t>(extent), 1);
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, c.Ints(1, "the sizes"));
  if (c.rank(c.input(1)) == 0) {
    const int64_t size = sizes[0];
    if (size < 1 || extent / size >= kMostElements)
      return Unsupported(absl::StrCat("parts of ", size, " of ", extent, " elements"));
    sizes.clear();
    for (int64_t at = 0; at < extent; at += size) sizes.push_back(std::min(size, extent - at));
  }
  int64_t at = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent - at)
      return Unsupported(absl::StrCat("parts of ", absl::StrJoin(sizes, ", "), " of ", extent, " elements"));
    at += size;
  }
  if (at != extent)
    return Unsupported(absl::StrCat("parts of ", absl::StrJoin(sizes, ", "), " of ", extent, " elements"));
  return sizes;
}

Outputs SplitToSequence(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 2));
  const Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), x.rank()));
  const bool keeps = c.IntAttr("keepdims", 1) != 0 || c.HasInput(1);
  const int64_t extent = x.dim(static_cast<int>(axis));
  if (extent > kMostElements && !c.HasInput(1)) return Unsupported(absl::StrCat("a sequence of ", extent));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, PartSizes(c, extent));
  if (sizes.size() > static_cast<size_t>(kMostElements))
    return Unsupported(absl::StrCat("a sequence of ", sizes.size()));
  Elements elements;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    Value part = Slice(x, axis, at, size);
    at += size;
    if (part && !keeps) {
      std::vector<int64_t> shape = x.shape();
      shape.erase(shape.begin() + axis);
      part = Reshape(part, shape);
    }
    if (!part) return c.status();
    elements.push_back(part.id());
  }
  return Sequence(c, std::move(elements));
}

Outputs ConcatFromSequence(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(const Elements elements, c.Elements(0));
  if (elements.empty()) return Unsupported("the sequence is empty");
  const bool new_axis = c.IntAttr("new_axis", 0) != 0;
  const int rank = c.rank(elements[0]);
  for (const int element : elements) {
    if (c.rank(element) != rank) return Unsupported("elements of different ranks");
  }
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), new_axis ? rank + 1 : rank));
  if (new_axis) return Results({Stack(c, elements, axis)});
  std::vector<Value> parts;
  for (const int element : elements) parts.emplace_back(c, element);
  return Results({Concat(parts, axis)});
}

// The body of each element of the sequences, and of tensors as they are; a sequence of each of its outputs.
Outputs SequenceMap(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(const Elements first, c.Elements(0));
  c.HasAttr("body");
  std::vector<Elements> results(static_cast<size_t>(c.num_outputs()));
  for (size_t e = 0; e < first.size(); ++e) {
    Elements inputs;
    for (int i = 0; i < c.num_inputs(); ++i) {
      if (!c.IsSequence(i)) {
        inputs.push_back(c.input(i));
        continue;
      }
      HONE_ASSIGN_OR_RETURN(const Elements elements, c.Elements(i));
      if (elements.size() != first.size())
        return Unsupported(absl::StrCat("sequences of ", first.size(), " and ", elements.size(), " elements"));
      inputs.push_back(elements[e]);
    }
    HONE_ASSIGN_OR_RETURN(const Elements outputs, c.Inline("body", inputs));
    if (outputs.size() != results.size()) return Unsupported("its body has another number of outputs");
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k] < 0) return Unsupported("an output of its body is no tensor");
      results[k].push_back(outputs[k]);
    }
  }
  Elements outputs;
  for (Elements& elements : results) outputs.push_back(c.sequences().Add(std::move(elements)));
  return outputs;
}

OnnxOperator Row(std::string_view name, int since, ImportFn import) {
  return {.name = name, .since = since, .import = import, .takes_sequences = true};
}

}  // namespace

HONE_OPERATORS(sequences) {
  return {{.onnx = {Row("Optional", 15, Optional), Row("OptionalHasElement", 15, OptionalHasElement),
                    Row("OptionalGetElement", 15, OptionalGetElement), Row("SequenceEmpty", 11, SequenceEmpty),
                    Row("SequenceConstruct", 11, SequenceConstruct), Row("SequenceLength", 11, SequenceLength),
                    Row("SequenceInsert", 11, SequenceInsert), Row("SequenceErase", 11, SequenceErase),
                    Row("SequenceAt", 11, SequenceAt), Row("SplitToSequence", 11, SplitToSequence),
                    Row("ConcatFromSequence", 11, ConcatFromSequence), Row("SequenceMap", 17, SequenceMap)}}};
}

}  // namespace hone
