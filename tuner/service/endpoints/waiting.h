// A handler that waits for the core's answer: posts an event and gives back the reply, or the refusal as a status;
// UNAVAILABLE with the reason while the store cannot be written.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "tuner/service/core/core.h"

namespace hone {

// `make_event` takes the ReplyTo. Gives up when the caller has gone.
template <class Answer, class MakeEvent>
grpc::Status AskCore(Core& core, grpc::ServerContext* context, Answer* answer, MakeEvent make_event) {
  auto promise = std::make_shared<std::promise<Message>>();
  std::future<Message> future = promise->get_future();
  const ReplyTo to = core.Expect([promise](Message message) { promise->set_value(std::move(message)); });
  core.Post(make_event(to));
  for (int quarters = 0; future.wait_for(std::chrono::milliseconds(250)) != std::future_status::ready; ++quarters) {
    if (context->IsCancelled()) return {grpc::StatusCode::CANCELLED, "the caller has gone"};
    // What was asked for is done as soon as it can be written; whoever asks may ask again.
    const std::optional<StoreWriter::Trouble> trouble = core.write_trouble();
    if (quarters >= 3 && trouble.has_value()) return {grpc::StatusCode::UNAVAILABLE, trouble->words};
  }
  Message message = future.get();
  if (const Refusal* refusal = std::get_if<Refusal>(&message)) {
    return {static_cast<grpc::StatusCode>(refusal->code), refusal->message};
  }
  Answer* got = std::get_if<Answer>(&message);
  if (got == nullptr) return {grpc::StatusCode::INTERNAL, "an answer to another question"};
  *answer = std::move(*got);
  return grpc::Status::OK;
}

}  // namespace hone
