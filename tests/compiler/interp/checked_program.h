// Programs of tests of the interpreter, from their text.
#pragma once

#include <string>
#include <utility>

#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

namespace hone {

// The program, of which the test expects that it can be read, passes the verifier, and reads back from its own text.
inline PrimFunc CheckedProgram(const std::string& text) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(text);
  EXPECT_TRUE(f.ok()) << f.status() << text;
  if (!f.ok()) return PrimFunc{};
  EXPECT_TRUE(Verify(*f).ok()) << Verify(*f);
  EXPECT_EQ(ReadBackError(*f), "");
  return *std::move(f);
}

}  // namespace hone
