#include "tests/system/terminal.h"

#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace hone::system_test {

Terminal::Terminal(const TempFolder& folder, const std::string& program, const Arguments& arguments, int columns,
                   const std::map<std::string, std::string>& environment) {
  const std::string path = program.find('/') == std::string::npos ? HONE_BIN "/" + program : program;
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  winsize size{};
  size.ws_row = 40;
  size.ws_col = static_cast<unsigned short>(columns);
  pid_ = ::forkpty(&master_, nullptr, nullptr, &size);
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("HONE_LOCK", (folder / ".run/lock").c_str(), 1);
    ::setenv("HONE_DATA", (folder / ".run").c_str(), 1);
    ::unsetenv("HONE_TOKEN_FILE");
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  reader_ = std::thread([this] {
    char bytes[4096];
    for (ssize_t size = 0; (size = ::read(master_, bytes, sizeof(bytes))) > 0;) {
      const std::lock_guard<std::mutex> lock(mutex_);
      screen_.append(bytes, static_cast<size_t>(size));
    }
  });
}

Terminal::~Terminal() {
  if (running()) ::kill(pid_, SIGKILL);
  Wait();
  reader_.join();  // the terminal is closed with its last program
  ::close(master_);
}

void Terminal::Type(const std::string& keys) {
  EXPECT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

bool Terminal::running() {
  if (code_ >= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

int Terminal::Wait(double seconds) {
  if (!WaitUntil([this] { return !running(); }, seconds)) ::kill(pid_, SIGKILL);
  WaitUntil([this] { return !running(); });
  return code_;
}

std::string Terminal::Screen() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return screen_;
}

std::vector<std::string> Terminal::Lines() const {
  std::vector<std::string> lines{""};
  const std::string screen = Screen();
  for (size_t i = 0; i < screen.size(); ++i) {
    if (screen.compare(i, 3, "\x1b[K") == 0) {
      i += 2;
    } else if (screen[i] == '\r' || screen[i] == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += screen[i];
    }
  }
  return lines;
}

}  // namespace hone::system_test
