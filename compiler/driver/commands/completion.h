// What a shell offers while a command line of `hone` is being typed; deploy/completion asks for it by
// `hone __complete WORD...`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hone {

// What may stand in place of the last of `words` (the program's name left out; the last word may be empty): commands,
// options, or the values of the option in front of it. Empty where a file or anything at all is meant.
std::vector<std::string> Completions(CLI::App& app, const std::vector<std::string>& words);

}  // namespace hone
