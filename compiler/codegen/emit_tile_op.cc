// Tile operations as the instruction that their intrinsic names. Which one and how its operands are passed is data
// (ir/tile_intrinsic.h); lowering has left only operations that have one.
#include "compiler/codegen/emitter.h"
#include "compiler/ir/tile_intrinsic.h"
#include "compiler/support/check.h"

namespace hone {

void Emitter::EmitTileOp(const TileOp& op) {
  const TileInstruction* instruction = FindInstruction(op, options_.features);
  HONE_CHECK(instruction != nullptr) << op.intrinsic << " has no instruction, but was not expanded";
  std::vector<llvm::Value*> args;
  std::vector<llvm::Type*> types;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const TileInstruction::Operand& operand = instruction->operands[i];
    llvm::Type* element = b_.getIntNTy(static_cast<unsigned>(operand.bits));
    if (operand.is_float) element = operand.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
    llvm::Type* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(operand.lanes));
    llvm::Type* read = operand.splat_bits == 0 ? type : b_.getIntNTy(static_cast<unsigned>(operand.splat_bits));
    const BufferRegion& region = op.operands[i];
    const Address at = AddressOf(region.buffer, region.region[0].min);
    llvm::LoadInst* load = b_.CreateAlignedLoad(read, at.pointer, llvm::Align(at.align));
    Annotate(load, frame_.buffers.at(region.buffer));
    llvm::Value* value = load;
    if (operand.splat_bits != 0) {
      const int copies = operand.bits * operand.lanes / operand.splat_bits;
      value = b_.CreateBitCast(b_.CreateVectorSplat(static_cast<unsigned>(copies), value), type);
    }
    args.push_back(value);
    types.push_back(type);
  }
  const llvm::FunctionCallee callee =
      module_.getOrInsertFunction(instruction->function, llvm::FunctionType::get(types[0], types, false));
  llvm::Value* result = b_.CreateCall(callee, args);
  const BufferRegion& output = op.operands[0];
  const Address at = AddressOf(output.buffer, output.region[0].min);
  Annotate(b_.CreateAlignedStore(result, at.pointer, llvm::Align(at.align)), frame_.buffers.at(output.buffer));
}

}  // namespace hone
