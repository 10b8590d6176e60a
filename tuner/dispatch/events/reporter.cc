#include "tuner/dispatch/events/reporter.h"

#include "absl/strings/str_cat.h"

namespace hone {

bool IsOtherPrincipal(const Reporter& a, const Reporter& b) {
  const bool known = !a.principal.empty() && !b.principal.empty();
  return a.principal != b.principal && (known || a.worker != b.worker);
}

std::string ToText(const Reporter& reporter) {
  return reporter.principal.empty() ? reporter.worker : absl::StrCat(reporter.principal, "\n", reporter.worker);
}

Reporter ReporterFromText(const std::string& text) {
  const size_t line_feed = text.rfind('\n');
  if (line_feed == std::string::npos) return {.principal = "", .worker = text};
  return {.principal = text.substr(0, line_feed), .worker = text.substr(line_feed + 1)};
}

}  // namespace hone
