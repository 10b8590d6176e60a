#include "tuner/space/workload/anchor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/support/sha256.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {
namespace {

std::string TextOf(const Buffer& buffer) {
  std::string text = absl::StrCat(buffer.type().bytes(), buffer.type().is_float() ? "f" : "i", "[");
  for (const Expr& extent : buffer.shape()) absl::StrAppend(&text, ConstantValue(extent).value_or(-1), ",");
  return text + "]";
}

}  // namespace

std::string AnchorOf(const PrimFunc& func) {
  const absl::StatusOr<WorkloadInfo> info = AnalyzeWorkload(func);
  if (!info.ok() || info->blocks.empty()) return "";
  const BlockInfo& block = info->blocks[static_cast<size_t>(info->heaviest)];
  std::string text = absl::StrCat("anchor 1\n", block.operations, " ", block.reduces, block.pads, "\n");
  for (size_t i = 0; i < block.iters.size(); ++i)
    absl::StrAppend(&text, block.extents[i], block.spatial(static_cast<int>(i)) ? "s" : "r", " ");
  absl::StrAppend(&text, "\n", TextOf(block.output), " ", absl::StrJoin(block.output_iters, ","), "\n");
  for (const BlockInfo::Access& read : block.reads) {
    absl::StrAppend(&text, TextOf(read.buffer), " ", absl::StrJoin(read.strides, ","), " ", read.affine, read.constant,
                    " ", read.places, "\n");
  }
  return Sha256(text);
}

}  // namespace hone
