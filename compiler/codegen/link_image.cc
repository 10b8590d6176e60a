#include "compiler/codegen/link_image.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/features_section.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/image.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

namespace hone {
namespace {

using llvm::object::ELF64LEObjectFile;
using llvm::object::SectionRef;

absl::Status FromLlvm(llvm::Error error, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", llvm::toString(std::move(error))));
}

// Where a section of an object came to lie: an offset from the start of the code. Data lies behind all code.
struct Placement {
  bool in_code = false;
  uint64_t at = 0;                      // from the start of the code, or of the data
};

struct Input {
  std::unique_ptr<ELF64LEObjectFile> file;
  std::map<uint64_t, Placement> sections;           // by index
};

class Linker {
 public:
  absl::Status Add(const std::string& bytes, int number) {
    where_ = absl::StrCat("object ", number);
    llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> parsed =
        llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "object"));
    if (!parsed) return FromLlvm(parsed.takeError(), where_);
    auto* elf = llvm::dyn_cast<ELF64LEObjectFile>(parsed->get());
    const llvm::object::ELFObjectFileBase* header = elf;         // where LLVM lets these be read
    if (elf == nullptr || header->getEType() != llvm::ELF::ET_REL) return Refuse("not a 64-bit little-endian relocatable file");
    const auto arch = header->getEMachine() == llvm::ELF::EM_X86_64    ? ImageArch::kX86_64
                      : header->getEMachine() == llvm::ELF::EM_AARCH64 ? ImageArch::kAArch64
                                                                    : ImageArch{0};
    if (arch == ImageArch{0}) return Refuse(absl::StrCat("machine ", header->getEMachine(), " is neither x86-64 nor AArch64"));
    if (!inputs_.empty() && arch != parts_.arch) return Refuse("made for another architecture than the objects before it");
    parts_.arch = arch;
    parsed->release();
    inputs_.push_back({std::unique_ptr<ELF64LEObjectFile>(elf), {}});
    return PlaceSections(inputs_.back());
  }

  absl::StatusOr<std::string> Finish() {
    data_at_ = DataOffset(parts_.arch, parts_.code.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      where_ = absl::StrCat("object ", i);
      HONE_RETURN_IF_ERROR(Export(inputs_[i]));
      HONE_RETURN_IF_ERROR(Relocate(inputs_[i]));
    }
    parts_.features = absl::StrJoin(features_, ",");
    return WriteImage(parts_);
  }

 private:
  absl::Status Refuse(const std::string& what) const { return absl::InvalidArgumentError(absl::StrCat(where_, ": ", what)); }

  absl::Status PlaceSections(Input& input) {
    for (const SectionRef& section : input.file->sections()) {
      const llvm::object::ELFSectionRef elf(section);
      llvm::Expected<llvm::StringRef> name = section.getName();
      if (!name) return FromLlvm(name.takeError(), where_);
      if ((elf.getFlags() & llvm::ELF::SHF_ALLOC) == 0 || section.getSize() == 0) continue;
      llvm::Expected<llvm::StringRef> contents = section.getContents();
      if (!contents) return FromLlvm(contents.takeError(), where_);
      if (*name == kFeaturesSection) {
        for (const std::string& f : std::vector<std::string>(absl::StrSplit(contents->str(), ',', absl::SkipEmpty()))) {
          features_.insert(f);
        }
        continue;
      }
      if (*name == ".eh_frame") continue;           // kernels never unwind
      if ((elf.getFlags() & llvm::ELF::SHF_WRITE) != 0) return Refuse(absl::StrCat("section ", name->str(), " is writable data"));
      const bool code = (elf.getFlags() & llvm::ELF::SHF_EXECINSTR) != 0;
      std::string& out = code ? parts_.code : parts_.data;
      const uint64_t align = std::max<uint64_t>(section.getAlignment().value(), code ? 64 : 1);
      if (align > 4096) return Refuse(absl::StrCat("section ", name->str(), " wants alignment ", align, ", above a page"));
      out.resize((out.size() + align - 1) / align * align);
      input.sections[section.getIndex()] = {code, out.size()};
      out.append(contents->data(), contents->size());
    }
    return absl::OkStatus();
  }

  // From the start of the code.
  uint64_t AddressOf(const Placement& place) const { return place.in_code ? place.at : data_at_ + place.at; }

  absl::Status Export(const Input& input) {
    for (const llvm::object::ELFSymbolRef symbol : input.file->symbols()) {
      if (symbol.getBinding() == llvm::ELF::STB_LOCAL) continue;
      llvm::Expected<llvm::StringRef> name = symbol.getName();
      if (!name) return FromLlvm(name.takeError(), where_);
      llvm::Expected<uint64_t> address = symbol.getValue();
      if (!address) return FromLlvm(address.takeError(), where_);
      llvm::Expected<llvm::object::section_iterator> section = symbol.getSection();
      if (!section) return FromLlvm(section.takeError(), where_);
      if (*section == input.file->section_end()) return Refuse(absl::StrCat("symbol ", name->str(), " is undefined"));
      const auto place = input.sections.find((*section)->getIndex());
      if (place == input.sections.end() || !place->second.in_code) continue;
      if (!exported_.insert(name->str()).second) return Refuse(absl::StrCat("symbol ", name->str(), " is defined twice"));
      parts_.symbols.push_back({name->str(), place->second.at + *address});
    }
    return absl::OkStatus();
  }

