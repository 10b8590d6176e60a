// Where the operands of every row of the registry lie: each element in one place, and no place left over. What the
// places are is tested with the instructions (interp/warp_products_test.cc, interp/warp_loads_test.cc,
// codegen/tile_op_test.cc).
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

std::string NameOf(const testing::TestParamInfo<const TileIntrinsic*>& info) { return info.param->name; }

// ---- Registers of a warp

std::vector<const TileIntrinsic*> RowsOfWarps() {
  std::vector<const TileIntrinsic*> rows;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (row.threads > 1) rows.push_back(&row);
  }
  return rows;
}

// Calls f(values) for all values of these axes.
template <class F>
void ForEachPoint(const std::vector<const IterVar*>& axes, const F& f) {
  std::vector<int64_t> extents, at(axes.size(), 0);
  for (const IterVar* axis : axes) extents.push_back(*ConstantValue(axis->domain.extent));
  for (bool more = true; more;) {
    f(at);
    more = false;
    for (size_t d = axes.size(); d-- > 0 && !more;) {
      more = ++at[d] < extents[d];
      if (!more) at[d] = 0;
    }
  }
}

class WarpLayouts : public testing::TestWithParam<const TileIntrinsic*> {
 protected:
  // The indices that an operand is used at, over the axes that move them.
  static void ExpectBijection(const Buffer& operand, const std::vector<Expr>& indices) {
    SCOPED_TRACE(operand.name());
    std::vector<const IterVar*> axes;
    for (const IterVar& axis : GetParam()->axes) {
      bool moves = false;
      for (const Expr& index : indices) moves |= UsesVar(index, axis.var);
      if (moves) axes.push_back(&axis);
    }
    std::set<std::vector<int64_t>> used;
    ForEachPoint(axes, [&](const std::vector<int64_t>& at) {
      std::vector<int64_t> place;
      for (const Expr& index : indices) {
        const Expr here = Substitute(index, [&](const Var& var) -> std::optional<Expr> {
          for (size_t a = 0; a < axes.size(); ++a) {
            if (axes[a]->var == var) return IntConst(at[a], var.type());
          }
          return std::nullopt;
        });
        place.push_back(ConstantValue(Analyzer().Simplify(here)).value_or(-1));
        const int64_t extent = ConstantValue(operand.shape()[place.size() - 1]).value_or(0);
        EXPECT_TRUE(place.back() >= 0 && place.back() < extent) << ToText(here) << " is outside of " << extent;
      }
      EXPECT_TRUE(used.insert(place).second) << "two elements at " << testing::PrintToString(place);
    });
    int64_t places = 1;
    for (const Expr& extent : operand.shape()) places *= ConstantValue(extent).value_or(0);
    EXPECT_EQ(static_cast<int64_t>(used.size()), places) << "places that hold no element";
  }
};

TEST_P(WarpLayouts, AreBijections) {
  const Store* update = GetParam()->update.As<Store>();
  std::map<std::string, std::pair<Buffer, std::vector<Expr>>> uses = {
      {update->buffer.name(), {update->buffer, update->indices}}};
  ForEachExpr(update->value, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) uses.insert({load->buffer.name(), {load->buffer, load->indices}});
    return true;
  });
  EXPECT_EQ(uses.size(), GetParam()->operands.size());
  for (const auto& [name, use] : uses) ExpectBijection(use.first, use.second);
}
// The meaning has a dimension of lanes where an operation has registers of each thread.
TEST_P(WarpLayouts, OperandsAreTheRegistersOfAThread) {
  const TileIntrinsic& row = *GetParam();
  const Store* update = row.update.As<Store>();
  const auto expect = [&](const Buffer& meant) {
    for (const Buffer& operand : row.operands) {
      if (operand.name() != meant.name() || operand.scope() != Scope::kRegister) continue;
      EXPECT_TRUE(IsConst(meant.shape()[0], row.threads)) << meant.name();
      ASSERT_EQ(operand.rank() + 1, meant.rank()) << meant.name();
      EXPECT_EQ(ConstantValue(operand.shape()[0]), ConstantValue(meant.shape()[1])) << meant.name();
    }
  };
  expect(update->buffer);
  ForEachExpr(update->value, [&](const Expr& e) {
    if (const Load* load = e.As<Load>()) expect(load->buffer);
    return true;
  });
}
INSTANTIATE_TEST_SUITE_P(Rows, WarpLayouts, testing::ValuesIn(RowsOfWarps()), NameOf);

// ---- Vectors of one thread

std::vector<const TileIntrinsic*> RowsOfVectors() {
  std::vector<const TileIntrinsic*> rows;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const bool is_one = row.threads == 1 && row.token == AsyncToken::kNone;
    if (is_one && !row.instructions.empty() && !row.in_tiles()) rows.push_back(&row);
  }
  return rows;
}

// The elements of an operand of this instruction, which says how far the axes run that the meaning leaves open.
int64_t ElementsOf(const TileIntrinsic& row, const TileInstruction& instruction, const Buffer& operand) {
  int64_t elements = 1;
  for (const Expr& extent : operand.shape()) {
    elements *= *ConstantValue(Substitute(extent, [&](const Var& size) -> std::optional<Expr> {
      const auto axis = instruction.extents.find(size.name());
      if (axis != instruction.extents.end()) return IntConst(axis->second);
      return IntConst(instruction.extents.at("k") / *ConstantValue(row.operands[2].shape().back()));  // groups
    }));
  }
  return elements;
}

class VectorLayouts : public testing::TestWithParam<const TileIntrinsic*> {};
// Lane i holds element i; those of an operand that is read once for all lanes are repeated.
TEST_P(VectorLayouts, OperandsFillTheirRegister) {
  for (const TileInstruction& instruction : GetParam()->instructions) {
    SCOPED_TRACE(instruction.function);
    std::set<int64_t> register_bits;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      SCOPED_TRACE(i);
      const TileInstruction::Operand& passed = instruction.operands[i];
      const Buffer& operand = GetParam()->operands[i];
      const int64_t elements = ElementsOf(*GetParam(), instruction, operand), bits = elements * operand.type().bits;
      const int64_t in_register = passed.widens ? elements * passed.type.bits : bits;
      // The factors of a long product fill half of one.
      const int halves = instruction.multiplies && i > 0 ? 2 : 1;
      register_bits.insert(passed.lanes * passed.type.bits * halves);
      if (passed.splat_bits == 0) {
        EXPECT_EQ(in_register, passed.lanes * passed.type.bits);
      } else {
        EXPECT_EQ(bits, passed.splat_bits);
        EXPECT_EQ(passed.lanes * passed.type.bits % in_register, 0) << "the last copy is cut";
      }
      if (passed.widens) { EXPECT_LT(operand.type().bits, passed.type.bits); }
      EXPECT_EQ(elements % passed.rows, 0);
    }
    EXPECT_EQ(register_bits.size(), 1u) << "operands of several widths: " << testing::PrintToString(register_bits);
    for (const int64_t bits : register_bits) EXPECT_TRUE(bits == 128 || bits == 256 || bits == 512) << bits;
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, VectorLayouts, testing::ValuesIn(RowsOfVectors()), NameOf);

}  // namespace
}  // namespace hone
