// The list of rewrites.
#include <iterator>
#include <utility>

#include "tuner/space/rewrites/rewrite.h"

namespace hone {
namespace {

constexpr std::vector<Rewrite> (*kRewrites[])(const RewriteContext& context) = {
    AlgorithmRewrites,
    SplitKRewrites,
};

}  // namespace

std::vector<Rewrite> Rewrites(const RewriteContext& context) {
  std::vector<Rewrite> all = {{"", [](Schedule&) { return absl::OkStatus(); }}};
  for (const auto& row : kRewrites) {
    std::vector<Rewrite> found = row(context);
    all.insert(all.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  return all;
}

}  // namespace hone
