// Objects into an image: what the runtime loads, described in deploy/runtime/image/image.h.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace hone {

// Lays the code and constants of ELF relocatable objects for x86-64, AArch64 or 64-bit RISC-V out in one flat piece and
// resolves every relocation, so that the image runs at any address as it is. Exports each global function of the
// objects by its name. InvalidArgument when an object is not one, has writable data, an undefined symbol or a
// relocation that is not relative to the program counter, or when two objects export one name; the message names it.
absl::StatusOr<std::string> LinkImage(std::span<const std::string> objects);

}  // namespace hone
