#include "compiler/package/archive_writer.h"

#include <utility>

#include "compiler/support/check.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<ArchiveWriter> ArchiveWriter::Create(const std::string& path, size_t members) {
  HONE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  ArchiveWriter writer(std::move(file), members);
  HONE_RETURN_IF_ERROR(writer.FillTo(ArchiveHeadBytes(members)));
  return writer;
}

absl::Status ArchiveWriter::FillTo(uint64_t offset) {
  return file_.Append(std::string(offset - static_cast<uint64_t>(file_.size()), '\0'));
}

void ArchiveWriter::EndMember() {
  if (!places_.empty()) places_.back().checksum = checksum_.Finish();
  checksum_ = Hash64Stream();
}

absl::Status ArchiveWriter::Begin(std::string name) {
  HONE_CHECK(places_.size() < members_) << "more members than the " << members_ << " that were announced";
  EndMember();
  const uint64_t offset = NextArchivePage(static_cast<uint64_t>(file_.size()));
  places_.push_back({std::move(name), offset, 0, 0});
  return FillTo(offset);
}

absl::Status ArchiveWriter::Append(std::string_view bytes) {
  HONE_RETURN_IF_ERROR(file_.Append(bytes));
  checksum_.Add(bytes);
  places_.back().bytes += bytes.size();
  return absl::OkStatus();
}

absl::Status ArchiveWriter::Add(std::string name, std::string_view bytes) {
  HONE_RETURN_IF_ERROR(Begin(std::move(name)));
  return Append(bytes);
}

absl::Status ArchiveWriter::ReadBack(uint64_t offset, std::span<char> to) const {
  return file_.ReadAt(static_cast<int64_t>(places_.back().offset + offset), to);
}

absl::Status ArchiveWriter::Finish() {
  HONE_CHECK(places_.size() == members_) << places_.size() << " members, " << members_ << " were announced";
  EndMember();
  return file_.WriteAt(0, ArchiveHead(places_));
}

}  // namespace hone
