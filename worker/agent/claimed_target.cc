#include "worker/agent/claimed_target.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/support/monotonic_clock.h"

namespace hone {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(20);  // of building and of every run
constexpr absl::Duration kLookAgain = absl::Minutes(1);

// A product, of whole vectors and a tail.
constexpr char kProgram[] = R"(@T.prim_func
def main(A: T.Buffer((8, 32), "float32"), B: T.Buffer((32, 37), "float32"), C: T.Buffer((8, 37), "float32")):
    for i, j, k in T.grid(8, 37, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

bool SaysNothing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

bool ClaimedTarget::Holds() {
  v1::Workload workload;
  workload.set_text(kProgram);
  const absl::Status tried = TaskContext::Create(workload, target_, builders_, kLimit, runners_).status();
  if (!SaysNothing(tried)) {
    lacks_ = tried.ok() ? "" : absl::StrCat("a machine that runs code for ", target_, ": ", tried.message());
  }
  looked_ = MonotonicNow();
  return lacks_.empty();
}

std::string ClaimedTarget::Lacks(absl::Time now, TurnLock& turn) {
  if (lacks_.empty() || now < looked_ + kLookAgain) return lacks_;
  const TurnLock::Turn held(turn, TurnLock::Use::kShared);
  Holds();
  return lacks_;
}

}  // namespace hone
