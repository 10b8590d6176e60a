// The function of a library behind one that a program defines in its place.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

// Ends the program, naming the symbol, when no library has it.
template <class Function>
Function* Library(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "tests/sanitizers: no library has %s\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}
