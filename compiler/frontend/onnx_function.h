// Calls of the functions that an ONNX model defines.
#pragma once

#include "compiler/frontend/onnx_model.h"

namespace hone {

// The function that a node calls; nullptr when the model defines none of its name. It goes before an operator of that
// name.
const OnnxFunction* FindFunction(const OnnxModel& model, const OnnxNode& node);

// The function's body as `call` has it: attributes that refer to the function's have the call's value or the default,
// or are left out where there is neither. Nodes are named after the call.
OnnxGraph BodyOfCall(const OnnxFunction& function, const OnnxNode& call);

}  // namespace hone
