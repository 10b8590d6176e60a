// Programs over one set of parameters, each with what a check of lowering says of it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/parse_or_die.h"

namespace hone {

struct CheckCase {
  const char* name;
  const char* body;   // of main(A: (10, 4), at: (10,) int32 within [0, 10), C: (10, 4))
  const char* error;  // "": taken; else what the message says
};

inline PrimFunc ProgramOfCase(const std::string& body) {
  return ParseOrDie(absl::StrCat(R"py(
@T.prim_func
def main(A: T.Buffer((10, 4), "float32"), at: T.Buffer((10,), "int32"), C: T.Buffer((10, 4), "float32")):
    T.func_attr({"domains": ["", "int[0,10)", ""]})
)py",
                                 body));
}

inline void ExpectTellsApart(std::span<const CheckCase> cases,
                             const std::function<absl::Status(const PrimFunc&)>& check) {
  for (const CheckCase& c : cases) {
    SCOPED_TRACE(c.name);
    const absl::Status status = check(ProgramOfCase(c.body));
    if (*c.error == '\0') {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(c.error));
    }
  }
}

}  // namespace hone
