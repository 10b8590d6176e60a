// What is known of a graph's values: R.Tensor((n, 4), "float32"), R.Tuple(...), R.Shape([...]).
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/parse/parser.h"

namespace hone {
namespace {

constexpr int kMaxRank = 64;

std::optional<GraphType::Kind> TypeKind(absl::string_view name) {
  if (name == "Tensor") return GraphType::Kind::kTensor;
  if (name == "Tuple") return GraphType::Kind::kTuple;
  if (name == "Shape") return GraphType::Kind::kShape;
  if (name == "Prim") return GraphType::Kind::kScalar;
  if (name == "Object") return GraphType::Kind::kObject;
  return std::nullopt;
}

bool IsIdentifier(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

}  // namespace

bool Parser::AtGraphType() const {
  if (At("Tensor") && Find("Tensor") == nullptr) return true;  // the spelling of 2022
  return At("R") && Peek(1).text == "." && TypeKind(Peek(2).text).has_value();
}

absl::StatusOr<GraphType> Parser::TypeOfGraph() {
  const Token at = Peek();
  if (!AtGraphType()) return Unexpected("R.Tensor, R.Tuple, R.Shape, R.Prim or R.Object");
  if (++nesting_ > kMaxNesting) return ErrorAt(at, absl::StrCat("types nest deeper than ", kMaxNesting));
  if (TakeIf("R")) Take();
  GraphType type;
  type.kind = *TypeKind(Take().text);
  if (TakeIf("(")) {
    if (type.kind == GraphType::Kind::kTuple) {
      const bool square = TakeIf("[");
      while (!At(square ? "]" : ")")) {
        if (!type.fields.empty()) HONE_RETURN_IF_ERROR(Expect(","));
        if (At(square ? "]" : ")")) break;
        HONE_ASSIGN_OR_RETURN(GraphType field, TypeOfGraph());
        type.fields.push_back(std::move(field));
      }
      if (square) Take();
    } else {
      HONE_RETURN_IF_ERROR(TensorArguments(type));
    }
    HONE_RETURN_IF_ERROR(Expect(")"));
  }
  --nesting_;
  return type;
}

// Up to ")": a shape or None, a type, `dtype=`, `ndim=`, `value=`.
absl::Status Parser::TensorArguments(GraphType& type) {
  using Kind = GraphType::Kind;
  while (!At(")")) {
    const Token at = Peek();
    std::string key;
    if (AtName() && Peek(1).text == "=" && Peek(1).kind == TokenKind::kPunct) {
      key = Take().text;
      Take();
    } else {
      key = at.kind == TokenKind::kString ? "dtype" : "shape";
    }
    if (type.kind == Kind::kObject) return ErrorAt(at, "R.Object takes nothing");
    if (key == "dtype" && type.kind != Kind::kShape) {
      HONE_ASSIGN_OR_RETURN(type.dtype, TypeText("a type"));
      if (!type.dtype->is_scalar()) return ErrorAt(at, "a tensor of vectors; expected scalars");
    } else if ((key == "shape" || key == "values") && type.kind != Kind::kScalar) {
      if (!TakeIf("None")) { HONE_ASSIGN_OR_RETURN(type.shape, Extents()); }
    } else if (key == "value" && type.kind == Kind::kScalar) {
      HONE_ASSIGN_OR_RETURN(Expr value, Extent());
      type.shape = std::vector<Expr>{std::move(value)};
    } else if (key == "ndim" && type.kind != Kind::kScalar) {
      const Token rank_at = Peek();
      HONE_ASSIGN_OR_RETURN(const Expr rank, IntExpression("a number of dimensions"));
      const std::optional<int64_t> n = ConstantValue(rank);
      if (!n.has_value() || *n < -1 || *n > kMaxRank) {
        return ErrorAt(rank_at, absl::StrCat("ndim is a constant from 0 to ", kMaxRank));
      }
      type.rank = static_cast<int>(*n);
    } else {
      return ErrorAt(at, absl::StrCat("`", key, "` means nothing here; expected a shape, dtype or ndim"));
    }
    if (!At(")")) HONE_RETURN_IF_ERROR(Expect(","));
  }
  if (type.kind != Kind::kScalar && type.shape.has_value()) type.rank = -1;  // the shape says it
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Expr>> Parser::Extents() {
  const bool square = At("[");
  if (!square && !At("(")) return Unexpected("a shape such as (1, 128)");
  Take();
  const absl::string_view closing = square ? "]" : ")";
  std::vector<Expr> extents;
  while (!At(closing)) {
    if (!extents.empty()) HONE_RETURN_IF_ERROR(Expect(","));
    if (At(closing)) break;
    if (extents.size() >= kMaxRank) return Unexpected(absl::StrCat("at most ", kMaxRank, " dimensions"));
    HONE_ASSIGN_OR_RETURN(Expr extent, Extent());
    extents.push_back(std::move(extent));
  }
  Take();
  return extents;
}

// An int64: a number, a symbolic size, or a text with one of them or an expression of them ("n + 1").
absl::StatusOr<Expr> Parser::Extent() {
  const Token at = Peek();
  Expr extent;
  if (at.kind == TokenKind::kString) {
    Take();
    const std::string text(absl::StripAsciiWhitespace(at.text));
    if (graph_dims_ != nullptr && IsIdentifier(text) && Find(text) == nullptr) {
      const Var dim(text, kInt64, SizeRange{});
      graph_dims_->push_back(dim);
      Define(text, {.var = dim});
    }
    absl::StatusOr<std::vector<Token>> inner = Tokenize(text);
    if (!inner.ok()) return ErrorAt(at, absl::StrCat("\"", text.substr(0, 40), "\" is no size"));
    for (Token& token : *inner) {
      token.line = at.line;
      token.column = at.column;
    }
    std::swap(tokens_, *inner);
    const size_t pos = std::exchange(pos_, 0);
    HONE_ASSIGN_OR_RETURN(extent, IntExpression("a size"));
    if (Peek().kind != TokenKind::kNewline) return Unexpected("the end of the text");
    std::swap(tokens_, *inner);
    pos_ = pos;
  } else {
    HONE_ASSIGN_OR_RETURN(extent, IntExpression("a size"));
  }
  HONE_ASSIGN_OR_RETURN(const Parsed wide, Coerce(at, Parsed{extent, 1, false}, kInt64, "a size"));
  return wide.e;
}

}  // namespace hone
