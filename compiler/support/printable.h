// Text of strangers on its way into messages and logs of ours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hone {

// The text with a question mark for each byte that is neither printable ASCII nor a line feed.
std::string Printable(std::string_view text);

// The longest beginning of at most `most` bytes that cuts no character of UTF-8 in two: a message of protobuf whose
// text is no UTF-8 is one that its receiver cannot read.
std::string_view Utf8Prefix(std::string_view text, size_t most);

}  // namespace hone
