#include "compiler/driver/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/driver/exit_code.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;

struct TypeRow {
  const char* descr;
  DType type;
};
constexpr TypeRow kTypes[] = {
    {"<f4", DType::Float(32)}, {"<f8", DType::Float(64)}, {"<f2", DType::Float(16)}, {"<i8", DType::Int(64)},
    {"<i4", DType::Int(32)},   {"<i2", DType::Int(16)},   {"|i1", DType::Int(8)},    {"<u8", DType::UInt(64)},
    {"<u4", DType::UInt(32)},  {"<u2", DType::UInt(16)},  {"|u1", DType::UInt(8)},   {"|b1", DType::Bool()},
};

// What stands behind `key` in the header's Python dictionary, down to its end: NumPy writes it in one fixed form. ""
// when the key is not there. (A regular expression of the C++ library takes a stack frame for each byte that it
// matches.)
absl::string_view Behind(absl::string_view header, absl::string_view key) {
  const size_t at = header.find(key);
  return at == header.npos ? "" : absl::StripLeadingAsciiWhitespace(header.substr(at + key.size()));
}

std::optional<absl::string_view> Between(char first, char last, absl::string_view text) {
  const size_t end = text.find(last, 1);
  if (!absl::StartsWith(text, absl::string_view(&first, 1)) || end == text.npos) return std::nullopt;
  return text.substr(1, end - 1);
}

}  // namespace

absl::StatusOr<NdArray> ReadNpy(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", why, "; write it with numpy.save"));
  };
  if (bytes.size() < 12 || std::memcmp(bytes.data(), kMagic, kMagicSize) != 0) return refuse("not an .npy file");
  const int version = static_cast<unsigned char>(bytes[6]);
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t header_size = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    header_size |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  const size_t data_start = 8 + length_bytes + header_size;
  if (version < 1 || version > 3 || data_start > bytes.size() || header_size > 65536) {
    return refuse("the header is damaged, or of an unknown version");
  }
  const std::string header = bytes.substr(8 + length_bytes, header_size);
  const auto descr = Between('\'', '\'', Behind(header, "'descr':"));
  const absl::string_view fortran_order = Behind(header, "'fortran_order':");
  const auto shape_text = Between('(', ')', Behind(header, "'shape':"));
  const bool in_order = absl::StartsWith(fortran_order, "False");
  const bool named = descr && shape_text && shape_text->find_first_not_of("0123456789, ") == shape_text->npos &&
                     (in_order || absl::StartsWith(fortran_order, "True"));
  if (!named) return refuse("the header does not name type, order and shape");
  if (!in_order) return refuse("the array is in Fortran order; save numpy.ascontiguousarray(x)");
  const TypeRow* row = nullptr;
  for (const TypeRow& candidate : kTypes) {
    if (*descr == candidate.descr) row = &candidate;
  }
  if (row == nullptr) return refuse(absl::StrCat("elements of type '", *descr, "' are not supported"));
  std::vector<int64_t> shape;
  int64_t elements = 1;
  for (absl::string_view part : absl::StrSplit(*shape_text, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    int64_t extent = 0;
    if (!absl::SimpleAtoi(part, &extent) || __builtin_mul_overflow(elements, extent, &elements)) {
      return refuse("the shape is beyond 64 bits");
    }
    shape.push_back(extent);
  }
  int64_t wanted = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(row->type.bytes()), &wanted) ||
      static_cast<uint64_t>(wanted) != bytes.size() - data_start) {
    return refuse(
        absl::StrCat("shape and type ask for ", wanted, " bytes of data, the file has ", bytes.size() - data_start));
  }
  NdArray array(row->type, shape);
  std::copy_n(bytes.data() + data_start, static_cast<size_t>(wanted), array.data.data());
  return array;
}

absl::Status WriteNpy(const std::string& path, const NdArray& array) {
  const TypeRow* row = nullptr;
  for (const TypeRow& candidate : kTypes) {
    if (candidate.type == array.dtype) row = &candidate;
  }
  if (row == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": .npy has no type for ", ToText(array.dtype)));
  }
  std::string header = absl::StrCat("{'descr': '", row->descr, "', 'fortran_order': False, 'shape': (",
                                    absl::StrJoin(array.shape, ", "), array.shape.size() == 1 ? "," : "", "), }");
  header.append(63 - (10 + header.size()) % 64, ' ');  // data starts at a multiple of 64
  header.push_back('\n');
  std::string bytes(kMagic, kMagicSize);
  bytes.append({'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)});
  bytes += header;
  bytes.append(array.data.data(), array.data.size());
  return WriteFileAtomically(path, bytes);
}

}  // namespace hone
