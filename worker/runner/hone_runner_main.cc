// hone-runner SOCKET: executes one candidate for the agent at the other end of an inherited socket.
#include <cstdio>
#include <cstdlib>

#include "worker/runner/candidate.h"
#include "worker/runner/serve.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "hone-runner is started by hone-worker, with the number of a socket\n");
    return 2;
  }
  return hone::ServeRunner(std::atoi(argv[1]), {.load = &hone::Candidate::Load});
}
