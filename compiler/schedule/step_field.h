// How a step struct describes itself, so that its text form, its equality and the refs in it are read off one list.
// Beside every struct stands `Apply(schedule, step)`: the primitive with the step's arguments, which records the step
// again.
#pragma once

#include <string_view>
#include <tuple>

namespace hone {

enum class OutputKind { kNone, kBlock, kLoop, kValue };

struct StepInfo {
  std::string_view name;                  // the method of the python dialect: sch.NAME(...)
  OutputKind output = OutputKind::kNone;  // what its outputs are, if it has any
  int version = 1;                        // of this step alone; a newer one than we know is refused
  int oldest = 1;                         // the oldest version that still means the same; older ones are refused
  bool changes_program = true;            // false: it only looks something up, or chooses
  bool gives_list = false;                // it gives any number of outputs, rather than exactly one
  bool spreads_list = false;  // its one argument is a list written as the call's arguments: sch.fuse(l1, l2)
};

template <class Owner, class T>
struct StepField {
  std::string_view name;  // the keyword of the argument
  T Owner::*member;
};
template <class Owner, class T>
constexpr StepField<Owner, T> Field(std::string_view name, T Owner::*member) {
  return {name, member};
}

}  // namespace hone
