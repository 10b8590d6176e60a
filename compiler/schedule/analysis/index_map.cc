#include "compiler/schedule/analysis/index_map.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/limits.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// clang-format off
//   expression := sum ("^" sum)*
//   sum        := term (("+" | "-") term)*
//   term       := factor (("*" | "//" | "%") factor)*
//   factor     := number | name | "(" expression ")" | "-" factor
// clang-format on
class MapParser {
 public:
  explicit MapParser(std::string_view text) : text_(text) {}

  absl::StatusOr<IndexMap> Parse() {
    if (!Take("lambda")) return Error("\"lambda\"");
    while (!Take(":")) {
      const std::string name = TakeName();
      if (name.empty()) return Error("the name of an index");
      if (vars_.count(name) > 0) return Invalid("index map: the index ", name, " is there twice");
      map_.inputs.push_back(Var(name));
      vars_[name] = map_.inputs.back();
      if (Take(",") || Peek() == ':') continue;
      return Error("\",\" or \":\"");
    }
    // A tuple or a list of expressions, or one expression.
    const bool bracketed = IsTuple();
    if (bracketed) Take(text_.substr(at_, 1));
    while (true) {
      Skip();
      if (bracketed && (Take(")") || Take("]"))) break;
      HONE_ASSIGN_OR_RETURN(Expr e, Xor(0));
      map_.outputs.push_back(std::move(e));
      if (Take(",")) continue;
      if (bracketed && (Take(")") || Take("]"))) break;
      if (!bracketed) break;
      return Error("\",\" or \")\"");
    }
    Skip();
    if (at_ < text_.size()) return Error("the end");
    if (map_.outputs.empty()) return Invalid("index map: no new index in \"", text_, "\"");
    return std::move(map_);
  }

