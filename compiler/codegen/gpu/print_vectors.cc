// Vectors: every lane is computed as a scalar; runs of elements in memory are read and written at once.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/gpu/lane_printer.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

constexpr int kMostBytes = 16;     // of one access
constexpr size_t kLongValue = 40;  // characters of a lane's value that has a line of its own

// The first index of a run of neighbouring elements; absent where it is none.
Expr BaseOfRun(const Expr& index) {
  const Ramp* ramp = index.As<Ramp>();
  return ramp != nullptr && IsConst(ramp->stride, 1) ? ramp->base : Expr();
}

bool InMemoryOfAll(const Buffer& buffer) {
  return buffer.scope() == Scope::kGlobal || buffer.scope() == Scope::kShared;
}

}  // namespace

int LanePrinter::PieceAt(const Buffer& buffer, const Expr& base, int lane, int lanes) {
  int piece = 1;
  while (2 * piece <= dialect_.vectors.most_lanes && 2 * piece * buffer.type().bytes() <= kMostBytes &&
         lane + 2 * piece <= lanes &&
         (!dialect_.vectors.aligned || known_.IsMultipleOf(base + IntConst(lane, base.type()), 2 * piece)))
    piece *= 2;
  return piece;
}

std::string LanePrinter::VectorPointer(const Buffer& buffer, const Expr& index, int piece, bool read) {
  const std::string address = absl::StrCat("&", Element(buffer, index));
  if (!dialect_.vectors.aligned) return address;
  return absl::StrCat("(", read ? "const " : "", VectorElement(dialect_, buffer.type()), piece, "*)", address);
}

std::string LanePrinter::ElementOfRun(const Run& run, int element) const {
  return absl::StrCat(run.name, dialect_.vectors.element, std::string(1, dialect_.vectors.elements[element]));
}

// The vector of these values: the run itself where they are its elements in order.
std::string LanePrinter::MakeVector(DType type, absl::Span<const std::string> values) const {
  for (const Run& run : runs_) {
    bool same = run.lanes == static_cast<int>(values.size());
    for (int i = 0; same && i < run.lanes; ++i) same = values[i] == ElementOfRun(run, i);
    if (same) return run.name;
  }
  return absl::StrReplaceAll(dialect_.vectors.make, {{"{type}", VectorElement(dialect_, type)},
                                                     {"{lanes}", absl::StrCat(values.size())},
                                                     {"{values}", absl::StrJoin(values, ", ")}});
}

// Not in the sides of a choice: what only one of them reads need not be there.
void LanePrinter::LoadRuns(const Expr& value) {
  ForEachExpr(value, [&](const Expr& e) {
    if (e.As<IfThenElseExpr>() != nullptr || e.As<LetExpr>() != nullptr) return false;
    const Load* load = e.As<Load>();
    const Expr base = load == nullptr || load->mask ? Expr() : BaseOfRun(load->indices[0]);
    if (!base || !InMemoryOfAll(load->buffer) || loaded_.contains(&e.node())) return true;
    const DType element = e.type().element();
    std::vector<Var> lanes;
    for (int lane = 0; lane < e.type().lanes;) {
      const int piece = PieceAt(load->buffer, base, lane, e.type().lanes);
      const Expr index = base + IntConst(lane, base.type());
      if (piece == 1) {
        lanes.emplace_back();
        ++lane;
        continue;
      }
      const Var vector(absl::StrCat(load->buffer.name(), "_run"), element);
      const std::string type(VectorElement(dialect_, element)), count = absl::StrCat(piece);
      const std::string pointer = VectorPointer(load->buffer, index, piece, true);
      Line(absl::StrCat(
          "const ", type, count, " ", NameOf(vector), " = ",
          absl::StrReplaceAll(dialect_.vectors.load, {{"{type}", type}, {"{lanes}", count}, {"{pointer}", pointer}}),
          ";"));
      runs_.push_back({NameOf(vector), piece});
      for (int i = 0; i < piece; ++i) {
        const Var one(vector.name(), element);
        bits_[one] = ElementOfRun(runs_.back(), i);
        data_.insert(one);
        lanes.push_back(one);
      }
      lane += piece;
    }
    loaded_[&e.node()] = lanes;
    return true;
  });
}

