// Whether this program is built with the address or the thread sanitizer, asked in the words of both GCC and Clang.
// Such a program maps terabytes of shadow memory and calls the system as it likes: it cannot live under a limit of
// address space or a filter of system calls.
#pragma once

namespace hone {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace hone
