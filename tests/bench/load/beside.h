// What a daemon's figures are held against in the same run: an echo, SQLite alone, the disk alone.
#pragma once

#include <string>

#include "tests/bench/load/load.h"

namespace hone {

void PrintSyncsOfDisk(const std::string& path);
// Rows of the size of what a completion leaves, as many in a transaction as a busy daemon's have, without an index.
void PrintBareCommits(const std::string& path);
// The same load on a server that answers everything at once.
void PrintEcho(const LoadBenchOptions& options);

}  // namespace hone
