#include "compiler/codegen/link_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/elf_object.h"
#include "compiler/codegen/features_section.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/image/image.h"

namespace hone {
namespace {

constexpr uint64_t kMostAlign = 4096;  // the payload starts on a page

// Where a section of an object came to lie.
struct Placement {
  bool in_code = false;
  uint64_t at = 0;  // from the start of the code, or of the data
};

struct Input {
  ElfObject object;
  std::map<size_t, Placement> sections;  // by index
  // Of RISC-V, by the address in the image of an instruction that takes the upper bits of a distance: that distance,
  // whose lower bits other instructions take.
  std::map<uint64_t, int64_t> distances;
};

// What a relocation says, as addresses in the image.
struct Patch {
  uint32_t type;
  uint64_t s, p;  // of what is referred to, with the addend; of what is patched
  char* at;
};

std::optional<ImageArch> ArchOf(uint16_t machine) {
  for (const ImageArch arch : {ImageArch::kX86_64, ImageArch::kAArch64, ImageArch::kRiscV64}) {
    if (static_cast<uint32_t>(arch) == machine) return arch;
  }
  return std::nullopt;
}

// Bytes from the place that a relocation patches.
uint64_t BytesPatched(ImageArch arch, uint32_t type) {
  const bool wide =
      arch == ImageArch::kX86_64 ? type == R_X86_64_PC64 : arch == ImageArch::kRiscV64 && type == R_RISCV_CALL_PLT;
  return wide ? 8 : 4;
}

class Linker {
 public:
  absl::Status Add(const std::string& bytes, int number) {
    where_ = absl::StrCat("object ", number);
    absl::StatusOr<ElfObject> object = ReadElfObject(bytes);
    if (!object.ok()) return Annotate(object.status(), where_);
    const std::optional<ImageArch> arch = ArchOf(object->machine);
    if (!arch.has_value()) {
      return Refuse(absl::StrCat("machine ", object->machine, " is neither x86-64 nor AArch64 nor RISC-V"));
    }
    if (!inputs_.empty() && *arch != parts_.arch)
      return Refuse("made for another architecture than the objects before it");
    parts_.arch = *arch;
    inputs_.push_back({.object = *std::move(object)});
    return PlaceSections(inputs_.back());
  }

  absl::StatusOr<std::string> Finish() {
    data_at_ = DataOffset(parts_.arch, parts_.code.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      where_ = absl::StrCat("object ", i);
      HONE_RETURN_IF_ERROR(Export(inputs_[i]));
      HONE_RETURN_IF_ERROR(ApplyAll(inputs_[i]));
    }
    parts_.features = absl::StrJoin(features_, ",");
    return WriteImage(parts_);
  }

 private:
  absl::Status Refuse(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(where_, ": ", what));
  }

  absl::Status PlaceSections(Input& input) {
    for (size_t i = 0; i < input.object.sections.size(); ++i) {
      const ElfObject::Section& section = input.object.sections[i];
      if ((section.flags & SHF_ALLOC) == 0 || section.size == 0) continue;
      if (section.name == kFeaturesSection) {
        const std::vector<std::string> names = absl::StrSplit(std::string(section.bytes), ',', absl::SkipEmpty());
        features_.insert(names.begin(), names.end());
        continue;
      }
      if (section.name == ".eh_frame") continue;  // kernels never unwind
      if ((section.flags & SHF_WRITE) != 0) return Refuse(absl::StrCat("section ", section.name, " is writable data"));
      if (section.type == SHT_NOBITS)
        return Refuse(absl::StrCat("section ", section.name, " has no bytes in the file"));
      if (section.align > kMostAlign) {
        return Refuse(
            absl::StrCat("section ", section.name, " wants alignment ", section.align, ", above ", kMostAlign));
      }
      const bool code = (section.flags & SHF_EXECINSTR) != 0;
      std::string& out = code ? parts_.code : parts_.data;
      const uint64_t align = std::max<uint64_t>(section.align, code ? 64 : 1);
      out.resize((out.size() + align - 1) / align * align);
      input.sections[i] = {code, out.size()};
      out.append(section.bytes);
    }
    return absl::OkStatus();
  }

  // From the start of the code.
  uint64_t AddressOf(const Placement& place) const { return place.in_code ? place.at : data_at_ + place.at; }