  absl::Status Relocate(const Input& input) {
    for (const SectionRef& section : input.file->sections()) {
      llvm::Expected<llvm::object::section_iterator> target = section.getRelocatedSection();
      if (!target) return FromLlvm(target.takeError(), where_);
      if (*target == input.file->section_end()) continue;
      const auto place = input.sections.find((*target)->getIndex());
      if (place == input.sections.end()) continue;
      for (const llvm::object::ELFRelocationRef relocation : section.relocations()) {
        HONE_RETURN_IF_ERROR(Apply(input, place->second, relocation));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const Input& input, const Placement& place, const llvm::object::ELFRelocationRef& relocation) {
    llvm::Expected<int64_t> addend = relocation.getAddend();
    if (!addend) return FromLlvm(addend.takeError(), where_);
    const llvm::object::symbol_iterator symbol = relocation.getSymbol();
    if (symbol == input.file->symbol_end()) return Refuse("a relocation names no symbol");
    llvm::Expected<llvm::object::section_iterator> section = symbol->getSection();
    llvm::Expected<uint64_t> value = symbol->getValue();
    llvm::Expected<llvm::StringRef> name = symbol->getName();
    if (!section || !value || !name) {
      llvm::consumeError(section.takeError());
      llvm::consumeError(value.takeError());
      llvm::consumeError(name.takeError());
      return Refuse("a relocation names a symbol that cannot be read");
    }
    if (*section == input.file->section_end()) return Refuse(absl::StrCat("symbol ", name->str(), " is undefined"));
    const auto at = input.sections.find((*section)->getIndex());
    if (at == input.sections.end()) return Refuse(absl::StrCat("symbol ", name->str(), " lies in a section that is not loaded"));

    std::string& bytes = place.in_code ? parts_.code : parts_.data;
    const uint64_t offset = place.at + relocation.getOffset();
    const uint64_t p = AddressOf(place) + relocation.getOffset();
    const uint64_t s = AddressOf(at->second) + *value + *addend;
    const uint64_t type = relocation.getType();
    const bool wide = type == llvm::ELF::R_X86_64_PC64 && parts_.arch == ImageArch::kX86_64;
    if (offset + (wide ? 8 : 4) > bytes.size()) return Refuse("a relocation lies past the end of its section");
    if (parts_.arch == ImageArch::kX86_64) return ApplyX86(type, s - p, &bytes[offset]);
    return ApplyAArch64(type, s, p, &bytes[offset]);
  }

  absl::Status ApplyX86(uint64_t type, uint64_t distance, char* at) const {
    if (type == llvm::ELF::R_X86_64_PC64) {
      std::memcpy(at, &distance, 8);
      return absl::OkStatus();
    }
    if (type != llvm::ELF::R_X86_64_PC32 && type != llvm::ELF::R_X86_64_PLT32) return NotRelative(type);
    const int64_t signed_distance = static_cast<int64_t>(distance);
    if (signed_distance != static_cast<int32_t>(signed_distance)) return Refuse("code and data are more than 2 GiB apart");
    const int32_t word = static_cast<int32_t>(signed_distance);
    std::memcpy(at, &word, 4);
    return absl::OkStatus();
  }

  // Arm IHI 0056 (ELF for the Arm 64-bit architecture), tables of relocations. The image starts on a page, so pages of
  // addresses in it are pages in memory.
  absl::Status ApplyAArch64(uint64_t type, uint64_t s, uint64_t p, char* at) const {
    uint32_t word;
    std::memcpy(&word, at, 4);
    const int64_t distance = static_cast<int64_t>(s - p);
    const auto low12 = [&](int shift) { word |= static_cast<uint32_t>((s & 0xFFF) >> shift) << 10; };
    switch (type) {
      case llvm::ELF::R_AARCH64_PREL32: word = static_cast<uint32_t>(distance); break;
      case llvm::ELF::R_AARCH64_CALL26:
      case llvm::ELF::R_AARCH64_JUMP26: word |= static_cast<uint32_t>(distance >> 2) & 0x3FFFFFF; break;
      case llvm::ELF::R_AARCH64_ADR_PREL_PG_HI21: {
        const int64_t pages = static_cast<int64_t>(s >> 12) - static_cast<int64_t>(p >> 12);
        word |= static_cast<uint32_t>(pages & 3) << 29 | static_cast<uint32_t>(pages >> 2 & 0x7FFFF) << 5;
        break;
      }
      case llvm::ELF::R_AARCH64_ADD_ABS_LO12_NC:
      case llvm::ELF::R_AARCH64_LDST8_ABS_LO12_NC: low12(0); break;
      case llvm::ELF::R_AARCH64_LDST16_ABS_LO12_NC: low12(1); break;
      case llvm::ELF::R_AARCH64_LDST32_ABS_LO12_NC: low12(2); break;
      case llvm::ELF::R_AARCH64_LDST64_ABS_LO12_NC: low12(3); break;
      case llvm::ELF::R_AARCH64_LDST128_ABS_LO12_NC: low12(4); break;
      default: return NotRelative(type);
    }
    std::memcpy(at, &word, 4);
    return absl::OkStatus();
  }

  absl::Status NotRelative(uint64_t type) const {
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
