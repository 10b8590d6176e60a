// One search process: answers requests for any number of tasks, keeping what it knows of each. A tenant's tasks
// of one device class train one cost model. The daemon has a process for each task (tuner/service/core/search_pool.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "hone/v1/search.pb.h"
#include "tuner/search/strategies/task_search.h"

namespace hone {

class SearchServer {
 public:
  // Never fails as a call: what is wrong is `error` of the reply. Says need_all when observations before those of the
  // request are not known here.
  v1::SearchReply Answer(const v1::SearchRequest& request);

 private:
  // The model of the request's tenant and device class, made when first needed. What the request brings of it is taken
  // up.
  std::shared_ptr<DeviceModel> ModelFor(const v1::SearchRequest& request);

  std::map<uint64_t, std::unique_ptr<TaskSearch>> searches_;                         // by task
  std::map<std::pair<uint64_t, std::string>, std::shared_ptr<DeviceModel>> models_;  // by tenant and device class
};

}  // namespace hone
