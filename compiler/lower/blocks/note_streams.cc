#include <algorithm>
#include <set>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {

PrimFunc NoteStreams(PrimFunc func) {
  std::set<Buffer> streamed;
  ForEachStmt(func.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr) return true;
    const Block& block = realize->block;
    const auto found = block.annotations.find(kStreamed);
    const auto* numbers =
        found == block.annotations.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
    for (size_t i = 0; i < block.writes.size(); ++i) {
      const bool noted = numbers != nullptr && std::ranges::find(*numbers, static_cast<int64_t>(i)) != numbers->end();
      if (noted) streamed.insert(block.writes[i].buffer);
    }
    return true;
  });
  std::vector<int64_t> params;
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (streamed.count(func.params[i]) != 0) params.push_back(static_cast<int64_t>(i));
  }
  if (!params.empty()) func.attrs[kStreamed] = std::move(params);
  return func;
}

}  // namespace hone
