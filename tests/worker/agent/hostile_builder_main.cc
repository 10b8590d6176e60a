// A builder that hands out programs which are broken or mean harm in place of some candidates, for the tests of a
// worker: `hone-worker --builder hone-hostile-builder`. Oracles and all other candidates are built as hone-builder
// builds them.
//
//   HONE_HOSTILE       kinds separated by commas: each is used once, for the next candidate not seen before, every
//                      fourth candidate being honest. With "always:KIND" every candidate is of that kind.
//   HONE_HOSTILE_LOG   file that gets a line for every candidate seen: its kind and the SHA-256 of its trace. The same
//                      candidate is of the same kind when it comes again, from another builder process too.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/check.h"
#include "compiler/support/frame.h"
#include "compiler/support/sha256.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "deploy/runtime/image/image.h"
#include "deploy/runtime/image/kernel_set.h"
#include "tests/worker/agent/hostile_candidates.h"
#include "worker/builder/build.h"

namespace hone {
namespace {

// Workloads are y = epilogue(x * w) in canonical form: "for ... in T.grid(M, N, K)" with an init, then "T.grid(M, N)".

// The `which`th T.grid: its number at `position` from the end becomes what `change` makes of it.
std::string WithExtent(std::string text, int which, int from_end, const std::function<int(int)>& change) {
  size_t open = std::string::npos;
  for (int i = 0; i <= which; ++i) open = text.find("T.grid(", open + 1);
  HONE_CHECK(open != std::string::npos) << text;
  open += 7;
  const size_t close = text.find(')', open);
  std::vector<std::string> extents = absl::StrSplit(text.substr(open, close - open), ", ");
  std::string& extent = extents[extents.size() - 1 - static_cast<size_t>(from_end)];
  extent = std::to_string(change(std::stoi(extent)));
  std::string joined;
  for (const std::string& e : extents) joined += (joined.empty() ? "" : ", ") + e;
  return text.replace(open, close - open, joined);
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  HONE_CHECK(text.find(from) != std::string::npos) << from << " is not in\n" << text;
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string WithoutInit(std::string text) {
  const size_t with = text.find("with T.init():");
  HONE_CHECK(with != std::string::npos) << text;
  const size_t begin = text.rfind('\n', with) + 1;
  const size_t end = text.find('\n', text.find('\n', with) + 1) + 1;  // that line and the one after it
  return text.erase(begin, end - begin);
}

using Edit = std::function<std::string(std::string)>;
const std::map<std::string, Edit>& Edits() {
  static const std::map<std::string, Edit> edits = {
      {"short_reduction", [](std::string t) { return WithExtent(std::move(t), 0, 0, [](int n) { return n - 1; }); }},
      {"dropped_tail", [](std::string t) { return WithExtent(std::move(t), 1, 0, [](int n) { return n - 1; }); }},
      {"dropped_rows", [](std::string t) { return WithExtent(std::move(t), 1, 1, [](int n) { return n - 1; }); }},
      {"lost_init", WithoutInit},
      {"swapped_axis", [](std::string t) { return Replaced(std::move(t), "p1[v2, v1]", "p1[v1, v2]"); }},
      // All results are right, and one row more is written.
      {"write_past_end", [](std::string t) { return WithExtent(std::move(t), 1, 1, [](int n) { return n + 1; }); }},
  };
  return edits;
}

// Machine code of a kernel that needs no compiler; "" for none of that name.
std::string CodeOf(const std::string& kind) {
  for (const HostileCandidate& candidate : HostileCandidates()) {
    if (candidate.name == kind) return candidate.code;
  }
  return "";
}

v1::BuildReply BuildHostile(const v1::BuildRequest& request, const std::string& kind) {
  if (kind == "builder_crash") std::abort();
  if (kind == "builder_hang") {
    for (;;) ::sleep(1000);
  }
  v1::BuildReply reply;
  reply.set_id(request.id());
  const auto edit = Edits().find(kind);
  const absl::StatusOr<PrimFunc> func =
      ParsePrimFunc(edit == Edits().end() ? request.workload() : edit->second(request.workload()));
  const absl::StatusOr<Target> target = ParseTarget(request.target());
  HONE_CHECK(func.ok() && target.ok()) << func.status() << target.status();
  CompileOptions options;
  options.symbol = request.symbol();
  absl::StatusOr<CompiledKernel> kernel = CompilePlain(*func, *target, options);
  HONE_CHECK(kernel.ok()) << kind << ": " << kernel.status();
  absl::StatusOr<std::string> image = LinkImage(std::span<const std::string>(&kernel->object, 1));
  HONE_CHECK(image.ok()) << image.status();
  if (const std::string code = CodeOf(kind); !code.empty()) {
    ImageParts parts;
    parts.symbols.push_back({request.symbol(), 0});
    parts.code = code;
    image = WriteImage(parts);
  } else if (kind == "memory_bomb") {
    kernel->set.scratch_bytes = int64_t{1} << 40;
  } else if (kind == "not_an_image") {
    image = std::string(10'000, 'x');
  } else if (kind == "broken_image") {
    (*image)[image->size() / 2] ^= 1;
  } else {
    HONE_CHECK(edit != Edits().end()) << "HONE_HOSTILE: no kind " << kind;
  }
  reply.set_image(*std::move(image));
  reply.set_kernel_set(Serialize(kernel->set));
  reply.set_object_digest(Sha256(kernel->object));
  reply.set_object(std::move(kernel->object));
  reply.set_program_hash(std::string(8, '\1'));
  reply.set_generator(GeneratorFingerprint());
  reply.set_seconds(0.001);
  return reply;
}

// The log, mapped before the process locks itself in: text, and newlines up to the end of the file.
class Log {
 public:
  Log() {
    const char* path = std::getenv("HONE_HOSTILE_LOG");
    HONE_CHECK(path != nullptr) << "HONE_HOSTILE_LOG must be set";
    fd_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    HONE_CHECK(fd_ >= 0 && ::flock(fd_, LOCK_EX) == 0) << path;
    if (::lseek(fd_, 0, SEEK_END) == 0) {
      const std::string lines(kBytes, '\n');
      HONE_CHECK(::pwrite(fd_, lines.data(), kBytes, 0) == static_cast<ssize_t>(kBytes)) << path;
    }
    ::flock(fd_, LOCK_UN);
    void* mapped = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    HONE_CHECK(mapped != MAP_FAILED) << path;
    text_ = static_cast<char*>(mapped);
  }
  int fd() const { return fd_; }

  // What the candidate was the first time, or what `choose` makes of it, given the number of those before it.
  std::string KindOf(const std::string& digest, const std::function<std::string(size_t)>& choose) {
    HONE_CHECK(::flock(fd_, LOCK_EX) == 0);
    const std::string text(text_, std::string_view(text_, kBytes).find("\n\n") + 1);
    std::istringstream lines(text);
    size_t seen = 0;
    std::string kind, hash;
    for (; lines >> kind >> hash && hash != digest; ++seen) {}
    if (hash != digest) {
      kind = choose(seen);
      const std::string line = kind + ' ' + digest + '\n';
      const size_t end = text == "\n" ? 0 : text.size();
      HONE_CHECK(end + line.size() + 2 < kBytes) << "the log is full";
      std::copy(line.begin(), line.end(), text_ + end);
    }
    ::flock(fd_, LOCK_UN);
    return kind;
  }

 private:
  static constexpr size_t kBytes = 256 << 10;
  int fd_ = -1;
  char* text_ = nullptr;
};

std::string ChooseKind(size_t seen) {
  const char* wanted = std::getenv("HONE_HOSTILE");
  HONE_CHECK(wanted != nullptr) << "HONE_HOSTILE must be set";
  const std::string list = wanted;
  if (list.rfind("always:", 0) == 0) return list.substr(7);
  const std::vector<std::string> kinds = absl::StrSplit(list, ',');
  const size_t before = seen - (seen + 3) / 4;  // that were not honest
  return seen % 4 != 0 && before < kinds.size() ? kinds[before] : "honest";
}

int Serve() {
  ::signal(SIGPIPE, SIG_IGN);
  Log log;
  const int fd = log.fd();
  if (!LockInAndReport(ProcessKind::kBuilder, {&fd, 1})) return 1;
  for (;;) {
    const absl::StatusOr<std::string> bytes = ReadFrame(0, 16 << 20);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    v1::BuildRequest request;
    if (!request.ParseFromString(*bytes)) return 1;
    const bool candidate = request.what_case() == v1::BuildRequest::kTrace;
    const std::string kind = candidate ? log.KindOf(ToHex(Sha256(request.trace())), ChooseKind) : "honest";
    const v1::BuildReply reply = kind == "honest" ? Build(request) : BuildHostile(request, kind);
    if (!WriteFrame(1, reply.SerializeAsString()).ok()) return 1;
  }
}

}  // namespace
}  // namespace hone

int main() { return hone::Serve(); }
