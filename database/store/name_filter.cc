#include "database/store/name_filter.h"

#include <re2/re2.h>

#include "absl/strings/str_cat.h"

namespace hone {
namespace {

// What an expression is parsed into grows with its length alone, and is no part of RE2's limit of memory.
constexpr size_t kLongestExpression = 1024;
constexpr int64_t kMostMemory = 64 << 10;  // the time that a name takes grows with it

}  // namespace

NameFilter::NameFilter() = default;
NameFilter::NameFilter(NameFilter&& other) noexcept = default;
NameFilter::~NameFilter() = default;

absl::StatusOr<NameFilter> NameFilter::Make(const std::string& expression) {
  NameFilter filter;
  if (expression.empty()) return filter;
  if (expression.size() > kLongestExpression) {
    return absl::InvalidArgumentError(
        absl::StrCat("the expression has ", expression.size(), " bytes; at most ", kLongestExpression, " are allowed"));
  }
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // names are any bytes
  options.set_max_mem(kMostMemory);
  options.set_never_capture(true);
  options.set_log_errors(false);
  auto compiled = std::make_unique<const re2::RE2>(expression, options);
  if (!compiled->ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the expression \"", expression, "\" cannot be read: ", compiled->error()));
  }
  filter.expression_ = std::move(compiled);
  return filter;
}

bool NameFilter::Matches(const std::string& name) const {
  return expression_ == nullptr || re2::RE2::PartialMatch(name, *expression_);
}

}  // namespace hone
