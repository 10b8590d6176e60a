// Runs the interpreter's code (bytecode.h).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"
#include "compiler/interp/async_copies.h"
#include "compiler/interp/bytecode.h"
#include "compiler/interp/races.h"
#include "compiler/support/random.h"

namespace hone::interp {

class Machine {
 public:
  // `code` outlives the machine.
  Machine(const PrimFunc& f, const Code& code, const InterpretOptions& options);

  // Sizes from the shapes of the arguments, and their memory. Arguments are written in place unless everything is in
  // double.
  absl::Status Bind(std::span<NdArray> args);
  absl::Status Run(int entry);
  // After a run: outputs rounded to their types, and checked to be written everywhere.
  absl::Status Finish(std::span<NdArray> args);
  // Computes one element of a parameter where the code has element code.
  absl::StatusOr<double> Element(int param, std::span<const int64_t> index);

 private:
  // clang-format off
  enum class Storage : uint8_t {
    kF64, kF32, kF16, kBF16, kE4M3, kE5M2, kI4, kU4, kI8, kU8, kI16, kU16, kI32, kU32, kI64, kBool
  };
  // clang-format on
  struct Memory {
    char* data = nullptr;
    uint8_t* written = nullptr;  // one for each element; null: all of them
    Storage storage = Storage::kF32;
    int bytes = 4;
    int64_t elements = 0;
    std::vector<int64_t> dims;
    std::unique_ptr<char[], void (*)(void*)> own{nullptr, nullptr};
    std::unique_ptr<uint8_t[], void (*)(void*)> own_written{nullptr, nullptr};
    int64_t own_bytes = 0, own_flags = 0;
    std::unique_ptr<Touches> touches;  // in a launch, of memory that several threads can touch
  };

  // Where the code of one thread has stopped, and why.
  struct Stop {
    enum class Why : uint8_t { kReturn, kFork, kBarrier, kCollective, kThreadEnd } why = Why::kReturn;
    const Instr* at = nullptr;  // the instruction it stopped at
  };
  struct Thread;  // thread.h
  // Where the code that runs stands among the threads of a launch.
  struct Place {
    bool in_launch = false;
    Coordinates block, thread;
    int32_t epoch = 0;  // counts barriers
  };

  static Storage StorageOf(DType type);
  // Runs from an instruction on, with its slots at `frame`, to the next one that stops a thread; without `stop`, code
  // that is no thread of its own, to the end.
  absl::Status Execute(const Instr* at, Slot* frame, Stop* stop);  // execute.cc
  // One instruction of launches and threads. The instruction after it; nullptr when it stopped the thread.
  absl::StatusOr<const Instr*> ExecuteOfThreads(const Instr& in, Slot* frame, Stop* stop);
  absl::Status NoResult(const Instr& in) const;  // why arithmetic on these operands has none
  // What is made of undefined values is undefined; refused where a condition, an index or a mask is (undefined.cc).
  absl::Status FollowUndefined(const Instr& in, Slot* frame) const;
  void FollowValue(const Instr& in, Slot* frame) const;
  absl::Status FollowAccess(const Access& access, const Slot* undefined) const;
  // Of an element where an undefined value is stored: it counts as not written; FailedPrecondition of an output's.
  absl::Status StoreUndefined(const Access& access, const Memory& memory, int64_t offset) const;
  absl::Status Undefined(const std::string& place, const std::string& what) const;
  absl::Status OutOfSteps() const;
  absl::Status EndlessWhile(const Instr& in) const;
  absl::Status OutsideOfDomain(const Instr& in, int64_t value, int64_t min, int64_t extent) const;
  // Races are looked for between the two, in all memory that the launch writes and its threads share (threads.cc).
  void BeginLaunch();
  void EndLaunch();
  // FailedPrecondition when the touch of the element races with an earlier one.
  absl::Status NoteTouch(const Access& access, const Memory& memory, int64_t offset, bool writes);

