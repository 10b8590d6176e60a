#include "compiler/graph/operators/graph_operator.h"

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct AsAttr {
  absl::StatusOr<Attr> operator()(int64_t v) const { return v; }
  absl::StatusOr<Attr> operator()(double v) const { return v; }
  absl::StatusOr<Attr> operator()(const std::string& v) const { return v; }
  absl::StatusOr<Attr> operator()(const std::vector<int64_t>& v) const { return v; }
  absl::StatusOr<Attr> operator()(const std::vector<std::string>& v) const { return v; }
  template <class Other>
  absl::StatusOr<Attr> operator()(const Other&) const {
    return Unsupported("it is neither a number, a text, nor a list of integers or texts");
  }
};

Outputs AppendNode(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(c.num_inputs(), c.num_inputs()));
  Attrs attrs;
  for (const auto& [name, value] : c.AllAttributes()) {
    absl::StatusOr<Attr> attr = std::visit(AsAttr(), value);
    if (!attr.ok()) return Unsupported(absl::StrCat("attribute \"", name, "\": ", attr.status().message()));
    attrs[name] = *std::move(attr);
  }
  return c.graph().AddNode(c.op(), c.name(), c.inputs(), std::move(attrs));
}

std::string_view WithoutRoom(std::string_view name) { return name.starts_with("nn.") ? name.substr(3) : name; }

Outputs AppendElementwise(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(c.num_inputs(), c.num_inputs()));
  return c.EmitAll(WithoutRoom(c.op()), c.inputs());
}

}  // namespace

const OnnxOperator* FindElementwiseOperator(std::string_view name) {
  static const OnnxOperator row = {
      .name = "an element-wise operator", .since = 1, .import = AppendElementwise, .in_float32 = true};
  const OpInfo* op = FindOp(WithoutRoom(name));
  return op != nullptr && op->kind == OpKind::kElementwise ? &row : nullptr;
}

const OnnxOperator* FindGraphOperator(std::string_view name) {
  // What elements of a narrow type stand for is in the graph's operators already.
  static const OnnxOperator row = {
      .name = "an operator of the graph", .since = 1, .import = AppendNode, .narrow = NarrowElements::kConverts};
  return FindOp(name) == nullptr ? nullptr : &row;
}

}  // namespace hone
