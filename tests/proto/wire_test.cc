// What programs of two releases say to each other, and what the database keeps: a field's number and type, once
// released, mean the same for ever. wire.txt lists all of them, a line each. A line that is new is added to it by
// HONE_UPDATE_GOLDEN=1; one that changed or is gone is what an older release reads as something else.
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "hone/v1/build.pb.h"
#include "hone/v1/common.pb.h"
#include "hone/v1/fleet.pb.h"
#include "hone/v1/model.pb.h"
#include "hone/v1/trace.pb.h"
#include "hone/v1/tune.pb.h"

namespace hone {
namespace {

using Lines = std::set<std::string>;

std::string TypeOf(const google::protobuf::FieldDescriptor& field) {
  if (field.message_type() != nullptr) return field.message_type()->full_name();
  if (field.enum_type() != nullptr) return field.enum_type()->full_name();
  return field.type_name();
}

void AddEnum(const google::protobuf::EnumDescriptor& type, Lines& lines) {
  for (int i = 0; i < type.value_count(); ++i) {
    lines.insert(absl::StrCat(type.full_name(), " ", type.value(i)->number(), " is ", type.value(i)->name()));
  }
}

// Names are not on the wire, numbers are.
void AddMessage(const google::protobuf::Descriptor& type, Lines& lines) {
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    lines.insert(absl::StrCat(type.full_name(), " ", field.number(), " is ", field.is_repeated() ? "repeated " : "",
                              TypeOf(field)));
  }
  for (int i = 0; i < type.nested_type_count(); ++i) AddMessage(*type.nested_type(i), lines);
  for (int i = 0; i < type.enum_type_count(); ++i) AddEnum(*type.enum_type(i), lines);
}

void AddFile(const google::protobuf::FileDescriptor& file, Lines& lines) {
  for (int i = 0; i < file.message_type_count(); ++i) AddMessage(*file.message_type(i), lines);
  for (int i = 0; i < file.enum_type_count(); ++i) AddEnum(*file.enum_type(i), lines);
  for (int s = 0; s < file.service_count(); ++s) {
    for (int m = 0; m < file.service(s)->method_count(); ++m) {
      const google::protobuf::MethodDescriptor& method = *file.service(s)->method(m);
      const auto side = [](bool streams, const google::protobuf::Descriptor& type) {
        return absl::StrCat(streams ? "stream " : "", type.full_name());
      };
      lines.insert(absl::StrCat(method.full_name(), " takes ", side(method.client_streaming(), *method.input_type()),
                                " and gives ", side(method.server_streaming(), *method.output_type())));
    }
  }
}

// Those that leave a release. A daemon and its searches, a worker and its oracles are of one.
Lines LinesOfToday() {
  Lines lines;
  for (const google::protobuf::Descriptor* one :
       {v1::BuildRequest::descriptor(), v1::Workload::descriptor(), v1::SyncRequest::descriptor(),
        v1::StoredModel::descriptor(), v1::TraceStep::descriptor(), v1::JobSnapshot::descriptor()}) {
    AddFile(*one->file(), lines);
  }
  return lines;
}

TEST(Wire, FieldsKeepTheirNumbersAndTypes) {
  const std::string path = HONE_TEST_DATA "/proto/wire.txt";
  Lines kept;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) kept.insert(line);
  const Lines today = LinesOfToday();
  for (const std::string& line : kept) EXPECT_TRUE(today.count(line) != 0) << "gone, or changed: " << line;
  if (HasFailure()) return;
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream written(path);
    for (const std::string& line : today) written << line << "\n";
    return;
  }
  EXPECT_GT(kept.size(), 300u);
  for (const std::string& line : today) EXPECT_TRUE(kept.count(line) != 0) << "new: " << line;
}

// What a newer release adds is passed over by this one, and comes back whole from whoever passes it on.
TEST(Wire, WhatANewerReleaseAddsIsPassedOver) {
  v1::Outcome newer;
  newer.set_detail("said");
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(4711, "added");
  newer.set_kind(static_cast<v1::OutcomeKind>(4711));
  v1::Outcome read;
  ASSERT_TRUE(read.ParseFromString(newer.SerializeAsString()));
  EXPECT_EQ(read.detail(), "said");
  EXPECT_FALSE(v1::OutcomeKind_IsValid(read.kind()));
  EXPECT_EQ(read.SerializeAsString(), newer.SerializeAsString());
}

}  // namespace
}  // namespace hone
