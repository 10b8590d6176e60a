#include "compiler/codegen/link_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/elf_object.h"
#include "compiler/codegen/features_section.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/image.h"

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
};

class Linker {
 public:
  absl::Status Add(const std::string& bytes, int number) {
    where_ = absl::StrCat("object ", number);
    absl::StatusOr<ElfObject> object = ReadElfObject(bytes);
    if (!object.ok()) return Annotate(object.status(), where_);
    if (object->machine != EM_X86_64 && object->machine != EM_AARCH64) {
      return Refuse(absl::StrCat("machine ", object->machine, " is neither x86-64 nor AArch64"));
    }
    const ImageArch arch = object->machine == EM_X86_64 ? ImageArch::kX86_64 : ImageArch::kAArch64;
    if (!inputs_.empty() && arch != parts_.arch)
      return Refuse("made for another architecture than the objects before it");
    parts_.arch = arch;
    inputs_.push_back({*std::move(object), {}});
    return PlaceSections(inputs_.back());
  }

  absl::StatusOr<std::string> Finish() {
    data_at_ = DataOffset(parts_.arch, parts_.code.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      where_ = absl::StrCat("object ", i);
      HONE_RETURN_IF_ERROR(Export(inputs_[i]));
      for (const ElfObject::Relocation& relocation : inputs_[i].object.relocations) {
        HONE_RETURN_IF_ERROR(Apply(inputs_[i], relocation));
      }
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

  absl::Status Apply(const Input& input, const ElfObject::Relocation& relocation) {
    const auto patched = input.sections.find(relocation.section);
    if (patched == input.sections.end()) return absl::OkStatus();  // of a section that is not loaded
    const ElfObject::Symbol& symbol = input.object.symbols[relocation.symbol];
    if (symbol.section == SHN_UNDEF) return Refuse(absl::StrCat("symbol ", symbol.name, " is undefined"));
    const auto target = input.sections.find(symbol.section);
    if (target == input.sections.end())
      return Refuse(absl::StrCat("symbol ", symbol.name, " lies in a section that is not loaded"));
    const bool wide = parts_.arch == ImageArch::kX86_64 && relocation.type == R_X86_64_PC64;
    const uint64_t bytes = wide ? 8 : 4, size = input.object.sections[relocation.section].size;
    if (relocation.offset > size || size - relocation.offset < bytes)
      return Refuse("a relocation lies past the end of its section");
    std::string& out = patched->second.in_code ? parts_.code : parts_.data;
    char* at = &out[patched->second.at + relocation.offset];
    const uint64_t p = AddressOf(patched->second) + relocation.offset;
    const uint64_t s = AddressOf(target->second) + symbol.value + static_cast<uint64_t>(relocation.addend);
    if (parts_.arch == ImageArch::kX86_64) return ApplyX86(relocation.type, s - p, at);
    return ApplyAArch64(relocation.type, s, p, at);
  }

  absl::Status ApplyX86(uint32_t type, uint64_t distance, char* at) const {
    if (type == R_X86_64_PC64) {
      std::memcpy(at, &distance, 8);
      return absl::OkStatus();
    }
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) return NotRelative(type);
    const int64_t signed_distance = static_cast<int64_t>(distance);
    if (signed_distance != static_cast<int32_t>(signed_distance))
      return Refuse("code and data are more than 2 GiB apart");
    const int32_t word = static_cast<int32_t>(signed_distance);
    std::memcpy(at, &word, 4);
    return absl::OkStatus();
  }

  // Arm IHI 0056 (ELF for the Arm 64-bit architecture), tables of relocations. The image starts on a page, so pages of
  // addresses in it are pages in memory.
  absl::Status ApplyAArch64(uint32_t type, uint64_t s, uint64_t p, char* at) const {
    uint32_t word;
    std::memcpy(&word, at, 4);
    const int64_t distance = static_cast<int64_t>(s - p);
    const auto low12 = [&](int shift) { word |= static_cast<uint32_t>((s & 0xFFF) >> shift) << 10; };
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
