// One search process: answers requests for any number of tasks, keeping what it knows of each.
#pragma once

#include <map>
#include <memory>

#include "hone/v1/search.pb.h"
#include "tuner/search/task_search.h"

namespace hone {

class SearchServer {
 public:
  // Never fails as a call: what is wrong is `error` of the reply. Says need_all when observations before those of the
  // request are not known here.
  v1::SearchReply Answer(const v1::SearchRequest& request);

 private:
  std::map<uint64_t, std::unique_ptr<TaskSearch>> searches_;  // by task
};

}  // namespace hone
