// The refs inside a step, whatever its type: read off its Fields().
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/schedule/step.h"

namespace hone {

// Calls visit(step, output) for every ref in the step, which is changed where visit changes them.
template <class Visit>
void ForEachRef(Step& step, const Visit& visit);
template <class Visit>
void ForEachRef(const Step& step, const Visit& visit);  // visit takes copies

// ---- How ----
namespace step_refs {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T, class Visit>
void InField(T& field, const Visit& visit) {
  if constexpr (std::is_same_v<T, BlockRef> || std::is_same_v<T, LoopRef>) {
    visit(field.step, field.output);
  } else if constexpr (std::is_same_v<T, BlockOrLoop>) {
    std::visit([&](auto& ref) { visit(ref.step, ref.output); }, field);
  } else if constexpr (std::is_same_v<T, Value>) {
    if (const ValueRef* ref = field.ref()) {
      ValueRef changed = *ref;
      visit(changed.step, changed.output);
      field = changed;
    }
  } else if constexpr (IsVector<T>::value) {
    for (auto& item : field) InField(item, visit);
  }
}

}  // namespace step_refs

template <class Visit>
void ForEachRef(Step& step, const Visit& visit) {
  std::visit(
      [&](auto& s) {
        std::apply([&](const auto&... field) { (step_refs::InField(s.*(field.member), visit), ...); },
                   std::decay_t<decltype(s)>::Fields());
      },
      step);
}

template <class Visit>
void ForEachRef(const Step& step, const Visit& visit) {
  ForEachRef(const_cast<Step&>(step), [&](int& s, int& output) { visit(int{s}, int{output}); });
}

}  // namespace hone
