// Every step a trace can hold. A new primitive is a header with its step struct, one .cc, and an entry here.
#pragma once

#include <variant>

#include "compiler/schedule/add_unit_loop.h"
#include "compiler/schedule/annotate.h"
#include "compiler/schedule/blockize.h"
#include "compiler/schedule/cache.h"
#include "compiler/schedule/choose_algorithm.h"
#include "compiler/schedule/compute_at.h"
#include "compiler/schedule/decompose_padding.h"
#include "compiler/schedule/decompose_reduction.h"
#include "compiler/schedule/fuse.h"
#include "compiler/schedule/fuse_reduction_epilogue.h"
#include "compiler/schedule/inline.h"
#include "compiler/schedule/layout_constant.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/schedule/pack.h"
#include "compiler/schedule/pad_einsum.h"
#include "compiler/schedule/prefetch.h"
#include "compiler/schedule/register_tile.h"
#include "compiler/schedule/reindex.h"
#include "compiler/schedule/reorder.h"
#include "compiler/schedule/reorder_block_iter_var.h"
#include "compiler/schedule/rfactor.h"
#include "compiler/schedule/sample.h"
#include "compiler/schedule/sample_partitioned_tile.h"
#include "compiler/schedule/set_scope.h"
#include "compiler/schedule/split.h"
#include "compiler/schedule/storage_align.h"
#include "compiler/schedule/tensorize.h"
#include "compiler/schedule/transform_block_layout.h"
#include "compiler/schedule/transform_layout.h"

namespace hone {

using Step =
    std::variant<GetBlockStep, GetLoopsStep, GetChildBlocksStep, GetProducersStep, GetConsumersStep,
                 GetOutputBlocksStep, SplitStep, FuseStep, ReorderStep, ParallelStep, VectorizeStep, UnrollStep,
                 BindStep, AddUnitLoopStep, CacheReadStep, CacheWriteStep, SetScopeStep, ComputeAtStep,
                 ReverseComputeAtStep, ComputeInlineStep, ReverseComputeInlineStep, DecomposeReductionStep, RfactorStep,
                 LayoutConstantStep, TransformLayoutStep, AnnotateStep, UnannotateStep, SamplePerfectTileStep,
                 SampleCategoricalStep, SampleComputeLocationStep, ChooseAlgorithmStep, SamplePartitionedTileStep,
                 ReorderBlockIterVarStep, ReindexStep, TransformBlockLayoutStep, PadEinsumStep, DecomposePaddingStep,
                 FuseReductionEpilogueStep, StorageAlignStep, PrefetchStep, PrefetchAcrossStep, PackStep, BlockizeStep,
                 TensorizeStep, RegisterTileStep>;

}  // namespace hone