 private:
  void Skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char Peek() {
    Skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(std::string_view token) {
    Skip();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  std::string TakeName() {
    Skip();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  // The bracket at the cursor encloses all the rest: (a, b) rather than (a + b) * 2.
  bool IsTuple() {
    const char c = Peek();
    if (c != '(' && c != '[') return false;
    int depth = 0;
    for (size_t i = at_; i < text_.size(); ++i) {
      depth += text_[i] == '(' || text_[i] == '[';
      depth -= text_[i] == ')' || text_[i] == ']';
      if (depth == 0) return text_.find_first_not_of(" \t\r\n", i + 1) == std::string_view::npos;
    }
    return true;
  }
  absl::Status Error(std::string_view expected) const {
    return Invalid("index map: found \"", text_.substr(at_), "\", expected ", expected);
  }
  absl::StatusOr<Expr> Xor(int depth) {
    HONE_ASSIGN_OR_RETURN(Expr e, Sum(depth));
    while (Take("^")) {
      HONE_ASSIGN_OR_RETURN(const Expr b, Sum(depth));
      e = MakeBinary(BinaryOp::kBitXor, e, b);
    }
    return e;
  }
  absl::StatusOr<Expr> Sum(int depth) {
    if (depth > 50) return Error("brackets at most 50 deep");
    HONE_ASSIGN_OR_RETURN(Expr e, Product(depth));
    while (true) {
      if (Take("+")) {
        HONE_ASSIGN_OR_RETURN(const Expr b, Product(depth));
        e = e + b;
      } else if (Take("-")) {
        HONE_ASSIGN_OR_RETURN(const Expr b, Product(depth));
        e = e - b;
      } else {
        return e;
      }
    }
  }
  absl::StatusOr<Expr> Product(int depth) {
    HONE_ASSIGN_OR_RETURN(Expr e, Factor(depth));
    while (true) {
      const bool div = Take("//");
      const bool mod = !div && Take("%");
      if (!div && !mod && !Take("*")) return e;
      HONE_ASSIGN_OR_RETURN(const Expr b, Factor(depth));
      if (div || mod) {
        const std::optional<int64_t> divisor = ConstantValue(b);
        if (!divisor.has_value() || *divisor < 1)
          return Invalid("index map: the divisor ", b, " is not a number above 0");
      }
      e = div ? FloorDiv(e, b) : mod ? FloorMod(e, b) : e * b;
    }
  }
  absl::StatusOr<Expr> Factor(int depth) {
    const char c = Peek();
    if (Take("(")) {
      HONE_ASSIGN_OR_RETURN(const Expr e, Xor(depth + 1));
      if (!Take(")")) return Error("\")\"");
      return e;
    }
    if (Take("-")) {
      if (depth > 50) return Error("brackets at most 50 deep");
      HONE_ASSIGN_OR_RETURN(const Expr e, Factor(depth + 1));
      return IntConst(0) - e;
    }
    if (std::isdigit(static_cast<unsigned char>(c))) {
      int64_t value = 0;
      const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (r.ec != std::errc() || value > INT32_MAX) return Error("a number below 2**31");
      at_ = r.ptr - text_.data();
      return IntConst(value);
    }
    const size_t before = at_;
    const std::string name = TakeName();
    const auto it = vars_.find(name);
    if (it == vars_.end()) {
      at_ = before;
      return Error("a number or one of the indices");
    }
    return Expr(it->second);
  }

  std::string_view text_;
  size_t at_ = 0;
  IndexMap map_;
  std::map<std::string, Var> vars_;
};

// ToText of expressions is the program dialect's, which writes // and % as functions; here they are operators.
std::string OperatorText(const Expr& e, int outer) {
  if (const auto* binary = e.As<Binary>()) {
    std::string_view op;
    int level = 1;  // 0: exclusive or, 1: sums, 2: products
    switch (binary->op) {
      case BinaryOp::kAdd: op = " + "; break;
      case BinaryOp::kSub: op = " - "; break;
      case BinaryOp::kMul: op = " * ", level = 2; break;
      case BinaryOp::kFloorDiv: op = " // ", level = 2; break;
      case BinaryOp::kFloorMod: op = " % ", level = 2; break;
      case BinaryOp::kBitXor: op = " ^ ", level = 0; break;
      default:
        return ToText(e);  // no part of a map that can be read, but what a block reads its input at, in a message
    }
    const std::string text = Message(OperatorText(binary->a, level - 1), op, OperatorText(binary->b, level));
    return level <= outer ? Message("(", text, ")") : text;
  }
  if (const auto* constant = e.As<IntImm>()) {
    return constant->value < 0 ? Message("(", constant->value, ")") : Message(constant->value);
  }
  if (const auto* var = e.As<VarRef>()) return var->var.name();
  if (const auto* cast = e.As<Cast>()) return OperatorText(cast->a, outer);
  return ToText(e);
}

}  // namespace

std::vector<Expr> IndexMap::Map(std::span<const Expr> indices) const {
  HONE_CHECK(indices.size() == inputs.size()) << indices.size() << " indices, " << inputs.size() << " inputs";
  std::vector<Expr> mapped;
  mapped.reserve(outputs.size());
  for (const Expr& output : outputs) {
    mapped.push_back(Substitute(output, [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].SameAs(var)) return indices[i];
      }
      return std::nullopt;
    }));
  }
  return mapped;
}

std::string ToText(const IndexMap& map) {
  std::string text = "lambda";
  std::map<std::string, int> seen;
  for (size_t i = 0; i < map.inputs.size(); ++i) text += Message(i == 0 ? " " : ", ", map.inputs[i]);
  text += ": (";
  for (size_t i = 0; i < map.outputs.size(); ++i) text += Message(i == 0 ? "" : ", ", OperatorText(map.outputs[i], -1));
  return text + (map.outputs.size() == 1 ? ",)" : ")");
}

absl::StatusOr<IndexMap> ParseIndexMap(std::string_view text) { return MapParser(text).Parse(); }

