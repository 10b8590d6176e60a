#include "tuner/service/endpoints/task_pages.h"

#include <cstddef>
#include <utility>

#include "proto/rpc/channel.h"

namespace hone {
namespace {

constexpr size_t kRoom = size_t{kLongestMessage} - (64 << 10);  // for tasks, and a message around the job
constexpr size_t kTag = 16;                                     // bytes at most that a task takes beside its own

}  // namespace

void KeepTaskPage(uint64_t after_task, v1::JobSnapshot& job) {
  google::protobuf::RepeatedPtrField<v1::TaskSnapshot> tasks;
  tasks.Swap(job.mutable_tasks());
  size_t bytes = job.ByteSizeLong();
  for (v1::TaskSnapshot& task : tasks) {  // by number
    if (task.task_id() <= after_task) continue;
    bytes += task.ByteSizeLong() + kTag;
    if (bytes > kRoom && !job.tasks().empty()) {
      job.set_next_task(job.tasks().rbegin()->task_id());
      return;
    }
    *job.add_tasks() = std::move(task);
  }
}

}  // namespace hone
