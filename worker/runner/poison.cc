#include "worker/runner/poison.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace hone {
namespace {

constexpr size_t kWord = 4;
constexpr unsigned char kPatterns[] = {0x7A, 0xFB, 0x7A, 0xFB, 0x7A, 0xFB, 0x7A, 0xFF};

char PoisonAt(size_t i, int set) {
  return static_cast<char>(kPatterns[(i / kWord + static_cast<size_t>(set)) % std::size(kPatterns)]);
}

}  // namespace

void Poison(char* at, size_t bytes, int set) {
  constexpr size_t kPeriod = kWord * std::size(kPatterns);
  size_t done = std::min(bytes, kPeriod);
  for (size_t i = 0; i < done; ++i) at[i] = PoisonAt(i, set);
  while (done < bytes) {  // twice as much with every copy
    const size_t more = std::min(done, bytes - done);
    std::memcpy(at + done, at, more);
    done += more;
  }
}

bool IsPoisoned(const char* at, size_t from, size_t to, int set) {
  for (size_t i = from; i < to; ++i) {
    if (at[i] != PoisonAt(i, set)) return false;
  }
  return true;
}

[[gnu::noinline]] void PoisonStack(int set) {
  char stack[kPoisonedStack];
  Poison(stack, kPoisonedStack, set);
  asm volatile("" : : "r"(stack) : "memory");  // it is not looked at here, but it is meant
}

}  // namespace hone
