// Reads JSON (RFC 8259), for the two small documents of a bundle. Nesting is limited, numbers are double or int64, a
// repeated key is an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "deploy/runtime/error.h"

namespace hone {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;
  // kCorrupt with the byte at which reading stopped and why.
  static RuntimeResult<Json> Parse(std::string_view text);

  // Each is nullptr when the value is of another kind.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }  // written without fraction or exponent
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  bool is_number() const { return integer() != nullptr || std::get_if<double>(&value_) != nullptr; }
  double number() const;  // 0 when it is none

  // The member of an object; nullptr when this is no object or has no such member.
  const Json* Find(std::string_view key) const;

 private:
  friend class JsonParser;
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

// `text` as a JSON string, quotes included.
std::string JsonQuote(std::string_view text);

}  // namespace hone
