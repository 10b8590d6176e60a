#include "compiler/codegen/elf_object.h"

#include <elf.h>

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::Status Refuse(const std::string& what) { return absl::InvalidArgumentError(what); }

// A record of the file; nullopt past its end. Copied, since nothing promises alignment.
template <class T>
std::optional<T> Record(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T record;
  std::memcpy(&record, bytes.data() + at, sizeof(T));
  return record;
}

std::optional<std::string_view> Slice(std::string_view bytes, uint64_t at, uint64_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return bytes.substr(at, size);
}

// A zero-terminated name in a table of strings.
std::optional<std::string> Name(std::string_view strings, uint64_t at) {
  if (at >= strings.size()) return std::nullopt;
  const size_t end = strings.find('\0', at);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(strings.substr(at, end - at));
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<ElfObject> Read() {
    const std::optional<Elf64_Ehdr> header = Record<Elf64_Ehdr>(bytes_, 0);
    if (!header.has_value() || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return Refuse("not an ELF file");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_type != ET_REL) {
      return Refuse("not a 64-bit little-endian relocatable file");
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr)) return Refuse("section headers of an unknown size");
    object_.machine = header->e_machine;
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section = Record<Elf64_Shdr>(bytes_, header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section.has_value() || header->e_shoff > bytes_.size())
        return Refuse("section headers past the end of the file");
      headers_.push_back(*section);
    }
    HONE_RETURN_IF_ERROR(ReadSections(header->e_shstrndx));
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type == SHT_SYMTAB) HONE_RETURN_IF_ERROR(ReadSymbols(i));
    }
    for (size_t i = 0; i < headers_.size(); ++i) {
      if (headers_[i].sh_type == SHT_REL) return Refuse("relocations without addends");
      if (headers_[i].sh_type == SHT_RELA) HONE_RETURN_IF_ERROR(ReadRelocations(i));
    }
    return std::move(object_);
  }

 private:
  absl::Status ReadSections(size_t names) {
    if (names >= headers_.size()) return Refuse("no table of section names");
    const std::optional<std::string_view> strings = Slice(bytes_, headers_[names].sh_offset, headers_[names].sh_size);
    if (!strings.has_value()) return Refuse("the table of section names lies past the end of the file");
    for (const Elf64_Shdr& header : headers_) {
      ElfObject::Section section{.type = header.sh_type, .flags = header.sh_flags, .size = header.sh_size};
      const std::optional<std::string> name = Name(*strings, header.sh_name);
      if (!name.has_value()) return Refuse("a section name lies outside its table");
      section.name = *name;
      section.align = header.sh_addralign == 0 ? 1 : header.sh_addralign;
      if ((section.align & (section.align - 1)) != 0) {
        return Refuse(absl::StrCat("section ", section.name, " has alignment ", section.align, ", not a power of two"));
      }
      if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL) {
        const std::optional<std::string_view> contents = Slice(bytes_, header.sh_offset, header.sh_size);
        if (!contents.has_value())
          return Refuse(absl::StrCat("section ", section.name, " lies past the end of the file"));
        section.bytes = *contents;
      }
      object_.sections.push_back(std::move(section));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSymbols(size_t table) {
    if (symbols_at_.has_value()) return Refuse("two tables of symbols");
    symbols_at_ = table;
    const Elf64_Shdr& header = headers_[table];
    if (header.sh_link >= object_.sections.size()) return Refuse("a table of symbols without names");
    const std::string_view strings = object_.sections[header.sh_link].bytes, records = object_.sections[table].bytes;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= records.size(); at += sizeof(Elf64_Sym)) {
      const Elf64_Sym record = *Record<Elf64_Sym>(records, at);
      const std::optional<std::string> name = Name(strings, record.st_name);
      if (!name.has_value()) return Refuse("the name of a symbol lies outside its table");
      const bool special = record.st_shndx >= SHN_LORESERVE;
      if (special ? record.st_shndx != SHN_ABS : record.st_shndx >= object_.sections.size()) {
        return Refuse(absl::StrCat("symbol ", *name, " lies in no section"));
      }
      object_.symbols.push_back(
          {*name, static_cast<uint8_t>(ELF64_ST_BIND(record.st_info)), record.st_shndx, record.st_value});
    }
    return absl::OkStatus();
  }

  absl::Status ReadRelocations(size_t table) {
    const Elf64_Shdr& header = headers_[table];
    if (header.sh_info >= object_.sections.size()) return Refuse("relocations of a section that is not there");
    if (!symbols_at_.has_value() || header.sh_link != *symbols_at_) return Refuse("relocations without symbols");
    const std::string_view records = object_.sections[table].bytes;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= records.size(); at += sizeof(Elf64_Rela)) {
      const Elf64_Rela record = *Record<Elf64_Rela>(records, at);
      const uint64_t symbol = ELF64_R_SYM(record.r_info);
      if (symbol >= object_.symbols.size()) return Refuse("a relocation names a symbol that is not there");
      object_.relocations.push_back({header.sh_info, record.r_offset,
                                     static_cast<uint32_t>(ELF64_R_TYPE(record.r_info)), static_cast<size_t>(symbol),
                                     record.r_addend});
    }
    return absl::OkStatus();
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> headers_;
  std::optional<size_t> symbols_at_;
  ElfObject object_;
};

}  // namespace

absl::StatusOr<ElfObject> ReadElfObject(std::string_view bytes) { return Reader(bytes).Read(); }

}  // namespace hone
