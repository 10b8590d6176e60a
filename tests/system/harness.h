// The real programs, started as a user starts them: each test in a folder of its own, with its own measuring lock and
// database, so that tests may run side by side. A daemon or worker that is started by its name may lack the layers of
// the sandbox that not every machine gives.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hone::system_test {

using Json = nlohmann::ordered_json;
using Arguments = std::vector<std::string>;

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();  // takes all that is in it away
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> Files() const;  // names, sorted

 private:
  std::string path_;
};

// A program of ours that runs. It is killed when its test ends, whatever happens.
class Process {
 public:
  // `program` is beside the other programs unless it is a path. Output goes to files in `folder`.
  Process(const TempFolder& folder, const std::string& program, const Arguments& arguments,
          const std::map<std::string, std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool running();
  void Signal(int number);
  // Its exit code, or 128 + signal; kills it after that long, which gives 128 + 9.
  int Wait(double seconds = 150);
  std::string Output() const;  // so far
  std::string Errors() const;

 private:
  pid_t pid_ = -1;
  int code_ = -1;
  std::string out_, err_;
};

// From here on the programs' CUDA driver and compiler are those of the tests' own, which are told these words
// (tests/deploy/runtime/fake_cuda/fake_cuda.h).
void UseFakeCuda(const std::string& words = "");

struct Finished {
  int code = 0;
  std::string output, errors;
};
Finished RunProgram(const TempFolder& folder, const std::string& program, const Arguments& arguments,
                    double seconds = 150);
Finished Hone(const TempFolder& folder, const Arguments& arguments);

// True once `what` is; false after that long.
bool WaitUntil(const std::function<bool()>& what, double seconds = 60);

// Every line as an object. A line that is none is a failure of the test.
std::vector<Json> JsonLines(const std::string& text);

// How many kernels `hone compile` said it built by what was tuned: from records, or by default because `hone tune`
// found that faster inside the model. Which of the two a kernel of a microsecond is depends on the machine's noise.
int TunedKernels(const Finished& compile);

// A daemon on folder/tuning.db and as many workers as are started, spoken to through folder/s.
class Service {
 public:
  explicit Service(const TempFolder& folder, Arguments of_daemon = {});  // the daemon alone
  void StartDaemon();                                                    // again, on the same file, at the same address
  // At `server` instead of the daemon's own address where that is not "".
  Process& StartWorker(const Arguments& more = {}, const std::map<std::string, std::string>& environment = {},
                       const std::string& server = "");
  Process& daemon() { return *daemon_; }
  Process& worker(size_t i) { return *workers_[i]; }
  std::string database() const { return folder_ / "tuning.db"; }
  std::string address() const { return "unix:" + (folder_ / "s"); }

  Json Job(int id);             // hone jobs show
  std::vector<Json> Records();  // hone records list, from the file

 private:
  const TempFolder& folder_;
  const Arguments of_daemon_;
  std::unique_ptr<Process> daemon_;
  std::vector<std::unique_ptr<Process>> workers_;
};

std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& bytes);

// float32 .npy files.
void WriteNpy(const std::string& path, const std::vector<int64_t>& shape, const std::vector<float>& values);
std::vector<float> ReadNpy(const std::string& path, const std::vector<int64_t>& shape);

}  // namespace hone::system_test
