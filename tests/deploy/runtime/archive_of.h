// An archive of members that are in memory.
#pragma once

#include <string>
#include <vector>

#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/hash.h"

namespace hone {

inline std::string ArchiveOf(const std::vector<ArchiveMember>& members) {
  std::string body;
  std::vector<ArchivePlace> places;
  const uint64_t head_bytes = ArchiveHeadBytes(members.size());
  for (const ArchiveMember& member : members) {
    const uint64_t offset = NextArchivePage(head_bytes + body.size());
    body.resize(offset - head_bytes);
    body += member.bytes;
    places.push_back({member.name, offset, member.bytes.size(), Hash64(member.bytes)});
  }
  return ArchiveHead(places) + body;
}

}  // namespace hone
