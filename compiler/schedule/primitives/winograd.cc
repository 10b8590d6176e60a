#include "compiler/schedule/primitives/winograd.h"

#include <limits>
#include <utility>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/match_convolution.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitives/winograd_nests.h"
#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Of bytes: no sum on the way leaves int32 with so many channels. In one dimension an output takes three products, of
// numbers of V and U that are at most 1 * 2, 2 * 3 and 1 * 3 times those of X and W.
int64_t MostChannels(const WindowConvolution& conv) {
  constexpr int64_t kGrowth = 1 * 2 + 2 * 3 + 1 * 3;
  const auto largest = [](const Buffer& buffer) { return buffer.type().code == TypeCode::kUInt ? 255 : 128; };
  return std::numeric_limits<int32_t>::max() / (kGrowth * kGrowth * largest(conv.x) * largest(conv.w));
}

// The block stands as in a workload: a loop for every iteration variable, around it alone.
absl::StatusOr<int> UntouchedNest(const ProgramIndex& index, int node) {
  const BlockRealize& realize = index.realize(node);
  const std::vector<int> loops = index.LoopsAbove(node);
  bool plain = loops.size() == realize.values.size() && !loops.empty() && IsConst(realize.predicate, 1);
  for (size_t i = 0; plain && i < loops.size(); ++i) {
    const VarRef* value = realize.values[i].As<VarRef>();
    const For& loop = index.loop(loops[i]);
    plain = value != nullptr && value->var == loop.var && loop.kind == ForKind::kSerial;
  }
  if (!plain || index.BlocksBelow(loops.front()).size() != 1) {
    return Refused("it has been scheduled already; choose its algorithm first");
  }
  return loops.front();
}

}  // namespace

absl::StatusOr<RewrittenBlock> WinogradConvolution(const PrimFunc& func, const ProgramIndex& index, int node,
                                                   int tile) {
  HONE_CHECK(tile == 2 || tile == 4) << "there are transforms for tiles of 2 and 4, not " << tile;
  const std::string name = index.block(node).name;
  HONE_ASSIGN_OR_RETURN(const int nest, UntouchedNest(index, node));
  HONE_ASSIGN_OR_RETURN(const WindowConvolution conv, MatchConvolution(func, index.block(node)));
  if (conv.of_integers()) {
    if (tile != 2) return Refused("tiles of ", tile, " by ", tile, " have no transform that is exact in integers");
    if (const int64_t most = MostChannels(conv); conv.extent(conv.c) > most)
      return Refused("int32 holds what is summed over ", most, " channels, and perhaps not over ", conv.extent(conv.c));
  }
  const int scope = index.EnclosingBlock(node);
  if (ReadersOf(index, scope, conv.w).size() != 1) return Refused("another block reads the weights ", conv.w, " too");

  const WinogradNests made(conv, tile);
  RewrittenBlock result;
  std::vector<Stmt> parts;
  const auto add = [&](const std::string& block, Stmt (WinogradNests::*part)(const std::string& name) const) {
    parts.push_back((made.*part)(block));
    result.blocks.push_back(block);
  };
  add(FreshBlockName(index, name + "_input_rows"), &WinogradNests::InputRows);
  add(FreshBlockName(index, name + "_input"), &WinogradNests::Input);
  add(FreshBlockName(index, name + "_product"), &WinogradNests::Product);
  add(FreshBlockName(index, name + "_output_rows"), &WinogradNests::OutputRows);
  if (made.dilated()) add(FreshBlockName(index, name + "_phases"), &WinogradNests::Phases);
  add(name, made.dilated() ? &WinogradNests::Together : &WinogradNests::Output);
  const Stmt nests = MakeSeq(std::move(parts));
  const std::string scope_name = index.block(scope).name;
  const ProgramIndex replaced(index.Replace(nest, nests));
  const int home = replaced.FindBlock(scope_name);
  BlockRealize allocating = replaced.realize(home);
  for (const Buffer& buffer : made.intermediates()) allocating.block.allocs.push_back(buffer);

  result.main = func;
  result.main.params[static_cast<size_t>(conv.param)] = made.transformed_weights();
  result.main.body = replaced.Replace(home, Stmt::Make(std::move(allocating)));
  result.prepare = {conv.param, made.PrepareWeights()};
  return result;
}

}  // namespace hone