  // Asynchronous copies of the thread that runs (async_copies.cc).
  absl::Status BeginCopy(const Instr& copy, const Slot* frame);
  absl::Status WaitForGroups(int64_t under_way);
  // Random copies land, where that is asked for.
  void LandSome();
  void Land(CopyInFlight& copy);
  // FailedPrecondition when the touch comes before a copy has landed.
  absl::Status CheckLanded(const Access& access, const Memory& memory, int64_t offset, bool writes) const;
  // FailedPrecondition when a copy is left that its thread has not waited for.
  absl::Status CheckAllLanded(const ThreadCopies& copies) const;
  std::string StatementText(const Access& access) const;

  // The threads of the fork, and of forks inside it, to their ends (threads.cc).
  absl::Status RunThreads(const Instr& fork, Slot* frame);
  absl::Status Spawn(std::vector<std::unique_ptr<Thread>>& threads, Thread* parent, const Instr& fork,
                     const Slot* frame);
  absl::Status Resume(Thread& thread, Stop& stop);
  absl::Status MeetAtBarrier(const std::vector<std::unique_ptr<Thread>>& threads) const;
  // How the iterations differ in which the two threads have come to where they meet; "" when they do not.
  static std::string OtherIteration(const BarrierCode& meeting, const Thread& thread, const Thread& first);
  void SwapBuffers(Thread& thread);

  // What the threads of a warp do together (collectives.cc). Every thread has stopped: true when some have gone on.
  absl::StatusOr<bool> RunCollectives(const std::vector<std::unique_ptr<Thread>>& threads);
  using Warp = std::vector<Thread*>;  // by lane
  absl::Status CheckAllThere(const CollectiveCode& collective, const Warp& warp, const Thread& first) const;
  absl::Status RunCollective(const CollectiveCode& collective, const Warp& warp);
  // Between a lane's registers, or the row of shared memory that it names, and its row of the operand in the machine
  // that runs the meaning.
  enum class Direction : uint8_t { kToMeaning, kFromMeaning };
  absl::Status MoveElements(const CollectiveCode::Operand& operand, size_t lane, const Coordinates& other,
                            Direction direction, Memory& whole);
  // Elements of a row are read for other lanes than the one that names it: `other` is one of them.
  absl::Status NoteRow(const Access& access, const Memory& memory, int64_t offset, const Coordinates& other);
  // InvalidArgument where a row of shared memory begins where none can.
  absl::Status CheckRow(const Access& access, const Memory& memory, int64_t offset) const;

  absl::Status Allocate(int buffer, bool with_flags);
  absl::Status BindSizes(std::span<const NdArray> args);
  absl::Status Sizes(int buffer);
  // The element of an access to one, when it lies inside and is a float32 that was written; nullptr otherwise.
  float* PlainElement(const Access& access, bool store) const;
  // Of such an element; false for any other.
  bool LoadPlain(const Access& access, Slot* dst) const;
  bool StorePlain(const Access& access, Slot value) const;
  absl::Status Load(const Access& access, Slot* dst);
  absl::Status Store(const Access& access, const Slot* value);
  static void WriteElement(const Memory& memory, int64_t offset, Slot value);
  // The element of lane `lane`; -1 and `status` set when it is outside.
  int64_t Offset(const Access& access, const Memory& memory, int lane, absl::Status& status) const;
  absl::Status Unwritten(const Access& access, int lane, int64_t offset);
  std::string IndexText(const Memory& memory, int64_t offset) const;
  absl::Status Produce(int buffer, int64_t offset);
  absl::Status At(const std::string& place, const absl::Status& status) const;

  const PrimFunc& f_;
  const Code& code_;
  const InterpretOptions options_;
  std::vector<Slot> slots_;
  size_t undefined_ = 0;   // so far behind each slot is its flag (undefined.cc); 0: undefined values are not followed
  Slot* frame_ = nullptr;  // those of the code that runs
  std::vector<Memory> memory_;
  Place place_;
  ThreadCopies* copies_ = nullptr;  // of the thread that runs
  CopiesInFlight in_flight_;
  std::map<const TileIntrinsic*, std::unique_ptr<Code>> meanings_;  // of collective operations
  Random random_;
  int64_t steps_ = 0;
};

}  // namespace hone::interp
