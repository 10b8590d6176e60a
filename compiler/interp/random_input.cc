#include "compiler/interp/random_input.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/support/random.h"

namespace hone {
namespace {

// Numbers with few digits, so that sums of equal ones round alike to nothing; signs alternate.
constexpr double kPattern[] = {0, 1, -1, 0.5, -2, 4, -0.25, 0, 1024, -512, 0x1p-20, -0x1p-12, 3, -3, 1, -1};

// A number of [0, 1) for element i of n.
double Fraction(Random& random, InputKind kind, int64_t i, int64_t n) {
  const double drawn = random.Uniform();
  if (kind == InputKind::kRising) return (static_cast<double>(i) + drawn) / static_cast<double>(n);
  if (kind == InputKind::kFalling) return (static_cast<double>(n - 1 - i) + drawn) / static_cast<double>(n);
  return drawn;
}

bool IsPeak(uint64_t seed, InputKind kind, int64_t i) {
  return (kind == InputKind::kPeaks || kind == InputKind::kTroughs) &&
         (static_cast<uint64_t>(i) + seed) % kPeakSpacing == 0;
}

int64_t LargestSigned(DType type) { return (int64_t{1} << (type.bits - 1)) - 1; }

int64_t PickInt(DType type, const Domain& domain, Random& random, InputKind kind, int64_t i, int64_t n) {
  if (domain.kind == Domain::Kind::kInt) {
    const uint64_t width = static_cast<uint64_t>(domain.high) - static_cast<uint64_t>(domain.low);
    if (kind == InputKind::kPatterned && i % 4 < 2) return i % 4 == 0 ? domain.low : domain.high - 1;  // both ends
    return domain.low + static_cast<int64_t>(random.Below(width));
  }
  if (type.is_bool()) return static_cast<int64_t>(random.Below(2));
  const bool no_sign = type.code == TypeCode::kUInt || domain.kind != Domain::Kind::kAny;
  const int64_t low = domain.kind == Domain::Kind::kPositive ? 1 : 0;
  if (kind == InputKind::kPatterned) {
    // The ends of types of a byte and less, where quantised programs go wrong.
    const int64_t all = int64_t{1} << std::min<int>(type.bits, 8);  // values
    const int64_t high = type.bits > 8 ? 1000 : (type.code == TypeCode::kUInt ? all : all / 2) - 1;
    const int64_t ends[] = {0, 1, -1, high, type.bits > 8 ? -high : -all / 2, 2, -3, 7};
    const int64_t value = ends[static_cast<size_t>(i + static_cast<int64_t>(random.Below(3))) % 8];
    return no_sign ? std::clamp<int64_t>(std::abs(value), low, high) : value;
  }
  const int64_t range = kind == InputKind::kInteger ? 4 : type.bits > 8 ? 100 : LargestSigned(type);
  const double fraction = Fraction(random, kind, i, n);
  if (no_sign) return low + static_cast<int64_t>(fraction * static_cast<double>(range));
  return static_cast<int64_t>(fraction * static_cast<double>(2 * range + 1)) - range;
}

double PickFloat(const Domain& domain, Random& random, InputKind kind, int64_t i, int64_t n) {
  constexpr double kLargeSize = 1000;
  double value = 0;
  switch (kind) {
    case InputKind::kRising:
    case InputKind::kFalling: value = 2 * Fraction(random, kind, i, n) - 1; break;
    case InputKind::kUniform:
    case InputKind::kPeaks:
    case InputKind::kTroughs: value = 2 * random.Uniform() - 1; break;
    case InputKind::kLarge: value = kLargeSize * (2 * random.Uniform() - 1); break;
    case InputKind::kInteger: value = static_cast<double>(random.Below(9)) - 4; break;
    case InputKind::kPatterned: {
      // Runs of a pattern, shifted at random places.
      const uint64_t shift = random.Below(16) == 0 ? random.Below(16) : 0;
      value = kPattern[(static_cast<uint64_t>(i) + shift) % std::size(kPattern)];
      break;
    }
  }
  const bool in_order = kind == InputKind::kRising || kind == InputKind::kFalling;
  const double size = in_order ? (1 + value) / 2 : std::abs(value);
  switch (domain.kind) {
    case Domain::Kind::kAny: return value;
    case Domain::Kind::kNonnegative: return size;
    case Domain::Kind::kPositive:
      return kind == InputKind::kInteger || kind == InputKind::kPatterned ? std::max(0.25, size) : 0.1 + size;
    case Domain::Kind::kInt: return static_cast<double>(PickInt(kInt64, domain, random, kind, i, n));
  }
  return value;
}

// A number beyond those that are no peaks, as far as the domain has such.
double PeakFloat(const Domain& domain, Random& random, InputKind kind) {
  const double size = 8 * (1 + random.Uniform());
  switch (domain.kind) {
    case Domain::Kind::kAny: return kind == InputKind::kPeaks ? size : -size;
    case Domain::Kind::kPositive: return kind == InputKind::kPeaks ? size : 0.01 * size / 16;
    case Domain::Kind::kNonnegative: return kind == InputKind::kPeaks ? size : 0;
    case Domain::Kind::kInt: return static_cast<double>(kind == InputKind::kPeaks ? domain.high - 1 : domain.low);
  }
  return size;
}
int64_t PeakInt(DType type, const Domain& domain, Random& random, InputKind kind) {
  if (domain.kind == Domain::Kind::kInt) return kind == InputKind::kPeaks ? domain.high - 1 : domain.low;
  const int64_t size = type.bits > 8 ? 200 + static_cast<int64_t>(random.Below(100)) : LargestSigned(type);
  if (kind == InputKind::kPeaks) return size;
  const bool no_sign = type.code == TypeCode::kUInt || domain.kind != Domain::Kind::kAny;
  return !no_sign ? -size : domain.kind == Domain::Kind::kPositive ? 1 : 0;
}

// Stretches of true, of false and of either: of conditions that are all drawn alone, no two dozen ever agree, and "any"
// and "all" of them are constants. Most are false in one kind, so that "any" of a few is false somewhere, and true in
// the others.
void FillBools(NdArray& array, Random& random, InputKind kind) {
  constexpr int64_t kLongest = 64;
  const int64_t most = kind == InputKind::kUniform ? 0 : 1;
  const int64_t n = array.NumElements();
  for (int64_t i = 0; i < n;) {
    const uint64_t what = random.Below(5);
    const int64_t end = std::min(n, i + 1 + static_cast<int64_t>(random.Below(kLongest)));
    for (; i < end; ++i) {
      array.SetInt(i, what == 0 ? static_cast<int64_t>(random.Below(2)) : what == 1 ? 1 - most : most);
    }
  }
}

}  // namespace

absl::StatusOr<Domain> ParseDomain(std::string_view text) {
  if (text.empty()) return Domain{};
  if (text == "positive") return Domain{Domain::Kind::kPositive};
  if (text == "nonnegative") return Domain{Domain::Kind::kNonnegative};
  const auto refuse = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "domain \"", std::string(text), "\" is none of \"\", \"positive\", \"nonnegative\" and \"int[LOW,HIGH)\""));
  };
  constexpr std::string_view kPrefix = "int[";
  if (!text.starts_with(kPrefix) || !text.ends_with(')')) return refuse();
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return refuse();
  const auto number = [](std::string_view digits, int64_t& value) {
    while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  Domain domain{Domain::Kind::kInt};
  if (!number(text.substr(kPrefix.size(), comma - kPrefix.size()), domain.low) ||
      !number(text.substr(comma + 1, text.size() - comma - 2), domain.high) || domain.low >= domain.high) {
    return refuse();
  }
  return domain;
}

