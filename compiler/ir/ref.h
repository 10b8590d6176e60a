// An intrusive, thread-safe counted reference to an immutable node.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace hone {

// The base of every node: the count lives beside the data, so that a handle is one pointer wide.
struct Counted {
  Counted() = default;
  Counted(const Counted&) {}  // a copy starts with a count of its own
  Counted& operator=(const Counted&) { return *this; }
  mutable std::atomic<int32_t> count{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* node) : node_(node) { Retain(); }
  Ref(const Ref& other) : node_(other.node_) { Retain(); }
  Ref(Ref&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Ref() { Release(); }

  T* get() const { return node_; }
  T* operator->() const { return node_; }
  T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.node_ == b.node_; }

 private:
  void Retain() const {
    if (node_ != nullptr) node_->count.fetch_add(1, std::memory_order_relaxed);
  }
  void Release() {
    if (node_ != nullptr && node_->count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }
  T* node_ = nullptr;
};

}  // namespace hone
