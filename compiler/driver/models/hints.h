// Commands that Hone suggests, whole: as they can be pasted, with the flags in use.
#pragma once

#include <string>

#include "compiler/driver/models/model.h"
#include "compiler/driver/service_options.h"

namespace hone {

// A word as a shell reads it back: quoted where it must be.
std::string ShellWord(const std::string& word);

// Main's arguments, for the two below.
void KeepCommandLine(int argc, char** argv);
// The command that runs, and the program alone as it was called ("build/release/bin/hone").
std::string CommandLine();
std::string HoneProgram();

// " --server ADDR --token-file FILE --tls-ca FILE ..." or " --db FILE": what makes another command meet the same daemon
// or database.
std::string ServiceFlags(const ServiceOptions& options);
// " --target T --threads N --numeric L" as far as they were given: what makes it mean the same kernels.
std::string BuildFlags(const BuildSettings& settings);

// The worker a daemon lacks; `threads` 0: all cores of its machine.
std::string WorkerCommand(const ServiceOptions& options, int threads);

}  // namespace hone
