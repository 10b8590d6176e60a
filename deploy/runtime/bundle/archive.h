// The container of a bundle: uncompressed, page-aligned members, so that a mapped file can be used in place.
//
//   ArchiveHeader, members x ArchiveEntry, (zeros to a page) member 0, (zeros to a page) member 1 ...
//
// Numbers are little-endian. A reader ignores members it does not know; what it must understand raises the version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/runtime/error.h"

namespace hone {

inline constexpr char kArchiveMagic[8] = {'H', 'O', 'N', 'E', 'B', 'N', 'D', '\n'};
inline constexpr uint32_t kArchiveVersion = 1;
inline constexpr uint64_t kArchivePageBytes = 4096;
inline constexpr uint32_t kArchiveMaxMembers = 4096;

struct ArchiveHeader {
  char magic[8];
  uint32_t version;
  uint32_t members;
  uint64_t total_bytes;
  uint64_t checksum;  // Hash64 of header (this field as zero) and entries
};
static_assert(sizeof(ArchiveHeader) == 32);

struct ArchiveEntry {
  char name[32];    // zero-terminated
  uint64_t offset;  // from the start of the file, a multiple of kArchivePageBytes
  uint64_t bytes;
  uint64_t checksum;  // Hash64 of the member
  uint64_t reserved;
};
static_assert(sizeof(ArchiveEntry) == 64);

struct ArchiveMember {
  std::string name;  // at most 31 bytes
  std::string_view bytes;
};

// What the head says of a member: whoever writes an archive puts the members at their places, zeros between, and the
// head in front.
struct ArchivePlace {
  std::string name;
  uint64_t offset = 0, bytes = 0, checksum = 0;  // as an ArchiveEntry's
};
uint64_t ArchiveHeadBytes(size_t members);
std::string ArchiveHead(std::span<const ArchivePlace> members);  // in the order of their offsets
uint64_t NextArchivePage(uint64_t offset);                       // where a member may begin, at `offset` or after it

// The members, as views into `file`. Every offset, the header's and all members' checksums and the zeros between
// members are checked: kCorrupt with the place and the reason, kUnsupported for a newer version.
RuntimeResult<std::vector<ArchiveMember>> ReadArchive(std::string_view file);

}  // namespace hone
