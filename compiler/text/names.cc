#include "compiler/text/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace hone {
namespace {

// What the reader of the text takes for something else.
constexpr absl::string_view kReserved[] = {"T",      "I",      "R",     "True",  "False", "None", "and",    "or",
                                           "not",    "if",     "else",  "elif",  "for",   "in",   "with",   "as",
                                           "def",    "pass",   "is",    "class", "del",   "from", "import", "while",
                                           "return", "lambda", "range", "tvm",   "float", "int",  "bool"};

std::string Identifier(absl::string_view wanted) {
  std::string name;
  for (const char c : wanted) name.push_back(absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_');
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "v");
  return name;
}

}  // namespace

bool IsReserved(absl::string_view name) {
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

NameTable::NameTable() {
  for (const absl::string_view word : kReserved) used_.emplace(word.data(), word.size());
}

const std::string& NameTable::Lookup(uint64_t id, absl::string_view wanted) {
  const auto found = names_.find(id);
  return found != names_.end() ? found->second : Define(id, wanted);
}

const std::string& NameTable::Define(uint64_t id, absl::string_view wanted) {
  const std::string base = Identifier(wanted);
  std::string name = base;
  if (used_.contains(name)) {
    int& suffix = next_suffix_[base];  // a hint alone: scopes that ended leave gaps
    do { name = absl::StrCat(base, "_", ++suffix); } while (used_.contains(name));
  }
  used_.insert(name);
  defined_.push_back(id);
  return names_.insert_or_assign(id, std::move(name)).first->second;
}

void NameTable::RollBack(size_t mark) {
  while (defined_.size() > mark) {
    const auto found = names_.find(defined_.back());
    if (found != names_.end()) {
      used_.erase(found->second);
      next_suffix_.clear();
      names_.erase(found);
    }
    defined_.pop_back();
  }
}

}  // namespace hone
