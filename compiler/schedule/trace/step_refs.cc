#include "compiler/schedule/trace/step_refs.h"

#include <type_traits>
#include <variant>
#include <vector>

namespace hone {
namespace {

// `Field` is const where refs are only looked at.
template <class Field, class Visit>
void InField(Field& field, Visit visit) {
  using T = std::remove_const_t<Field>;
  if constexpr (std::is_same_v<T, BlockRef> || std::is_same_v<T, LoopRef>) {
    visit(field.step, field.output);
  } else if constexpr (std::is_same_v<T, BlockOrLoop>) {
    std::visit([&](auto& ref) { InField(ref, visit); }, field);
  } else if constexpr (std::is_same_v<T, Value>) {
    if (field.ref() == nullptr) return;
    ValueRef ref = *field.ref();
    visit(ref.step, ref.output);
    if constexpr (!std::is_const_v<Field>) field = ref;
  } else if constexpr (std::is_same_v<T, std::vector<LoopRef>> || std::is_same_v<T, std::vector<Value>>) {
    for (auto& item : field) InField(item, visit);
  }
}

}  // namespace

void ForEachRef(const Step& step, absl::FunctionRef<void(int step, int output)> visit) {
  for (const StepArgument& argument : step.arguments()) {
    std::visit([&](const auto* field) { InField(*field, visit); }, argument.value);
  }
}

void RewriteRefs(Step& step, absl::FunctionRef<void(int& step, int& output)> visit) {
  for (const MutableStepArgument& argument : step.MutableArguments()) {
    std::visit([&](auto* field) { InField(*field, visit); }, argument.value);
  }
}

}  // namespace hone
