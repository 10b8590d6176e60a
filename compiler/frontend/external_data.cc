#include "compiler/frontend/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::Status Refused(const std::string& location, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("external data \"", location, "\": ", why));
}

}  // namespace

ExternalData::ExternalData(std::string folder) : folder_(std::move(folder)) {}

ExternalData::~ExternalData() {
  for (const auto& [location, file] : files_) close(file.descriptor);
}

absl::StatusOr<ExternalData::File> ExternalData::Open(const std::string& location) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  if (folder_.empty())
    return Refused(location, "the model was not read from a folder, so there is no place to look for it");
  if (location.empty() || location[0] == '/' || location.find('\0') != std::string::npos) {
    return Refused(location, "it must be a path relative to the model's folder");
  }
  // One component after the other, no links: what is opened lies below the folder, whatever happens there meanwhile.
  int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return Refused(location, absl::StrCat("the folder ", folder_, " cannot be opened: ", strerror(errno)));
  const std::vector<std::string> parts = absl::StrSplit(location, '/', absl::SkipEmpty());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == ".") continue;
    if (parts[i] == "..") {
      close(folder);
      return Refused(location, "it climbs out of the model's folder");
    }
    const bool last = i + 1 == parts.size();
    const int next =
        openat(folder, parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
    const int error = errno;
    close(folder);
    if (next < 0) {
      if (error == ENOENT) return Refused(location, absl::StrCat("there is no such file in ", folder_));
      if (error == ELOOP || error == ENOTDIR)
        return Refused(location, "it leads through a symbolic link or a file; copy the data into the model's folder");
      return Refused(location, strerror(error));
    }
    folder = next;
  }
  struct stat info {};
  if (fstat(folder, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(folder);
    return Refused(location, "it is not a regular file");
  }
  if (info.st_nlink > 1) {  // another name of the same file may be outside, which this one does not tell
    close(folder);
    return Refused(location, absl::StrCat("it has ", info.st_nlink,
                                          " hard links, so that it may be a file from outside "
                                          "the model's folder; put a copy of it there (cp FILE COPY && mv COPY FILE)"));
  }
  return files_[location] = File{folder, static_cast<int64_t>(info.st_size)};
}

absl::StatusOr<int64_t> ExternalData::Size(const std::string& location) {
  HONE_ASSIGN_OR_RETURN(const File file, Open(location));
  return file.size;
}

absl::Status ExternalData::Read(const std::string& location, int64_t offset, std::span<char> to) {
  HONE_ASSIGN_OR_RETURN(const File file, Open(location));
  const int64_t length = static_cast<int64_t>(to.size());
  if (offset < 0 || offset > file.size || length > file.size - offset) {
    return Refused(location,
                   absl::StrCat(length, " bytes from offset ", offset, " on reach beyond its end: it has ", file.size));
  }
  for (int64_t done = 0; done < length;) {
    const ssize_t count = pread(file.descriptor, to.data() + done, static_cast<size_t>(length - done), offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Refused(location, count == 0 ? "it became shorter while it was read" : strerror(errno));
    done += count;
  }
  return absl::OkStatus();
}

}  // namespace hone
