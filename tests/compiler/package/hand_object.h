// Relocatable ELF objects around machine code written by hand, so that packaging is tested without a code generator.
#pragma once

#include <elf.h>

#include <string>
#include <utility>
#include <vector>

namespace hone {

// One function after another in .text, each a global symbol; `features` goes where a generator states what its code
// needs.
inline std::string HandObject(const std::vector<std::pair<std::string, std::string>>& functions,
                              const std::string& features = "") {
  std::string text, names(1, '\0'), section_names(1, '\0');
  std::vector<Elf64_Sym> symbols(1);
  for (const auto& [name, code] : functions) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = text.size();
    symbol.st_size = code.size();
    symbols.push_back(symbol);
    names += name + '\0';
    text += code;
    text.resize((text.size() + 15) / 16 * 16, '\xCC');
  }
  struct Section {
    const char* name;
    std::string bytes;
    Elf64_Word type, link, info;
    Elf64_Xword flags, entry;
  };
  const std::string symbol_bytes(reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(Elf64_Sym));
  std::vector<Section> sections = {{"", "", SHT_NULL, 0, 0, 0, 0},
                                   {".text", text, SHT_PROGBITS, 0, 0, SHF_ALLOC | SHF_EXECINSTR, 0},
                                   {".symtab", symbol_bytes, SHT_SYMTAB, 3, 1, 0, sizeof(Elf64_Sym)},
                                   {".strtab", names, SHT_STRTAB, 0, 0, 0, 0},
                                   {".shstrtab", "", SHT_STRTAB, 0, 0, 0, 0}};
  if (!features.empty()) sections.push_back({".hone.features", features, SHT_PROGBITS, 0, 0, SHF_ALLOC, 0});
  std::vector<Elf64_Shdr> headers;
  for (const Section& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(section_names.size());
    header.sh_type = section.type;
    header.sh_flags = section.flags;
    header.sh_link = section.link;
    header.sh_info = section.info;
    header.sh_entsize = section.entry;
    header.sh_addralign = section.type == SHT_NULL ? 0 : 16;
    headers.push_back(header);
    section_names += std::string(section.name) + '\0';
  }
  sections[4].bytes = section_names;
  std::string file(sizeof(Elf64_Ehdr), '\0');
  for (size_t i = 1; i < sections.size(); ++i) {
    file.resize((file.size() + 15) / 16 * 16);
    headers[i].sh_offset = file.size();
    headers[i].sh_size = sections[i].bytes.size();
    file += sections[i].bytes;
  }
  file.resize((file.size() + 15) / 16 * 16);
  Elf64_Ehdr head{};
  head.e_ident[EI_MAG0] = ELFMAG0;
  head.e_ident[EI_MAG1] = ELFMAG1;
  head.e_ident[EI_MAG2] = ELFMAG2;
  head.e_ident[EI_MAG3] = ELFMAG3;
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_ident[EI_VERSION] = EV_CURRENT;
  head.e_type = ET_REL;
  head.e_machine = EM_X86_64;
  head.e_version = EV_CURRENT;
  head.e_shoff = file.size();
  head.e_ehsize = sizeof(Elf64_Ehdr);
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = static_cast<Elf64_Half>(sections.size());
  head.e_shstrndx = 4;
  file.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
  file.replace(0, sizeof(head), reinterpret_cast<const char*>(&head), sizeof(head));
  return file;
}

}  // namespace hone
