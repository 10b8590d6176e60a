// The primitives that a trace may name. A new one is a header and a .cc in primitives/; the build makes the table of
// all.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/schedule/step.h"

namespace hone {

struct Primitive {
  const StepInfo* info;
  Step (*make)();  // a step with the default of every argument
};

// Stands in a primitive's .cc: HONE_PRIMITIVES(loop_kind, ParallelStep, BindStep), the first being the file's name.
#define HONE_PRIMITIVES(file, ...) \
  std::vector<Primitive> PrimitivesOf_##file() { return PrimitivesOf<__VA_ARGS__>(); }
template <StepStruct... S>
std::vector<Primitive> PrimitivesOf() {
  return {{&S::kInfo, [] { return Step(S()); }}...};
}

// Those of every file, in the order of their names.
std::span<const Primitive> AllPrimitives();
const Primitive* FindPrimitive(std::string_view name);  // nullptr when there is none

}  // namespace hone
