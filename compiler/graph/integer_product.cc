#include "compiler/graph/integer_product.h"

#include <numeric>
#include <utility>

#include "compiler/graph/evaluate.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kGroup = 4;  // products of bytes that machines add up at once
constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8), kInt16 = DType::Int(16);

class Builder {
 public:
  Builder(Graph& graph, const std::string& op, const std::string& name) : graph_(graph), op_(op), name_(name) {}

  absl::StatusOr<int> Run(const IntegerOperand& left, const IntegerOperand& right, Attrs attrs) {
    HONE_ASSIGN_OR_RETURN(IntegerOperand a, Shifted(left, kUInt8, 128));
    HONE_ASSIGN_OR_RETURN(IntegerOperand b, Shifted(right, kInt8, -128));
    const bool a_zero = a.zero >= 0, b_zero = b.zero >= 0;
    if (op_ == "conv" || op_ == "depthwise_conv2d") {
      const bool pads_a_zero = a_zero && Pads(attrs);
      if (b_zero || (pads_a_zero && !IsNumber(a.zero))) return OfDifferences(left, right, std::move(attrs));
      if (pads_a_zero) attrs["pad_value"] = graph_.values[a.zero].data->GetInt(0);
    }
    if (op_ == "conv" && IntAttr(attrs, "groups", 1) == 1) HONE_RETURN_IF_ERROR(PadChannels(a.value, b.value));
    HONE_ASSIGN_OR_RETURN(int sum, Add(op_, {a.value, b.value}, std::move(attrs)));
    if (a_zero) {
      HONE_ASSIGN_OR_RETURN(const int of_b, SumOfRight(b.value));
      HONE_ASSIGN_OR_RETURN(const int term, Add("multiply", {of_b, a.zero}));
      HONE_ASSIGN_OR_RETURN(sum, Add("subtract", {sum, term}));
    }
    if (!b_zero) return sum;
    HONE_ASSIGN_OR_RETURN(const int of_a, SumOver(a.value, {graph_.type(a.value).rank() - 1}, true));
    HONE_ASSIGN_OR_RETURN(const int term, Add("multiply", {of_a, b.zero}));
    HONE_ASSIGN_OR_RETURN(sum, Add("subtract", {sum, term}));
    if (!a_zero) return sum;
    HONE_ASSIGN_OR_RETURN(int both, Add("multiply", {a.zero, b.zero}));
    HONE_ASSIGN_OR_RETURN(both, Add("multiply", {both, Number(graph_.type(a.value).shape.back())}));
    return Add("add", {sum, both});
  }

 private:
  absl::StatusOr<int> Add(const std::string& op, std::vector<int> inputs, Attrs attrs = {}) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int> outputs,
                          AddFolded(graph_, op, name_, std::move(inputs), std::move(attrs)));
    return outputs[0];
  }
  absl::StatusOr<int> Cast(int value, DType to) {
    if (graph_.type(value).dtype == to) return value;
    return Add("cast", {value}, {{"to", ToText(to)}});
  }
  int Number(int64_t number) {
    NdArray scalar(kInt32, {});
    scalar.SetInt(0, number);
    return graph_.AddConstant(name_, std::move(scalar));
  }

  // The operand in the type `to`, its zero point in int32: -1 where that is known to be 0.
  absl::StatusOr<IntegerOperand> Shifted(IntegerOperand x, DType to, int64_t by) {
    if (x.zero >= 0) { HONE_ASSIGN_OR_RETURN(x.zero, Cast(x.zero, kInt32)); }
    if (graph_.type(x.value).dtype != to) {
      HONE_ASSIGN_OR_RETURN(const int wide, Cast(x.value, kInt32));
      HONE_ASSIGN_OR_RETURN(const int shifted, Add("add", {wide, Number(by)}));
      HONE_ASSIGN_OR_RETURN(x.value, Cast(shifted, to));
      if (x.zero < 0) {
        x.zero = Number(by);
      } else {
        HONE_ASSIGN_OR_RETURN(x.zero, Add("add", {x.zero, Number(by)}));
      }
    }
    if (x.zero >= 0 && IsZero(x.zero)) x.zero = -1;
    return x;
  }
  // The product of the operands less their zero points.
  absl::StatusOr<int> OfDifferences(const IntegerOperand& a, const IntegerOperand& b, Attrs attrs) {
    std::vector<int> operands;
    for (const IntegerOperand& x : {a, b}) {
      HONE_ASSIGN_OR_RETURN(int wide, Cast(x.value, kInt16));
      if (x.zero >= 0) {
        HONE_ASSIGN_OR_RETURN(const int zero, Cast(x.zero, kInt16));
        HONE_ASSIGN_OR_RETURN(wide, Add("subtract", {wide, zero}));
      }
      operands.push_back(wide);
    }
    if (op_ == "conv" && IntAttr(attrs, "groups", 1) == 1) HONE_RETURN_IF_ERROR(PadChannels(operands[0], operands[1]));
    return Add(op_, std::move(operands), std::move(attrs));
  }

  bool IsNumber(int value) const {
    const GraphValue& v = graph_.values[value];
    return v.is_constant() && v.data->NumElements() == 1;
  }
  bool IsZero(int value) const {
    const GraphValue& v = graph_.values[value];
    if (!v.is_constant()) return false;
    for (int64_t i = 0; i < v.data->NumElements(); ++i) {
      if (v.data->GetInt(i) != 0) return false;
    }
    return true;
  }
  static bool Pads(const Attrs& attrs) {
    for (const int64_t pad : IntsAttr(attrs, "pads")) {
      if (pad != 0) return true;
    }
    return false;
  }

  // Input channels in whole groups, those that are added having weights of 0.
  absl::Status PadChannels(int& image, int& weight) {
    const int64_t rank = graph_.type(image).rank(), channels = graph_.type(image).shape.back();
    const int64_t missing = (kGroup - channels % kGroup) % kGroup;
    if (missing == 0) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(image, PadAfter(image, rank - 1, missing));
    HONE_ASSIGN_OR_RETURN(weight, PadAfter(weight, rank - 2, missing));
    return absl::OkStatus();
  }
  absl::StatusOr<int> PadAfter(int value, int64_t axis, int64_t count) {
    Ints before(static_cast<size_t>(graph_.type(value).rank()), 0), after = before;
    after[static_cast<size_t>(axis)] = count;
    return Add("pad", {value},
               {{"before", before}, {"after", after}, {"mode", std::string("constant")}, {"value", 0.0}});
  }

  absl::StatusOr<int> SumOver(int value, Ints axes, bool keepdims) {
    HONE_ASSIGN_OR_RETURN(const int wide, Cast(value, kInt32));
    return Add("reduce_sum", {wide}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}});
  }
  // Over all terms of an output element: one number a column.
  absl::StatusOr<int> SumOfRight(int b) {
    const int64_t rank = graph_.type(b).rank();
    if (op_ == "batch_matmul") return SumOver(b, {rank - 2}, true);
    Ints axes(static_cast<size_t>(rank - 1));
    std::iota(axes.begin(), axes.end(), 0);
    return SumOver(b, std::move(axes), false);
  }

  Graph& graph_;
  std::string op_, name_;
};

}  // namespace

absl::StatusOr<int> AddIntegerProduct(Graph& graph, const std::string& op, const std::string& name, IntegerOperand a,
                                      IntegerOperand b, Attrs attrs) {
  return Builder(graph, op, name).Run(a, b, std::move(attrs));
}

}  // namespace hone
