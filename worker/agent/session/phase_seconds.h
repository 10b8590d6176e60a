// What a worker's wall time goes to.
#pragma once

namespace hone {

struct PhaseSeconds {
  double build = 0, verify = 0, measure = 0;
};

}  // namespace hone
