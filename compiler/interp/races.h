// Data races among the threads of a launch.
//
// Two touches of one element race when one of them writes, other threads make them, and nothing orders them: threads of
// one block are ordered by the barriers between, threads of several blocks by nothing but the end of the launch. For
// every element the touches are kept that a later one may race with (as FastTrack does, Flanagan and Freund 2009; a
// barrier orders all threads of a block at once, so one number, the epoch, takes the place of vector clocks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hone::interp {

// A thread's place on the axes x, y and z, or a block's: of each axis the index plus one, 0 where no loop is bound to
// it. Code outside of an axis is the code of all its threads, so it races with none of them.
class Coordinates {
 public:
  // The axis is the last letter of "threadIdx.x".
  Coordinates With(const std::string& axis, int64_t index) const;
  // Returns whether the two differ on an axis that both are on.
  bool Differ(Coordinates other) const;
  int64_t At(int axis) const;                       // 0 where it is on none
  std::string Name(const std::string& kind) const;  // "threadIdx.x = 3, threadIdx.y = 0"; empty when on no axis
  friend bool operator==(const Coordinates&, const Coordinates&) = default;

 private:
  uint64_t packed_ = 0;  // 21 bits an axis
};

struct Touch {
  Coordinates block, thread;
  int32_t epoch = -1;  // how many barriers its block had passed; -1: no touch
  int32_t access = 0;  // of Code::accesses
  bool writes = false, atomic = false;

  std::string Who() const;  // "thread blockIdx.x = 1, threadIdx.x = 3"
};

// The touches of one buffer's elements in one launch.
class Touches {
 public:
  explicit Touches(int64_t elements) : elements_(static_cast<size_t>(elements)) {}
  // Notes the touch; the earlier one that it races with, if any.
  std::optional<Touch> Add(int64_t element, const Touch& touch);

 private:
  // The last touch, the last by another thread before it, and the last by another block: enough, since of touches that
  // nothing orders any two that race are reported at once.
  struct Kept {
    Touch last, other_thread, other_block;
    void Add(const Touch& touch);
    std::optional<Touch> RaceWith(const Touch& touch) const;
  };
  struct Element {
    Kept reads, writes;
  };
  std::vector<Element> elements_;
};

}  // namespace hone::interp
