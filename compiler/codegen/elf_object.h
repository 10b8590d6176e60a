// A relocatable ELF object taken apart, every offset and size checked: objects come from builders, and a damaged one is
// an error message. 64-bit, little-endian, relocations with addends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

struct ElfObject {
  struct Section {
    std::string name;
    uint32_t type = 0;       // SHT_*
    uint64_t flags = 0;      // SHF_*
    uint64_t align = 1;      // a power of two
    std::string_view bytes;  // of the object; empty for SHT_NOBITS
    uint64_t size = 0;
  };
  struct Symbol {
    std::string name;
    uint8_t binding = 0;   // STB_*
    uint16_t section = 0;  // SHN_UNDEF or an index of sections; special indices are refused unless absolute
    uint64_t value = 0;
  };
  struct Relocation {
    size_t section = 0;   // that is patched
    uint64_t offset = 0;  // in it
    uint32_t type = 0;    // R_*
    size_t symbol = 0;
    int64_t addend = 0;
  };
  uint16_t machine = 0;  // EM_*
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;
};

// The result points into `bytes`. InvalidArgument says what is wrong.
absl::StatusOr<ElfObject> ReadElfObject(std::string_view bytes);

}  // namespace hone
