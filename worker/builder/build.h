// What a builder does with one request: parse, replay, lower, compile, link.
#pragma once

#include "hone/v1/build.pb.h"

namespace hone {

// Never fails as a call: what is wrong with the request or the candidate is `error` of the reply.
v1::BuildReply Build(const v1::BuildRequest& request);

}  // namespace hone
