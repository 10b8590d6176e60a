// Which of the ranked finalists go out together.
#pragma once

#include <vector>

#include "compiler/support/random.h"
#include "tuner/search/strategies/strategy.h"

namespace hone {

struct Finalist {
  Pick pick;
  double score = 0;  // predicted log time, less the credit for uncertainty, more the risk of a failure
};

// At most `count`: the best score first, each a little spoiled by its likeness to those already out; now and then one
// at random, or of the source that has had the least of a chance and is not hopeless.
std::vector<Pick> ChooseBatch(int count, std::vector<Finalist> finalists, const SearchState& state, Random& random);

}  // namespace hone
