// How the runtime reports a failure that a caller can meet. The runtime is shipped to users and depends on the C++
// library alone, so it has a small type of its own; the compiler's side turns it into its Status.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace hone {

// The values are those of HoneStatus in hone_runtime.h.
enum class RuntimeCode : int {
  kOk = 0,
  kInvalidArgument = 1,  // the request can never work: unknown name, wrong shape or type
  kNotFound = 2,         // no such file
  kCorrupt = 3,          // unreadable, truncated or damaged bytes
  kUnsupported = 4,      // this machine cannot run it: architecture, missing CPU feature, newer format
  kOutOfMemory = 5,
  kKernelFailed = 6,  // a kernel returned a non-zero result
  kInternal = 7,      // our bug, or the operating system refused something it never should
  kDeviceLost = 8,    // the device takes no more work of this process, or cannot be had
  kBusy = 9,          // a run of the instance is under way
};

// Converts to true when it holds an error.
class [[nodiscard]] RuntimeError {
 public:
  RuntimeError() = default;  // no error
  RuntimeError(RuntimeCode code, std::string message) : code_(code), message_(std::move(message)) {}

  explicit operator bool() const { return code_ != RuntimeCode::kOk; }
  bool ok() const { return code_ == RuntimeCode::kOk; }
  RuntimeCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // The same error with what only this layer knows in front.
  RuntimeError Annotate(const std::string& context) const {
    return ok() ? *this : RuntimeError(code_, context + ": " + message_);
  }

 private:
  RuntimeCode code_ = RuntimeCode::kOk;
  std::string message_;
};

// A value or an error. Reading the value of an error is undefined; ask ok() first.
template <class T>
class [[nodiscard]] RuntimeResult {
 public:
  RuntimeResult(T value) : value_(std::move(value)) {}             // NOLINT: implicit on purpose
  RuntimeResult(RuntimeError error) : error_(std::move(error)) {}  // NOLINT

  bool ok() const { return value_.has_value(); }
  const RuntimeError& error() const { return error_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  RuntimeError error_;
};

}  // namespace hone