  absl::Status Export(const Input& input) {
    for (const ElfObject::Symbol& symbol : input.object.symbols) {
      if (symbol.binding == STB_LOCAL) continue;
      if (symbol.section == SHN_UNDEF) return Refuse(absl::StrCat("symbol ", symbol.name, " is undefined"));
      const auto place = input.sections.find(symbol.section);
      if (place == input.sections.end() || !place->second.in_code) continue;
      if (symbol.value >= input.object.sections[symbol.section].size) {
        return Refuse(absl::StrCat("symbol ", symbol.name, " lies past the end of its section"));
      }
      if (!exported_.insert(symbol.name).second)
        return Refuse(absl::StrCat("symbol ", symbol.name, " is defined twice"));
      parts_.symbols.push_back({symbol.name, place->second.at + symbol.value});
    }
    return absl::OkStatus();
  }

  absl::Status ApplyAll(Input& input) {
    std::vector<Patch> patches;
    for (const ElfObject::Relocation& relocation : input.object.relocations) {
      if (!input.sections.contains(relocation.section)) continue;  // of a section that is not loaded
      HONE_ASSIGN_OR_RETURN(const Patch patch, Resolve(input, relocation));
      if (parts_.arch == ImageArch::kRiscV64 && patch.type == R_RISCV_PCREL_HI20)
        input.distances[patch.p] = static_cast<int64_t>(patch.s - patch.p);
      patches.push_back(patch);
    }
    for (size_t i = 0; i < patches.size(); ++i) {
      const Patch& patch = patches[i];
      if (parts_.arch == ImageArch::kX86_64) {
        HONE_RETURN_IF_ERROR(ApplyX86(patch));
      } else if (parts_.arch == ImageArch::kAArch64) {
        HONE_RETURN_IF_ERROR(ApplyAArch64(patch));
      } else if (i + 1 < patches.size() && IsDifference(patch, patches[i + 1])) {
        Add(patch.at, static_cast<uint32_t>(patch.s - patches[++i].s));
      } else {
        HONE_RETURN_IF_ERROR(ApplyRiscV(input, patch));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Patch> Resolve(const Input& input, const ElfObject::Relocation& relocation) {
    const auto patched = input.sections.find(relocation.section);
    const ElfObject::Symbol& symbol = input.object.symbols[relocation.symbol];
    if (symbol.section == SHN_UNDEF) return Refuse(absl::StrCat("symbol ", symbol.name, " is undefined"));
    const auto target = input.sections.find(symbol.section);
    if (target == input.sections.end())
      return Refuse(absl::StrCat("symbol ", symbol.name, " lies in a section that is not loaded"));
    const uint64_t bytes = BytesPatched(parts_.arch, relocation.type);
    const uint64_t size = input.object.sections[relocation.section].size;
    if (relocation.offset > size || size - relocation.offset < bytes)
      return Refuse("a relocation lies past the end of its section");
    std::string& out = patched->second.in_code ? parts_.code : parts_.data;
    char* at = &out[patched->second.at + relocation.offset];
    const uint64_t p = AddressOf(patched->second) + relocation.offset;
    const uint64_t s = AddressOf(target->second) + symbol.value + static_cast<uint64_t>(relocation.addend);
    return Patch{relocation.type, s, p, at};
  }

  absl::Status ApplyX86(const Patch& patch) const {
    const uint64_t distance = patch.s - patch.p;
    if (patch.type == R_X86_64_PC64) {
      std::memcpy(patch.at, &distance, 8);
      return absl::OkStatus();
    }
    if (patch.type != R_X86_64_PC32 && patch.type != R_X86_64_PLT32) return NotRelative(patch.type);
    const int64_t signed_distance = static_cast<int64_t>(distance);
    if (signed_distance != static_cast<int32_t>(signed_distance))
      return Refuse("code and data are more than 2 GiB apart");
    const int32_t word = static_cast<int32_t>(signed_distance);
    std::memcpy(patch.at, &word, 4);
    return absl::OkStatus();
  }

  // Arm IHI 0056 (ELF for the Arm 64-bit architecture), tables of relocations. The image starts on a page, so pages of
  // addresses in it are pages in memory.
  absl::Status ApplyAArch64(const Patch& patch) const {
    const auto& [type, s, p, at] = patch;
    uint32_t word;
    std::memcpy(&word, at, 4);
    const int64_t distance = static_cast<int64_t>(s - p);
    const auto low12 = [&, s = s](int shift) { word |= static_cast<uint32_t>((s & 0xFFF) >> shift) << 10; };
    switch (type) {
      case R_AARCH64_PREL32: word = static_cast<uint32_t>(distance); break;
      case R_AARCH64_CALL26:
      case R_AARCH64_JUMP26: word |= static_cast<uint32_t>(distance >> 2) & 0x3FFFFFF; break;
      case R_AARCH64_ADR_PREL_PG_HI21: {
        const int64_t pages = static_cast<int64_t>(s >> 12) - static_cast<int64_t>(p >> 12);
        word |= static_cast<uint32_t>(pages & 3) << 29 | static_cast<uint32_t>(pages >> 2 & 0x7FFFF) << 5;
        break;
      }
      case R_AARCH64_ADD_ABS_LO12_NC:
      case R_AARCH64_LDST8_ABS_LO12_NC: low12(0); break;
      case R_AARCH64_LDST16_ABS_LO12_NC: low12(1); break;
      case R_AARCH64_LDST32_ABS_LO12_NC: low12(2); break;
      case R_AARCH64_LDST64_ABS_LO12_NC: low12(3); break;
      case R_AARCH64_LDST128_ABS_LO12_NC: low12(4); break;
      default: return NotRelative(type);
    }
    std::memcpy(at, &word, 4);
    return absl::OkStatus();
  }

  // RISC-V ELF psABI, table of relocations. A distance is the upper 20 bits that one instruction adds to its own
  // address, rounded, and 12 lower bits with a sign.
  absl::Status ApplyRiscV(const Input& input, const Patch& patch) const {
    int64_t distance = static_cast<int64_t>(patch.s - patch.p);
    const bool low = patch.type == R_RISCV_PCREL_LO12_I || patch.type == R_RISCV_PCREL_LO12_S;
    if (low) {  // what is referred to is the instruction with the upper bits
      const auto upper = input.distances.find(patch.s);
      if (upper == input.distances.end()) return Refuse("lower bits of a distance have no upper ones");
      distance = upper->second;
    }
    if (distance + 0x800 != static_cast<int32_t>(distance + 0x800))
      return Refuse("code and data are more than 2 GiB apart");
    const auto bits = static_cast<uint32_t>(distance);
    const uint32_t high = (bits + 0x800) & ~0xFFFu;
    switch (patch.type) {
      case R_RISCV_32_PCREL: std::memcpy(patch.at, &bits, 4); break;
      case R_RISCV_PCREL_HI20: Add(patch.at, high); break;
      case R_RISCV_PCREL_LO12_I: Add(patch.at, bits << 20); break;
      case R_RISCV_PCREL_LO12_S: Add(patch.at, (bits >> 5 & 0x7F) << 25 | (bits & 0x1F) << 7); break;
      case R_RISCV_CALL_PLT:
        Add(patch.at, high);
        Add(patch.at + 4, bits << 20);
        break;
      default: return NotRelative(patch.type);
    }
    return absl::OkStatus();
  }

  // An entry of a table of jumps: the distance of two symbols, added and subtracted by one relocation each.
  static bool IsDifference(const Patch& a, const Patch& b) {
    return a.type == R_RISCV_ADD32 && b.type == R_RISCV_SUB32 && a.at == b.at;
  }

  // To the number there, whose bits that are not the patch's stay: those of the patch are 0.
  static void Add(char* at, uint32_t number) {
    uint32_t there;
    std::memcpy(&there, at, sizeof(there));
    there += number;
    std::memcpy(at, &there, sizeof(there));
  }

  absl::Status NotRelative(uint32_t type) const {
    return Refuse(absl::StrCat("relocation type ", type, " is not relative to the program counter"));
  }

  std::string where_;
  std::vector<Input> inputs_;
  ImageParts parts_;
  uint64_t data_at_ = 0;
  std::set<std::string> features_, exported_;
};

}  // namespace

absl::StatusOr<std::string> LinkImage(std::span<const std::string> objects) {
  if (objects.empty()) return absl::InvalidArgumentError("an image needs at least one object");
  Linker linker;
  for (size_t i = 0; i < objects.size(); ++i) HONE_RETURN_IF_ERROR(linker.Add(objects[i], static_cast<int>(i)));
  return linker.Finish();
}

}  // namespace hone
