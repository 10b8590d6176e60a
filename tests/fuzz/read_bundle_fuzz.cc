// The loader of bundles: an archive as its writer makes it, of members that are any bytes, loads or is refused with one
// message; and so does an archive whose head is any bytes. The first byte says which.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/support/check.h"
#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/hash.h"
#include "tests/fuzz/memory_limit.h"

namespace {

// Members are taken off the front of `rest`, each behind two bytes that say how long it is.
std::string ArchiveOf(std::string_view rest) {
  std::vector<hone::ArchivePlace> places;
  std::vector<std::string_view> members;
  for (const char* name : {"graph.json", "params", "image", "manifest.json"}) {
    if (rest.size() < 2) break;
    const size_t bytes = static_cast<uint8_t>(rest[0]) | static_cast<size_t>(static_cast<uint8_t>(rest[1])) << 8;
    rest.remove_prefix(2);
    members.push_back(rest.substr(0, bytes));
    rest.remove_prefix(members.back().size());
    places.push_back({name, 0, members.back().size(), hone::Hash64(members.back())});
  }
  uint64_t end = hone::ArchiveHeadBytes(places.size());
  for (hone::ArchivePlace& place : places) {
    place.offset = hone::NextArchivePage(end);
    end = place.offset + place.bytes;
  }
  std::string archive = hone::ArchiveHead(places);
  for (size_t i = 0; i < places.size(); ++i) {
    archive.resize(places[i].offset);
    archive.append(members[i]);
  }
  return archive;
}

// With the checksum of the head put right.
std::string ArchiveWithHead(std::string_view bytes) {
  std::string archive(bytes);
  hone::ArchiveHeader header;
  if (archive.size() < sizeof(header)) return archive;
  std::memcpy(&header, archive.data(), sizeof(header));
  const uint64_t head = hone::ArchiveHeadBytes(std::min(header.members, hone::kArchiveMaxMembers));
  header.checksum = 0;
  std::memcpy(archive.data(), &header, sizeof(header));
  header.checksum = hone::Hash64(std::string_view(archive).substr(0, head));
  std::memcpy(archive.data(), &header, sizeof(header));
  return archive;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hone::MemoryLimit limit;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string archive = data[0] % 2 == 0 ? ArchiveOf(rest) : ArchiveWithHead(rest);
  const auto members = hone::ReadArchive(archive);
  if (data[0] % 2 == 0) HONE_CHECK(members.ok()) << members.error().message();
  const auto bundle = hone::Bundle::FromMemory(archive);
  if (!bundle.ok()) HONE_CHECK(!bundle.error().message().empty());
  return 0;
}
