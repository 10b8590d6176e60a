// Numbers, strings and attributes as the text writes them.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "compiler/ir/stmt.h"

namespace hone {

std::string QuotedText(absl::string_view text);
// The shortest decimal that reads back as the same value of the type; "\"inf\"", "\"-inf\"", "\"nan\"" or "\"-nan\"".
std::string FloatDigits(double value, DType type);
std::string AttrText(const Attr& attr);
std::string AttrsText(const Attrs& attrs);  // {"a": 1, "b": [1, 2]}

}  // namespace hone
