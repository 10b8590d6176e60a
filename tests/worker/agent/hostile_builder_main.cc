// A builder that hands out programs which are broken or mean harm in place of some candidates, for the tests of a
// worker: `hone-worker --builder hone-hostile-builder`. Oracles and all other candidates are built as hone-builder
// builds them.
//
//   HONE_HOSTILE       kinds separated by commas: each is used once, for the next candidate not seen before, every
//   second
//                      candidate being honest. With "always:KIND" every candidate is of that kind.
//   HONE_HOSTILE_LOG   file that gets a line for every candidate seen: its kind and the SHA-256 of its trace. The same
//                      candidate is of the same kind when it comes again, from another builder process too.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/ir/text.h"
#include "compiler/support/check.h"
#include "compiler/support/frame.h"
#include "compiler/support/sha256.h"
#include "compiler/target/target.h"
#include "deploy/runtime/image.h"
#include "deploy/runtime/kernel_set.h"
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

// x86-64 machine code of kernels that need no compiler.
const std::map<std::string, std::string>& Codes() {
  static const std::map<std::string, std::string> codes = {
      {"does_nothing", std::string("\x31\xc0\xc3", 3)},                       // xor eax, eax; ret
      {"null_write", std::string("\x31\xc0\x89\x00\xc3", 5)},                 // xor eax, eax; mov [rax], eax; ret
      {"illegal_instruction", std::string("\x0f\x0b", 2)},                    // ud2
      {"endless_loop", std::string("\xeb\xfe", 2)},                           // jmp to itself
      {"stack_bomb", std::string("\x50\xeb\xfd", 3)},                         // push rax; jmp back
      {"fork", std::string("\xb8\x39\x00\x00\x00\x0f\x05\x31\xc0\xc3", 10)},  // mov eax, 57; syscall; xor eax, eax; ret
      {"exit", std::string("\xb8\xe7\x00\x00\x00\x31\xff\x0f\x05", 9)},       // mov eax, 231; xor edi, edi; syscall
      {"fails", std::string("\xb8\x01\x00\x00\x00\xc3", 6)},                  // mov eax, 1; ret
  };
  return codes;
}

v1::BuildReply BuildHostile(const v1::BuildRequest& request, const std::string& kind) {
  if (kind == "builder_crash") std::abort();
  if (kind == "builder_hang") {
    for (;;) ::pause();
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
  if (const auto code = Codes().find(kind); code != Codes().end()) {
    ImageParts parts;
    parts.symbols.push_back({request.symbol(), 0});
    parts.code = code->second;
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

std::string KindOf(const std::string& trace) {
  const char* wanted = std::getenv("HONE_HOSTILE");
  const char* log = std::getenv("HONE_HOSTILE_LOG");
  HONE_CHECK(wanted != nullptr && log != nullptr) << "HONE_HOSTILE and HONE_HOSTILE_LOG must be set";
  const std::string digest = ToHex(Sha256(trace));
  std::ifstream file(log);
  size_t seen = 0;
  for (std::string kind, hash; file >> kind >> hash; ++seen) {
    if (hash == digest) return kind;
  }
  std::string kind = "honest";
  const std::string list = wanted;
  if (list.rfind("always:", 0) == 0) {
    kind = list.substr(7);
  } else {
    const std::vector<std::string> kinds = absl::StrSplit(list, ',');
    if (seen % 2 == 1 && seen / 2 < kinds.size()) kind = kinds[seen / 2];
  }
  std::ofstream(log, std::ios::app) << kind << ' ' << digest << std::endl;
  return kind;
}

int Serve() {
  ::signal(SIGPIPE, SIG_IGN);
  for (;;) {
    const absl::StatusOr<std::string> bytes = ReadFrame(0, 16 << 20);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    v1::BuildRequest request;
    if (!request.ParseFromString(*bytes)) return 1;
    const std::string kind = request.what_case() == v1::BuildRequest::kTrace ? KindOf(request.trace()) : "honest";
    const v1::BuildReply reply = kind == "honest" ? Build(request) : BuildHostile(request, kind);
    if (!WriteFrame(1, reply.SerializeAsString()).ok()) return 1;
  }
}

}  // namespace
}  // namespace hone

int main() { return hone::Serve(); }
