// A stand-in for hone-search: speaks its protocol, proposes "candidate 0", "candidate 1", ... of each task, 40 in
// all or as many as the second argument says.
// What it predicts of a candidate is a number of its process alone. It dies of a second task.
// A workload whose name begins with "crash" kills it the first two times it is asked about it. One whose name begins
// with "learn" makes it hand back a cost model, "x" longer than the one it was given last; of a batch it says that the
// draft was right by half and the model wholly. It says that it is locked in, and is not.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "hone/v1/search.pb.h"

namespace {

bool ReadAll(char* data, size_t size) { return std::fread(data, 1, size, stdin) == size; }

}  // namespace

int main(int argc, char** argv) {
  std::fwrite("\4\0\0\0\377\377\377\377", 1, 8, stdout);  // all layers
  std::fflush(stdout);
  std::string model;
  const int most = argc > 2 ? std::atoi(argv[2]) : 40;
  const unsigned number = std::random_device()();
  uint64_t task = 0;
  uint32_t told = 0;                                 // observations
  const std::string mark = argc > 1 ? argv[1] : "";  // a file whose length counts the crashes so far
  for (;;) {
    unsigned char head[4];
    if (!ReadAll(reinterpret_cast<char*>(head), 4)) return 0;
    std::string bytes(head[0] | head[1] << 8 | head[2] << 16 | static_cast<uint32_t>(head[3]) << 24, '\0');
    if (!ReadAll(bytes.data(), bytes.size())) return 1;
    hone::v1::SearchRequest request;
    if (!request.ParseFromString(bytes)) return 1;
    if (task != 0 && task != request.task_id()) std::abort();
    task = request.task_id();
    if (request.workload().name().rfind("crash", 0) == 0 && !mark.empty()) {
      std::FILE* file = std::fopen(mark.c_str(), "a+");
      std::fseek(file, 0, SEEK_END);
      const bool enough = std::ftell(file) >= 2;
      if (!enough) std::fputc('x', file);
      std::fclose(file);
      if (!enough) std::abort();
    }
    hone::v1::SearchReply reply;
    reply.set_request_id(request.request_id());
    reply.set_need_all(request.observations_before() > told);
    told = request.observations_before() + static_cast<uint32_t>(request.observations_size());
    const int known =
        static_cast<int>(request.observations_before()) + request.observations_size() + request.pending_size();
    for (int i = 0; i < request.batch() && known + i < most; ++i) {
      hone::v1::Candidate& candidate = *reply.add_candidates();
      candidate.set_trace(request.workload().name() + " candidate " + std::to_string(known + i));
      candidate.set_source("template");
      candidate.set_predicted_us(number);
    }
    reply.set_exhausted(known >= most);
    if (!request.cost_model().empty()) model = request.cost_model();
    if (request.workload().name().rfind("learn", 0) == 0) {
      model += "x";
      reply.set_cost_model(model);
      reply.set_judged_batches(1);
      reply.set_draft_first(0.5);
      reply.set_model_first(1);
    }
    const std::string answer = reply.SerializeAsString();
    for (int shift = 0; shift < 32; shift += 8) std::putchar(static_cast<int>(answer.size() >> shift & 0xff));
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    std::fflush(stdout);
  }
}
