#include "compiler/codegen/cuda/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr uint16_t kCudaMachine = 190;  // EM_CUDA

// What stands in .nv.info, an attribute after the other: how its value is kept, which it is, and the value, or as many
// bytes as it says. NVIDIA does not document them; they have been these since CUDA 8.
constexpr uint8_t kSizedValue = 4, kRegisterCount = 0x2f, kFrameSize = 0x11;

// The lowest 9 bits of an instruction of 16 bytes say what it does, those above how its operands are given. Of sm_70
// and later; as nvdisasm names them.
struct Instruction {
  uint16_t code;
  const char* name;
};
constexpr uint16_t kCodeMask = 0x1ff;
constexpr int64_t kInstructionBytes = 16;
constexpr Instruction kInstructions[] = {
    {0x020, "FMUL"}, {0x021, "FADD"}, {0x023, "FFMA"},   {0x03c, "HMMA"},  {0x037, "IMMA"},    {0x03b, "LDSM"},
    {0x108, "MUFU"}, {0x11d, "BAR"},  {0x181, "LDG"},    {0x183, "LDL"},   {0x184, "LDS"},     {0x186, "STG"},
    {0x187, "STL"},  {0x188, "STS"},  {0x1ae, "LDGSTS"}, {0x1f0, "HGMMA"}, {0x1b4, "UTMALDG"},
};

// On sm_90 and later the first KB of a block's shared memory is the system's, and counted in the section.
constexpr char kReserved[] = ".nv.shared.reserved.0";
constexpr int64_t kReservedBytes = 1024;

absl::Status Damaged(const char* what) { return absl::InvalidArgumentError(absl::StrCat("this is no cubin: ", what)); }

class Reader {
 public:
  static absl::StatusOr<Reader> Open(std::string_view bytes) {
    Reader reader(bytes);
    const std::optional<Elf64_Ehdr> head = reader.At<Elf64_Ehdr>(0);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
      return Damaged("no ELF file of 64 bits");
    if (head->e_machine != kCudaMachine) return Damaged("an ELF file for another machine");
    for (uint16_t i = 0; i < head->e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section = reader.At<Elf64_Shdr>(head->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return Damaged("its sections are cut off");
      reader.sections_.push_back(*section);
    }
    if (head->e_shstrndx >= reader.sections_.size()) return Damaged("its sections have no names");
    reader.names_ = reader.sections_[head->e_shstrndx].sh_offset;
    return reader;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string NameOf(const Elf64_Shdr& section) const { return StringAt(names_ + section.sh_name); }
  const Elf64_Shdr* Find(const std::string& name) const {
    const auto found = std::ranges::find_if(sections_, [&](const Elf64_Shdr& s) { return NameOf(s) == name; });
    return found == sections_.end() ? nullptr : &*found;
  }
  // Empty where it has none in the file.
  std::string_view Contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size()) return {};
    return bytes_.substr(section.sh_offset, section.sh_size);
  }
  std::string SymbolName(uint32_t index) const {
    const Elf64_Shdr* symbols = Find(".symtab");
    const Elf64_Shdr* strings = Find(".strtab");
    if (symbols == nullptr || strings == nullptr) return "";
    const std::optional<Elf64_Sym> symbol = At<Elf64_Sym>(symbols->sh_offset + index * sizeof(Elf64_Sym));
    return symbol ? StringAt(strings->sh_offset + symbol->st_name) : "";
  }

