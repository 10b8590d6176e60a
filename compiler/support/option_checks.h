// What an option's value must be, said in words: CLI11's own checks speak of "[1 - 1024]". Header alone: the folder
// does not link CLI11, programs that include this do.
#pragma once

#include <cmath>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hone {

// "0: 1 to 1024 threads are allowed"
template <class Number>
CLI::Validator FromTo(Number low, Number high, const std::string& unit) {
  const auto check = [low, high, unit](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= static_cast<double>(low) && value <= static_cast<double>(high)) {
      return "";
    }
    return absl::StrCat("'", text, "': a number of ", low, " to ", high, " ", unit, " is allowed");
  };
  return CLI::Validator(check, "", "");
}

// "-1: more than 0 seconds are needed"
inline CLI::Validator AboveZero(const std::string& unit) {
  const auto check = [unit](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value > 0 && std::isfinite(value)) return "";
    return absl::StrCat("'", text, "': more than 0 ", unit, " are needed");
  };
  return CLI::Validator(check, "", "");
}

}  // namespace hone
