#include <limits>

#include "compiler/support/check.h"
#include "compiler/te/te.h"

namespace hone::te {
namespace {

using Pair = const std::vector<Expr>&;

Reduction OfOne(std::string name, Expr (*identity)(DType), Expr (*combine)(Expr, Expr), Expr source,
                std::vector<ReduceAxis> axes) {
  HONE_CHECK(!axes.empty()) << name << " over no axis";
  Reducer reducer;
  reducer.name = std::move(name);
  reducer.identity = [identity](const std::vector<DType>& types) { return std::vector<Expr>{identity(types[0])}; };
  reducer.combine = [combine](Pair a, Pair b) { return std::vector<Expr>{combine(a[0], b[0])}; };
  return Reduction{std::move(reducer), {std::move(source)}, std::move(axes), {}};
}

Reduction ArgBest(bool greatest, Expr value, Expr index, std::vector<ReduceAxis> axes, bool last) {
  HONE_CHECK(!axes.empty()) << "argmax over no axis";
  Reducer reducer;
  reducer.name = std::string(greatest ? "argmax" : "argmin") + (last ? "_last" : "");
  // An index that loses every tie, so that a row of infinities has an index too.
  reducer.identity = [greatest, last](const std::vector<DType>& types) {
    return std::vector<Expr>{greatest ? LeastValue(types[0]) : GreatestValue(types[0]),
                             last ? LeastValue(types[1]) : GreatestValue(types[1])};
  };
  reducer.combine = [greatest, last](Pair a, Pair b) {
    const Expr better = greatest ? a[0] > b[0] : a[0] < b[0];
    const Expr wins_tie = last ? a[1] > b[1] : a[1] < b[1];
    const Expr keep = Or(better, And(Eq(a[0], b[0]), wins_tie));
    return std::vector<Expr>{MakeSelect(keep, a[0], b[0]), MakeSelect(keep, a[1], b[1])};
  };
  return Reduction{std::move(reducer), {std::move(value), std::move(index)}, std::move(axes), {}};
}

}  // namespace

Expr LeastValue(DType dtype) {
  if (dtype.is_float()) return FloatConst(-std::numeric_limits<double>::infinity(), dtype);
  if (dtype.is_bool() || dtype.code == TypeCode::kUInt) return IntConst(0, dtype);
  return IntConst(std::numeric_limits<int64_t>::min() >> (64 - dtype.bits), dtype);
}

Expr GreatestValue(DType dtype) {
  if (dtype.is_float()) return FloatConst(std::numeric_limits<double>::infinity(), dtype);
  if (dtype.is_bool()) return IntConst(1, dtype);
  if (dtype.code == TypeCode::kUInt) {  // uint64 is kept in int64: all bits set
    return IntConst(dtype.bits == 64 ? -1 : (int64_t{1} << dtype.bits) - 1, dtype);
  }
  return IntConst(std::numeric_limits<int64_t>::max() >> (64 - dtype.bits), dtype);
}

Reduction Sum(Expr source, std::vector<ReduceAxis> axes) {
  return OfOne(
      "sum", [](DType t) { return Const(0, t); }, [](Expr a, Expr b) { return a + b; }, source, axes);
}
Reduction Prod(Expr source, std::vector<ReduceAxis> axes) {
  return OfOne(
      "prod", [](DType t) { return Const(1, t); }, [](Expr a, Expr b) { return a * b; }, source, axes);
}
Reduction Max(Expr source, std::vector<ReduceAxis> axes) {
  return OfOne(
      "max", LeastValue, [](Expr a, Expr b) { return hone::Max(a, b); }, source, axes);
}
Reduction Min(Expr source, std::vector<ReduceAxis> axes) {
  return OfOne(
      "min", GreatestValue, [](Expr a, Expr b) { return hone::Min(a, b); }, source, axes);
}
Reduction And(Expr source, std::vector<ReduceAxis> axes) {
  return OfOne(
      "and", GreatestValue, [](Expr a, Expr b) { return hone::And(a, b); }, source, axes);
}
Reduction Or(Expr source, std::vector<ReduceAxis> axes) {
  return OfOne(
      "or", LeastValue, [](Expr a, Expr b) { return hone::Or(a, b); }, source, axes);
}
Reduction ArgMax(Expr value, Expr index, std::vector<ReduceAxis> axes, bool last) {
  return ArgBest(true, std::move(value), std::move(index), std::move(axes), last);
}
Reduction ArgMin(Expr value, Expr index, std::vector<ReduceAxis> axes, bool last) {
  return ArgBest(false, std::move(value), std::move(index), std::move(axes), last);
}

}  // namespace hone::te
