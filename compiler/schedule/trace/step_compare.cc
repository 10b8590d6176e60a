#include "compiler/schedule/trace/step_compare.h"

#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace hone {
namespace {

// ---- Equality ----

bool Same(const std::string& a, const std::string& b) { return a == b; }
bool Same(int64_t a, int64_t b) { return a == b; }
bool Same(bool a, bool b) { return a == b; }
bool Same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}
bool Same(const BlockRef& a, const BlockRef& b) { return a == b; }
bool Same(const LoopRef& a, const LoopRef& b) { return a == b; }
bool Same(const BlockOrLoop& a, const BlockOrLoop& b) { return a == b; }
bool Absent(const Value& v) { return v.absent() || (v.number() != nullptr && *v.number() == -1); }
bool Same(const Value& a, const Value& b) { return a == b || (Absent(a) && Absent(b)); }
bool Same(const IndexMap& a, const IndexMap& b) { return ToText(a) == ToText(b); }
bool Same(const BlockBuffer& a, const BlockBuffer& b) { return a.kind == b.kind && a.index == b.index; }
bool Same(const PadValue& a, const PadValue& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
  if (a->index() != b->index()) return false;
  return std::visit([&](const auto& number) { return Same(number, std::get<std::decay_t<decltype(number)>>(*b)); }, *a);
}
template <class T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Same(a[i], b[i])) return false;
  }
  return true;
}
bool IsEmptyList(const Attr& v) {
  const auto* numbers = std::get_if<std::vector<int64_t>>(&v);
  const auto* texts = std::get_if<std::vector<std::string>>(&v);
  return (numbers != nullptr && numbers->empty()) || (texts != nullptr && texts->empty());
}
bool Same(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return IsEmptyList(a) && IsEmptyList(b);
  return std::visit([&](const auto& value) { return Same(value, std::get<std::decay_t<decltype(value)>>(b)); }, a);
}

// ---- Hash ----

class Hasher {
 public:
  void Add(uint64_t value) {
    state_ = (state_ ^ value) * 0x9E3779B97F4A7C15u;
    state_ ^= state_ >> 32;
  }
  void Add(int64_t v) { Add(static_cast<uint64_t>(v)); }
  void Add(bool v) { Add(uint64_t{v}); }
  void Add(double v) { Add(std::isnan(v) ? uint64_t{1} : std::bit_cast<uint64_t>(v)); }
  void Add(const std::string& text) {
    Add(uint64_t{text.size()});
    for (const char c : text) Add(uint64_t{static_cast<uint8_t>(c)});
  }
  void Add(const BlockRef& ref) { AddPair(ref.step, ref.output); }
  void Add(const LoopRef& ref) { AddPair(ref.step, ref.output); }
  void Add(const BlockOrLoop& ref) {
    Add(uint64_t{ref.index()});
    std::visit([&](const auto& r) { Add(r); }, ref);
  }
  void Add(const Value& v) {
    if (v.ref() != nullptr) {
      AddPair(v.ref()->step, v.ref()->output);
    } else {
      Add(Absent(v) ? int64_t{-1} : *v.number());
    }
  }
  void Add(const IndexMap& map) { Add(ToText(map)); }
  void Add(const BlockBuffer& b) { AddPair(static_cast<int>(b.kind), b.index); }
  void Add(const PadValue& v) {
    if (!v.has_value()) return;
    Add(uint64_t{v->index()});
    std::visit([&](const auto& number) { Add(number); }, *v);
  }
  void Add(const Attr& v) {
    if (IsEmptyList(v)) return;
    std::visit([&](const auto& value) { Add(value); }, v);
  }
  template <class T>
  void Add(const std::vector<T>& list) {
    Add(uint64_t{list.size()});
    for (const T& item : list) Add(item);
  }
  uint64_t result() const { return state_; }

 private:
  void AddPair(int a, int b) { Add(uint64_t{static_cast<uint32_t>(a)} << 32 | static_cast<uint32_t>(b)); }
  uint64_t state_ = 0x2545F4914F6CDD1Du;
};

}  // namespace

bool SameStep(const Step& a, const Step& b) {
  if (&a.info() != &b.info()) return false;
  const StepArguments left = a.arguments(), right = b.arguments();
  for (size_t i = 0; i < left.size(); ++i) {
    const auto same = [&](const auto* value) {
      return Same(*value, *std::get<std::decay_t<decltype(value)>>(right[i].value));
    };
    if (!std::visit(same, left[i].value)) return false;
  }
  return true;
}

uint64_t HashOf(const Step& step) {
  Hasher hasher;
  hasher.Add(std::string(step.info().name));
  for (const StepArgument& argument : step.arguments()) {
    std::visit([&](const auto* value) { hasher.Add(*value); }, argument.value);
  }
  return hasher.result();
}

}  // namespace hone
