// An index as a sum, for addresses: what does not change in a loop is told from what does.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

// constant + sum of coefficient * atom. Atoms are variables, and what is not linear (quotients, remainders, loads).
struct LinearSum {
  struct Term {
    Expr atom;
    int64_t coefficient;
  };
  std::vector<Term> terms;
  int64_t constant = 0;

  void Add(const Expr& e, int64_t scale);

 private:
  void AddTerm(const Expr& atom, int64_t coefficient);
};

}  // namespace hone
