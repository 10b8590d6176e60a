// Which row serves a product: by types, sizes and the features of the target.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {
namespace {

// The largest divisor of `extent` up to `most` that is a multiple of `step`; 0: there is none.
int64_t LargestDivisor(int64_t extent, int64_t most, int64_t step) {
  for (int64_t size = most / step * step; size >= step; size -= step) {
    if (extent % size == 0) return size;
  }
  return 0;
}

// A tile takes the cycles of a whole one, whatever is in it: below a quarter, vectors add more products in them.
constexpr int64_t kLeastOfTile = 4;

std::optional<DotProduct> Fitted(const TileIntrinsic& row, const TileInstruction& instruction,
                                 const ProductShape& shape) {
  const auto most = [&](const char* axis) { return instruction.extents.at(axis); };
  DotProduct dot{&row, &instruction};
  dot.group = ConstantValue(row.operands[2].shape().back()).value_or(1);
  dot.lanes = most("n");
  dot.depth = dot.group;
  if (const auto rows = instruction.extents.find("m"); rows != instruction.extents.end()) dot.rows = rows->second;
  if (instruction.in_tiles) {
    dot.rows = LargestDivisor(shape.rows, most("m"), 1);
    dot.depth = LargestDivisor(shape.depth, most("k"), dot.group);
    if (dot.rows * dot.depth * kLeastOfTile < most("m") * most("k")) return std::nullopt;
  }
  const bool divide = shape.rows % dot.rows == 0 && shape.columns % dot.lanes == 0 && shape.depth % dot.depth == 0;
  return divide ? std::optional(dot) : std::nullopt;
}

// "zero_tile" for "mma4_u8s8_s32": "zero_tile_s32".
const TileIntrinsic& OfSums(const char* prefix, const TileIntrinsic& product) {
  const TileIntrinsic* row =
      FindTileIntrinsic(absl::StrCat(prefix, product.operands[0].type() == kFloat32 ? "_f32" : "_s32"));
  HONE_CHECK(row != nullptr) << product.name << " has sums without a " << prefix;
  return *row;
}

}  // namespace

std::optional<DotProduct> FindDotProduct(const ProductShape& shape, const std::set<std::string>& features) {
  std::optional<DotProduct> best;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads != 1 || row.operands.size() != 3 || row.instructions.empty()) continue;
    if (row.operands[0].type() != shape.sum || row.operands[1].type() != shape.left ||
        row.operands[2].type() != shape.right)
      continue;
    for (const TileInstruction& instruction : row.instructions) {
      if (features.count(instruction.feature) == 0) continue;
      const std::optional<DotProduct> dot = Fitted(row, instruction, shape);
      if (dot.has_value() && (!best.has_value() || dot->products() > best->products())) best = dot;
    }
  }
  return best;
}

std::vector<const TileIntrinsic*> VectorProducts(DType type) {
  std::vector<const TileIntrinsic*> found;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const bool of_vectors = row.threads == 1 && row.operands.size() == 3 && row.axes.size() == 1 && row.adds_once();
    if (of_vectors && std::ranges::all_of(row.operands, [&](const Buffer& b) { return b.type() == type; }))
      found.push_back(&row);
  }
  return found;
}

const TileIntrinsic* FindWarpProduct(DType left, DType right, DType sum, const std::set<std::string>& features) {
  const auto terms = [](const TileIntrinsic& row) {
    return ConstantValue(row.FindAxis("k")->domain.extent).value_or(0);
  };
  const TileIntrinsic* found = nullptr;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const std::vector<Buffer>& operands = row.operands;
    if (row.threads == 1 || operands.size() != 3 || operands[0].type() != sum || operands[1].type() != left ||
        operands[2].type() != right || features.count(row.instructions[0].feature) == 0)
      continue;
    if (found == nullptr || terms(row) > terms(*found)) found = &row;
  }
  return found;
}

const TileIntrinsic* FindMatrixLoad(DType type, int64_t registers, bool transposed,
                                    const std::set<std::string>& features) {
  if (features.count(kMatrixLoadFeature) == 0) return nullptr;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads == 1 || row.operands.size() != 2 || row.operands[0].type() != type) continue;
    const bool is_transposed = row.name.find("_trans") != std::string::npos;
    if (is_transposed == transposed && IsConst(row.operands[0].shape()[0], registers)) return &row;
  }
  return nullptr;
}

std::map<int64_t, const TileIntrinsic*> FindAsyncCopies(const std::set<std::string>& features) {
  std::map<int64_t, const TileIntrinsic*> found;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const bool copies = row.token != AsyncToken::kNone && row.threads == 1 && row.operands.size() == 2 &&
                        row.operands[0].scope() == Scope::kShared && row.operands[1].scope() == Scope::kGlobal;
    if (!copies || features.count(row.instructions[0].feature) == 0) continue;
    found[*row.operands[0].NumElements() * row.operands[0].type().bytes()] = &row;
  }
  return found;
}

const TileIntrinsic& ZeroTile(const TileIntrinsic& product) { return OfSums("zero_tile", product); }
const TileIntrinsic& StoreTile(const TileIntrinsic& product) { return OfSums("store_tile", product); }

}  // namespace hone
