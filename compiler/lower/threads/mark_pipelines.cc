#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/threads/pipeline.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

template <class... Pieces>
absl::Status CannotRun(const For& loop, const Pieces&... pieces) {
  return absl::FailedPreconditionError(
      absl::StrCat("threads cannot run this program: loop ", loop.var.name(), " ", pieces...));
}

bool IsPipelined(const For& loop) {
  return std::ranges::any_of(loop.annotations, [](const auto& a) { return a.first.starts_with(kPipelinePrefix); });
}

// The numbers of an annotation; empty when it is absent.
absl::StatusOr<std::vector<int64_t>> Numbers(const For& loop, const char* key) {
  const auto found = loop.annotations.find(key);
  if (found == loop.annotations.end()) return std::vector<int64_t>();
  const auto* numbers = std::get_if<std::vector<int64_t>>(&found->second);
  if (numbers == nullptr) return CannotRun(loop, "has the annotation ", key, ", which is no list of numbers");
  return *numbers;
}

absl::Status CheckAnnotations(const For& loop, size_t parts) {
  for (const auto& [key, value] : loop.annotations) {
    const bool known = key == kPipelineStage || key == kPipelineOrder || key == kPipelineAsyncStages;
    if (key.starts_with(kPipelinePrefix) && !known)
      return CannotRun(loop, "has the annotation ", key, ", which nothing honours; unannotate the loop");
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> stage, Numbers(loop, kPipelineStage));
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> order, Numbers(loop, kPipelineOrder));
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> asynchronous, Numbers(loop, kPipelineAsyncStages));
  if (stage.size() != parts)
    return CannotRun(loop, "has ", parts, " statements in its body, and ", kPipelineStage, " gives ", stage.size(),
                     " of them a stage");
  if (std::ranges::any_of(stage, [](int64_t s) { return s < 0 || s > kMostPipelineStages; }))
    return CannotRun(loop, "has a stage in ", kPipelineStage, " that is none from 0 to ", kMostPipelineStages);
  std::vector<int64_t> all(parts);
  std::iota(all.begin(), all.end(), 0);
  std::ranges::sort(order);
  if (!order.empty() && order != all)
    return CannotRun(loop, "has the annotation ", kPipelineOrder, ", which does not give each of its ", parts,
                     " statements one place");
  for (const int64_t s : asynchronous) {
    if (std::ranges::find(stage, s) == stage.end())
      return CannotRun(loop, "has the asynchronous stage ", s, ", in which there is no statement");
  }
  if (loop.kind != ForKind::kSerial)
    return CannotRun(loop, "is pipelined, so its iterations are to follow one another; make it serial");
  if (!ConstantValue(loop.extent).has_value())
    return CannotRun(loop, "is pipelined, and how often it runs is not known; split it by a number");
  return absl::OkStatus();
}

// The statements of the body, and what is allocated around all of them, from the outside.
std::vector<Stmt> Statements(const Stmt& body, std::vector<Buffer>& around) {
  Stmt inside = body;
  while (const Alloc* alloc = inside.As<Alloc>()) {
    around.push_back(alloc->buffer);
    inside = alloc->body;
  }
  const Seq* seq = inside.As<Seq>();
  return seq == nullptr ? std::vector<Stmt>{inside} : seq->stmts;
}

bool DoesNothing(const Stmt& s) {
  const Evaluate* evaluate = s.As<Evaluate>();
  return evaluate != nullptr && ConstantValue(evaluate->value).has_value();
}

}  // namespace

absl::StatusOr<Stmt> MarkPipelines(const Stmt& body) {
  absl::Status status;
  const Stmt marked = RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const For* loop = s.As<For>();
    if (loop == nullptr || !IsPipelined(*loop)) return std::nullopt;
    std::vector<Buffer> around;
    std::vector<Stmt> parts = Statements(loop->body, around);
    std::erase_if(parts, DoesNothing);
    if (status.ok()) status = CheckAnnotations(*loop, parts.size());
    std::vector<Stmt> apart;
    for (const Stmt& part : parts) {
      if (!apart.empty()) apart.push_back(Stmt::Make(Evaluate{IntConst(0)}));
      apart.push_back(part);
    }
    For with_marks = *loop;
    with_marks.body = MakeSeq(std::move(apart));
    for (size_t i = around.size(); i-- > 0;) with_marks.body = Stmt::Make(Alloc{around[i], with_marks.body});
    return Stmt::Make(std::move(with_marks));
  });
  HONE_RETURN_IF_ERROR(status);
  return marked;
}

}  // namespace hone
