#include "compiler/interp/races.h"

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"

namespace hone::interp {
namespace {

constexpr int kBits = 21;
constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;

bool Races(const Touch& a, const Touch& b) {
  if (a.epoch < 0 || (!a.writes && !b.writes) || (a.atomic && b.atomic)) return false;
  if (a.block.Differ(b.block)) return true;
  return a.epoch == b.epoch && a.thread.Differ(b.thread);
}

}  // namespace

Coordinates Coordinates::With(const std::string& axis, int64_t index) const {
  HONE_CHECK(!axis.empty() && axis.back() >= 'x' && axis.back() <= 'z') << axis;
  const int shift = (axis.back() - 'x') * kBits;
  Coordinates with = *this;
  with.packed_ &= ~(kMask << shift);
  with.packed_ |= (static_cast<uint64_t>(index + 1) & kMask) << shift;
  return with;
}

bool Coordinates::Differ(Coordinates other) const {
  for (int shift = 0; shift < 3 * kBits; shift += kBits) {
    const uint64_t a = packed_ >> shift & kMask, b = other.packed_ >> shift & kMask;
    if (a != 0 && b != 0 && a != b) return true;
  }
  return false;
}

int64_t Coordinates::At(int axis) const {
  const uint64_t index = packed_ >> (axis * kBits) & kMask;
  return index == 0 ? 0 : static_cast<int64_t>(index) - 1;
}

std::string Coordinates::Name(const std::string& kind) const {
  std::string name;
  for (int axis = 0; axis < 3; ++axis) {
    const uint64_t index = packed_ >> (axis * kBits) & kMask;
    if (index == 0) continue;
    absl::StrAppend(&name, name.empty() ? "" : ", ", kind, ".", std::string(1, static_cast<char>('x' + axis)), " = ",
                    index - 1);
  }
  return name;
}

std::string Touch::Who() const {
  const std::string of_block = block.Name("blockIdx"), of_thread = thread.Name("threadIdx");
  return absl::StrCat("thread ", of_block, of_block.empty() || of_thread.empty() ? "" : ", ", of_thread);
}

void Touches::Kept::Add(const Touch& touch) {
  if (last.epoch >= 0) {
    if (last.block.Differ(touch.block)) {
      other_block = last;
    } else if (last.epoch == touch.epoch && last.thread.Differ(touch.thread)) {
      other_thread = last;
    }
  }
  last = touch;
}

std::optional<Touch> Touches::Kept::RaceWith(const Touch& touch) const {
  for (const Touch* earlier : {&last, &other_thread, &other_block}) {
    if (Races(*earlier, touch)) return *earlier;
  }
  return std::nullopt;
}

std::optional<Touch> Touches::Add(int64_t element, const Touch& touch) {
  Element& kept = elements_[static_cast<size_t>(element)];
  std::optional<Touch> race = kept.writes.RaceWith(touch);
  if (!race.has_value() && touch.writes) race = kept.reads.RaceWith(touch);
  (touch.writes ? kept.writes : kept.reads).Add(touch);
  return race;
}

}  // namespace hone::interp
