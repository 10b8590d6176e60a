// The nests that Winograd's algorithm (winograd.h) puts in the place of a convolution.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/analysis/match_convolution.h"

namespace hone {

// Of bytes, with tiles of 2 by 2, the taps are transformed by 2 G, so that every number is an integer, and the results
// are divided by 4.
class WinogradNests {
 public:
  // `tile` is m: 2 or 4. `conv` is referred to as long as this lives.
  WinogradNests(const WindowConvolution& conv, int tile);

  // What the nests write, but for the convolution's own result.
  std::vector<Buffer> intermediates() const;
  // The param that takes the place of the weights.
  const Buffer& transformed_weights() const { return u_; }
  bool dilated() const { return phases_ > 1; }

  // ---- a nest around a block of that name each, in the order in which they run
  Stmt InputRows(const std::string& name) const;
  Stmt Input(const std::string& name) const;
  Stmt Product(const std::string& name) const;
  Stmt OutputRows(const std::string& name) const;
  // Of a convolution that is not dilated.
  Stmt Output(const std::string& name) const;
  // Of a dilated one: the images that it falls apart into, the batch and their place in it outermost ..
  Stmt Phases(const std::string& name) const;
  // .. and where their elements go.
  Stmt Together(const std::string& name) const;

  // prepare(W, U): U[i,j,c,f] = G(i) W[.,.,c,f] G(j)^T. The weights of an input channel stay in the cache for all i,
  // and with i and j known what the rows of G have in common is computed once.
  PrimFunc PrepareWeights() const;

 private:
  struct OutputPoint {
    Expr batch, h, w, f;
  };
  // Over the variables that the block had, in their order, without those that reduced.
  Stmt OverOutput(const std::string& name,
                  const std::function<Expr(const OutputPoint& at, Analyzer& known)>& value) const;
  // The result at row h and column w of an image, of which a dilated convolution has several for one of a batch.
  Expr OutputAt(const Expr& image, const Expr& h, const Expr& w, const Expr& f, Analyzer& known) const;
  // x at row k and column l of what tile t sees; 0 below and right of x, where the last tiles reach beyond it.
  Expr InputAt(const Expr& t, const Expr& k, const Expr& l, const Expr& c, Analyzer& known) const;

  const WindowConvolution& conv_;
  int m_;
  int64_t a_;               // m + 2
  int64_t phases_;          // images of a dilated convolution, for each of the batch; 1 where it is not dilated
  int64_t rows_, columns_;  // of an image
  int64_t tiles_h_, tiles_w_, tiles_;
  Buffer d_, v_, product_, r_, u_;  // D, V, M, R and U of winograd.h
  Buffer phased_;                   // of a dilated convolution
};

}  // namespace hone
