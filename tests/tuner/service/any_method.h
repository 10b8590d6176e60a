// Every method of the daemon's services, called as bytes: they come from the descriptors, so that a new one is among
// them by itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "tuner/service/access/policy.h"
#include "tuner/service/client.h"

namespace hone {

struct Method {
  const google::protobuf::MethodDescriptor* descriptor;
  Roles roles;
  std::string path() const {
    return absl::StrCat("/", std::string(descriptor->service()->full_name()), "/", std::string(descriptor->name()));
  }
};

std::vector<Method> AllMethods();
const google::protobuf::Message& EmptyRequest(const Method& method);

struct Answer {
  grpc::Status status;
  std::vector<std::string> messages;  // serialized

  template <class Message>
  Message First() const {
    Message message;
    EXPECT_TRUE(messages.empty() || message.ParseFromString(messages.front()));
    return message;
  }
};

// One request, then all that comes back.
Answer CallMethod(const std::shared_ptr<grpc::Channel>& channel, std::unique_ptr<grpc::ClientContext> context,
                  const std::string& path, const google::protobuf::Message& request);
Answer CallMethod(DaemonClient& client, const std::string& path, const google::protobuf::Message& request);

}  // namespace hone
