#include "tests/tuner/space/machine_loops.h"

#include <algorithm>
#include <map>

namespace hone::testing {
namespace {

struct Instruction {
  std::string_view name, operands;
  bool has_frame_pointer = false;  // its function has one
};

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}
bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
}

bool IsMultiplyAdd(std::string_view name) {
  return StartsWithAny(name, {"vfmadd", "vfmsub", "vfnmadd", "vfnmsub", "fmla", "fmls", "fmadd", "fmsub", "fnmadd"}) ||
         name == "vpmaddwd" || name.ends_with("mmla");
}
bool IsUnfused(std::string_view name) {
  return StartsWithAny(name, {"vmulp", "vmuls", "vaddp", "vadds", "fmul", "fadd"});
}
bool IsBranch(std::string_view name) {
  return name.starts_with("j") || name == "b" || StartsWithAny(name, {"b.", "cbz", "cbnz", "tbz", "tbnz"});
}

bool IsInFrame(const Instruction& i) {
  if (ContainsAny(i.operands, {"(%rsp", "[sp"})) return true;
  return i.has_frame_pointer && ContainsAny(i.operands, {"(%rbp", "[x29"});
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// An operand in a vector register: %xmm0, %ymm0, %zmm0; q0, d0, v0.4s.
bool HasVector(std::string_view operands) {
  if (operands.find("mm") != operands.npos) return true;
  for (size_t at = 0; at + 1 < operands.size(); ++at) {
    const bool begins = at == 0 || operands[at - 1] == ' ' || operands[at - 1] == '{';
    if (begins && std::string_view("qvds").find(operands[at]) != std::string_view::npos && IsDigit(operands[at + 1]))
      return true;
  }
  return false;
}
bool StoresVector(const Instruction& i) {
  if (i.name.starts_with("st")) return true;
  return i.name.starts_with("vmov") && i.operands.ends_with(")");  // AT&T: what is written comes last
}

MachineLoop Counted(const Instruction* first, const Instruction* last) {
  MachineLoop loop;
  for (const Instruction* i = first; i <= last; ++i) {
    loop.multiply_adds += IsMultiplyAdd(i->name);
    loop.unfused += IsUnfused(i->name);
    loop.branches += IsBranch(i->name);
    if (IsInFrame(*i) && HasVector(i->operands)) ++(StoresVector(*i) ? loop.to_stack : loop.from_stack);
    loop.text.append(i->name).append(" ").append(i->operands).append("\n");
  }
  return loop;
}

}  // namespace

std::vector<MachineLoop> LoopsOfMultiplyAdds(std::string_view assembly) {
  std::vector<Instruction> code;
  std::map<std::string_view, size_t> labels;
  bool has_frame_pointer = false;
  while (!assembly.empty()) {
    const std::string_view line = assembly.substr(0, assembly.find('\n'));
    assembly.remove_prefix(std::min(assembly.size(), line.size() + 1));
    if (line.empty()) continue;
    if (line[0] != '\t') {
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      labels[line.substr(0, colon)] = code.size();
      if (line[0] != '.') has_frame_pointer = false;  // a function begins
    } else if (line.size() > 1 && line[1] != '.') {
      const size_t tab = std::min(line.find('\t', 1), line.size() - 1);
      const std::string_view name = line.substr(1, tab - 1), operands = line.substr(tab + 1);
      has_frame_pointer |= name == "movq" && operands == "%rsp, %rbp";
      has_frame_pointer |= operands.starts_with("x29, sp") && (name == "mov" || name == "add");
      code.push_back({name, operands, has_frame_pointer});
    }
  }

  struct Range {
    size_t begin, end;
  };
  std::map<size_t, size_t> ends;  // of loops by their beginning: the last branch there
  for (size_t at = 0; at < code.size(); ++at) {
    if (!IsBranch(code[at].name)) continue;
    std::string_view to = code[at].operands;  // the last operand
    to = to.substr(to.find_last_of(", ") + 1);
    const auto label = labels.find(to);
    if (label != labels.end() && label->second <= at) ends[label->second] = at;
  }
  std::vector<Range> hot;
  for (const auto& [begin, end] : ends) {
    const bool has =
        std::any_of(code.begin() + static_cast<ptrdiff_t>(begin), code.begin() + static_cast<ptrdiff_t>(end) + 1,
                    [](const Instruction& i) { return IsMultiplyAdd(i.name); });
    if (has) hot.push_back({begin, end});
  }
  std::vector<MachineLoop> loops;
  for (const Range& loop : hot) {
    const bool holds_another = std::ranges::any_of(
        hot, [&](const Range& other) { return &other != &loop && loop.begin <= other.begin && other.end <= loop.end; });
    if (!holds_another) loops.push_back(Counted(&code[loop.begin], &code[loop.end]));
  }
  return loops;
}

}  // namespace hone::testing
