// Whole files, read and written so that a reader never sees half of one.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

// NotFound, PermissionDenied or Internal, with the path and the system's reason. A folder is InvalidArgument.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// The same piece by piece.
absl::Status ReadInPieces(const std::string& path, const std::function<void(std::string_view)>& take);
// The descriptor of a file to be read, for the caller to close. Errors as ReadFile's.
absl::StatusOr<int> OpenToRead(const std::string& path);
// Writes beside `path`, syncs, renames; on failure nothing is left behind and an older file stays as it was.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);
// The folder the running program's file is in: where the programs it starts are found.
std::string ProgramFolder();

}  // namespace hone
