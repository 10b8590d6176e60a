// Signed bundles: the member `signature` of the archive holds an Ed25519 signature (RFC 8032) of all other members, so
// that whoever has the public key knows that a bundle is what the holder of the private key signed, byte for byte.
// Runtimes that are given no key ignore it.
//
// What is signed is "hone bundle 1\n" and the SHA-512 of the other members in their order: of each its name with a zero
// byte behind it, its length as 8 bytes, little-endian, its bytes.
//
// The system's libcrypto (OpenSSL 3) does it, loaded when a key is used for the first time: programs that use none need
// no more than the C++ library. kUnsupported where it is not there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/error.h"

namespace hone {

inline constexpr char kSignatureMember[] = "signature";

// The signature of these members, for a member of its own behind them; one that is among them does not count. The key
// is PEM, as `openssl genpkey -algorithm ed25519` writes it: kInvalidArgument for any other.
RuntimeResult<std::string> Signature(std::span<const ArchiveMember> members, std::string_view private_key);

// kCorrupt when there is no signature, or it is not by that key of these members; kInvalidArgument when the key is no
// Ed25519 public key in PEM, as `openssl pkey -pubout` writes it.
RuntimeError CheckSignature(std::span<const ArchiveMember> members, std::string_view public_key);

}  // namespace hone