namespace {

// An output as (x // lower) % extent ^ mask, x the index `input`.
struct Digit {
  int input = -1;  // -1: a constant output
  int64_t lower = 1, extent = 1;
  Expr mask;  // absent: none
};

absl::StatusOr<Digit> DigitOf(const IndexMap& map, size_t o, std::span<const int64_t> shape, Analyzer& known) {
  const Binary* swizzled = map.outputs[o].As<Binary>();
  if (swizzled != nullptr && swizzled->op != BinaryOp::kBitXor) swizzled = nullptr;
  // The size of what is swizzled is as it was written: j % 4 where j is below 3 as well.
  const Expr e = swizzled != nullptr ? map.outputs[o] : known.Simplify(map.outputs[o]);
  const std::string where = Message("index map ", ToText(map), ": output ", o);
  if (ConstantValue(e).has_value()) {
    if (*ConstantValue(e) != 0) return Invalid(where, " is the constant ", e, ", not 0");
    return Digit();
  }
  Digit digit;
  if (swizzled != nullptr) digit.mask = known.Simplify(swizzled->b);
  Expr rest = swizzled != nullptr ? swizzled->a : e;
  // Peel floormod(floordiv(x, lower), extent).
  int64_t modulus = 0;
  while (const auto* binary = rest.As<Binary>()) {
    const std::optional<int64_t> c = ConstantValue(binary->b);
    if (!c.has_value() || *c < 1) break;
    if (binary->op == BinaryOp::kFloorMod && digit.lower == 1 && modulus == 0) {
      modulus = *c;
    } else if (binary->op == BinaryOp::kFloorDiv) {
      digit.lower *= *c;
    } else {
      break;
    }
    rest = binary->a;
  }
  const auto* ref = rest.As<VarRef>();
  const auto input = ref == nullptr ? map.inputs.end()
                                    : std::find_if(map.inputs.begin(), map.inputs.end(),
                                                   [&](const Var& v) { return v.SameAs(ref->var); });
  if (input == map.inputs.end()) {
    return Invalid(where, " (", OperatorText(e, 0), ") is not a digit of one index, such as (k // 4) % 16");
  }
  digit.input = static_cast<int>(input - map.inputs.begin());
  digit.extent = modulus != 0 ? modulus : (shape[digit.input] + digit.lower - 1) / digit.lower;
  if (!digit.mask) return digit;
  // What is swizzled must stay inside: 2**n places, and a mask of n bits.
  const Bounds mask = known.ConstBounds(digit.mask);
  if ((digit.extent & (digit.extent - 1)) != 0 || mask.min < 0 || mask.max >= digit.extent) {
    return Invalid(where, " (", OperatorText(e, -1), ") swizzles ", digit.extent, " places by ",
                   OperatorText(digit.mask, 0), "; it must be a power of two, and the mask below it");
  }
  return digit;
}

// Which outputs are digits of the input, from the lowest: each must start where the one before ends.
absl::StatusOr<std::vector<size_t>> DigitsOf(const IndexMap& map, size_t input, const std::vector<Digit>& digits,
                                             int64_t size) {
  std::vector<size_t> own;
  for (size_t o = 0; o < digits.size(); ++o) {
    if (digits[o].input == static_cast<int>(input)) own.push_back(o);
  }
  std::ranges::sort(own, {}, [&](size_t o) { return std::tuple(digits[o].lower, digits[o].extent, o); });
  int64_t reach = 1;
  for (const size_t o : own) {
    if (digits[o].lower != reach) {
      return Invalid("index map ", ToText(map), ": index ", map.inputs[input],
                     " cannot be told from the new indices: its digits reach ", reach, " and go on at ",
                     digits[o].lower);
    }
    reach = digits[o].lower * digits[o].extent;
  }
  if (reach < size) {
    return Invalid("index map ", ToText(map), ": index ", map.inputs[input], " runs to ", size, ", its digits only to ",
                   reach);
  }
  return own;
}

absl::Status CheckRanks(const IndexMap& map, size_t dimensions) {
  if (dimensions != map.inputs.size()) {
    return Invalid("index map ", ToText(map), ": it takes ", map.inputs.size(), " indices, the tensor has ", dimensions,
                   " dimensions");
  }
  if (map.outputs.size() > kMostBufferDimensions) {
    return Invalid("index map ", ToText(map), ": it makes ", map.outputs.size(), " dimensions, at most ",
                   kMostBufferDimensions, " are supported");
  }
  return absl::OkStatus();
}

// Output o, a swizzled digit of index `input`, before it was swizzled; the indices that swizzle it are known.
absl::StatusOr<Expr> Unswizzled(const IndexMap& map, size_t o, size_t input, const Expr& mask,
                                const InverseMap& inverse) {
  const std::set<Var> used = FreeVars(mask);
  for (size_t k = 0; k < map.inputs.size(); ++k) {
    if (used.contains(map.inputs[k]) && (!inverse.original[k] || k == input))
      return Invalid("index map ", ToText(map), ": output ", o, " is swizzled by ", map.inputs[k],
                     ", which is swizzled itself");
  }
  const Expr by = Substitute(mask, [&](const Var& var) -> std::optional<Expr> {
    for (size_t k = 0; k < map.inputs.size(); ++k) {
      if (map.inputs[k].SameAs(var)) return inverse.original[k];
    }
    return std::nullopt;
  });
  return MakeBinary(BinaryOp::kBitXor, inverse.indices[o], by);
}

}  // namespace

