// Tells the thread sanitizer what gRPC's calls order. gRPC's headers are compiled into our programs and so
// instrumented; what lies between a call's steps is a library that is not. A program that defines these functions is
// asked before the library; they pass on to it and note what was ordered:
// - An operation begins before it ends: what the thread that starts it filled in is read by one of gRPC's threads.
// - A call is over after its last user: they count themselves out, some in the library, and whoever is last has it
//   destroyed.
//
// Part of every program that calls gRPC when HONE_SANITIZE is thread (proto/CMakeLists.txt); of no other build.
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>

#include "tests/sanitizers/library.h"

// What gRPC's headers have called when the operations of a callback are done: CallbackWithSuccessTag::StaticRun,
// private there, and absent from a program that serves no callbacks.
extern "C" [[gnu::weak]] void RunCallback(grpc_completion_queue_functor* tag, int ok) asm(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori");
// ServerCallbackCall::ScheduleOnDone(bool), private there as well.
extern "C" void ScheduleOnDone(void* call,
                               bool inline_on_done) asm("_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");

namespace {

// How a ServerCallbackCall of gRPC 1.51 begins.
struct ServerCallbackCall {
  void* functions;
  int on_cancel_conditions_remaining;
  int callbacks_outstanding;
};

void Arrive(grpc_completion_queue_functor* tag, int ok) {
  __tsan_acquire(tag);
  RunCallback(tag, ok);
}

}  // namespace

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t nops, void* tag, void* reserved) {
  static auto* const real = Library<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  // The tags of calls without callbacks are objects as well: their first word is the address of their virtual
  // functions.
  auto* const functor = static_cast<grpc_completion_queue_functor*>(tag);
  if (functor->functor_run == &RunCallback) functor->functor_run = &Arrive;
  __tsan_release(tag);
  return real(call, ops, nops, tag, reserved);
}

void ScheduleOnDone(void* call, bool inline_on_done) {
  static auto* const real = Library<void(void*, bool)>("_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  __tsan_acquire(&static_cast<ServerCallbackCall*>(call)->callbacks_outstanding);
  real(call, inline_on_done);
}
