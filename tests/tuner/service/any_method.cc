#include "tests/tuner/service/any_method.h"

#include <utility>

#include "grpcpp/generic/generic_stub.h"

namespace hone {

std::vector<Method> AllMethods() {
  std::vector<Method> methods;
  const auto add = [&](const char* service, const auto& policies) {
    const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    for (int i = 0; i < descriptor->method_count(); ++i) {
      methods.push_back({descriptor->method(i), policies.at(static_cast<size_t>(i)).roles});
    }
  };
  add("hone.v1.Tune", kPolicies<v1::Tune>);
  add("hone.v1.Fleet", kPolicies<v1::Fleet>);
  return methods;
}

const google::protobuf::Message& EmptyRequest(const Method& method) {
  return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(method.descriptor->input_type());
}

Answer CallMethod(const std::shared_ptr<grpc::Channel>& channel, std::unique_ptr<grpc::ClientContext> context,
                  const std::string& path, const google::protobuf::Message& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(context.get(), path, &queue);
  call->StartCall(nullptr);
  bool alive = done();
  if (alive) {
    const grpc::Slice slice(request.SerializeAsString());
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    done();
  }
  Answer answer;
  while (alive) {
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    alive = done();
    if (!alive) break;
    grpc::Slice slice;
    EXPECT_TRUE(bytes.DumpToSingleSlice(&slice).ok());
    answer.messages.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  call->Finish(&answer.status, nullptr);
  done();
  return answer;
}

Answer CallMethod(DaemonClient& client, const std::string& path, const google::protobuf::Message& request) {
  return CallMethod(client.channel(), client.Context(absl::Seconds(20)), path, request);
}

}  // namespace hone
