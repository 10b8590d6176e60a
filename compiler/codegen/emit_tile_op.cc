// Tile operations as the instruction that their intrinsic names. Which one and how its operands are passed is data
// (tile/tile_intrinsic.h); lowering has left only operations that have one.
#include <algorithm>

#include "compiler/codegen/emitter.h"
#include "compiler/support/check.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {

void Emitter::EmitTileOp(const TileOp& op) {
  const TileInstruction* instruction = FindInstruction(op, options_.features);
  HONE_CHECK(instruction != nullptr) << op.intrinsic << " has no instruction, but was not expanded";
  if (instruction->in_tiles) return EmitInTiles(op, *instruction);
  frame_.tiles.factors.clear();  // they may be of what is stored
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    args.push_back(TileOperand(op.operands[i], instruction->operands[i]));
    types.push_back(args.back()->getType());
  }
  llvm::Type* const result_type = types[0];
  llvm::Value* const sum = args[0];
  if (instruction->adds) {
    args.erase(args.begin());
    types.erase(types.begin());
  }
  const llvm::FunctionCallee callee =
      module_.getOrInsertFunction(instruction->function, llvm::FunctionType::get(result_type, types, false));
  llvm::Value* result = b_.CreateCall(callee, args);
  if (instruction->adds) result = b_.CreateAdd(sum, result);
  const BufferRegion& output = op.operands[0];
  const Address at = AddressOf(output.buffer, output.region[0].min);
  Annotate(b_.CreateAlignedStore(result, at.pointer, llvm::Align(at.align)), frame_.buffers.at(output.buffer));
}

llvm::Value* Emitter::TileOperand(const BufferRegion& region, const TileInstruction::Operand& operand) {
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
  const Address at = AddressOf(region.buffer, region.region[0].min);
  llvm::LoadInst* load = b_.CreateAlignedLoad(read_type, at.pointer, llvm::Align(at.align));
  Annotate(load, frame_.buffers.at(region.buffer));
  llvm::Value* value = load;
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