NdArray RandomArray(DType type, std::vector<int64_t> shape, const Domain& domain, uint64_t seed, InputKind kind) {
  NdArray array(type, std::move(shape));
  Random random(seed, static_cast<uint64_t>(kind));
  const int64_t n = array.NumElements();
  const bool has_peaks = kind == InputKind::kPeaks || kind == InputKind::kTroughs;
  if (type.is_bool() && domain.kind == Domain::Kind::kAny) {
    if (!has_peaks) {
      FillBools(array, random, kind);
      return array;
    }
    for (int64_t i = 0; i < n; ++i) array.SetInt(i, IsPeak(seed, kind, i) == (kind == InputKind::kPeaks));
    return array;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (IsPeak(seed, kind, i)) {
      if (type.is_float()) {
        array.Set(i, PeakFloat(domain, random, kind));
      } else {
        array.SetInt(i, PeakInt(type, domain, random, kind));
      }
    } else if (type.is_float()) {
      array.Set(i, PickFloat(domain, random, kind, i, n));
    } else {
      array.SetInt(i, PickInt(type, domain, random, kind, i, n));
    }
  }
  return array;
}

Domain DomainOf(const PrimFunc& f, int param) {
  const auto found = f.attrs.find("domains");
  if (found == f.attrs.end()) return {};
  const auto* texts = std::get_if<std::vector<std::string>>(&found->second);
  if (texts == nullptr || param >= static_cast<int>(texts->size())) return {};
  return ParseDomain((*texts)[static_cast<size_t>(param)]).value_or(Domain{});
}

namespace {

std::vector<int64_t> ConstantShape(const Buffer& buffer) {
  std::vector<int64_t> shape;
  for (const Expr& extent : buffer.shape()) {
    const std::optional<int64_t> n = ConstantValue(extent);
    HONE_CHECK(n.has_value()) << "parameter " << buffer.name() << " has a symbolic shape";
    shape.push_back(*n);
  }
  return shape;
}

}  // namespace

NdArray RandomInput(const PrimFunc& f, int param, uint64_t seed, InputKind kind) {
  const Buffer& buffer = f.params[static_cast<size_t>(param)];
  return RandomArray(buffer.type(), ConstantShape(buffer), DomainOf(f, param), seed, kind);
}

std::vector<NdArray> RandomArguments(const PrimFunc& f, uint64_t seed, InputKind kind) {
  std::vector<NdArray> args;
  const int inputs = static_cast<int>(f.params.size()) - f.num_outputs();
  for (int i = 0; i < static_cast<int>(f.params.size()); ++i) {
    if (i < inputs) {
      args.push_back(RandomInput(f, i, Random(seed, static_cast<uint64_t>(i)).Next(), kind));
    } else {
      NdArray& output =
          args.emplace_back(f.params[static_cast<size_t>(i)].type(), ConstantShape(f.params[static_cast<size_t>(i)]));
      std::ranges::fill(output.data, static_cast<char>(kUnwrittenByte));
    }
  }
  return args;
}

}  // namespace hone
