// Names for printing: every variable and buffer in scope gets its own, close to the one it was made with.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone {

// A word that means something in the language, which no function or value can be called by.
bool IsReserved(absl::string_view name);

// Keys are ids of variables and buffers (unique over both). A name is free again once its scope has ended.
class NameTable {
 public:
  NameTable();
  // The name of something already defined; defines it here when it is not (a free variable of a lone expression).
  const std::string& Lookup(uint64_t id, absl::string_view wanted);
  const std::string& Define(uint64_t id, absl::string_view wanted);
  size_t Mark() const { return defined_.size(); }
  void RollBack(size_t mark);  // forgets what was defined since

 private:
  std::unordered_map<uint64_t, std::string> names_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_suffix_;
  std::vector<uint64_t> defined_;
};

}  // namespace hone
