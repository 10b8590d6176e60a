// Tile operations as the instruction that their intrinsic names. Which one and how its operands are passed is data
// (tile/tile_intrinsic.h); lowering has left only operations that have one.
#include <algorithm>
#include <numeric>

#include "compiler/codegen/emitter.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic.h"
#include "llvm/Analysis/VectorUtils.h"

namespace hone {

void Emitter::EmitTileOp(const TileOp& op) {
  const TileInstruction* instruction = FindInstruction(op, options_.features);
  HONE_CHECK(instruction != nullptr) << op.intrinsic << " has no instruction, but was not expanded";
  if (instruction->in_tiles) return EmitInTiles(op, *instruction);
  frame_.tiles.factors.clear();  // they may be of what is stored
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    args.push_back(TileOperand(op, i, instruction->operands[i]));
    types.push_back(args.back()->getType());
  }
  llvm::Type* const result_type = types[0];
  llvm::Value* const sum = args[0];
  if (instruction->adds) {
    args.erase(args.begin());
    types.erase(types.begin());
  }
  llvm::Value* result = nullptr;
  if (instruction->multiplies) {
    result = b_.CreateMul(b_.CreateSExt(args[0], result_type), b_.CreateSExt(args[1], result_type));
  } else {
    const llvm::FunctionCallee callee =
        module_.getOrInsertFunction(instruction->function, llvm::FunctionType::get(result_type, types, false));
    result = b_.CreateCall(callee, args);
  }
  if (instruction->adds) result = b_.CreateAdd(sum, result);
  StoreTileResult(op, instruction->operands[0], result);
}

int64_t Emitter::RowElements(const TileOp& op, size_t operand) {
  return std::get<int64_t>(op.params.at(RowParam(operand)));
}

// A row after the other, where they lie apart; one where they do not.
std::vector<Emitter::Address> Emitter::TileRows(const TileOp& op, size_t i, const TileInstruction::Operand& operand) {
  const BufferRegion& region = op.operands[i];
  const Address first = AddressOf(region.buffer, region.region[0].min);
  if (operand.rows == 1 || RowElements(op, i) == operand.lanes / operand.rows) return {first};
  const int64_t apart = RowElements(op, i) * region.buffer.type().bytes();
  std::vector<Address> rows = {first};
  for (int64_t row = 1; row < operand.rows; ++row) {
    rows.push_back({b_.CreateConstGEP1_64(b_.getInt8Ty(), first.pointer, static_cast<uint64_t>(row * apart)),
                    std::gcd(first.align, static_cast<uint64_t>(row * apart))});
  }
  return rows;
}

void Emitter::StoreTileResult(const TileOp& op, const TileInstruction::Operand& operand, llvm::Value* result) {
  const std::vector<Address> rows = TileRows(op, 0, operand);
  const int lanes = operand.lanes / static_cast<int>(rows.size());
  for (int row = 0; row < static_cast<int>(rows.size()); ++row) {
    llvm::SmallVector<int> of_row;
    for (int lane = 0; lane < lanes; ++lane) of_row.push_back(row * lanes + lane);
    llvm::Value* const part = rows.size() == 1 ? result : b_.CreateShuffleVector(result, of_row);
    const Address& at = rows[static_cast<size_t>(row)];
    Annotate(b_.CreateAlignedStore(part, at.pointer, llvm::Align(at.align)), frame_.buffers.at(op.operands[0].buffer));
  }
}

llvm::Value* Emitter::TileOperand(const TileOp& op, size_t i, const TileInstruction::Operand& operand) {
  const BufferRegion& region = op.operands[i];
  const auto lanes = [](int64_t n) { return static_cast<unsigned>(n); };
  const bool is_bfloat = operand.type.code == TypeCode::kBFloat;  // elsewhere its bits
  llvm::Type* const element = is_bfloat ? b_.getBFloatTy() : TypeOf(operand.type);
  llvm::Type* const type = llvm::FixedVectorType::get(element, lanes(operand.lanes));
  const DType in_memory = operand.widens ? region.buffer.type() : operand.type;
  const int64_t read = operand.splat_bits == 0 ? operand.lanes : std::max(1, operand.splat_bits / in_memory.bits);
  const bool as_one = operand.splat_bits != 0 && !operand.widens;
  llvm::Type* const read_type =
      as_one ? b_.getIntNTy(lanes(operand.splat_bits))
             : static_cast<llvm::Type*>(llvm::FixedVectorType::get(TypeOf(in_memory), lanes(read)));
  std::vector<llvm::Value*> rows;
  const std::vector<Address> places = TileRows(op, i, operand);
  for (const Address& at : places) {
    llvm::Type* const row_type =
        places.size() == 1 ? read_type : llvm::FixedVectorType::get(TypeOf(in_memory), lanes(read / operand.rows));
    llvm::LoadInst* load = b_.CreateAlignedLoad(row_type, at.pointer, llvm::Align(at.align));
    Annotate(load, frame_.buffers.at(region.buffer));
    rows.push_back(load);
  }
  llvm::Value* value = rows.size() == 1 ? rows[0] : llvm::concatenateVectors(b_, rows);
  if (operand.widens) {
    llvm::Type* const wide = llvm::FixedVectorType::get(element, lanes(read));
    value = in_memory.code == TypeCode::kUInt ? b_.CreateZExt(value, wide) : b_.CreateSExt(value, wide);
  }
  if (operand.splat_bits == 0) return b_.CreateBitCast(value, type);
  const int64_t bits = operand.widens ? read * operand.type.bits : operand.splat_bits;
  const int64_t copies = operand.type.bits * operand.lanes / bits;
  value = b_.CreateVectorSplat(lanes(copies), b_.CreateBitCast(value, b_.getIntNTy(lanes(bits))));
  return b_.CreateBitCast(value, type);
}

}  // namespace hone
