// What an option's value must be, said in words: CLI11's own checks speak of "[1 - 1024]". Those below are functions
// that CLI::Option::check takes, so that CLI11 is included where options are declared, and there alone.
#pragma once

#include <cmath>
#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hone {

// Says what is wrong with the text of a value; "" when nothing is.
using OptionCheck = std::function<std::string(const std::string& text)>;

// "0: 1 to 1024 threads are allowed"
template <class Number>
OptionCheck FromTo(Number low, Number high, const std::string& unit) {
  return [low, high, unit](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= static_cast<double>(low) && value <= static_cast<double>(high)) {
      return "";
    }
    return absl::StrCat("'", text, "': a number of ", low, " to ", high, " ", unit, " is allowed");
  };
}

// "-1: more than 0 seconds are needed"
inline OptionCheck AboveZero(const std::string& unit) {
  return [unit](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value > 0 && std::isfinite(value)) return "";
    return absl::StrCat("'", text, "': more than 0 ", unit, " are needed");
  };
}

}  // namespace hone
