#include "compiler/ir/block_regions.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {

Stmt LowerInit(const Stmt& body) {
  return RewriteBottomUp(body, [](const Stmt& s) -> std::optional<Stmt> {
    const BlockRealize* realize = s.As<BlockRealize>();
    if (realize == nullptr || !realize->block.init) return std::nullopt;
    BlockRealize lowered = *realize;
    Block& block = lowered.block;
    Expr first = True();
    for (const IterVar& iter : block.iters) {
      if (iter.kind != IterKind::kReduce || IsConst(iter.domain.extent, 1)) continue;
      first = And(first, Eq(iter.var, iter.domain.min));
    }
    const Stmt init = IsConst(first, 1) ? block.init : Stmt::Make(IfThen{first, block.init, Stmt()});
    block.body = MakeSeq({init, block.body});
    block.init = Stmt();
    DeclareRegions(block);  // a block without an init declares that it accumulates
    return Stmt::Make(std::move(lowered));
  });
}

}  // namespace hone
