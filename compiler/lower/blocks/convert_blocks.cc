#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// Accesses of `match.buffer` become accesses of the region it names. The region may have more dimensions in front, each
// of one element.
Stmt ReplaceMatched(const Stmt& body, const MatchBuffer& match) {
  const BufferRegion& source = match.source;
  const auto indices_in_source = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    const size_t extra = source.region.size() - indices.size();
    for (size_t d = 0; d < source.region.size(); ++d) {
      const Expr& min = source.region[d].min;
      out.push_back(d < extra ? min : min + indices[d - extra]);
    }
    return out;
  };
  const auto on_expr = [&](const Expr& e) -> std::optional<Expr> {
    const Load* load = e.As<Load>();
    if (load == nullptr || load->buffer != match.buffer) return std::nullopt;
    return MakeLoad(source.buffer, indices_in_source(load->indices), load->mask);
  };
  return RewriteBottomUp(RewriteExprs(body, on_expr), [&](const Stmt& s) -> std::optional<Stmt> {
    const Store* store = s.As<Store>();
    if (store == nullptr || store->buffer != match.buffer) return std::nullopt;
    return Stmt::Make(Store{source.buffer, indices_in_source(store->indices), store->value, store->mask});
  });
}

}  // namespace

Stmt ConvertBlocks(const Stmt& body) {
  return RewriteBottomUp(body, [](const Stmt& s) -> std::optional<Stmt> {
    const BlockRealize* realize = s.As<BlockRealize>();
    if (realize == nullptr) return std::nullopt;
    const Block& block = realize->block;
    HONE_CHECK(!block.init && block.allocs.empty()) << block.name << ": init and allocations are lowered first";
    Stmt converted = block.body;
    for (const MatchBuffer& match : block.matches) converted = ReplaceMatched(converted, match);
    converted = Substitute(converted, [&](const Var& v) -> std::optional<Expr> {
      for (size_t i = 0; i < block.iters.size(); ++i) {
        if (block.iters[i].var == v) return MakeCast(v.type(), realize->values[i]);
      }
      return std::nullopt;
    });
    if (!IsConst(realize->predicate, 1)) converted = Stmt::Make(IfThen{realize->predicate, converted, Stmt()});
    return converted;
  });
}

}  // namespace hone
