// Between channels and blocks of pixels: reshapes around a transpose, in NCHW.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

Outputs DepthToSpace(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t b = c.IntAttr("blocksize", 0);
  const std::string mode = c.StringAttr("mode", "DCR");
  const Ints s = c.shape(c.input(0));
  if (s.size() != 4 || b < 1 || b > (1 << 16) || s[1] % (b * b) != 0)
    return Unsupported(absl::StrCat("blocks of ", b, " in ", ToText(c.type(c.input(0)))));
  if (mode != "DCR" && mode != "CRD") return Unsupported(absl::StrCat("mode \"", mode, "\""));
  const int64_t depth = s[1] / (b * b);
  HONE_ASSIGN_OR_RETURN(int y, c.Reshape(c.input(0), mode == "DCR" ? Ints{s[0], b, b, depth, s[2], s[3]}
                                                                   : Ints{s[0], depth, b, b, s[2], s[3]}));
  HONE_ASSIGN_OR_RETURN(y, c.Transpose(y, mode == "DCR" ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3}));
  HONE_ASSIGN_OR_RETURN(y, c.Reshape(y, {s[0], depth, s[2] * b, s[3] * b}));
  return std::vector<int>{y};
}

Outputs SpaceToDepth(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t b = c.IntAttr("blocksize", 0);
  const Ints s = c.shape(c.input(0));
  if (s.size() != 4 || b < 1 || b > (1 << 16) || s[2] % b != 0 || s[3] % b != 0)
    return Unsupported(absl::StrCat("blocks of ", b, " in ", ToText(c.type(c.input(0)))));
  const std::string mode = c.StringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return Unsupported(absl::StrCat("mode \"", mode, "\""));
  HONE_ASSIGN_OR_RETURN(int y, c.Reshape(c.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b}));
  HONE_ASSIGN_OR_RETURN(y, c.Transpose(y, mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4}));
  HONE_ASSIGN_OR_RETURN(y, c.Reshape(y, {s[0], b * b * s[1], s[2] / b, s[3] / b}));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(depth_to_space) {
  return {{.onnx = {
               {"DepthToSpace", 1, DepthToSpace},
               {"SpaceToDepth", 1, SpaceToDepth},
           }}};
}

}  // namespace hone
