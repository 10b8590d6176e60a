// Operations in tile registers: which number holds what, and when the registers are set up (Intel SDM volume 1, chapter
// 18). Numbers are ours: LLVM's own allocation of them compiles more slowly, and spills where we would expand.
//
//   sums    0 ..          for as long as their allocation lives, across loops
//   A, B    the others    for as long as their block of straight code: rows of an unrolled tile share them
#include <algorithm>
#include <set>

#include "compiler/codegen/emitter.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

// Registers from here on hold B, those between the sums and it A.
int FirstRight(const TileShapes& shapes) { return static_cast<int>(shapes.sums + (kTileRegisters - shapes.sums) / 2); }

// What LDTILECFG reads: 64 bytes, the bytes of a row of each register in 16 bits from byte 16 on, rows from byte 48 on.
std::string Configuration(const TileShapes& shapes) {
  std::string bytes(64, '\0');
  bytes[0] = 1;  // palette
  for (int r = 0; r < kTileRegisters; ++r) {
    const bool is_sum = r < shapes.sums, is_right = r >= FirstRight(shapes);
    const int64_t row = is_sum ? shapes.sum_bytes : is_right ? shapes.right_bytes : shapes.left_bytes;
    const int64_t rows = is_right ? shapes.groups : shapes.rows;
    bytes[static_cast<size_t>(16 + 2 * r)] = static_cast<char>(row);
    bytes[static_cast<size_t>(48 + r)] = static_cast<char>(rows);
  }
  return bytes;
}

// Of all sums of a function, not of its parallel loops: those are functions of their own.
void CollectShapes(const Stmt& stmt, bool serial, std::set<TileShapes>& shapes) {
  const For* loop = stmt.As<For>();
  if (loop != nullptr && loop->kind == ForKind::kParallel && !serial) return;
  if (const Alloc* alloc = stmt.As<Alloc>()) {
    if (const std::optional<TileRegisters> found = AssignTileRegisters(*alloc)) shapes.insert(found->shapes);
  }
  ForEachChild(
      stmt, [&](const Stmt& child) { CollectShapes(child, serial, shapes); }, [](const Expr&) {});
}

}  // namespace

void Emitter::TileCall(const std::string& function, const std::vector<llvm::Value*>& args) {
  std::vector<llvm::Type*> types;
  for (const llvm::Value* arg : args) types.push_back(arg->getType());
  b_.CreateCall(module_.getOrInsertFunction(function, llvm::FunctionType::get(b_.getVoidTy(), types, false)), args);
}

void Emitter::LoadTileShapes(const TileShapes& shapes) {
  llvm::Constant* bytes = llvm::ConstantDataArray::getString(context_, Configuration(shapes), /*AddNull=*/false);
  TileCall("llvm.x86.ldtilecfg", {PlaceOfConstant(bytes, llvm::Align(64))});
  frame_.tiles.in_use = true;
}

void Emitter::SetUpTiles(const Stmt& body) {
  std::set<TileShapes> shapes;
  CollectShapes(body, options_.serial, shapes);
  if (shapes.size() != 1) return;  // each sets up its own
  frame_.tiles.shapes = *shapes.begin();
  LoadTileShapes(*frame_.tiles.shapes);
}

// The state of the registers is the system's to save as long as they are in use.
void Emitter::ReleaseTiles() {
  if (frame_.tiles.in_use) TileCall("llvm.x86.tilerelease", {});
}

bool Emitter::EmitTileAlloc(const Alloc& alloc) {
  const std::optional<TileRegisters> registers = AssignTileRegisters(alloc);
  if (!registers.has_value()) return false;
  if (!frame_.tiles.shapes.has_value()) LoadTileShapes(registers->shapes);
  frame_.tiles.sums[alloc.buffer] = *registers;
  frame_.tiles.factors.clear();
  EmitStmt(alloc.body);
  frame_.tiles.factors.clear();
  return true;
}

llvm::Value* Emitter::RowBytes(const TileOp& op, size_t operand) {
  return Int64(RowElements(op, operand) * op.operands[operand].buffer.type().bytes());
}

void Emitter::EmitInTiles(const TileOp& op, const TileInstruction& instruction) {
  const size_t sum = SumOperand(*FindTileIntrinsic(op.intrinsic));
  const auto found = frame_.tiles.sums.find(op.operands[sum].buffer);
  HONE_CHECK(found != frame_.tiles.sums.end()) << op.intrinsic << " has sums without registers, but was not expanded";
  const TileRegisters& registers = found->second;
  const int64_t first = *ConstantValue(op.operands[sum].region[0].min);
  std::vector<llvm::Value*> args = {b_.getInt8(static_cast<uint8_t>(registers.number.at(first)))};
  for (size_t i = 1; i < op.operands.size() && sum == 0; ++i)
    args.push_back(b_.getInt8(static_cast<uint8_t>(LoadFactor(op, i, registers.shapes))));
  if (sum != 0) {
    args.push_back(AddressOf(op.operands[0].buffer, op.operands[0].region[0].min).pointer);
    args.push_back(RowBytes(op, 0));
    frame_.tiles.factors.clear();  // it may be read next
  }
  TileCall(instruction.function, args);
}

// The register that has this operand already, or the next one in turn.
int Emitter::LoadFactor(const TileOp& op, size_t operand, const TileShapes& shapes) {
  TileState& tiles = frame_.tiles;
  if (tiles.loaded_in != b_.GetInsertBlock()) tiles.factors.clear();
  tiles.loaded_in = b_.GetInsertBlock();
  const BufferRegion& region = op.operands[operand];
  const Expr& first = region.region[0].min;
  for (const TileState::Factor& factor : tiles.factors) {
    if (factor.buffer == region.buffer && StructuralEqual(factor.first, first)) return factor.number;
  }
  const int right = FirstRight(shapes), left = static_cast<int>(shapes.sums);
  const int number = operand == 1 ? left + tiles.next_left++ % (right - left)
                                  : right + tiles.next_right++ % (static_cast<int>(kTileRegisters) - right);
  std::erase_if(tiles.factors, [&](const TileState::Factor& factor) { return factor.number == number; });
  tiles.factors.push_back({region.buffer, first, number});
  TileCall("llvm.x86.tileloadd64",
           {b_.getInt8(static_cast<uint8_t>(number)), AddressOf(region.buffer, first).pointer, RowBytes(op, operand)});
  return number;
}

}  // namespace hone
