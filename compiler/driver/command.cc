#include "compiler/driver/command.h"

namespace hone {

std::string Examples(std::initializer_list<const char*> lines) {
  std::string text = "Examples:";
  for (const char* line : lines) text += std::string("\n  ") + line;
  return text;
}

}  // namespace hone
