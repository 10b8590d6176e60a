// For targets that read several kinds of messages: an input says in its last byte which one the rest of it is.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <span>

namespace hone {

using ReadMessage = void (*)(FuzzedDataProvider& bytes);

// The target's own. messages.cc is the rest of such a target.
std::span<const ReadMessage> Messages();

}  // namespace hone