Expr LanePrinter::LaneOfLoad(const Load& load, DType type, int lane) {
  const Expr element = MakeLoad(load.buffer, {LaneOf(load.indices[0], lane)});
  return load.mask ? IfThenElse(LaneOf(load.mask, lane), element, Const(0, type.element())) : element;
}

Expr LanePrinter::LaneOf(const Expr& vector, int lane) {
  const DType type = vector.type();
  if (type.is_scalar()) return vector;
  const auto part = [&](const Expr& e) { return LaneOf(e, lane); };
  if (const auto loaded = loaded_.find(&vector.node()); loaded != loaded_.end() && loaded->second[lane])
    return loaded->second[lane];
  if (const Ramp* ramp = vector.As<Ramp>()) return ramp->base + ramp->stride * IntConst(lane, ramp->stride.type());
  if (const Broadcast* broadcast = vector.As<Broadcast>()) return broadcast->value;
  if (const VarRef* ref = vector.As<VarRef>()) return lanes_of_.at(ref->var)[lane];
  if (const Load* load = vector.As<Load>()) return LaneOfLoad(*load, type, lane);
  if (const Binary* binary = vector.As<Binary>()) return MakeBinary(binary->op, part(binary->a), part(binary->b));
  if (const Not* negation = vector.As<Not>()) return MakeNot(part(negation->a));
  if (const Cast* cast = vector.As<Cast>()) return MakeCast(type.element(), part(cast->a));
  if (const Select* select = vector.As<Select>())
    return IfThenElse(part(select->condition), part(select->yes), part(select->no));
  if (const IfThenElseExpr* choice = vector.As<IfThenElseExpr>())
    return IfThenElse(part(choice->condition), part(choice->yes), part(choice->no));
  if (const LetExpr* let = vector.As<LetExpr>()) return part(Substitute(let->body, let->var, let->value));
  if (const Call* call = vector.As<Call>()) {
    std::vector<Expr> args;
    for (const Expr& arg : call->args) args.push_back(part(arg));
    return MakeCall(call->name, std::move(args));
  }
  if (const IntImm* imm = vector.As<IntImm>()) return IntConst(imm->value, type.element());
  if (const FloatImm* imm = vector.As<FloatImm>()) return FloatConst(imm->value, type.element());
  HONE_UNREACHABLE() << "a vector that lane programs do not have";
}

// All lanes are computed before the first is written: one may read what another writes.
void LanePrinter::StoreLanes(const Store& store) {
  const Expr& index = store.indices[0];
  const int lanes = index.type().lanes;
  const Expr base = store.mask || !InMemoryOfAll(store.buffer) ? Expr() : BaseOfRun(index);
  LoadRuns(store.value);
  std::vector<std::string> values;
  for (int lane = 0; lane < lanes; ++lane) values.push_back(InMemory(LaneOf(store.value, lane)));
  const bool long_lines = std::ranges::any_of(values, [](const std::string& v) { return v.size() > kLongValue; });
  if (long_lines || LoadsFrom(store.value, store.buffer)) {
    for (std::string& value : values) {
      const Var held(store.buffer.name() + "_new", store.buffer.type());
      Line(absl::StrCat("const ", MemoryType(dialect_, store.buffer.type()), " ", NameOf(held), " = ", value, ";"));
      value = NameOf(held);
    }
  }
  for (int lane = 0; lane < lanes;) {
    const int piece = base ? PieceAt(store.buffer, base, lane, lanes) : 1;
    if (piece > 1) {
      const std::string type(VectorElement(dialect_, store.buffer.type())), count = absl::StrCat(piece);
      const std::string made = MakeVector(
          store.buffer.type(), absl::MakeSpan(values).subspan(static_cast<size_t>(lane), static_cast<size_t>(piece)));
      const std::string pointer = VectorPointer(store.buffer, base + IntConst(lane, base.type()), piece, false);
      Line(absl::StrReplaceAll(dialect_.vectors.store,
                               {{"{type}", type}, {"{lanes}", count}, {"{pointer}", pointer}, {"{value}", made}}) +
           ";");
    } else {
      const std::string line = absl::StrCat(Element(store.buffer, LaneOf(index, lane)), " = ", values[lane], ";");
      Line(store.mask ? absl::StrCat("if (", Value(known_.Simplify(LaneOf(store.mask, lane))), ") ", line) : line);
    }
    lane += piece;
  }
  loaded_.clear();
  runs_.clear();
}

}  // namespace hone
