#include "compiler/package/sign_bundle.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/package/archive_writer.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/bundle/signature.h"

namespace hone {
namespace {

absl::Status AsStatus(const RuntimeError& error) {
  return error.code() == RuntimeCode::kInternal ? absl::InternalError(error.message())
                                                : absl::InvalidArgumentError(error.message());
}

}  // namespace

absl::Status CheckSigningKey(const std::string& private_key) {
  const RuntimeResult<std::string> signature = Signature({}, private_key);
  return signature.ok() ? absl::OkStatus() : AsStatus(signature.error());
}

absl::Status SignBundle(const std::string& path, const std::string& private_key) {
  HONE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  RuntimeResult<std::vector<ArchiveMember>> members = ReadArchive(file.bytes());
  if (!members.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", members.error().message()));
  std::erase_if(*members, [](const ArchiveMember& member) { return member.name == kSignatureMember; });
  const RuntimeResult<std::string> signature = Signature(*members, private_key);
  if (!signature.ok()) return AsStatus(signature.error());
  HONE_ASSIGN_OR_RETURN(ArchiveWriter archive, ArchiveWriter::Create(path, members->size() + 1));
  for (const ArchiveMember& member : *members) HONE_RETURN_IF_ERROR(archive.Add(member.name, member.bytes));
  HONE_RETURN_IF_ERROR(archive.Add(kSignatureMember, *signature));
  HONE_RETURN_IF_ERROR(archive.Finish());
  return archive.Commit();
}

}  // namespace hone
