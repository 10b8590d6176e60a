#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_join.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// Copies elements of `bytes` bytes; `strides` are x's, in elements, in the order of y's dimensions.
template <int kBytes>
void CopyPermuted(const char* x, char* y, const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  const int rank = static_cast<int>(shape.size());
  const int64_t inner = shape[rank - 1], inner_stride = strides[rank - 1];
  // The dimension of y along which x is contiguous: a block of it is moved at a time, so that lines of x are used
  // whole.
  int across = rank - 1;
  for (int d = 0; d < rank; ++d) {
    if (strides[d] == 1 && shape[d] > 1) across = d;
  }
  std::vector<int64_t> y_strides(rank, 1);
  for (int d = rank - 2; d >= 0; --d) y_strides[d] = y_strides[d + 1] * shape[d + 1];
  constexpr int64_t kBlock = 16;
  const int64_t block = across == rank - 1 ? 1 : kBlock;
  std::vector<int64_t> at(rank, 0);
  while (true) {
    int64_t from = 0, to = 0;
    for (int d = 0; d < rank - 1; ++d) {
      from += at[d] * strides[d];
      to += at[d] * y_strides[d];
    }
    const int64_t lines = across == rank - 1 ? 1 : std::min(block, shape[across] - at[across]);
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t line = 0; line < lines; ++line) {
        std::memcpy(y + (to + line * y_strides[across] + i) * kBytes, x + (from + line + i * inner_stride) * kBytes,
                    kBytes);
      }
      if (across == rank - 1 && inner_stride == 1) {
        std::memcpy(y + to * kBytes, x + from * kBytes, inner * kBytes);
        break;
      }
    }
    int d = rank - 2;
    for (; d >= 0; --d) {
      at[d] += d == across ? block : 1;
      if (at[d] < shape[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

// y.shape[d] = x.shape[perm[d]], in blocks that stay in cache.
NdArray TransposeArray(const NdArray& x, std::span<const int64_t> perm) {
  const size_t rank = x.shape.size();
  std::vector<int64_t> x_strides(rank, 1), shape, strides;
  for (int d = static_cast<int>(rank) - 2; d >= 0; --d) x_strides[d] = x_strides[d + 1] * x.shape[d + 1];
  for (const int64_t axis : perm) {
    shape.push_back(x.shape[axis]);
    strides.push_back(x_strides[axis]);
  }
  NdArray y(x.dtype, shape);
  if (y.data.empty()) return y;
  if (rank == 0) {
    y.data = x.data;
    return y;
  }
  switch (x.dtype.bytes()) {
    case 1: CopyPermuted<1>(x.data.data(), y.data.data(), shape, strides); break;
    case 2: CopyPermuted<2>(x.data.data(), y.data.data(), shape, strides); break;
    case 4: CopyPermuted<4>(x.data.data(), y.data.data(), shape, strides); break;
    case 8: CopyPermuted<8>(x.data.data(), y.data.data(), shape, strides); break;
    default: HONE_UNREACHABLE() << "elements of " << x.dtype.bytes() << " bytes";
  }
  return y;
}

// "perm": y.shape[d] = x.shape[perm[d]].
OpInfo TransposeOp() {
  OpInfo op{.name = "transpose", .kind = OpKind::kInjective};
  op.rearranges = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> perm = IntsAttr(attrs, "perm");
    std::vector<int64_t> sorted = perm, identity(in[0].rank());
    std::sort(sorted.begin(), sorted.end());
    std::iota(identity.begin(), identity.end(), 0);
    if (sorted != identity)
      return Refuse("[", absl::StrJoin(perm, ", "), "] is not a permutation of ", in[0].rank(), " axes");
    TensorType out{in[0].dtype, {}};
    for (const int64_t axis : perm) out.shape.push_back(in[0].shape[axis]);
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Transpose(in[0], IntsAttr(attrs, "perm"), "transpose")};
  };
  op.evaluation.run = [](DirectEvaluation::Arrays in, const Attrs& attrs, const TensorType&) {
    return TransposeArray(*in[0], IntsAttr(attrs, "perm"));
  };
  return op;
}

Outputs Transpose(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  Ints reversed(c.rank(c.input(0)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return One(c.Transpose(c.input(0), c.IntsAttr("perm", reversed)));
}

}  // namespace

HONE_OPERATORS(transpose) {
  return {{.graph = {TransposeOp()}, .onnx = {{"Transpose", 1, Transpose, "", false, NarrowElements::kMoves}}}};
}

}  // namespace hone