absl::StatusOr<InverseMap> Invert(const IndexMap& map, std::span<const Expr> extents) {
  HONE_RETURN_IF_ERROR(CheckRanks(map, extents.size()));
  VarRanges ranges;
  std::vector<int64_t> shape;  // of a symbolic extent the greatest
  for (size_t i = 0; i < extents.size(); ++i) {
    ranges[map.inputs[i]] = Range{IntConst(0), extents[i]};
    shape.push_back(Analyzer().ConstBounds(extents[i]).max);
    if (shape.back() > INT32_MAX)
      return Invalid("index map ", ToText(map), ": the extent ", extents[i], " has no bound below 2**31");
  }
  Analyzer known(ranges);
  InverseMap inverse;
  inverse.inside = True();
  std::vector<Digit> digits;
  for (size_t o = 0; o < map.outputs.size(); ++o) {
    HONE_ASSIGN_OR_RETURN(Digit digit, DigitOf(map, o, shape, known));
    inverse.indices.push_back(Var(Message("p", o)));
    const bool follows = digit.input >= 0 && !digit.mask && !ConstantValue(extents[digit.input]).has_value() &&
                         digit.lower * digit.extent >= shape[digit.input];
    inverse.shape.push_back(
        follows ? known.Simplify(FloorDiv(extents[digit.input] + IntConst(digit.lower - 1), IntConst(digit.lower)))
                : IntConst(digit.extent));
    digits.push_back(std::move(digit));
  }
  // Indices without a swizzled digit first: masks are made of these.
  inverse.original.resize(shape.size());
  for (const bool swizzled : {false, true}) {
    for (size_t i = 0; i < shape.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(const std::vector<size_t> own, DigitsOf(map, i, digits, shape[i]));
      if (std::ranges::any_of(own, [&](size_t o) { return static_cast<bool>(digits[o].mask); }) != swizzled) continue;
      Expr value = IntConst(0);
      for (const size_t o : own) {
        Expr digit = inverse.indices[o];
        if (digits[o].mask) { HONE_ASSIGN_OR_RETURN(digit, Unswizzled(map, o, i, digits[o].mask, inverse)); }
        value = value + digit * IntConst(digits[o].lower);
      }
      const int64_t reach = own.empty() ? 1 : digits[own.back()].lower * digits[own.back()].extent;
      const bool divides = ConstantValue(extents[i]).has_value() ? reach == shape[i] : own.size() == 1;
      if (!own.empty() && !divides) inverse.inside = And(inverse.inside, value < extents[i]);
      inverse.original[i] = value;
    }
  }
  return inverse;
}

