#include "tuner/service/endpoints/submit_pieces.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/channel.h"

namespace hone {
namespace {

constexpr size_t kRoom = 3 << 20;  // of a piece, unless its only element is larger
constexpr size_t kTag = 16;        // bytes at most that an element takes beside its own

// Of a v1::SubmitRequest or a v1::SubmitPart: all but its tasks and anchors.
template <class Part>
Part HeadOf(Part part) {
  part.clear_tasks();
  part.clear_anchors();
  return part;
}

class Splitter {
 public:
  explicit Splitter(v1::SubmitRequest head) : bytes_(head.ByteSizeLong()) { pieces_.push_back(std::move(head)); }

  void AddTasks(const v1::SubmitRequest& request) {
    Add(request, [this]() -> v1::SubmitRequest& { return pieces_.back(); });
  }
  void AddPart(const v1::SubmitPart& part) {
    v1::SubmitPart head = HeadOf(part);
    MakeRoom(head.ByteSizeLong());
    *pieces_.back().add_parts() = std::move(head);
    Add(part, [this]() -> v1::SubmitPart& {
      if (pieces_.back().parts().empty()) pieces_.back().add_parts()->set_continued(true);
      return *pieces_.back().mutable_parts()->rbegin();
    });
  }
  std::vector<v1::SubmitRequest> Take() && { return std::move(pieces_); }

 private:
  // `last` returns the last piece's end of what the tasks belong to.
  template <class Part, class Last>
  void Add(const Part& part, Last last) {
    for (const v1::TaskSpec& task : part.tasks()) {
      MakeRoom(task.ByteSizeLong());
      *last().add_tasks() = task;
    }
    for (const std::string& anchor : part.anchors()) {
      MakeRoom(anchor.size());
      last().add_anchors(anchor);
    }
  }
  void MakeRoom(size_t bytes) {
    bytes_ += bytes + kTag;
    if (bytes_ <= kRoom) return;
    bytes_ = bytes + 2 * kTag;  // a part that goes on has a tag, too
    pieces_.back().set_more(true);
    pieces_.emplace_back();
  }

  std::vector<v1::SubmitRequest> pieces_;
  size_t bytes_;  // of the last piece
};

absl::Status CheckSize(const v1::SubmitRequest& piece) {
  const size_t bytes = piece.ByteSizeLong();
  if (bytes <= size_t{kLongestMessage}) return absl::OkStatus();
  const auto& tasks = piece.tasks().empty() && !piece.parts().empty() ? piece.parts(0).tasks() : piece.tasks();
  return absl::InvalidArgumentError(absl::StrCat(
      "submit: ", tasks.empty() ? "what describes the job" : absl::StrCat("kernel ", tasks[0].workload().name()),
      " takes ", bytes, " bytes, and a message to a daemon has ", kLongestMessage,
      " at most; leave it out with --tasks"));
}

}  // namespace

absl::StatusOr<std::vector<v1::SubmitRequest>> SplitSubmit(const v1::SubmitRequest& request) {
  v1::SubmitRequest head = HeadOf(request);
  head.clear_parts();
  Splitter splitter(std::move(head));
  splitter.AddTasks(request);
  for (const v1::SubmitPart& part : request.parts()) splitter.AddPart(part);
  std::vector<v1::SubmitRequest> pieces = std::move(splitter).Take();
  for (const v1::SubmitRequest& piece : pieces) HONE_RETURN_IF_ERROR(CheckSize(piece));
  return pieces;
}

absl::Status AppendPiece(v1::SubmitRequest piece, v1::SubmitRequest& whole) {
  google::protobuf::RepeatedPtrField<v1::SubmitPart> parts;
  parts.Swap(piece.mutable_parts());
  whole.MergeFrom(piece);
  whole.clear_more();
  for (v1::SubmitPart& part : parts) {
    if (!part.continued()) {
      *whole.add_parts() = std::move(part);
      continue;
    }
    if (whole.parts().empty()) {
      return absl::InvalidArgumentError("submit: a part is said to go on (SubmitPart.continued), and none was begun");
    }
    part.clear_continued();
    whole.mutable_parts()->rbegin()->MergeFrom(part);
  }
  return absl::OkStatus();
}

}  // namespace hone
