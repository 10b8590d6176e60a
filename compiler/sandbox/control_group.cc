#include "compiler/sandbox/control_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hone {
namespace {

constexpr char kPrefix[] = "hone-";
constexpr auto kPause = std::chrono::milliseconds(1);
constexpr int kMostPauses = 1000;  // until those that were killed are gone

// Where groups may be made. The files of version 2 have other names than those of version 1.
struct Place {
  bool unified = false;              // version 2
  std::vector<std::string> parents;  // the unified one; or those of memory and of pids
};

bool WriteTo(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return written;
}

std::vector<std::string> WordsOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The folder of this process' own group in the hierarchy with that controller, or in the unified one (""); "" when it
// is not mounted. (proc(5): /proc/PID/mountinfo, cgroups(7): /proc/PID/cgroup.)
std::string OwnFolder(const std::string& controller) {
  std::string group;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && Has(absl::StrSplit(parts[1], ','), controller)) group = parts[2];
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::pair<std::string, std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::vector<std::string> at = absl::StrSplit(halves.first, ' ');
    const std::vector<std::string> what = absl::StrSplit(halves.second, ' ');
    if (group.empty() || at.size() < 5 || what.size() < 3) continue;
    const bool is_it = controller.empty() ? what[0] == "cgroup2"
                                          : what[0] == "cgroup" && Has(absl::StrSplit(what[2], ','), controller);
    if (!is_it) continue;
    // In a container the mount may begin below the root of the hierarchy.
    absl::string_view below = group;
    if (at[3] != "/") absl::ConsumePrefix(&below, at[3]);
    const std::string folder = absl::StrCat(at[4], below);
    return std::string(absl::StripSuffix(folder, "/"));
  }
  return "";
}

// Whether groups below it are given the controllers. A group with processes of its own, the root aside, gives none:
// this process moves aside when it is the only one there.
bool DivideUnified(const std::string& own) {
  const std::vector<std::string> there = WordsOf(own + "/cgroup.controllers");
  if (!Has(there, "memory") || !Has(there, "pids")) return false;
  const auto divided = [&] {
    const std::vector<std::string> given = WordsOf(own + "/cgroup.subtree_control");
    return Has(given, "memory") && Has(given, "pids");
  };
  if (divided()) return true;
  const std::string self = std::to_string(::getpid());
  if (WordsOf(own + "/cgroup.procs") == std::vector<std::string>{self}) {
    const std::string aside = own + "/" + kPrefix + "agent";
    if (::mkdir(aside.c_str(), 0755) != 0 && errno != EEXIST) return false;
    WriteTo(aside + "/cgroup.procs", self);
  }
  WriteTo(own + "/cgroup.subtree_control", "+memory +pids");
  return divided();
}

bool MayMakeFolderIn(const std::string& parent) {
  return !parent.empty() && ::access(parent.c_str(), W_OK | X_OK) == 0;
}

// Groups of processes that were killed before they could remove them.
void RemoveLeftovers(const std::string& parent) {
  DIR* folder = ::opendir(parent.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder)) {
    absl::string_view name = entry->d_name;
    if (!absl::ConsumePrefix(&name, kPrefix)) continue;
    const pid_t maker = static_cast<pid_t>(std::atoi(std::string(name).c_str()));
    if (maker > 0 && ::kill(maker, 0) != 0 && errno == ESRCH) ::rmdir((parent + "/" + entry->d_name).c_str());
  }
  ::closedir(folder);
}

Place FindPlace() {
  Place place;
  const std::string own = OwnFolder("");
  if (MayMakeFolderIn(own) && DivideUnified(own)) {
    place = {.unified = true, .parents = {own}};
  } else {
    const std::string memory = OwnFolder("memory"), pids = OwnFolder("pids");
    if (MayMakeFolderIn(memory) && MayMakeFolderIn(pids)) place = {.unified = false, .parents = {memory, pids}};
  }
  for (const std::string& parent : place.parents) RemoveLeftovers(parent);
  return place;
}

// Found once: this process may have moved since.
const Place& ThePlace() {
  static const Place place = FindPlace();
  return place;
}

}  // namespace

std::optional<ControlGroup> ControlGroup::Make(const Limits& limits) {
  static std::atomic<uint64_t> made{0};
  const Place& place = ThePlace();
  if (place.parents.empty()) return std::nullopt;
  ControlGroup group;
  const std::string name = absl::StrCat(kPrefix, ::getpid(), "-", ++made);
  for (const std::string& parent : place.parents) {
    const std::string folder = parent + "/" + name;
    if (::mkdir(folder.c_str(), 0755) != 0) return std::nullopt;  // those before are removed
    group.folders_.push_back(folder);
  }
  const std::string& memory = group.folders_.front();
  const std::string bytes = std::to_string(limits.memory_bytes);
  const bool limited = WriteTo(memory + (place.unified ? "/memory.max" : "/memory.limit_in_bytes"), bytes) &&
                       WriteTo(group.folders_.back() + "/pids.max", std::to_string(limits.processes));
  if (!limited) return std::nullopt;
  // Where there is swap, the limit is of both together.
  WriteTo(memory + (place.unified ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"), place.unified ? "0" : bytes);
  return group;
}

ControlGroup::ControlGroup(ControlGroup&& other) noexcept : folders_(std::exchange(other.folders_, {})) {}
ControlGroup& ControlGroup::operator=(ControlGroup&& other) noexcept {
  std::swap(folders_, other.folders_);
  return *this;
}
ControlGroup::~ControlGroup() { End(); }

bool ControlGroup::Add(pid_t pid) {
  return std::all_of(folders_.begin(), folders_.end(),
                     [&](const std::string& folder) { return WriteTo(folder + "/cgroup.procs", std::to_string(pid)); });
}

std::vector<pid_t> ControlGroup::Members() const {
  std::vector<pid_t> members;
  for (const std::string& folder : folders_) {
    for (const std::string& word : WordsOf(folder + "/cgroup.procs")) {
      members.push_back(static_cast<pid_t>(std::atoi(word.c_str())));
    }
  }
  return members;
}

void ControlGroup::End() {
  // What is killed may have started another since it was listed; the limit of processes bounds that.
  std::vector<pid_t> members = Members();
  for (int i = 0; !members.empty() && i < kMostPauses; ++i) {
    for (const pid_t pid : members) {
      if (pid > 1) ::kill(pid, SIGKILL);  // 0: of another pid namespace than ours
    }
    std::this_thread::sleep_for(kPause);
    members = Members();
  }
  for (const std::string& folder : folders_) {
    for (int i = 0; ::rmdir(folder.c_str()) != 0 && errno == EBUSY && i < kMostPauses; ++i) {
      std::this_thread::sleep_for(kPause);
    }
  }
  folders_.clear();
}

}  // namespace hone
