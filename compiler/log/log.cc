#include "compiler/log/log.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/base_sink.h"

namespace hone {
namespace {

// Between the message and its fields as a JSON object, on their way through spdlog. No message contains it.
constexpr char kFields = '\x1f';

class Formatter : public spdlog::formatter {
 public:
  explicit Formatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& said, spdlog::memory_buf_t& line) override {
    const std::string_view all(said.payload.data(), said.payload.size());
    const size_t split = all.find(kFields);
    const std::string message(all.substr(0, split));
    const auto fields = split == std::string_view::npos ? nlohmann::ordered_json::object()
                                                        : nlohmann::ordered_json::parse(all.substr(split + 1));
    const std::string text = format_ == LogFormat::kJson ? Json(said, message, fields) : Text(said, message, fields);
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<Formatter>(format_); }

 private:
  static std::string Level(const spdlog::details::log_msg& said) {
    const auto name = spdlog::level::to_string_view(said.level);
    return std::string(name.data(), name.size());
  }
  static std::string Program(const spdlog::details::log_msg& said) {
    return std::string(said.logger_name.data(), said.logger_name.size());
  }

  static std::string Json(const spdlog::details::log_msg& said, const std::string& message,
                          const nlohmann::ordered_json& fields) {
    nlohmann::ordered_json json = {
        {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(said.time), absl::UTCTimeZone())},
        {"level", Level(said)},
        {"program", Program(said)},
        {"message", message}};
    json.update(fields);
    // What others sent may be no UTF-8.
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }

  static std::string Text(const spdlog::details::log_msg& said, const std::string& message,
                          const nlohmann::ordered_json& fields) {
    std::string line =
        absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%E3S", absl::FromChrono(said.time), absl::LocalTimeZone()), " ",
                     Program(said), " ", Level(said), ": ", message);
    const char* before = " (";
    for (const auto& [name, value] : fields.items()) {
      absl::StrAppend(&line, before, name, " ", value.is_string() ? value.get<std::string>() : value.dump());
      before = ", ";
    }
    return line + (fields.empty() ? "\n" : ")\n");
  }

  const LogFormat format_;
};

// Standard error without blocking: a pipe that is not read must not stop the thread that logs. A line that is not taken
// at once is dropped, and the next line that is taken comes after one that says how many are missing.
class StandardError : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& said) override {
    spdlog::memory_buf_t line;
    formatter_->format(said, line);
    if (dropped_ > 0) {
      spdlog::memory_buf_t missing;
      const std::string words = absl::StrCat("nobody read ", dropped_, " lines that came here");
      formatter_->format({said.time, {}, said.logger_name, spdlog::level::warn, words}, missing);
      if (!Taken({missing.data(), missing.size()})) {
        ++dropped_;
        return;
      }
      dropped_ = 0;
    }
    if (!Taken({line.data(), line.size()})) ++dropped_;
  }
  void flush_() override {}

  // A pipe that can be written takes PIPE_BUF bytes without waiting (pipe(7)).
  static bool Taken(std::string_view text) {
    while (!text.empty()) {
      pollfd standard_error{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&standard_error, 1, 0) == 0) return false;
      const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return true;  // it is closed: the line is dropped
      text.remove_prefix(static_cast<size_t>(written));
    }
    return true;
  }

  uint64_t dropped_ = 0;
};

}  // namespace

void StartLog(const std::string& program, LogFormat format, bool verbose) {
  const auto logger = std::make_shared<spdlog::logger>(program, std::make_shared<StandardError>());
  logger->set_formatter(std::make_unique<Formatter>(format));
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void LogFact(spdlog::level::level_enum level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!spdlog::should_log(level)) return;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const LogField& field : fields) {
    std::visit([&](const auto& value) { json[std::string(field.name)] = value; }, field.value);
  }
  spdlog::log(level, "{}{}{}", message, kFields,
              json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace hone
