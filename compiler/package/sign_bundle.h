// Signs a bundle (deploy/runtime/bundle/signature.h).
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone {

// Puts a signature by this key, a PEM, behind the members of the bundle at `path`, in place of one that it may have.
// The file is replaced whole or not at all. InvalidArgument when the key is none to sign with or the file is no bundle.
absl::Status SignBundle(const std::string& path, const std::string& private_key);

// OK when the key can sign.
absl::Status CheckSigningKey(const std::string& private_key);

}  // namespace hone
