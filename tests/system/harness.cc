#include "tests/system/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>

#include "compiler/sandbox/layers.h"
#include "gtest/gtest.h"

namespace hone::system_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// What machines that tests run on may lack. A client gets no such word: what it starts for itself knows by itself.
std::string AllowedMissing(const std::string& program) {
  return program == "honed" || program == "hone-worker" ? LayerNames(LayersSomeSystemsLack()) : "";
}

std::atomic<int> started{0};  // numbers the output files

void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

TempFolder::TempFolder() {
  char name[] = "/tmp/hone_system_XXXXXX";
  if (::mkdtemp(name) == nullptr) std::abort();
  path_ = name;
  fs::create_directory(path_ + "/.run");  // what the harness itself writes
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TempFolder::Files() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (entry.path().filename() != ".run") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Process::Process(const TempFolder& folder, const std::string& program, const Arguments& arguments,
                 const std::map<std::string, std::string>& environment) {
  const std::string path = program.find('/') == std::string::npos ? HONE_BIN "/" + program : program;
  const std::string stem = folder / (".run/" + std::to_string(started++));
  out_ = stem + ".out";
  err_ = stem + ".err";
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string allowed = AllowedMissing(program);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("HONE_LOCK", (folder / ".run/lock").c_str(), 1);
    ::setenv("HONE_DATA", (folder / ".run").c_str(), 1);
    ::unsetenv("HONE_TOKEN_FILE");
    if (!allowed.empty()) ::setenv("HONE_ALLOW_MISSING_LAYER", allowed.c_str(), 1);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(::open(out_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
    ::dup2(::open(err_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
}

Process::~Process() {
  if (running()) Signal(SIGKILL);
  Wait();
}

bool Process::running() {
  if (code_ >= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = CodeOf(status);
  return false;
}

void Process::Signal(int number) {
  if (code_ < 0) ::kill(pid_, number);
}

int Process::Wait(double seconds) {
  if (!WaitUntil([this] { return !running(); }, seconds)) Signal(SIGKILL);
  while (running()) Pause();
  return code_;
}

std::string Process::Output() const { return ReadAll(out_); }
std::string Process::Errors() const { return ReadAll(err_); }

void UseFakeCuda(const std::string& words) {
  const std::string libraries = fs::path(HONE_BIN).parent_path() / "lib";
  ::setenv("HONE_CUDA_LIBRARY", (libraries + "/libhone_fake_cuda_driver.so").c_str(), 1);
  ::setenv("HONE_NVRTC", (libraries + "/libhone_fake_cuda_nvrtc.so").c_str(), 1);
  ::setenv("HONE_FAKE_CUDA", words.c_str(), 1);
}

Finished RunProgram(const TempFolder& folder, const std::string& program, const Arguments& arguments, double seconds) {
  Process process(folder, program, arguments);
  Finished finished;
  finished.code = process.Wait(seconds);
  finished.output = process.Output();
  finished.errors = process.Errors();
  return finished;
}

Finished Hone(const TempFolder& folder, const Arguments& arguments) { return RunProgram(folder, "hone", arguments); }

bool WaitUntil(const std::function<bool()>& what, double seconds) {
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (;;) {
    if (what()) return true;
    if (Clock::now() > end) return false;
    Pause();
  }
}

int TunedKernels(const Finished& compile) {
  int tuned = 0;
  for (const char* pattern :
       {R"((\d+) from records)", R"((\d+) kernels use default schedules that were found faster)"}) {
    if (std::smatch found; std::regex_search(compile.errors, found, std::regex(pattern))) tuned += std::stoi(found[1]);
  }
  return tuned;
}

std::vector<Json> JsonLines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    Json json = Json::parse(line, nullptr, false);
    EXPECT_TRUE(json.is_object()) << line;
    lines.push_back(std::move(json));
  }
  return lines;
}

Service::Service(const TempFolder& folder, Arguments of_daemon) : folder_(folder), of_daemon_(std::move(of_daemon)) {
  StartDaemon();
}

void Service::StartDaemon() {
  daemon_.reset();  // the address is free before the next one asks for it
  Arguments arguments{"--db", database(), "--listen", address(), "--lease", "3"};
  arguments.insert(arguments.end(), of_daemon_.begin(), of_daemon_.end());
  daemon_ = std::make_unique<Process>(folder_, "honed", arguments);
  EXPECT_TRUE(
      WaitUntil([this] { return daemon_->Output().find("listening on") != std::string::npos || !daemon_->running(); }));
  EXPECT_TRUE(daemon_->running()) << daemon_->Errors();
}

Process& Service::StartWorker(const Arguments& more, const std::map<std::string, std::string>& environment,
                              const std::string& server) {
  Arguments arguments{"--server", server.empty() ? address() : server};
  if (std::find(more.begin(), more.end(), "--threads") == more.end()) {
    arguments.insert(arguments.end(), {"--threads", "1"});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  workers_.push_back(std::make_unique<Process>(folder_, "hone-worker", arguments, environment));
  return *workers_.back();
}

Json Service::Job(int id) {
  const Finished show = Hone(folder_, {"jobs", "show", std::to_string(id), "--json", "--server", address()});
  if (show.code != 0) return Json::object();
  return JsonLines(show.output).at(0);
}

std::vector<Json> Service::Records() {
  const Finished list = Hone(folder_, {"records", "list", "--json", "--db", database()});
  EXPECT_EQ(list.code, 0) << list.errors;
  return JsonLines(list.output);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

namespace {

// Version 1 of the format: magic, length of the text in 2 bytes, text padded so that values start at a multiple of 64.
std::string NpyHeader(const std::vector<int64_t>& shape) {
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : shape) text += std::to_string(extent) + ", ";
  text += "), }";
  text.append(64 - (10 + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace

void WriteNpy(const std::string& path, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  WriteAll(path,
           NpyHeader(shape) + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

std::vector<float> ReadNpy(const std::string& path, const std::vector<int64_t>& shape) {
  const std::string bytes = ReadAll(path);
  size_t elements = 1;
  std::string wanted = "(";
  for (size_t d = 0; d < shape.size(); ++d) {
    elements *= static_cast<size_t>(shape[d]);
    wanted += (d > 0 ? ", " : "") + std::to_string(shape[d]);
  }
  EXPECT_NE(bytes.find(wanted), std::string::npos) << path << " has another shape than " << wanted;
  EXPECT_NE(bytes.find("<f4"), std::string::npos) << path;
  std::vector<float> values(elements);
  if (bytes.size() < elements * sizeof(float)) {
    ADD_FAILURE() << path << " has " << bytes.size() << " bytes";
    return values;
  }
  std::memcpy(values.data(), bytes.data() + bytes.size() - elements * sizeof(float), elements * sizeof(float));
  return values;
}

}  // namespace hone::system_test
