#include "worker/agent/builds/builders.h"

#include <utility>

namespace hone {

std::vector<v1::BuildOutcome> Builders::Build(std::vector<v1::BuildRequest> requests, absl::Duration limit) {
  std::vector<v1::BuildOutcome> outcomes(requests.size());
  Begin(std::move(requests), limit);
  while (std::optional<Built> built = Next()) outcomes[built->request] = std::move(built->outcome);
  return outcomes;
}

}  // namespace hone
