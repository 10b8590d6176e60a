// What a long command is doing, on standard error: one line that is rewritten and cut to the terminal's width, or,
// where there is no terminal, a line every ten seconds and at every turn of events.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace hone {

class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { Close(); }
  // `what` tells turns of events apart: a new one is shown at once.
  void Show(const std::string& line, const std::string& what = "");
  // A line that stays, whole.
  void Say(const std::string& line);
  void Close();  // the line stays as it is

 private:
  bool terminal_, open_ = false;
  std::string what_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace hone
