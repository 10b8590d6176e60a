// A builder of programs of any size, for the tests of how they are carried: the trace of a request says how many bytes
// its program has, half of them in the image and half in the object.
#include <signal.h>

#include <string>

#include "absl/strings/numbers.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/frame.h"
#include "compiler/support/sha256.h"
#include "hone/v1/build.pb.h"

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  if (!hone::LockInAndReport(hone::ProcessKind::kBuilder)) return 1;
  for (;;) {
    const absl::StatusOr<std::string> bytes = hone::ReadFrame(0, 1 << 20);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    hone::v1::BuildRequest request;
    size_t size = 0;
    if (!request.ParseFromString(*bytes) || !absl::SimpleAtoi(request.trace(), &size)) return 1;
    hone::v1::BuildReply reply;
    reply.set_id(request.id());
    reply.set_image(std::string(size / 2, 'i'));
    reply.set_object(std::string(size - size / 2, 'o'));
    reply.set_object_digest(hone::Sha256(reply.object()));
    if (!hone::WriteFrame(1, reply.SerializeAsString()).ok()) return 1;
  }
}
