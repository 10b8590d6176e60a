#include "deploy/runtime/hash.h"

#include <algorithm>
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

uint64_t Mix(uint64_t h) {  // the finaliser of MurmurHash3
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDu;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53u;
  return h ^ (h >> 33);
}

}  // namespace

Hash64Stream::Hash64Stream(uint64_t seed) : lanes_{seed + kA + kB, seed + kB, seed, seed - kA} {}

void Hash64Stream::AddBlock(const char* at) {
  for (int i = 0; i < 4; ++i) lanes_[i] = Step(lanes_[i], Load(at + 8 * i));
}

void Hash64Stream::Add(std::string_view piece) {
  if (piece.empty()) return;
  const size_t waiting = size_ % kBlock, fill = std::min((kBlock - waiting) % kBlock, piece.size());
  size_ += piece.size();
  std::memcpy(partial_ + waiting, piece.data(), fill);
  if (waiting > 0 && waiting + fill == kBlock) AddBlock(partial_);
  piece.remove_prefix(fill);
  if (waiting > 0 && waiting + fill < kBlock) return;
  for (; piece.size() >= kBlock; piece.remove_prefix(kBlock)) AddBlock(piece.data());
  std::memcpy(partial_, piece.data(), piece.size());
}

uint64_t Hash64Stream::Finish() const {
  uint64_t h = size_;
  for (const uint64_t lane : lanes_) h = Step(h, lane);
  const char* at = partial_;
  size_t left = size_ % kBlock;
  for (; left >= 8; left -= 8, at += 8) h = Step(h, Load(at));
  if (left > 0) {
    uint64_t tail = 0;
    std::memcpy(&tail, at, left);
    h = Step(h, tail);
  }
  return Mix(h);
}

uint64_t Hash64(const void* bytes, size_t size, uint64_t seed) {
  Hash64Stream stream(seed);
  stream.Add({static_cast<const char*>(bytes), size});
  return stream.Finish();
}

}  // namespace hone
