// Schedules that once were wrong, or refused although they were right (once_failed/*.txt: the workload, a line of
// dashes, the trace).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/replay.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

struct OnceFailedSchedule {
  SmallWorkload workload;
  Schedule schedule;
};

inline OnceFailedSchedule ReadOnceFailed(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(Get(ReadFile(path)), "----\n");
  HONE_CHECK(parts.size() == 2) << path << ": the workload and the trace, between them dashes";
  SmallWorkload workload = {path, Get(ParsePrimFunc(parts[0]))};
  Schedule schedule = Get(Replay(Get(ParseTrace(parts[1])), workload.func));
  return {std::move(workload), std::move(schedule)};
}

// A test of each: the values of its parameter, and its name.
inline std::vector<std::string> OnceFailedFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(HONE_TEST_DATA "/compiler/schedule/once_failed"))
    files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}
inline std::string OnceFailedName(const ::testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}

}  // namespace hone::testing
