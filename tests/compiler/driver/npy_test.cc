#include "compiler/driver/npy.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

// A file of format version 2 with this dictionary and so many bytes of data.
std::string NpyFile(const std::string& dictionary, size_t data_bytes) {
  std::string file = "\x93NUMPY\2";
  file.push_back('\0');
  for (int i = 0; i < 4; ++i) file.push_back(static_cast<char>(dictionary.size() >> (8 * i) & 255));
  return file + dictionary + std::string(data_bytes, '\1');
}

// Of this process: tests run side by side.
std::string NpyPath() { return absl::StrCat(::testing::TempDir(), "/npy_test_", ::getpid(), ".npy"); }

absl::StatusOr<NdArray> ReadBytes(const std::string& bytes) {
  const std::string path = NpyPath();
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  absl::StatusOr<NdArray> read = ReadNpy(path);
  ::unlink(path.c_str());
  return read;
}

TEST(Npy, ReadsWhatItWrites) {
  const std::string path = NpyPath();
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 4}}) {
    NdArray array(DType::Int(32), shape);
    for (size_t i = 0; i < array.data.size(); ++i) array.data[i] = static_cast<char>(i);
    ASSERT_TRUE(WriteNpy(path, array).ok());
    const absl::StatusOr<NdArray> read = ReadNpy(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->dtype, array.dtype);
    EXPECT_EQ(read->shape, array.shape);
    EXPECT_EQ(read->data, array.data);
  }
  ::unlink(path.c_str());
}

struct NpyCase {
  const char* name;
  std::string dictionary, refusal;  // "": it is read
};
const NpyCase kNpyCases[] = {
    {"AsNumpyWrites", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", ""},
    {"NoType", "{'fortran_order': False, 'shape': (2,), }", "does not name type, order and shape"},
    {"NoShape", "{'descr': '<f4', 'fortran_order': False, }", "does not name type, order and shape"},
    {"OpenShape", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "does not name type, order and shape"},
    {"NegativeShape", "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
     "does not name type, order and shape"},
    {"NoOrder", "{'descr': '<f4', 'fortran_order': None, 'shape': (2,)}", "does not name type, order and shape"},
    {"FortranOrder", "{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", "in Fortran order"},
    {"OtherType", "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "elements of type '>f4'"},
    {"MoreThanThereIs", "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "ask for 12 bytes of data"},
    {"BeyondABillion", "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "beyond 64 bits"},
    // As long as a header may be.
    {"LongType", absl::StrCat("{'descr': '", std::string(65000, 'x'), "'"), "does not name type, order and shape"},
    {"LongBlank", absl::StrCat("'descr':", std::string(65000, ' ')), "does not name type, order and shape"},
};
void PrintTo(const NpyCase& row, std::ostream* out) { *out << row.name; }

class NpyHeader : public ::testing::TestWithParam<NpyCase> {};
TEST_P(NpyHeader, IsReadOrRefused) {
  const absl::StatusOr<NdArray> array = ReadBytes(NpyFile(GetParam().dictionary, 8));
  ASSERT_EQ(array.ok(), GetParam().refusal.empty()) << array.status();
  if (!array.ok()) { EXPECT_THAT(array.status().message(), ::testing::HasSubstr(GetParam().refusal)); }
}
INSTANTIATE_TEST_SUITE_P(Files, NpyHeader, ::testing::ValuesIn(kNpyCases),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace hone
