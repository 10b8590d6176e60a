#include "compiler/driver/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "compiler/support/monotonic_clock.h"

namespace hone {
namespace {

constexpr absl::Duration kBetweenLines = absl::Seconds(10);
constexpr size_t kUsualWidth = 80;

size_t TerminalWidth() {
  winsize size{};
  if (::ioctl(2, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualWidth;
  return std::max<size_t>(size.ws_col, 20);
}

}  // namespace

StatusLine::StatusLine() : terminal_(::isatty(2) != 0) {}

void StatusLine::Show(const std::string& line, const std::string& what) {
  if (terminal_) {
    // One column is left free: a full line would move the cursor to the next one.
    std::fprintf(stderr, "\r\x1b[K%s", line.substr(0, TerminalWidth() - 1).c_str());
    open_ = true;
    return;
  }
  const absl::Time now = MonotonicNow();
  if (now < next_ && what == what_) return;
  what_ = what;
  next_ = now + kBetweenLines;
  std::fprintf(stderr, "%s\n", line.c_str());
}

void StatusLine::Say(const std::string& line) {
  std::fprintf(stderr, "%s%s\n", open_ ? "\r\x1b[K" : "", line.c_str());
  open_ = false;
}

void StatusLine::Close() {
  if (open_) std::fprintf(stderr, "\n");
  open_ = false;
}

}  // namespace hone
