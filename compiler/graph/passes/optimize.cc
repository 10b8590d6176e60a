#include "compiler/graph/passes.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status Optimize(Graph& graph) {
  HONE_RETURN_IF_ERROR(QuantisedProducts(graph));
  HONE_RETURN_IF_ERROR(FoldConstants(graph));
  HONE_RETURN_IF_ERROR(RemoveNoOps(graph));
  HONE_RETURN_IF_ERROR(RecognisePatterns(graph));
  HONE_RETURN_IF_ERROR(SinkLayout(graph));
  HONE_RETURN_IF_ERROR(FoldScales(graph));
  HONE_RETURN_IF_ERROR(FoldConstants(graph));
  HONE_RETURN_IF_ERROR(RemoveNoOps(graph));
  HONE_RETURN_IF_ERROR(ExposeOperands(graph));
  HONE_RETURN_IF_ERROR(FoldTransposes(graph));
  HONE_RETURN_IF_ERROR(KeepChannelsFirst(graph));
  return RaiseReshapes(graph);
}

}  // namespace hone
