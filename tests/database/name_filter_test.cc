// What an expression finds, and that none costs more than it may.
#include "database/store/name_filter.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "compiler/support/sanitized.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

struct NameCase {
  const char* test;
  const char* expression;
  const char* name;
  bool found;
};
constexpr NameCase kNames[] = {
    {"Empty", "", "conv2d_1", true},
    {"Part", "2d", "conv2d_1", true},
    {"Begin", "^dense", "conv_dense", false},
    {"End", "_1$", "conv2d_1", true},
    {"Either", "conv|dense", "dense_2", true},
    {"Class", "^[[:alpha:]]+_[0-9]{2}$", "dense_12", true},
    {"ClassNot", "^[[:alpha:]]+_[0-9]{2}$", "dense_1", false},
    {"AnyByte", "^a.b$", "a\xff\x62", true},
};

class NameFilterFinds : public ::testing::TestWithParam<NameCase> {};
TEST_P(NameFilterFinds, WhatItSays) {
  const absl::StatusOr<NameFilter> filter = NameFilter::Make(GetParam().expression);
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->Matches(GetParam().name), GetParam().found);
}
INSTANTIATE_TEST_SUITE_P(Names, NameFilterFinds, ::testing::ValuesIn(kNames),
                         [](const auto& info) { return std::string(info.param.test); });

struct BadExpression {
  const char* test;
  std::string expression;
  const char* reason;
};
class NameFilterRefuses : public ::testing::TestWithParam<BadExpression> {};
TEST_P(NameFilterRefuses, WithTheReason) {
  const absl::Status status = NameFilter::Make(GetParam().expression).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().reason));
}
INSTANTIATE_TEST_SUITE_P(
    Expressions, NameFilterRefuses,
    ::testing::Values(BadExpression{"Bracket", "[", "missing ]"},
                      BadExpression{"BackReference", "(a)\\1", "invalid escape sequence"},
                      BadExpression{"Repeated", "(((a{1,255}){1,255}){1,255})", "invalid repetition size"},
                      BadExpression{"Long", std::string(1025, 'a'), "has 1025 bytes; at most 1024 are allowed"},
                      BadExpression{"Large", "[^b]{1000}|[^c]{1000}|[^d]{1000}|[^e]{1000}", "too large"}),
    [](const auto& info) { return std::string(info.param.test); });

// In a process of its own, which may have no more than 256 MiB beyond what it has and ten seconds of a processor.
TEST(NameFilter, NeitherMemoryNorTimeGrowsBeyondItsBound) {
  if (kSanitized) GTEST_SKIP() << "a program with a sanitizer takes the address space that it likes";
  const pid_t child = fork();
  if (child == 0) {
    int64_t pages = 0;
    std::FILE* statm = std::fopen("/proc/self/statm", "r");
    if (statm == nullptr || std::fscanf(statm, "%ld", &pages) != 1) _exit(2);
    const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (int64_t{256} << 20));
    const rlimit memory{most, most}, seconds{10, 10};
    if (setrlimit(RLIMIT_AS, &memory) != 0 || setrlimit(RLIMIT_CPU, &seconds) != 0) _exit(2);
    const std::string name = std::string(4096, 'a') + "!";
    // Each is a way to have matchers that try one branch after the other take for ever, or to write out what is short.
    for (const std::string& expression :
         {std::string("(((a{1,255}){1,255}){1,255})"), std::string("^(a+)+$"), std::string("^(a|aa)*$"),
          std::string("(a?){500}a{500}$"), std::string(512, '(') + std::string(512, ')'), std::string(1024, '('),
          std::string("([^b]*[^c]*[^d]*){100}x"), absl::StrCat("(x+x+)+y", std::string(900, '*'))}) {
      const absl::StatusOr<NameFilter> filter = NameFilter::Make(expression);
      if (filter.ok()) filter->Matches(name);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hone