namespace {

// A part of a source's value: where it begins, how many values it has, and what it is in terms of the new indices.
struct SourceDigit {
  int64_t lower, extent;
  Expr value;
};

// What the digits, in any order, make of a source, and how far they reach without a gap.
std::pair<Expr, int64_t> ValueOf(std::vector<SourceDigit> digits) {
  std::sort(digits.begin(), digits.end(), [](const SourceDigit& a, const SourceDigit& b) { return a.lower < b.lower; });
  int64_t reach = 1;
  Expr value = IntConst(0);
  for (const SourceDigit& digit : digits) {
    if (digit.lower != reach) break;
    value = value + digit.value * IntConst(digit.lower);
    reach *= digit.extent;
  }
  return {value, reach};
}

}  // namespace

absl::StatusOr<InverseMap> InvertOneToOne(const IndexMap& map, std::span<const int64_t> shape) {
  const std::string where = Message("index map ", ToText(map));
  if (shape.size() != map.inputs.size()) {
    return Invalid(where, ": it takes ", map.inputs.size(), " indices, there are ", shape.size());
  }
  VarRanges ranges;
  for (size_t i = 0; i < shape.size(); ++i) ranges[map.inputs[i]] = Range{IntConst(0), IntConst(shape[i])};
  Analyzer known(ranges);
  std::vector<Expr> outputs;
  for (const Expr& e : map.outputs) outputs.push_back(known.Simplify(e));
  const absl::StatusOr<IterMap> found = DetectIterMap(outputs, ranges, True(), false);
  if (!found.ok()) return Invalid(where, ": ", found.status().message());
  InverseMap inverse;
  inverse.inside = True();
  std::vector<std::vector<SourceDigit>> digits(found->sources.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const IterValue& value = found->values[o];
    if (!IsConst(known.Simplify(value.base), 0))
      return Invalid(where, ": output ", o, " (", outputs[o], ") starts at ", value.base, ", not at 0");
    const Var place(Message("p", o));
    inverse.indices.push_back(place);
    inverse.shape.push_back(value.extent);
    known.Bind(place, Range{IntConst(0), value.extent});
    int64_t below = 1;  // places that the pieces of lower scale take
    for (size_t k = value.pieces.size(); k-- > 0;) {
      const IterPiece& piece = value.pieces[k];
      if (piece.scale != below)
        return Invalid(where, ": output ", o, " (", outputs[o], ") leaves out places in between");
      const int64_t extent = *ConstantValue(piece.extent);
      below *= extent;
      const Expr digit = FloorMod(FloorDiv(place, IntConst(piece.scale)), IntConst(extent));
      digits[static_cast<size_t>(piece.source)].push_back({piece.lower_factor, extent, digit});
    }
  }
  // An index is a digit of the source that it is part of; one that is in none has a single value.
  inverse.original.assign(shape.size(), IntConst(0));
  std::vector<int64_t> reached(shape.size(), 1);
  for (size_t s = 0; s < digits.size(); ++s) {
    const auto [value, reach] = ValueOf(std::move(digits[s]));
    int64_t below = 1;
    const std::vector<Var>& loops = found->sources[s].loops;
    for (size_t l = loops.size(); l-- > 0;) {
      const size_t input = static_cast<size_t>(std::ranges::find(map.inputs, loops[l]) - map.inputs.begin());
      HONE_CHECK(input < shape.size()) << loops[l].name() << " is no index of the map";
      const Expr digit = FloorMod(FloorDiv(value, IntConst(below)), IntConst(shape[input]));
      inverse.original[input] = known.Simplify(loops.size() == 1 ? value : digit);
      reached[input] = l == 0 ? reach / below : std::min(shape[input], reach / below);
      below *= shape[input];
    }
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (reached[i] == shape[i]) continue;
    return Invalid(where, ": index ", map.inputs[i], " runs to ", shape[i],
                   " and cannot be told from the new indices: their parts of it reach ", reached[i]);
  }
  return inverse;
}

}  // namespace hone
