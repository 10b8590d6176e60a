// Random numbers. They are drawn when the model is imported: every run of a bundle has the same, which the graph's
// notes say. They come from the Mersenne Twister as the standard's reference takes them: with the node's seed, the
// reference's numbers. A node without a seed has one that follows from its name and place.
#include <algorithm>
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Shape = std::vector<int64_t>;

constexpr int64_t kMostNumbers = int64_t{1} << 24;
constexpr DType kWide = DType::Float(64);

class Generator {
 public:
  explicit Generator(uint32_t seed) : bits_(seed) {}
  // In [0, 1), of 53 bits.
  double Uniform() {
    const double high = static_cast<double>(bits_() >> 5), low = static_cast<double>(bits_() >> 6);
    return (high * 0x1p26 + low) * 0x1p-53;
  }
  // Of mean 0 and deviation 1, by Marsaglia's polar method: two at a time.
  double Normal() {
    if (has_next_) {
      has_next_ = false;
      return next_;
    }
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * Uniform() - 1;
      y = 2 * Uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    next_ = factor * x;
    has_next_ = true;
    return factor * y;
  }

 private:
  std::mt19937 bits_;
  bool has_next_ = false;
  double next_ = 0;
};

// FNV-1a, so that it is the same everywhere.
uint32_t HashOf(const std::string& name) {
  uint32_t hash = 2166136261;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
  return hash;
}

// An array of what `draw` takes from the node's generator. The seed is a float for most operators, and an integer for
// Dropout.
template <class Draw>
Value Drawn(NodeContext& c, DType dtype, const Shape& shape, bool integer_seed, Draw draw) {
  const std::optional<int64_t> count = NumElements(shape);
  if (!count.has_value() || *count > kMostNumbers || shape.size() > kMostDimensions || !dtype.is_float())
    return Fail(c, Unsupported(absl::StrCat("random numbers ", ToText(TensorType{dtype, shape}))));
  // A node in a loop's body draws anew in each iteration.
  uint32_t seed = HashOf(absl::StrCat(c.name(), "#", c.graph().values.size()));
  if (c.HasAttr("seed")) {
    const double given = integer_seed ? static_cast<double>(c.IntAttr("seed", 0)) : c.FloatAttr("seed", 0);
    if (!(given >= 0 && given < 0x1p32)) return Fail(c, Unsupported(absl::StrCat("the seed is ", given)));
    seed = static_cast<uint32_t>(given);
  }
  Generator generator(seed);
  NdArray array(dtype, shape);
  for (int64_t i = 0; i < *count; ++i) array.Set(i, draw(generator));
  const std::string note =
      absl::StrCat("Node \"", c.name(), "\": its random numbers are drawn now; every run of the bundle has the same.");
  std::vector<std::string>& notes = c.graph().notes;
  if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  return Constant(c, std::move(array));
}

absl::StatusOr<DType> TypeAttr(NodeContext& c, DType otherwise) {
  if (!c.HasAttr("dtype")) return otherwise;
  const int64_t number = c.IntAttr("dtype", 1);
  const std::optional<DType> dtype = OnnxDType(number);
  if (!dtype.has_value()) return Unsupported(absl::StrCat("elements of type ", OnnxDTypeName(number)));
  return *dtype;
}

// Of the attribute's shape, or like the input.
Outputs Random(NodeContext& c, bool like, bool normal) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(like ? 1 : 0, like ? 1 : 0));
  HONE_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(c, like ? c.type(c.input(0)).dtype : kFloat32));
  const Shape shape = like ? c.shape(c.input(0)) : c.IntsAttr("shape");
  if (normal) {
    const double mean = c.FloatAttr("mean", 0), scale = c.FloatAttr("scale", 1);
    return Results({Drawn(c, dtype, shape, false, [&](Generator& g) { return mean + scale * g.Normal(); })});
  }
  const double low = c.FloatAttr("low", 0), high = c.FloatAttr("high", 1);
  return Results({Drawn(c, dtype, shape, false, [&](Generator& g) { return low + (high - low) * g.Uniform(); })});
}

// 1 with the probability that the input says.
Outputs Bernoulli(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value probability = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const DType dtype, TypeAttr(c, probability.dtype()));
  const Value drawn = Drawn(c, kWide, probability.shape(), false, [](Generator& g) { return g.Uniform(); });
  return Results({Cast(drawn < Cast(probability, kWide), dtype)});
}

bool IsZero(const NodeContext& c, int input) {
  return c.IsConstant(input) && c.Number(input, "the input").value_or(1) == 0;
}

// In training each element is kept with the probability 1 - ratio, and multiplied by its inverse; else, and always
// before operator set 12, it is the input itself. Training and ratio may come at run time.
Outputs Dropout(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 3));
  for (const char* unused : {"ratio", "seed", "is_test"}) c.HasAttr(unused);
  const Value x = Input(c, 0);
  if (!c.HasInput(2) || IsZero(c, 2)) {
    if (c.num_outputs() < 2) return Results({x});
    return Results({x, Expand(Constant(c, kBool, 1), x.shape())});
  }
  const Value ratio = c.HasInput(1) ? Reshape(Cast(Input(c, 1), kWide), {}) : Constant(c, kWide, 0.5);
  const Value training = Reshape(Cast(Input(c, 2), kBool), {});
  const Value drawn = Drawn(c, kWide, x.shape(), true, [](Generator& g) { return g.Uniform(); });
  const Value mask = Or(Not(training), drawn >= ratio);
  const Value factor = Where(training, 1 / (1 - ratio), Number(ratio, 1));
  return Results({Where(mask, x * Cast(factor, x.dtype()), Number(x, 0)), mask});
}

}  // namespace

HONE_OPERATORS(random) {
  return {{.onnx = {{"RandomUniform", 1, [](NodeContext& c) { return Random(c, false, false); }},
                    {"RandomUniformLike", 1, [](NodeContext& c) { return Random(c, true, false); }},
                    {"RandomNormal", 1, [](NodeContext& c) { return Random(c, false, true); }},
                    {"RandomNormalLike", 1, [](NodeContext& c) { return Random(c, true, true); }},
                    {"Bernoulli", 15, Bernoulli},
                    {"Dropout", 6, Dropout}}}};
}

}  // namespace hone
