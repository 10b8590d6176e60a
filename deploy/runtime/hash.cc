#include "deploy/runtime/hash.h"

#include <bit>

namespace hone {
namespace {

constexpr uint64_t kA = 0x9E3779B185EBCA87u, kB = 0xC2B2AE3D27D4EB4Fu;

uint64_t Load(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

uint64_t Step(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kB, 31) * kA; }

uint64_t Finish(uint64_t h) {  // the finaliser of MurmurHash3
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDu;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53u;
  return h ^ (h >> 33);
}

}  // namespace

uint64_t Hash64(const void* bytes, size_t size, uint64_t seed) {
  const char* at = static_cast<const char*>(bytes);
  uint64_t lanes[4] = {seed + kA + kB, seed + kB, seed, seed - kA};
  size_t left = size;
  for (; left >= 32; left -= 32, at += 32) {
    for (int i = 0; i < 4; ++i) lanes[i] = Step(lanes[i], Load(at + 8 * i));
  }
  uint64_t h = size;
  for (const uint64_t lane : lanes) h = Step(h, lane);
  for (; left >= 8; left -= 8, at += 8) h = Step(h, Load(at));
  if (left > 0) {
    uint64_t tail = 0;
    std::memcpy(&tail, at, left);
    h = Step(h, tail);
  }
  return Finish(h);
}

}  // namespace hone
