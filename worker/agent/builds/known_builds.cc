#include "worker/agent/builds/known_builds.h"

#include <iterator>
#include <utility>

namespace hone {
namespace {

constexpr int kKeptBatches = 2;  // another batch of the task may be between a challenger's and its duel

std::string KeyOf(v1::BuildRequest request) {
  request.clear_id();
  request.clear_image_only();
  return request.SerializeAsString();
}

}  // namespace

void KnownBuilds::NextBatch() {
  for (auto it = known_.begin(); it != known_.end();)
    it = ++it->second.unused > kKeptBatches ? known_.erase(it) : std::next(it);
}

KnownBuilds::Known* KnownBuilds::Find(const v1::BuildRequest& request) {
  const auto found = known_.find(KeyOf(request));
  if (found == known_.end()) return nullptr;
  Known& known = found->second;
  if (known.built.reply().object().empty() && !request.image_only()) return nullptr;
  known.unused = 0;
  return &known;
}

void KnownBuilds::Keep(const v1::BuildRequest& request, v1::BuildOutcome built) {
  known_[KeyOf(request)] = {.built = std::move(built)};
}

void KnownBuilds::Forget(const v1::BuildRequest& request) { known_.erase(KeyOf(request)); }

}  // namespace hone
