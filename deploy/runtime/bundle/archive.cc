#include "deploy/runtime/bundle/archive.h"

#include <algorithm>
#include <cstring>

#include "deploy/runtime/hash.h"

namespace hone {
namespace {

RuntimeError Corrupt(const std::string& what) { return {RuntimeCode::kCorrupt, what}; }

uint64_t HeadChecksum(ArchiveHeader header, std::string_view entries) {
  header.checksum = 0;
  return Hash64(entries, Hash64(&header, sizeof(header)));
}

}  // namespace

uint64_t NextArchivePage(uint64_t offset) {
  return (offset + kArchivePageBytes - 1) / kArchivePageBytes * kArchivePageBytes;
}

uint64_t ArchiveHeadBytes(size_t members) { return sizeof(ArchiveHeader) + members * sizeof(ArchiveEntry); }

std::string ArchiveHead(std::span<const ArchivePlace> members) {
  std::string entries;
  for (const ArchivePlace& member : members) {
    ArchiveEntry entry{};
    member.name.copy(entry.name, sizeof(entry.name) - 1);
    entry.offset = member.offset;
    entry.bytes = member.bytes;
    entry.checksum = member.checksum;
    entries.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  ArchiveHeader header{};
  std::memcpy(header.magic, kArchiveMagic, sizeof(kArchiveMagic));
  header.version = kArchiveVersion;
  header.members = static_cast<uint32_t>(members.size());
  header.total_bytes = members.empty() ? ArchiveHeadBytes(0) : members.back().offset + members.back().bytes;
  header.checksum = HeadChecksum(header, entries);
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + entries;
}

RuntimeResult<std::vector<ArchiveMember>> ReadArchive(std::string_view file) {
  ArchiveHeader header;
  if (file.size() < sizeof(header))
    return Corrupt("has " + std::to_string(file.size()) + " bytes, too few for a bundle");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, kArchiveMagic, sizeof(kArchiveMagic)) != 0) {
    return Corrupt("does not start as a bundle does; `hone compile` makes bundles");
  }
  if (header.version != kArchiveVersion) {
    return RuntimeError(RuntimeCode::kUnsupported, "is a bundle of version " + std::to_string(header.version) +
                                                       ", this runtime reads version " +
                                                       std::to_string(kArchiveVersion));
  }
  if (header.total_bytes != file.size()) {
    return Corrupt("should have " + std::to_string(header.total_bytes) + " bytes and has " +
                   std::to_string(file.size()) + ": it was cut off or something was added");
  }
  const uint64_t entries_bytes = uint64_t{header.members} * sizeof(ArchiveEntry);
  if (header.members > kArchiveMaxMembers || entries_bytes > file.size() - sizeof(header)) {
    return Corrupt("states " + std::to_string(header.members) + " members");
  }
  const std::string_view entries = file.substr(sizeof(header), entries_bytes);
  if (header.checksum != HeadChecksum(header, entries))
    return Corrupt("is damaged: the checksum of its head does not match");
  std::vector<ArchiveMember> members;
  uint64_t covered = sizeof(header) + entries_bytes;  // members follow each other, with zeros between
  for (uint32_t i = 0; i < header.members; ++i) {
    ArchiveEntry entry;
    std::memcpy(&entry, entries.data() + i * sizeof(entry), sizeof(entry));
    const char* name_end = std::find(entry.name, entry.name + sizeof(entry.name), '\0');
    if (name_end == entry.name + sizeof(entry.name))
      return Corrupt("member " + std::to_string(i) + " has no proper name");
    ArchiveMember member{std::string(entry.name, static_cast<size_t>(name_end - entry.name)), {}};
    if (entry.offset % kArchivePageBytes != 0 || entry.offset > file.size() ||
        entry.bytes > file.size() - entry.offset) {
      return Corrupt("member `" + member.name + "` lies outside the file");
    }
    member.bytes = file.substr(entry.offset, entry.bytes);
    if (Hash64(member.bytes) != entry.checksum) {
      return Corrupt("is damaged: the checksum of its member `" + member.name + "` does not match");
    }
    if (entry.offset < covered) return Corrupt("member `" + member.name + "` overlaps what comes before it");
    if (file.substr(covered, entry.offset - covered).find_first_not_of('\0') != std::string_view::npos) {
      return Corrupt("is damaged: there is something in front of its member `" + member.name + "`");
    }
    covered = entry.offset + entry.bytes;
    members.push_back(std::move(member));
  }
  if (file.substr(covered).find_first_not_of('\0') != std::string_view::npos) {
    return Corrupt("is damaged: there is something after its last member");
  }
  return members;
}

}  // namespace hone
