#include "tests/tuner/service/honed_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler/sandbox/layers.h"
#include "compiler/support/check.h"

namespace hone {

TempFolder::TempFolder() {
  char name[] = "/tmp/hone_service_XXXXXX";
  HONE_CHECK(mkdtemp(name) != nullptr);
  path_ = name;
}
TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

HonedProcess::HonedProcess(const std::vector<std::string>& arguments, const std::string& name) {
  int out[2];
  HONE_CHECK(pipe2(out, O_CLOEXEC) == 0);
  errors_ = fileno(std::tmpfile());
  const std::string program = HONE_BIN "/" + name;
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string allowed = LayerNames(LayersSomeSystemsLack());  // what machines that tests run on may lack
  pid_ = fork();
  if (pid_ == 0) {
    setenv("HONE_ALLOW_MISSING_LAYER", allowed.c_str(), 1);
    dup2(out[1], STDOUT_FILENO);
    dup2(errors_, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  std::string line;
  char c = 0;
  while (read(out[0], &c, 1) == 1 && c != '\n') line.push_back(c);
  close(out[0]);
  const std::string expected = "listening on ";
  if (line.rfind(expected, 0) == 0) address_ = line.substr(expected.size());
}

HonedProcess::~HonedProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void HonedProcess::Signal(int number) { kill(pid_, number); }

int HonedProcess::Wait() {
  int status = 0;
  HONE_CHECK(waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string HonedProcess::Errors() {
  std::string text;
  char buffer[4096];
  lseek(errors_, 0, SEEK_SET);
  for (ssize_t size; (size = read(errors_, buffer, sizeof(buffer))) > 0;) text.append(buffer, size);
  return text;
}

}  // namespace hone
