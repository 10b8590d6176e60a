// Algorithm: the heaviest block computes its result with fewer operations (choose_algorithm.h).
#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/rewrites/rewrite.h"

namespace hone {

std::vector<Rewrite> AlgorithmRewrites(const RewriteContext& context) {
  std::vector<Rewrite> found;
  const std::string& block = context.heaviest().name;
  for (const std::string& algorithm : AlgorithmNames()) {
    found.push_back({absl::StrCat(algorithm, "(", block, ")"), [block, algorithm](Schedule& schedule) {
                       HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, block));
                       return ChooseAlgorithm(schedule, ref, algorithm).status();
                     }});
  }
  return found;
}

}  // namespace hone
