// Who says what a measurement gave. Whoever says Hello chooses the worker's name; the principal is what the service
// found out of the caller, so that a caller with two names is one principal.
#pragma once

#include <compare>
#include <memory>
#include <string>

namespace hone {

struct Reporter {
  // Empty: the owner of the private socket, or not known, as of what an earlier release stored.
  std::string principal;
  std::string worker;  // its name, without a line feed; empty: nobody knows
  auto operator<=>(const Reporter&) const = default;
};

// Thousands of results name one of them: it is in memory once.
using SharedReporter = std::shared_ptr<const Reporter>;

// Whether the two speak for different principals. Where one's is not known, their names have to differ too.
bool IsOtherPrincipal(const Reporter& a, const Reporter& b);

// As it is stored in the place of a worker's name, and back: without a principal the name alone.
std::string ToText(const Reporter& reporter);
Reporter ReporterFromText(const std::string& text);

}  // namespace hone