 private:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> At(uint64_t offset) const {
    T value;
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string StringAt(uint64_t offset) const {
    if (offset >= bytes_.size()) return "";
    return std::string(bytes_.substr(offset, bytes_.substr(offset).find('\0')));
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  uint64_t names_ = 0;
};

void ReadInfo(const Reader& reader, std::string_view info, std::map<std::string, CudaKernel>& kernels) {
  while (info.size() >= 4) {
    const uint8_t format = static_cast<uint8_t>(info[0]), attribute = static_cast<uint8_t>(info[1]);
    uint16_t size = 0;
    std::memcpy(&size, info.data() + 2, sizeof(size));
    info.remove_prefix(4);
    if (format != kSizedValue) continue;
    if (info.size() < size) return;
    uint32_t value[2] = {};
    std::memcpy(value, info.data(), std::min<size_t>(size, sizeof(value)));
    info.remove_prefix(size);
    const auto kernel = kernels.find(reader.SymbolName(value[0]));
    if (kernel == kernels.end()) continue;
    if (attribute == kRegisterCount) kernel->second.registers = value[1];
    if (attribute == kFrameSize) kernel->second.stack_bytes = value[1];
  }
}

void CountInstructions(std::string_view text, CudaKernel& kernel) {
  for (; text.size() >= kInstructionBytes; text.remove_prefix(kInstructionBytes)) {
    uint16_t code = 0;
    std::memcpy(&code, text.data(), sizeof(code));
    const auto* found = std::ranges::find(kInstructions, code & kCodeMask, &Instruction::code);
    ++kernel.instructions[found == std::end(kInstructions) ? "other" : found->name];
  }
}

// "    .     0 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads", in the lines of each kernel.
void ReadSpills(const std::string& log, std::map<std::string, CudaKernel>& kernels) {
  CudaKernel* kernel = nullptr;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(log, '\n'))) {
    const std::vector<std::string> quoted = absl::StrSplit(line, '\'');
    if (line.find("Compiling entry function") != std::string::npos && quoted.size() > 1) {
      const auto found = kernels.find(quoted[1]);
      kernel = found == kernels.end() ? nullptr : &found->second;
    }
    if (kernel == nullptr || line.find("bytes spill stores") == std::string::npos) continue;
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(line, ','))) {
      const std::vector<std::string> words = absl::StrSplit(part, ' ', absl::SkipEmpty());
      int64_t number = 0;
      if (words.size() < 4 || !absl::SimpleAtoi(words[0], &number)) continue;
      if (words[3] == "stores") kernel->spill_stores = number;
      if (words[3] == "loads") kernel->spill_loads = number;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<CudaKernel>> ReadCubin(const CudaImage& image) {
  HONE_ASSIGN_OR_RETURN(const Reader reader, Reader::Open(image.cubin));
  std::map<std::string, CudaKernel> kernels;
  for (const Elf64_Shdr& section : reader.sections()) {
    const std::string name = reader.NameOf(section);
    if (!absl::StartsWith(name, ".text.")) continue;
    CudaKernel& kernel = kernels[name.substr(6)];
    kernel.name = name.substr(6);
    CountInstructions(reader.Contents(section), kernel);
  }
  for (const Elf64_Shdr& section : reader.sections()) {
    const std::string name = reader.NameOf(section);
    if (name == ".nv.info") ReadInfo(reader, reader.Contents(section), kernels);
    const auto kernel = absl::StartsWith(name, ".nv.shared.") ? kernels.find(name.substr(11)) : kernels.end();
    if (kernel == kernels.end()) continue;
    const int64_t reserved = reader.Find(kReserved) == nullptr ? 0 : kReservedBytes;
    kernel->second.shared_bytes = std::max<int64_t>(static_cast<int64_t>(section.sh_size) - reserved, 0);
  }
  ReadSpills(image.log, kernels);
  std::vector<CudaKernel> all;
  for (auto& [name, kernel] : kernels) all.push_back(std::move(kernel));
  return all;
}

std::string ToJson(const CudaKernel& kernel) {
  std::string text =
      absl::StrCat("{\"kernel\": \"", kernel.name, "\", \"registers\": ", kernel.registers,
                   ", \"stack\": ", kernel.stack_bytes, ", \"shared\": ", kernel.shared_bytes,
                   ", \"spill_stores\": ", kernel.spill_stores, ", \"spill_loads\": ", kernel.spill_loads);
  for (const auto& [name, count] : kernel.instructions) absl::StrAppend(&text, ", \"", name, "\": ", count);
  return text + "}";
}

}  // namespace hone
