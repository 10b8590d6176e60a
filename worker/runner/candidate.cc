#include "worker/runner/candidate.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "worker/runner/cache_flush.h"
#include "worker/runner/one_by_one.h"
#include "worker/runner/poison.h"

namespace hone {
namespace {

constexpr int64_t kPage = 4096;
// A kernel of its own: the stack of every thread of the pool.
int32_t PoisonStacks(const HoneCall* call) {
  int* set = static_cast<int*>(call->scratch);
  const auto poison = [](void* set, int64_t, int64_t, int32_t) -> int32_t {
    PoisonStack(*static_cast<const int*>(set));
    return 0;
  };
  const int32_t result = call->parallel_for(call->pool, poison, set, call->num_threads);
  PoisonStack(*set);
  return result;
}

// A kernel of its own: nothing, on every thread of the pool.
int32_t WakeThreads(const HoneCall* call) {
  return call->parallel_for(
      call->pool, [](void*, int64_t, int64_t, int32_t) -> int32_t { return 0; }, nullptr, call->num_threads);
}

// A kernel of its own: takes areas of memory out of the caches, a part of each on every thread. Of many megabytes one
// thread's flushing takes longer than the calls between.
int32_t FlushAreas(const HoneCall* call) {
  struct Work {
    std::span<const std::span<const char>> areas;
    size_t parts;
  } work{*static_cast<const std::vector<std::span<const char>>*>(call->scratch),
         static_cast<size_t>(call->num_threads)};
  const auto flush = [](void* context, int64_t begin, int64_t end, int32_t) -> int32_t {
    const auto& [areas, parts] = *static_cast<const Work*>(context);
    for (const std::span<const char> area : areas) {
      const size_t from = area.size() * static_cast<size_t>(begin) / parts;
      const size_t to = area.size() * static_cast<size_t>(end) / parts;
      FlushFromCaches(area.subspan(from, to - from));
    }
    return 0;
  };
  return call->parallel_for(call->pool, flush, &work, call->num_threads);
}

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace

RuntimeResult<std::unique_ptr<ServedCandidate>> Candidate::Load(const LoadRequest& request,
                                                                std::span<const int> files) {
  std::unique_ptr<Candidate> candidate(new Candidate);
  Candidate& self = *candidate;
  if (RuntimeError error = self.LoadCode(files)) return error;
  RuntimeResult<std::unique_ptr<ThreadPool>> pool =
      ThreadPool::Create({.threads = request.threads, .pin_workers = request.pin != 0, .pin_caller = request.pin != 0});
  if (!pool.ok()) return pool.error();
  self.pool_ = *std::move(pool);
  if (RuntimeError error = self.MapScratch()) return error;
  if (RuntimeError error = self.MapSets(request, files)) return error;
  if (request.untimed == 0) {
    if (RuntimeError error = self.MakePlainBuffers()) return error;
  }
  return std::unique_ptr<ServedCandidate>(std::move(candidate));
}

RuntimeError Candidate::LoadCode(std::span<const int> files) {
  RuntimeResult<std::string> bytes = ReadMemoryFile(files[0], "the image");
  if (!bytes.ok()) return bytes.error();
  RuntimeResult<Image> image = Image::Load(*bytes);
  if (!image.ok()) return image.error();
  image_ = std::make_unique<Image>(*std::move(image));
  RuntimeResult<KernelSet> set = ReadKernelSet(files[1]);
  if (!set.ok()) return set.error();
  set_ = *std::move(set);
  main_ = image_->Find(set_.symbol);
  if (main_ == nullptr) return {RuntimeCode::kInvalidArgument, "the image has no symbol `" + set_.symbol + "`"};
  for (const PreparedConstant& prepared : set_.prepared) {
    prepare_.push_back(image_->Find(prepared.symbol));
    if (prepare_.back() == nullptr)
      return {RuntimeCode::kInvalidArgument, "the image has no symbol `" + prepared.symbol + "`"};
  }
  return {};
}

RuntimeError Candidate::MapScratch() {
  int64_t scratch = set_.scratch_bytes, thread_scratch = set_.thread_scratch_bytes;
  for (const PreparedConstant& prepared : set_.prepared) {
    scratch = std::max(scratch, prepared.scratch_bytes);
    thread_scratch = std::max(thread_scratch, prepared.thread_scratch_bytes);
    packed_.emplace_back(-1, 0, static_cast<size_t>(prepared.packed.bytes), false);
    if (packed_.back().data() == nullptr) return NoMemory("a packed constant");
  }
  constexpr int64_t kMax = int64_t{1} << 40;
  if (scratch > kMax || thread_scratch > kMax) return NoMemory("scratch");
  scratch_ = FencedMemory(-1, 0, static_cast<size_t>(scratch), false);
  // Areas of threads lie one after another, as the kernel expects; one page between them takes what runs over an end.
  thread_area_ = (std::max<int64_t>(thread_scratch, 1) + kPage - 1) / kPage * kPage;
  thread_scratch_ = FencedMemory(-1, 0, static_cast<size_t>((thread_area_ + kPage) * pool_->threads()), false);
  if (scratch_.data() == nullptr || thread_scratch_.data() == nullptr) return NoMemory("scratch");
  for (int t = 0; t < pool_->threads(); ++t) {
    if (mprotect(thread_scratch_.data() + t * (thread_area_ + kPage) + thread_area_, kPage, PROT_NONE) != 0) {
      return NoMemory("scratch");
    }
  }
  return {};
}

RuntimeError Candidate::MapSets(const LoadRequest& request, std::span<const int> files) {
  RuntimeResult<std::vector<TensorSet>> mapped = MapTensorSets(set_, request.sets, files[2], files[3]);
  if (!mapped.ok()) return mapped.error();
  for (TensorSet& one : *mapped) {
    Set set{std::move(one), {}};
    set.tensors = set.originals;
    for (size_t i = 0; i < packed_.size(); ++i) {
      set.tensors[set_.prepared[i].param] = packed_[i].LastBytes(static_cast<size_t>(set_.prepared[i].packed.bytes));
    }
    sets_.push_back(std::move(set));
  }
  return {};
}

RuntimeError Candidate::MakePlainBuffers() {
  KernelSet prepared = set_;  // the main kernel alone: its constants are packed by what verifies them
  prepared.prepared.clear();
  for (const PreparedConstant& constant : set_.prepared) prepared.params[constant.param] = constant.packed;
  RuntimeResult<Invocation> invocation = Invocation::Create(*image_, prepared, *pool_);
  if (!invocation.ok()) return invocation.error();
  invocation_ = std::make_unique<Invocation>(*std::move(invocation));
  size_t total = 0;
  for (size_t i = 0; i < set_.params.size(); ++i) {
    if (!IsPrepared(i)) total += AlignUp(static_cast<size_t>(set_.params[i].bytes));
  }
  plain_ = AlignedBuffer(total);
  if (plain_.data() == nullptr) return NoMemory("the tensors");
  plain_tensors_ = sets_[0].tensors;
  char* at = plain_.data();
  for (size_t i = 0; i < set_.params.size(); ++i) {
    if (IsPrepared(i)) continue;
    const size_t bytes = static_cast<size_t>(set_.params[i].bytes);
    std::memcpy(at, plain_tensors_[i], bytes);  // outputs too, so that their pages are there
    plain_tensors_[i] = at;
    at += AlignUp(bytes);
  }
  invocation_->Bind(plain_tensors_);
  written_set_ = 0;
  return {};
}

bool Candidate::IsPrepared(size_t param) const {
  return std::ranges::any_of(
      set_.prepared, [&](const PreparedConstant& prepared) { return prepared.param == static_cast<int>(param); });
}

int32_t Candidate::CallFenced(HoneKernelFn fn, const VerifyRequest& how, std::span<void* const> tensors,
                              int64_t scratch_bytes, int64_t thread_scratch_bytes) {
  int set = how.set;
  CallKernel({.fn = PoisonStacks, .scratch = &set}, *pool_);
  Poison(scratch_.data(), scratch_.size(), set);
  for (int t = 0; t < pool_->threads(); ++t)
    Poison(thread_scratch_.data() + t * (thread_area_ + kPage), static_cast<size_t>(thread_area_), set);
  const int64_t used = (std::max<int64_t>(thread_scratch_bytes, 0) + 63) / 64 * 64;
  char* thread_scratch = thread_scratch_.data() + (thread_area_ - used);
  KernelCall call = {fn, tensors, scratch_.LastBytes(static_cast<size_t>(scratch_bytes)), thread_scratch,
                     thread_area_ + kPage};
  OneByOne one_by_one = {pool_.get(), thread_scratch, thread_area_ + kPage, used, set};
  if (how.iterations == Iterations::kOneByOne) call.parallel_for = {&OneByOne::ParallelFor, &one_by_one};
  return CallKernel(call, *pool_);
}

void Candidate::Verify(const VerifyRequest& request, RunnerReply* reply) {
  if (request.set < 0 || request.set >= static_cast<int>(sets_.size())) {
    reply->outcome = RunnerOutcome::kRefused;
    std::snprintf(reply->message, sizeof(reply->message), "there is no set %d", request.set);
    return;
  }
  if (!Prepare(request, reply)) return;
  const double start = NowUs();
  const Set& set = sets_[static_cast<size_t>(request.set)];
  reply->kernel_result = CallFenced(main_, request, set.tensors, set_.scratch_bytes, set_.thread_scratch_bytes);
  reply->elapsed_us = NowUs() - start;
  if (reply->kernel_result != 0) {
    reply->outcome = RunnerOutcome::kKernelFailed;
    std::snprintf(reply->message, sizeof(reply->message), "the kernel returned %d", reply->kernel_result);
  }
}

void Candidate::Time(const TimeRequest& request, RunnerReply* reply) {
  const auto failed = [&](RunnerOutcome outcome, const char* message) {
    reply->outcome = outcome;
    std::snprintf(reply->message, sizeof(reply->message), "%s", message);
  };
  if (invocation_ == nullptr) return failed(RunnerOutcome::kRefused, "it was loaded for no timing");
  if (request.samples < 0 || request.samples > kRunnerMaxSamples || request.inner < 1 || request.warm_up < 0) {
    return failed(RunnerOutcome::kRefused, "a number of samples or repeats is out of range");
  }
  if (request.set < 0 || request.set >= static_cast<int>(sets_.size()) || request.renewal > Renewal::kUnseen) {
    return failed(RunnerOutcome::kRefused, "there is no such set or renewal");
  }
  // Values that were turned stay as they are for kSame; everything else is about the values of the set.
  const bool turned_stay = request.renewal == Renewal::kSame && written_set_ == request.set;
  const bool are_written = written_set_ == request.set && (written_turn_ == 0 || turned_stay);
  if (!are_written) WriteInputs(request.set, 0);
  if (prepared_set_ != request.set && !Prepare({.set = request.set}, reply)) return;
  const double begin = NowUs();
  int32_t result = 0;
  for (int i = 0; i < request.warm_up; ++i) result |= invocation_->Run();
  rusage before{}, after{};
  for (int s = 0; s < request.samples; ++s) {
    const bool patched = request.copy_outputs != 0 && request.renewal == Renewal::kNone && s == request.samples - 1;
    double us = 0;
    const auto time = [&](int calls) {
      const double start = NowUs();
      for (int i = 0; i < calls; ++i) result |= invocation_->Run();
      us += NowUs() - start;
    };
    getrusage(RUSAGE_SELF, &before);
    if (request.renewal != Renewal::kNone || request.flushed != 0) {
      for (int i = 0; i < request.inner; ++i) {
        if (request.renewal != Renewal::kNone) Renew(request, i);
        if (patched && i == request.inner - 1) PoisonPatches(request.turn);
        Flush(request.flushed);
        CallKernel({.fn = WakeThreads}, *pool_);  // they went to sleep meanwhile
        time(1);
      }
    } else if (patched) {
      time(request.inner - 1);
      PoisonPatches(request.turn);
      time(1);
    } else {
      time(request.inner);
    }
    getrusage(RUSAGE_SELF, &after);
    reply->samples[s] = {us / request.inner, static_cast<uint32_t>(after.ru_nivcsw - before.ru_nivcsw),
                         static_cast<uint32_t>(after.ru_majflt - before.ru_majflt)};
  }
  reply->num_samples = request.samples;
  reply->elapsed_us = NowUs() - begin;
  reply->kernel_result = result;
  if (result != 0) return failed(RunnerOutcome::kKernelFailed, "the kernel did not return 0 every time");
  if (request.copy_outputs != 0) {
    for (size_t i = InputsOf(set_).size(); i < set_.params.size(); ++i) {
      std::memcpy(sets_[static_cast<size_t>(request.set)].originals[i], plain_tensors_[i],
                  static_cast<size_t>(set_.params[i].bytes));
    }
  }
}

void Candidate::WriteInputs(int set, uint64_t turn) {
  for (size_t i = 0; i < InputsOf(set_).size(); ++i) {
    if (IsPrepared(i)) continue;
    CopyTurned(sets_[static_cast<size_t>(set)].originals[i], set_.params[i], turn, plain_tensors_[i]);
  }
  written_set_ = set;
  written_turn_ = turn;
}

bool Candidate::Prepare(const VerifyRequest& how, RunnerReply* reply) {
  prepared_set_ = -1;
  const Set& set = sets_[static_cast<size_t>(how.set)];
  for (size_t i = 0; i < packed_.size(); ++i) {
    const PreparedConstant& prepared = set_.prepared[i];
    Poison(packed_[i].data(), packed_[i].size(), how.set);
    void* const tensors[] = {set.originals[prepared.param], set.tensors[prepared.param]};
    reply->kernel_result = CallFenced(prepare_[i], how, tensors, prepared.scratch_bytes, prepared.thread_scratch_bytes);
    if (reply->kernel_result == 0) continue;
    reply->outcome = RunnerOutcome::kKernelFailed;
    std::snprintf(reply->message, sizeof(reply->message), "prepare kernel %zu returned %d", i, reply->kernel_result);
    return false;
  }
  prepared_set_ = how.set;
  return true;
}

// The same writes in the same order for both kinds, so that the caches hold the same afterwards.
void Candidate::Renew(const TimeRequest& request, int call) {
  const bool unseen = request.renewal == Renewal::kUnseen;
  for (size_t i = InputsOf(set_).size(); i < set_.params.size(); ++i) {
    const auto bytes = static_cast<size_t>(set_.params[i].bytes);
    char* output = static_cast<char*>(plain_tensors_[i]);
    std::memcpy(sets_[static_cast<size_t>(request.set)].originals[i], output, bytes);
    Poison(output, bytes, 0);
    if (!unseen) std::memcpy(output, sets_[static_cast<size_t>(request.set)].originals[i], bytes);
  }
  for (const std::span<char> scratch : invocation_->scratch()) {
    if (unseen) {
      Poison(scratch.data(), scratch.size(), 0);
      continue;
    }
    for (size_t i = 0; i < scratch.size(); i += kTensorAlignment) {
      volatile char* const line = &scratch[i];
      *line = *line;
    }
  }
  WriteInputs(request.set, unseen ? request.turn * static_cast<uint64_t>(call + 1) : written_turn_);
}

void Candidate::Flush(uint64_t params) const {
  std::vector<std::span<const char>> areas;
  for (size_t i = 0; i < set_.params.size() && i < 64; ++i) {
    if ((params >> i & 1) != 0) areas.push_back(invocation_->operand(static_cast<int>(i)));
  }
  if (!areas.empty()) CallKernel({.fn = FlushAreas, .scratch = &areas}, *pool_);
}

void Candidate::PoisonPatches(uint64_t where) {
  for (size_t i = InputsOf(set_).size(); i < set_.params.size(); ++i) {
    const auto bytes = static_cast<size_t>(set_.params[i].bytes);
    if (bytes == 0) continue;
    const size_t at = where % AlignUp(bytes) / kTensorAlignment * kTensorAlignment;
    Poison(static_cast<char*>(plain_tensors_[i]) + at, std::min(kTensorAlignment, bytes - at), 0);
  }
}

ServedCandidate::Place Candidate::Describe(const void* address) const {
  using Hit = FencedMemory::Hit;
  const auto place = [&](const FencedMemory& memory, const char* what, int index) -> Place {
    switch (memory.Where(address)) {
      case Hit::kNone: return {};
      case Hit::kBefore: return {"before ", what, index};
      case Hit::kInside: return {"within ", what, index};
      case Hit::kBehind: return {"past the end of ", what, index};
    }
    return {};
  };
  for (const Set& set : sets_) {
    for (size_t i = 0; i < set.inputs.size(); ++i) {
      if (const Place found = place(set.inputs[i], "input ", static_cast<int>(i)); found.index >= 0) return found;
    }
    for (size_t i = 0; i < set.outputs.size(); ++i) {
      if (const Place found = place(set.outputs[i], "output ", static_cast<int>(i)); found.index >= 0) return found;
    }
  }
  for (size_t i = 0; i < packed_.size(); ++i) {
    if (const Place found = place(packed_[i], "packed constant ", static_cast<int>(i)); found.index >= 0) return found;
  }
  if (const Place found = place(scratch_, "scratch ", 0); found.index >= 0) return found;
  if (thread_scratch_.Where(address) != Hit::kNone) {
    const int64_t at = static_cast<const char*>(address) - thread_scratch_.data();
    return {"past an end of ", "scratch of thread ",
            static_cast<int>(std::max<int64_t>(0, at) / (thread_area_ + kPage))};
  }
  return {};
}

}  // namespace hone
