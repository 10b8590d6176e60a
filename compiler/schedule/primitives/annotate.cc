#include "compiler/schedule/primitives/annotate.h"

#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::StatusOr<int> Target(const Schedule& schedule, const BlockOrLoop& target, std::string_view primitive) {
  if (const BlockRef* block = std::get_if<BlockRef>(&target)) return schedule.BlockNode(*block, primitive);
  return schedule.LoopNode(std::get<LoopRef>(target), primitive);
}

const Attrs& AnnotationsOf(const Stmt& stmt) {
  if (const For* loop = stmt.As<For>()) return loop->annotations;
  return stmt.As<BlockRealize>()->block.annotations;
}

Stmt WithAnnotations(const Stmt& stmt, Attrs annotations) {
  if (const For* loop = stmt.As<For>()) {
    For copy = *loop;
    copy.annotations = std::move(annotations);
    return Stmt::Make(std::move(copy));
  }
  BlockRealize copy = *stmt.As<BlockRealize>();
  copy.block.annotations = std::move(annotations);
  return Stmt::Make(std::move(copy));
}

}  // namespace

absl::Status Annotate(Schedule& schedule, BlockOrLoop target, std::string key, Attr value) {
  HONE_ASSIGN_OR_RETURN(const int node, Target(schedule, target, "annotate"));
  if (key.empty()) return Invalid("annotate: the key is empty");
  // ---- nothing below fails ----
  Attrs annotations = AnnotationsOf(schedule.index().stmt(node));
  annotations[key] = value;
  schedule.SetBody(
      schedule.index().Replace(node, WithAnnotations(schedule.index().stmt(node), std::move(annotations))));
  schedule.Record(AnnotateStep{.target = target, .key = std::move(key), .value = std::move(value)}, {});
  return absl::OkStatus();
}

absl::Status Unannotate(Schedule& schedule, BlockOrLoop target, std::string key) {
  HONE_ASSIGN_OR_RETURN(const int node, Target(schedule, target, "unannotate"));
  Attrs annotations = AnnotationsOf(schedule.index().stmt(node));
  if (annotations.erase(key) == 0) {
    std::string keys;
    for (const auto& [name, value] : annotations) keys += Message(keys.empty() ? "" : ", ", name);
    return absl::NotFoundError(Message("unannotate: there is no annotation ", key,
                                       keys.empty() ? "; there is none at all" : "; there are ", keys));
  }
  // ---- nothing below fails ----
  schedule.SetBody(
      schedule.index().Replace(node, WithAnnotations(schedule.index().stmt(node), std::move(annotations))));
  schedule.Record(UnannotateStep{.target = target, .key = std::move(key)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const AnnotateStep& step) {
  return Annotate(schedule, step.target, step.key, step.value);
}

absl::Status Apply(Schedule& schedule, const UnannotateStep& step) {
  return Unannotate(schedule, step.target, step.key);
}

HONE_PRIMITIVES(annotate, AnnotateStep, UnannotateStep)

}  // namespace hone
