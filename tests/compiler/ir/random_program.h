// Random well-formed functions: nests of loops and blocks with allocations, lets and conditions.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/block_regions.h"
#include "compiler/ir/stmt.h"
#include "compiler/support/random.h"

namespace hone {

class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {}

  PrimFunc Make() {
    PrimFunc f{.name = "f"};
    const Buffer x = MakeBuffer(), y = MakeBuffer();
    f.params = {x, y};
    read_ = {x};
    written_ = {y};
    Block root{.name = "root"};
    root.allocs = {MakeBuffer()};
    read_.push_back(root.allocs[0]);
    written_.push_back(root.allocs[0]);
    root.body = MakeSeq({Nest(3), Nest(2)});
    f.body = Stmt::Make(BlockRealize{{}, True(), std::move(root)});
    return f;
  }

 private:
  Buffer MakeBuffer() {
    std::vector<Expr> shape;
    for (uint64_t d = random_.Below(3) + 1; d > 0; --d)
      shape.push_back(IntConst(8 + static_cast<int64_t>(random_.Below(9))));
    return Buffer(Name("B"), kFloat32, std::move(shape));
  }
  std::string Name(const char* stem) { return stem + std::to_string(random_.Below(4)); }

  // Loops around a block.
  Stmt Nest(int depth) {
    std::vector<Var> loops;
    for (uint64_t n = random_.Below(3) + 1; n > 0; --n) loops.emplace_back(Name("i"));
    Block block{.name = Name("block")};
    std::vector<Expr> values;
    const std::vector<Var> outer = ints_;
    for (const Var& loop : loops) {
      const Var v(Name("v"));
      block.iters.push_back({v, {0, 8}, random_.Chance(0.3) ? IterKind::kReduce : IterKind::kSpatial});
      values.push_back(loop);
      ints_.push_back(v);
    }
    const size_t reads = read_.size(), writes = written_.size();
    if (random_.Chance(0.4)) {
      block.allocs.push_back(MakeBuffer());
      read_.push_back(block.allocs[0]);
      written_.push_back(block.allocs[0]);
    }
    if (random_.Chance(0.3)) {
      const Buffer whole = Pick(read_);
      block.matches.push_back({Buffer(Name("M"), kFloat32, whole.shape()), Region(whole)});
      read_.push_back(block.matches[0].buffer);
    }
    if (random_.Chance(0.3)) block.init = Statement(0);
    block.body = Statement(depth);
    if (random_.Chance(0.2)) block.annotations["note"] = static_cast<int64_t>(random_.Below(3));
    DeclareRegions(block);
    read_.resize(reads);
    written_.resize(writes);
    ints_ = outer;
    Stmt s = Stmt::Make(
        BlockRealize{std::move(values), random_.Chance(0.7) ? True() : Expr(loops[0]) < 6, std::move(block)});
    for (size_t l = loops.size(); l-- > 0;) {
      const ForKind kinds[] = {ForKind::kSerial, ForKind::kParallel, ForKind::kUnrolled, ForKind::kVectorized};
      s = Stmt::Make(For{.var = loops[l], .min = 0, .extent = 8, .kind = kinds[random_.Below(4)], .body = s});
    }
    return s;
  }
  Stmt Statement(int depth) {
    if (depth > 0) {
      switch (random_.Below(6)) {
        case 0: return Nest(depth - 1);
        case 1: return MakeSeq({Statement(depth - 1), Statement(depth - 1)});
        case 2:
          return Stmt::Make(IfThen{Int(1) < 9, Statement(depth - 1), random_.Chance(0.5) ? Statement(0) : Stmt()});
        case 3: {
          const Var t(Name("t"));
          const Expr value = Int(1);
          ints_.push_back(t);
          Stmt body = Statement(depth - 1);
          ints_.pop_back();
          return Stmt::Make(Let{t, value, body});
        }
        case 4: return Stmt::Make(While{Int(1) < 9, Statement(0)});
        default: break;
      }
    }
    const Buffer to = Pick(written_);
    return Stmt::Make(Store{to, Indices(to), Float(2), Expr()});
  }
  Expr Int(int depth) {
    if (depth == 0 || random_.Chance(0.3)) {
      return ints_.empty() || random_.Chance(0.2) ? IntConst(static_cast<int64_t>(random_.Below(8)))
                                                  : Expr(Pick(ints_));
    }
    return random_.Chance(0.5) ? Int(depth - 1) + Int(depth - 1) : FloorMod(Int(depth - 1), 8);
  }
  Expr Float(int depth) {
    if (depth == 0) return FloatConst(static_cast<double>(random_.Below(4)));
    if (random_.Chance(0.4)) {
      const Buffer from = Pick(read_);
      return MakeLoad(from, Indices(from));
    }
    if (random_.Chance(0.2)) {
      const Var t(Name("t"), kFloat32);
      return Expr::Make(LetExpr{t, Float(depth - 1), Expr(t) * Expr(t)}, kFloat32);
    }
    return random_.Chance(0.5) ? MakeCall("exp", {Float(depth - 1)})
                               : MakeSelect(Int(1) < 3, Float(depth - 1), Float(depth - 1));
  }
  std::vector<Expr> Indices(const Buffer& b) {
    std::vector<Expr> indices;
    for (int d = 0; d < b.rank(); ++d) indices.push_back(FloorMod(Int(2), 8));
    return indices;
  }
  BufferRegion Region(const Buffer& b) {
    BufferRegion region{b, {}};
    for (int d = 0; d < b.rank(); ++d) region.region.push_back({Int(1), 1});
    return region;
  }
  template <class T>
  T Pick(const std::vector<T>& from) {
    return from[random_.Below(from.size())];
  }

  Random random_;
  std::vector<Buffer> read_, written_;
  std::vector<Var> ints_;
};

}  // namespace hone
