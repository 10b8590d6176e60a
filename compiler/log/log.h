// What the daemon and the workers say on standard error: lines for people, or a JSON object a line for a collector.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "spdlog/spdlog.h"

namespace hone {

enum class LogFormat { kText, kJson };

// All that spdlog is given from now on goes there, in that form; `verbose`: the debug level too. A write never blocks:
// lines that a full pipe does not take are dropped and counted.
//   2026-11-22 15:04:05.123 honed info: job is running (job 3)
//   {"time":"2026-11-22T15:04:05.123Z","level":"info","program":"honed","message":"job is running","job":3}
void StartLog(const std::string& program, LogFormat format, bool verbose);

struct LogField {
  std::string_view name;
  std::variant<uint64_t, double, std::string> value;
};
// One fact, with what it is about: "job", "task", "trial", "attempt", "worker".
void LogFact(spdlog::level::level_enum level, std::string_view message, std::initializer_list<LogField> fields);

}  // namespace hone
